//! `hybrid(fts_table, match, vector_table, query_vector, k, options)`: a search of a full-text index and one of vectors, as one order.
//!
//! Both are statements of the connection's own, so it sees what any query there sees. A row that only one of them has found has no part
//! of the other's in its score. Equal scores are ordered by rowid. It does not know how either search works.

use crate::arguments;
use crate::store::quoted;
use crate::table::Table;
use iolite_base::{Code, Error, Result};
use iolite_ext::{
    Declared, FilterArgs, Host, IndexInfo, Module, ModuleKind, TableArgs, VirtualCursor, VirtualTable,
};
use iolite_value::Value;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

/// The module.
pub(crate) struct Hybrid;

const DECLARATION: &str = "CREATE TABLE x(score, text_rank, vector_rank, fts_table HIDDEN, match HIDDEN, vector_table HIDDEN, query_vector HIDDEN, k HIDDEN, options HIDDEN)";
/// The first hidden column.
const FIRST_ARGUMENT: i32 = 3;
/// The most rows that either search is asked for.
const MOST: i64 = 4096;

impl Module for Hybrid {
    fn kind(&self) -> ModuleKind {
        ModuleKind::EponymousOnly
    }

    fn connect(&self, host: &Rc<dyn Host>, _: &TableArgs<'_>) -> Result<Declared> {
        let table = Rc::new(Fused { host: Rc::downgrade(host) });
        Ok(Declared { uses_all_schemas: true, ..Declared::new(DECLARATION, table) })
    }
}

struct Fused {
    host: Weak<dyn Host>,
}

impl VirtualTable for Fused {
    fn best_index(&self, info: &mut IndexInfo) -> Result<()> {
        arguments::take(info, FIRST_ARGUMENT, 5, 6)?;
        info.ordered = matches!(info.order_by[..], [o] if o.column == 0 && o.desc);
        (info.cost, info.rows) = (1000.0, 10);
        Ok(())
    }

    fn open(&self) -> Result<Box<dyn VirtualCursor>> {
        Ok(Box::new(Cursor { host: self.host.clone(), rows: Vec::new(), at: 0 }))
    }
}

/// How the two orders become one.
struct Options {
    weighted: bool,
    constant: f64,
    text_weight: f64,
    vector_weight: f64,
    /// How many rows each search is asked for.
    candidates: i64,
    column: Option<String>,
}

impl Options {
    /// `name=value` pairs with commas between them.
    fn parse(text: &str, k: i64) -> Result<Options> {
        let candidates = (4 * k).clamp(k, MOST);
        let mut o = Options {
            weighted: false,
            constant: 60.0,
            text_weight: 1.0,
            vector_weight: 1.0,
            candidates,
            column: None,
        };
        for pair in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let unknown = || Error::sql(format!("hybrid: unknown option: {pair}"));
            let (name, value) = pair.split_once('=').ok_or_else(unknown)?;
            let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
            let number =
                || value.parse::<f64>().ok().filter(|x| x.is_finite() && *x >= 0.0).ok_or_else(unknown);
            match &*name {
                "fusion" if value.eq_ignore_ascii_case("rrf") => o.weighted = false,
                "fusion" if value.eq_ignore_ascii_case("weighted") => o.weighted = true,
                "constant" => o.constant = number()?,
                "text_weight" => o.text_weight = number()?,
                "vector_weight" => o.vector_weight = number()?,
                "candidates" => o.candidates = (number()? as i64).clamp(k, MOST),
                "column" => o.column = Some(value.into()),
                _ => return Err(unknown()),
            }
        }
        Ok(o)
    }

    /// Each row's part of a score, from what a search has found: rows with values that are the smaller the better.
    fn parts(&self, found: &[(i64, f64)], weight: f64) -> Vec<f64> {
        let values = || found.iter().map(|f| f.1);
        let (least, most) =
            (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        let part = |(place, (_, value)): (usize, &(i64, f64))| match self.weighted {
            false => weight / (self.constant + place as f64 + 1.0),
            true if most > least => weight * (most - value) / (most - least),
            true => weight,
        };
        found.iter().enumerate().map(part).collect()
    }
}

