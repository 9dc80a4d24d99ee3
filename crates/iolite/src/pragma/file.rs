//! What belongs to a database file: its header, its pages, its journal, and how its pages are kept.

use super::words::{int32, number, truth, truth_or, whole};
use super::{Call, Pragma, Rows, Schemas, Writes, int, one, text};
use iolite_base::{Encoding, Error, Result};
use iolite_btree::{AutoVacuum, Btree, JournalMode, LeaseTerms, LockingMode, SecureDelete, SyncMode};

pub(super) static PRAGMAS: &[Pragma] = &[
    Pragma::new("application_id", |c| meta(c, 8)).silent().writes(Writes::WithValue),
    Pragma::new("auto_vacuum", auto_vacuum).silent(),
    Pragma::new("cache_size", cache_size).silent(),
    Pragma::new("cache_spill", cache_spill).silent(),
    Pragma::new("checkpoint_thread", checkpoint_thread),
    Pragma::new("data_version", data_version),
    Pragma::new("default_cache_size", default_cache_size)
        .columns(&["cache_size"])
        .silent()
        .writes(Writes::WithValue),
    Pragma::new("encoding", encoding).silent().needs(Schemas::Known),
    Pragma::new("freelist_count", freelist_count),
    Pragma::new("journal_mode", journal_mode).writes(Writes::Always),
    Pragma::new("journal_size_limit", journal_size_limit),
    Pragma::new("large_value_direct", large_value_direct),
    Pragma::new("lock_lease_ms", lock_lease_ms),
    Pragma::new("locking_mode", locking_mode),
    Pragma::new("max_page_count", max_page_count),
    Pragma::new("mmap_size", mmap_size),
    Pragma::new("page_count", page_count),
    Pragma::new("page_size", page_size).silent(),
    Pragma::new("schema_version", |c| meta(c, 1)).silent().writes(Writes::WithValue),
    Pragma::new("secure_delete", secure_delete),
    Pragma::new("synchronous", synchronous).silent().tested(outside_transaction),
    Pragma::new("user_version", |c| meta(c, 6)).silent().writes(Writes::WithValue),
    Pragma::new("wal_autocheckpoint", wal_autocheckpoint),
];

fn meta(c: &Call<'_>, i: usize) -> Result<Rows> {
    if let Some(v) = c.value {
        if i == 1 && c.inner().settings.defensive() {
            return Ok(Vec::new());
        }
        let v = int32(v) as u32;
        c.writing(|b| b.set_meta(i, v))?;
        if i == 1 {
            c.inner().forget_schema(c.db()?);
        }
    }
    let v = c.reading_on(|b| b.meta(i))?;
    int(v as i32 as i64)
}

fn auto_vacuum(c: &Call<'_>) -> Result<Rows> {
    let b = c.btree()?;
    if let Some(v) = c.value {
        let mode = match v.to_ascii_lowercase().as_str() {
            "none" | "0" => AutoVacuum::None,
            "full" | "1" => AutoVacuum::Full,
            "incremental" | "2" => AutoVacuum::Incremental,
            _ => AutoVacuum::None,
        };
        let before = c.reading(|b| Ok(b.auto_vacuum()))?;
        let marked = before != AutoVacuum::None && mode != AutoVacuum::None && b.page_count() > 0;
        if marked {
            // The header first: it may be refused. Another's VACUUM may have come in between, after which it says nothing of a mode.
            c.writing(|b| match b.auto_vacuum() {
                now if now == AutoVacuum::None || now == mode => Ok(()),
                _ => b.set_meta(7, (mode == AutoVacuum::Incremental) as u32),
            })?;
        }
        b.set_auto_vacuum(mode)?;
        if mode != AutoVacuum::None && c.reading(|b| Ok(b.page_count()))? == 0 {
            // A new database begins here, so that the mode is the file's.
            c.writing(|b| match b.auto_vacuum() {
                AutoVacuum::Incremental => b.set_meta(7, 1),
                _ => Ok(()),
            })?;
        }
        c.inner().vacuum_auto_vacuum.set(Some(mode));
    }
    let mode = c.reading(|b| Ok(b.auto_vacuum()))?;
    int(match mode {
        AutoVacuum::None => 0,
        AutoVacuum::Full => 1,
        AutoVacuum::Incremental => 2,
    })
}

