SELECT unixepoch(1700000000, '+0001-01-01 00:00', 'utc'), unixepoch(1700000000, '+0001-01-01 00:00');
SELECT unixepoch(1700000000, '+1 year', 'utc'), unixepoch(1700000000, '+1 month', 'utc'), unixepoch(1700000000, '+1 day', 'utc');
SELECT date('1700000000', 'localtime', 'utc'), datetime(-1, 'localtime', 'utc'), datetime(1e20, 'subsec', 'localtime', 'utc'), datetime(5373484.5, '+1 day', 'localtime');
