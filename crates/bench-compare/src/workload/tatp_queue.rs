//! TATP's threads with the write queue: reads on a connection of each thread, writes as jobs of `Database::writer()`. A thread
//! waits for its job's answer before it goes on, so every commit is durable when it counts, as with plain connections.

use super::tatp_data::Client;
use iolite::{Code, Database, JobOptions, Value as Own, Writer, params_from_iter};
use iolite_bench::engine::{Result, Value};

fn text(e: iolite::Error) -> iolite_bench::engine::Error {
    e.to_string().into()
}

fn own(v: &Value) -> Own {
    match v {
        Value::Null => Own::Null,
        Value::Int(n) => Own::Integer(*n),
        Value::Real(r) => Own::Real(*r),
        Value::Text(t) => Own::Text(String::from_utf8_lossy(t.as_ref()).into_owned()),
        Value::Blob(b) => Own::Blob(b.clone()),
    }
}

/// A database whose queue the threads share.
pub struct Shared(Database);

impl Shared {
    /// Names the file.
    pub fn new(path: &std::path::Path) -> Result<Shared> {
        Database::open(&path.to_string_lossy()).map(Shared).map_err(text)
    }

    /// A hold on the queue, for one thread.
    pub fn writer(&self) -> Result<Writer> {
        self.0.writer().map_err(text)
    }
}

/// Runs a writing transaction through the queue. A violated constraint is an ordinary outcome.
pub fn write(w: &Writer, c: &mut Client<'_>, which: usize) -> Result<()> {
    let script = c.script(which);
    let done = w.submit(JobOptions::default(), move |c| {
        for (sql, params) in &script {
            let mut s = c.prepare(sql)?;
            let mut rows = s.query(params_from_iter(params.iter().map(own)))?;
            while rows.next()?.is_some() {}
        }
        Ok(())
    });
    match done.map_err(text)?.wait() {
        Err(e) if e.code().primary() != Code::Constraint => Err(text(e)),
        _ => Ok(()),
    }
}