fn cache_size(c: &Call<'_>) -> Result<Rows> {
    let b = c.btree()?;
    if let Some(v) = c.value {
        let db = c.schema.map_or(Ok(0), |s| c.inner().database_number(s))?;
        c.inner().databases.borrow()[db].cache_sized.set(true);
        b.set_cache_size(int32(v).max(i32::MIN + 1))?;
    } else if c.db()? == 1 && !c.inner().databases.borrow()[1].cache_sized.get() {
        // Until it is set, that of the temporary database counts as none.
        return int(0);
    }
    int(b.cache_size() as i64)
}

fn cache_spill(c: &Call<'_>) -> Result<Rows> {
    let b = c.btree()?;
    if let Some(v) = c.value {
        let is_number = v.trim_start_matches(['-', '+']).starts_with(|c: char| c.is_ascii_digit());
        let on = truth_or(v, !is_number || number(v) != 0);
        b.set_cache_spill(on)?;
        c.inner().settings.cache_spill.set(if on { number(v).max(1) } else { 0 });
        return Ok(Vec::new());
    }
    // What is kept beside each page counts, too, where the size is one of bytes.
    const BESIDE: i64 = 136;
    let pages = match b.cache_size() as i64 {
        n if n < 0 => -n * 1024 / (c.reading(|b| Ok(b.page_size() as i64))? + BESIDE),
        n => n,
    };
    int(match c.inner().settings.cache_spill() {
        0 => 0,
        spill => pages.max(spill),
    })
}

/// Whether checkpoints after a commit may be left to a thread. SQLite has no such thing.
fn checkpoint_thread(c: &Call<'_>) -> Result<Rows> {
    let b = c.btree()?;
    if let Some(v) = c.value {
        let on = truth(v);
        c.inner().settings.checkpoint_thread.set(on);
        for b in c.all()? {
            b.set_checkpoint_thread(on)?;
        }
    }
    int(b.checkpoint_thread() as i64)
}

fn data_version(c: &Call<'_>) -> Result<Rows> {
    let v = c.reading_on(|b| Ok(b.data_version()))?;
    int(v as i64)
}

/// The cache size that the file's header names, in pages; it is the connection's too.
fn default_cache_size(c: &Call<'_>) -> Result<Rows> {
    if let Some(v) = c.value {
        let pages = int32(v).max(i32::MIN + 1).abs();
        c.writing(|b| b.set_meta(3, pages as u32))?;
        c.btree()?.set_cache_size(pages)?;
    }
    match c.reading_on(|b| b.meta(3))? as i32 {
        0 => int(-2000),
        pages => int((pages as i64).abs()),
    }
}

fn encoding(c: &Call<'_>) -> Result<Rows> {
    if let Some(v) = c.value {
        // Only a main database without content can still choose, whichever one is named, while no other has texts either.
        let mut fresh = c.inner().btree_if_open(1).is_none_or(|b| b.page_count() == 0);
        c.inner().btree_of(0)?;
        let all: Vec<Btree> = c.inner().databases.borrow().iter().filter_map(|d| d.btree.clone()).collect();
        for b in &all {
            fresh = fresh && b.reading(|b| Ok(b.page_count() == 0 || b.meta(5)? == 0))?;
        }
        let enc = match v.to_ascii_lowercase().replace('-', "").as_str() {
            "utf8" => Encoding::Utf8,
            "utf16le" => Encoding::Utf16le,
            "utf16be" => Encoding::Utf16be,
            "utf16" if cfg!(target_endian = "little") => Encoding::Utf16le,
            "utf16" => Encoding::Utf16be,
            _ if !fresh => return Ok(Vec::new()),
            _ => return Err(Error::sql(format!("unsupported encoding: {v}"))),
        };
        if fresh {
            for b in c.inner().databases.borrow().iter().filter_map(|d| d.btree.as_ref()) {
                b.set_encoding(enc);
            }
            c.inner().edit_schema(0, |s| s.encoding = enc);
            c.inner().edit_schema(1, |s| s.encoding = enc);
        }
        return Ok(Vec::new());
    }
    one(text(c.inner().encoding().name())?)
}

