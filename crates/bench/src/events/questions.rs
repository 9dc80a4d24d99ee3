//! The questions that are asked of the wide table.
//!
//! Orders that leave ties are left as they are: SQLite's answer is one of several right ones, and the one to be given.

use super::LARGE_SITE;

/// A question.
pub struct Question {
    /// Its name.
    pub name: String,
    /// In SQLite's words.
    pub sql: String,
    /// In DuckDB's, where they differ.
    pub duck: Option<String>,
}

/// The questions for a table of so many rows.
pub fn questions(rows: u64) -> Vec<Question> {
    let many = rows / 1000;
    let site = format!("site = {LARGE_SITE} AND day >= '2025-07-01' AND day <= '2025-07-31'");
    let sums: Vec<String> = (0..90).map(|i| format!("SUM(width + {i})")).collect();
    let visitor = crate::random::mix(3) as i64;
    let host = "substr(referer, 8, instr(substr(referer, 8), '/') - 1)";
    let some_hash = "(SELECT min(url_hash) FROM events WHERE n05 = 4 AND site = 62)";
    let list: Vec<(&str, String)> = vec![
        ("count", "SELECT COUNT(*) FROM events".into()),
        ("count where", "SELECT COUNT(*) FROM events WHERE campaign <> 0".into()),
        ("sum count avg", "SELECT SUM(campaign), COUNT(*), AVG(width) FROM events".into()),
        ("avg 64 bits", "SELECT AVG(visitor) FROM events".into()),
        ("distinct numbers", "SELECT COUNT(DISTINCT visitor) FROM events".into()),
        ("distinct texts", "SELECT COUNT(DISTINCT phrase) FROM events".into()),
        ("bounds of dates", "SELECT MIN(day), MAX(day) FROM events".into()),
        ("bounds of texts", "SELECT MIN(url), MAX(url) FROM events".into()),
        ("bounds of 64 bits", "SELECT MIN(id), MAX(id) FROM events".into()),
        ("small key", "SELECT campaign, COUNT(*) FROM events WHERE campaign <> 0 GROUP BY campaign ORDER BY COUNT(*) DESC".into()),
        ("distinct by region", "SELECT region, COUNT(DISTINCT visitor) AS u FROM events GROUP BY region ORDER BY u DESC LIMIT 10".into()),
        ("aggregates by region", "SELECT region, SUM(campaign), COUNT(*) AS c, AVG(width), COUNT(DISTINCT visitor) FROM events GROUP BY region ORDER BY c DESC LIMIT 10".into()),
        ("distinct by model", "SELECT phone_model, COUNT(DISTINCT visitor) AS u FROM events WHERE phone_model <> '' GROUP BY phone_model ORDER BY u DESC LIMIT 10".into()),
        ("distinct by phone, model", "SELECT phone, phone_model, COUNT(DISTINCT visitor) AS u FROM events WHERE phone_model <> '' GROUP BY phone, phone_model ORDER BY u DESC LIMIT 10".into()),
        ("phrases", "SELECT phrase, COUNT(*) AS c FROM events WHERE phrase <> '' GROUP BY phrase ORDER BY c DESC LIMIT 10".into()),
        ("distinct by phrase", "SELECT phrase, COUNT(DISTINCT visitor) AS u FROM events WHERE phrase <> '' GROUP BY phrase ORDER BY u DESC LIMIT 10".into()),
        ("engine, phrase", "SELECT engine, phrase, COUNT(*) AS c FROM events WHERE phrase <> '' GROUP BY engine, phrase ORDER BY c DESC LIMIT 10".into()),
        ("visitors", "SELECT visitor, COUNT(*) FROM events GROUP BY visitor ORDER BY COUNT(*) DESC LIMIT 10".into()),
        ("visitor, phrase", "SELECT visitor, phrase, COUNT(*) FROM events GROUP BY visitor, phrase ORDER BY COUNT(*) DESC LIMIT 10".into()),
        ("visitor, phrase, any", "SELECT visitor, phrase, COUNT(*) FROM events GROUP BY visitor, phrase LIMIT 10".into()),
        ("visitor, minute, phrase", "SELECT visitor, CAST(strftime('%M', time) AS INTEGER) AS m, phrase, COUNT(*) FROM events GROUP BY visitor, m, phrase ORDER BY COUNT(*) DESC LIMIT 10".into()),
        ("one visitor", format!("SELECT visitor FROM events WHERE visitor = {visitor}")),
        ("like", "SELECT COUNT(*) FROM events WHERE url LIKE '%google%'".into()),
        ("like by phrase", "SELECT phrase, MIN(url), COUNT(*) AS c FROM events WHERE url LIKE '%google%' AND phrase <> '' GROUP BY phrase ORDER BY c DESC LIMIT 10".into()),
        ("like, not like", "SELECT phrase, MIN(url), MIN(title), COUNT(*) AS c, COUNT(DISTINCT visitor) FROM events WHERE title LIKE '%Google%' AND url NOT LIKE '%.google.%' AND phrase <> '' GROUP BY phrase ORDER BY c DESC LIMIT 10".into()),
        ("rows by time", "SELECT * FROM events WHERE url LIKE '%google%' ORDER BY time LIMIT 10".into()),
        ("phrases by time", "SELECT phrase FROM events WHERE phrase <> '' ORDER BY time LIMIT 10".into()),
        ("phrases in order", "SELECT phrase FROM events WHERE phrase <> '' ORDER BY phrase LIMIT 10".into()),
        ("phrases by both", "SELECT phrase FROM events WHERE phrase <> '' ORDER BY time, phrase LIMIT 10".into()),
        ("length by site", format!("SELECT site, AVG(length(url)) AS l, COUNT(*) AS c FROM events WHERE url <> '' GROUP BY site HAVING COUNT(*) > {many} ORDER BY l DESC LIMIT 25")),
        ("length by host", format!("SELECT {host} AS k, AVG(length(referer)) AS l, COUNT(*) AS c, MIN(referer) FROM events WHERE referer <> '' GROUP BY k HAVING COUNT(*) > {many} ORDER BY l DESC LIMIT 25")),
        ("ninety sums", format!("SELECT {} FROM events", sums.join(", "))),
        ("engine, address", "SELECT engine, address, COUNT(*) AS c, SUM(refresh), AVG(width) FROM events WHERE phrase <> '' GROUP BY engine, address ORDER BY c DESC LIMIT 10".into()),
        ("id, address, some", "SELECT id, address, COUNT(*) AS c, SUM(refresh), AVG(width) FROM events WHERE phrase <> '' GROUP BY id, address ORDER BY c DESC LIMIT 10".into()),
        ("id, address", "SELECT id, address, COUNT(*) AS c, SUM(refresh), AVG(width) FROM events GROUP BY id, address ORDER BY c DESC LIMIT 10".into()),
        ("urls", "SELECT url, COUNT(*) AS c FROM events GROUP BY url ORDER BY c DESC LIMIT 10".into()),
        ("constant, url", "SELECT 1, url, COUNT(*) AS c FROM events GROUP BY 1, url ORDER BY c DESC LIMIT 10".into()),
        ("address less 1, 2, 3", "SELECT address, address - 1, address - 2, address - 3, COUNT(*) AS c FROM events GROUP BY address, address - 1, address - 2, address - 3 ORDER BY c DESC LIMIT 10".into()),
        ("site: urls", format!("SELECT url, COUNT(*) AS v FROM events WHERE {site} AND refresh = 0 AND n02 = 0 AND url <> '' GROUP BY url ORDER BY v DESC LIMIT 10")),
        ("site: titles", format!("SELECT title, COUNT(*) AS v FROM events WHERE {site} AND refresh = 0 AND n02 = 0 AND title <> '' GROUP BY title ORDER BY v DESC LIMIT 10")),
        ("site: urls, later", format!("SELECT url, COUNT(*) AS v FROM events WHERE {site} AND refresh = 0 AND n08 = 0 GROUP BY url ORDER BY v DESC LIMIT 10 OFFSET 1000")),
        ("site: five keys", format!("SELECT source, engine, campaign, CASE WHEN engine = 0 AND campaign = 0 THEN referer ELSE '' END AS src, url AS dst, COUNT(*) AS v FROM events WHERE {site} AND refresh = 0 GROUP BY source, engine, campaign, src, dst ORDER BY v DESC LIMIT 10 OFFSET 1000")),
        ("site: hash, day", format!("SELECT url_hash, day, COUNT(*) AS v FROM events WHERE {site} AND refresh = 0 AND source IN (-1, 6) GROUP BY url_hash, day ORDER BY v DESC LIMIT 10 OFFSET 100")),
        ("site: windows", format!("SELECT window_width, window_height, COUNT(*) AS v FROM events WHERE {site} AND refresh = 0 AND n08 = 0 AND url_hash = {some_hash} GROUP BY window_width, window_height ORDER BY v DESC LIMIT 10")),
        ("site: minutes", format!("SELECT substr(time, 1, 16) AS m, COUNT(*) AS v FROM events WHERE site = {LARGE_SITE} AND day >= '2025-07-14' AND day <= '2025-07-15' AND refresh = 0 AND n02 = 0 GROUP BY m ORDER BY m LIMIT 10 OFFSET 1000")),
        ("minutes", "SELECT substr(time, 1, 16) AS m, COUNT(*) FROM events GROUP BY m".into()),
        ("days and widths", "SELECT day, width, COUNT(*), AVG(load_time) FROM events GROUP BY day, width".into()),
        ("distinct pairs", "SELECT DISTINCT engine, source FROM events".into()),
        ("a hundredth", "SELECT id, url FROM events WHERE n05 = 77 AND load_time < 500".into()),
        ("names", "SELECT n.kind, COUNT(*) FROM events e JOIN names n ON e.s01 = n.name GROUP BY n.kind".into()),
        ("first visits", "SELECT COUNT(*), SUM(length(e.url)) FROM events e JOIN (SELECT visitor AS v, MIN(time) AS t FROM events GROUP BY visitor) f ON e.visitor = f.v AND e.time = f.t".into()),
        ("running totals", format!("SELECT SUM(t) FROM (SELECT SUM(width) OVER (PARTITION BY visitor ORDER BY time, id) AS t FROM events WHERE site = {LARGE_SITE})")),
        ("ranks", "SELECT site, url, c FROM (SELECT site, url, COUNT(*) AS c, rank() OVER (PARTITION BY site ORDER BY COUNT(*) DESC, url) AS r FROM events WHERE site < 50 GROUP BY site, url) WHERE r <= 2 ORDER BY site, r LIMIT 20".into()),
    ];
    list.into_iter()
        .map(|(name, sql)| {
            let duck = sql.contains("strftime").then(|| {
                sql.replace(
                    "CAST(strftime('%M', time) AS INTEGER)",
                    "extract(minute FROM CAST(time AS TIMESTAMP))",
                )
            });
            Question { name: name.into(), sql, duck }
        })
        .collect()
}