#[derive(Clone, Copy, Default)]
struct Row {
    rowid: i64,
    score: f64,
    ranks: [Option<i64>; 2],
}

struct Cursor {
    host: Weak<dyn Host>,
    rows: Vec<Row>,
    at: usize,
}

fn search(host: &dyn Host, sql: &str, query: &Value, n: i64) -> Result<Vec<(i64, f64)>> {
    let rows = host.query(sql, &[query.clone(), Value::Int(n)])?;
    Ok(rows.iter().map(|r| (r[0].to_int(), r[1].to_real())).collect())
}

impl Cursor {
    fn fuse(&mut self, args: &[Value]) -> Result<()> {
        let host = self.host.upgrade().ok_or(Code::Misuse)?;
        let [fts, pattern, vectors, vector, k, more @ ..] = args else { return Err(Code::Internal.into()) };
        let k = k.to_int();
        if !(0..=MOST).contains(&k) {
            return Err(Error::sql(format!("hybrid: k must be between 0 and {MOST}")));
        }
        let given = more.first().filter(|v| !v.is_null()).map(Value::to_string_lossy).unwrap_or_default();
        let options = Options::parse(&given, k)?;
        let (fts, vectors) = (fts.to_string_lossy(), vectors.to_string_lossy());
        let found = match host.virtual_table("main", &vectors)? {
            Some(t) => Some(t),
            None => host.virtual_table("temp", &vectors)?,
        };
        let table = found.as_ref().and_then(|t| t.as_any()).and_then(|t| t.downcast_ref::<Table>());
        let Some(table) = table else {
            return Err(Error::sql(format!("hybrid: no such vec0 table: {vectors}")));
        };
        let config = &table.store.config;
        if config.text_key {
            return Err(Error::sql(format!("hybrid: the rows of {vectors} have texts as keys")));
        }
        let column = options.column.clone().unwrap_or_else(|| config.vectors[0].name.clone());
        let place = (quoted(&table.store.database), quoted(&vectors));
        let key = quoted(config.key.as_deref().unwrap_or("rowid"));
        let fts = quoted(&fts);
        let texts = format!("SELECT rowid,rank FROM {fts} WHERE {fts} MATCH ?1 ORDER BY rank,rowid LIMIT ?2");
        let near = format!(
            "SELECT {key},distance FROM {}.{} WHERE {} MATCH ?1 AND k=?2",
            place.0,
            place.1,
            quoted(&column)
        );
        let n = options.candidates;
        let lists = [
            (search(&*host, &texts, pattern, n)?, options.text_weight),
            (search(&*host, &near, vector, n)?, options.vector_weight),
        ];
        let mut all: BTreeMap<i64, Row> = BTreeMap::new();
        for (which, (found, weight)) in lists.iter().enumerate() {
            for (place, (f, part)) in found.iter().zip(options.parts(found, *weight)).enumerate() {
                let row = all.entry(f.0).or_insert(Row { rowid: f.0, ..Row::default() });
                row.score += part;
                row.ranks[which] = Some(place as i64 + 1);
            }
        }
        self.rows = all.into_values().collect();
        // Sorting keeps the order by rowid where scores are equal.
        self.rows.sort_by(|a, b| b.score.total_cmp(&a.score));
        self.rows.truncate(k as usize);
        Ok(())
    }
}

impl VirtualCursor for Cursor {
    fn filter(&mut self, _: i32, _: &str, args: &FilterArgs<'_>) -> Result<()> {
        (self.rows, self.at) = (Vec::new(), 0);
        self.fuse(args)
    }

    fn next(&mut self) -> Result<()> {
        self.at += 1;
        Ok(())
    }

    fn eof(&self) -> bool {
        self.at >= self.rows.len()
    }

    fn column(&self, n: usize) -> Result<Value> {
        let row = self.rows.get(self.at).ok_or(Code::Abort)?;
        let rank = |k: usize| row.ranks[k].map_or(Value::Null, Value::Int);
        Ok(match n {
            0 => Value::real(row.score),
            1 => rank(0),
            2 => rank(1),
            _ => Value::Null,
        })
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.rows.get(self.at).ok_or(Code::Abort)?.rowid)
    }
}