fn freelist_count(c: &Call<'_>) -> Result<Rows> {
    let n = c.reading_on(|b| b.freelist_count())?;
    int(n as i64)
}

fn journal_mode(c: &Call<'_>) -> Result<Rows> {
    let mode = c.value.and_then(JournalMode::from_name);
    // Without a journal, a statement that fails spoils the file.
    let mode = mode.filter(|m| *m != JournalMode::Off || !c.inner().settings.defensive());
    let targets = if mode.is_some() { c.all()? } else { vec![c.btree()?] };
    let mut last = None;
    let txn = &c.inner().txn;
    let within = !txn.is_autocommit() || txn.others_read();
    // As in SQLite those attached last come first: they change even where the main database cannot.
    for (i, b) in targets.iter().enumerate().rev() {
        let now = match mode {
            // What has been changed goes on as it began.
            Some(_) if b.has_changed() => b.journal_mode(),
            Some(m) if within && !b.is_transient() => {
                let was = b.reading(|b| Ok(b.journal_mode()))?;
                if was != m && (was == JournalMode::Wal || m == JournalMode::Wal) {
                    let way = if m == JournalMode::Wal { "into" } else { "out of" };
                    let what = format!("cannot change {way} wal mode from within a transaction");
                    return Err(Error::sql(what));
                }
                b.set_journal_mode(m)?
            }
            Some(m) => b.set_journal_mode(m)?,
            // Nothing is read for it, no lock taken: as it was when this connection last looked.
            None if c.has_schema()? => b.journal_mode(),
            None => b.reading(|b| Ok(b.journal_mode()))?,
        };
        if i == 0 {
            last = Some(now);
        }
    }
    one(text(last.map_or("delete", |m| m.name()))?)
}

fn journal_size_limit(c: &Call<'_>) -> Result<Rows> {
    let b = c.btree()?;
    if let Some(v) = c.value {
        b.set_journal_size_limit(number(v).max(-1))?;
    }
    int(b.journal_size_limit())
}

/// Whether large values may go to the file at once, in WAL mode. SQLite has no such thing.
fn large_value_direct(c: &Call<'_>) -> Result<Rows> {
    let b = c.btree()?;
    if let Some(v) = c.value {
        let on = truth(v);
        c.inner().settings.large_value_direct.set(on);
        for b in c.all()? {
            b.set_large_value_direct(on)?;
        }
    }
    int(b.large_value_direct() as i64)
}

/// For how long a read lock in WAL mode is kept unused, in milliseconds; 0: not at all. SQLite has no such thing.
fn lock_lease_ms(c: &Call<'_>) -> Result<Rows> {
    let b = c.btree()?;
    if let Some(v) = c.value {
        let n = number(v).clamp(0, 60_000) as u32;
        let terms = LeaseTerms::from_the_first(n);
        c.inner().settings.lock_lease.set(terms);
        for b in c.all()? {
            b.set_lock_lease(terms)?;
        }
    }
    int(b.lock_lease() as i64)
}

fn locking_mode(c: &Call<'_>) -> Result<Rows> {
    let mode = match c.value.map(str::to_ascii_lowercase).as_deref() {
        Some("exclusive") => Some(LockingMode::Exclusive),
        Some("normal") => Some(LockingMode::Normal),
        _ => None,
    };
    if let Some(m) = mode {
        if c.schema.is_none() {
            c.inner().settings.locking_mode.set(Some(m));
        }
        for b in c.all()? {
            b.set_locking_mode(m)?;
        }
    }
    // Without a name it is what databases get that are attached later.
    let default = c.inner().settings.locking_mode().unwrap_or(LockingMode::Normal);
    let asked = c.schema.is_none() && mode.is_none();
    let shown = if asked { default } else { c.btree()?.locking_mode() };
    let name = match shown {
        LockingMode::Exclusive => "exclusive",
        LockingMode::Normal => "normal",
    };
    one(text(name)?)
}

