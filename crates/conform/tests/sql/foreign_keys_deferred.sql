-- Deferred keys, and what counts as changed.
CREATE TABLE d(id PRIMARY KEY, r REFERENCES d DEFERRABLE INITIALLY DEFERRED);
PRAGMA foreign_keys=1;
SELECT total_changes();
INSERT INTO d VALUES(1,2);
SELECT total_changes();
BEGIN;
INSERT INTO d VALUES(1,2);
SELECT total_changes();
INSERT INTO d VALUES(2,3);
SELECT total_changes();
COMMIT;
SELECT total_changes();
INSERT INTO d VALUES(3,1);
COMMIT;
SELECT total_changes();
