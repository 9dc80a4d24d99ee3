//! TATP's threads with the write queue: reads on a connection of each thread, writes as jobs of `Database::writer()`. A thread
//! waits for its job's answer before it goes on, so every commit is durable when it counts, as with plain connections.

use super::tatp_data::Client;
use iolite::{Code, Database, JobOptions, Value as Own, Writer};
use iolite_bench::engine::{Result, Value};

/// The queue of a database, shared by the threads.
pub struct Shared {
    database: Database,
    settings: String,
}

fn text(e: iolite::Error) -> iolite_bench::engine::Error {
    e.to_string().into()
}

fn own(v: &Value) -> iolite::Result<Own> {
    Ok(match v {
        Value::Null => Own::Null,
        Value::Int(n) => Own::Int(*n),
        Value::Real(r) => Own::Real(*r),
        Value::Text(t) => Own::text(t)?,
        Value::Blob(b) => Own::blob(b)?,
    })
}

impl Shared {
    /// The queue of this file; its connection gets the settings.
    pub fn new(path: &std::path::Path, settings: &str) -> Result<Shared> {
        let database = Database::open(&path.to_string_lossy()).map_err(text)?;
        Ok(Shared { database, settings: settings.into() })
    }

    /// A hold on the queue, for one thread.
    pub fn writer(&self) -> Result<Writer> {
        let w = self.database.writer().map_err(text)?;
        let settings = self.settings.clone();
        // Pragmas of a connection, not of the file: a transaction does not stand in their way.
        let set = w.submit(JobOptions::default(), move |c| c.execute_batch(&settings)).map_err(text)?;
        set.wait().map_err(text)?;
        Ok(w)
    }
}

/// Runs a writing transaction through the queue. A violated constraint is an ordinary outcome.
pub fn write(w: &Writer, c: &mut Client<'_>, which: usize) -> Result<()> {
    let script = c.script(which);
    let done = w.submit(JobOptions::default(), move |c| {
        for (sql, params) in &script {
            let params = params.iter().map(own).collect::<iolite::Result<Vec<_>>>()?;
            c.query(sql, &params)?;
        }
        Ok(())
    });
    match done.map_err(text)?.wait() {
        Err(e) if e.code().primary() != Code::Constraint => Err(text(e)),
        _ => Ok(()),
    }
}