fn max_page_count(c: &Call<'_>) -> Result<Rows> {
    let v = c.value.and_then(whole).unwrap_or(0).clamp(0, u32::MAX as i64 - 1) as u32;
    let n = c.reading_on(|b| if v > 0 { b.set_max_page_count(v) } else { Ok(b.max_page_count()) })?;
    int(n as i64)
}

/// Remembered, for files only; pages are read and not mapped.
fn mmap_size(c: &Call<'_>) -> Result<Rows> {
    const MOST: i64 = 0x7fff_0000;
    let b = c.btree()?;
    if b.is_memory() || b.is_transient() {
        return Ok(Vec::new());
    }
    if let Some(v) = c.value {
        b.set_mmap_size(number(v).min(MOST));
    }
    int(b.mmap_size())
}

fn page_count(c: &Call<'_>) -> Result<Rows> {
    let n = c.reading_on(|b| Ok(b.page_count()))?;
    int(n as i64)
}

fn page_size(c: &Call<'_>) -> Result<Rows> {
    let b = c.btree()?;
    if let Some(v) = c.value {
        let n = number(v);
        if let Ok(n) = u32::try_from(n)
            && n.is_power_of_two()
            && (512..=65536).contains(&n)
        {
            // A file that is there has its size, which only VACUUM changes; one that is in use is there.
            if c.reading(|b| Ok(b.page_count())).is_ok() {
                b.set_page_size(n, None)?;
            }
            c.inner().vacuum_page_size.set(n);
        }
        return Ok(Vec::new());
    }
    let n = c.reading(|b| Ok(b.page_size()))?;
    int(n as i64)
}

fn secure_delete(c: &Call<'_>) -> Result<Rows> {
    if let Some(v) = c.value {
        let mode = if v.eq_ignore_ascii_case("fast") {
            SecureDelete::Fast
        } else if truth(v) {
            SecureDelete::On
        } else {
            SecureDelete::Off
        };
        for b in c.all()? {
            b.set_secure_delete(mode);
        }
    }
    int(match c.btree()?.secure_delete() {
        SecureDelete::Off => 0,
        SecureDelete::On => 1,
        SecureDelete::Fast => 2,
    })
}

/// The safety level is not changed inside of a transaction.
fn outside_transaction(c: &Call<'_>) -> Result<()> {
    if c.value.is_some() && !c.inner().txn.is_autocommit() {
        return Err(Error::sql("Safety level may not be changed inside a transaction"));
    }
    Ok(())
}

fn synchronous(c: &Call<'_>) -> Result<Rows> {
    let b = c.btree()?;
    if let Some(v) = c.value {
        outside_transaction(c)?;
        if c.db()? == 1 {
            return Ok(Vec::new());
        }
        let level = match v.to_ascii_lowercase().as_str() {
            "extra" => 3,
            "full" => 2,
            "off" | "no" | "false" => 0,
            // Of a number three bits of the next one count.
            n if n.starts_with(|c: char| c.is_ascii_digit()) => {
                (int32(n) as u8).wrapping_add(1).wrapping_rem(8).saturating_sub(1)
            }
            _ => 1,
        };
        let mode = match level {
            0 => SyncMode::Off,
            1 => SyncMode::Normal,
            2 => SyncMode::Full,
            _ => SyncMode::Extra,
        };
        b.set_synchronous(mode)?;
    }
    if c.db()? == 1 {
        // Temporary files are never synced.
        return int(0);
    }
    int(match b.synchronous() {
        SyncMode::Off => 0,
        SyncMode::Normal => 1,
        SyncMode::Full => 2,
        SyncMode::Extra => 3,
    })
}

fn wal_autocheckpoint(c: &Call<'_>) -> Result<Rows> {
    let b = c.btree()?;
    if let Some(v) = c.value {
        c.conn.set_autocheckpoint(int32(v).max(0) as u32)?;
    }
    int(b.wal_autocheckpoint() as i64)
}
