//! One of the two libraries with what a script has open in it, and the interpreter of the script's calls.
//!
//! A call is a line: a word, its arguments, and where it has one a text after ` | `. What it answers is a list of fields; two
//! libraries agree on a line if the lists are equal. Whatever is open is closed in the end, with destructors seen.

use super::api::{Api, P, S};
use super::callbacks::{self as cb, Answers, bytes, c, own, part, say, text, value};
use std::ffi::c_int;
use std::ptr::{null, null_mut};

/// What a call answered: names and values.
pub type Fields = Vec<(String, String)>;

/// The field that says of which statement a line is: it is part of a kind of difference, and the same on both sides.
pub const ABOUT: &str = "statement";

pub const CONNECTIONS: usize = 3;
pub const STATEMENTS: usize = 5;

/// A library and what is open in it.
pub struct Side {
    api: &'static Api,
    /// Where its files are.
    dir: String,
    /// Makes names of databases in memory the sequence's own.
    tag: String,
    db: [P; CONNECTIONS],
    stmt: [P; STATEMENTS],
    /// Which connection a statement belongs to.
    of: [usize; STATEMENTS],
    /// The first words of its text, and how it was prepared.
    about: [String; STATEMENTS],
    blob: [P; 2],
    blob_of: [usize; 2],
    backup: P,
    backup_to: usize,
    /// The library holds their addresses.
    #[allow(clippy::vec_box)]
    answers: Vec<Box<Answers>>,
    destroyed: usize,
}

/// The argument after a letter: `c1` is 1.
fn number(w: &str) -> usize {
    w[1..].parse().unwrap_or(0)
}

/// UTF-16 in the machine's order, with a zero.
fn wide(s: &str) -> Vec<u16> {
    s.encode_utf16().chain([0]).collect()
}

unsafe fn wide_text(p: P) -> String {
    if p.is_null() {
        return "NULL".into();
    }
    let p = p as *const u16;
    let mut out = Vec::new();
    // SAFETY: the text ends with a zero.
    unsafe {
        while *p.add(out.len()) != 0 && out.len() < 400 {
            out.push(*p.add(out.len()));
        }
    }
    format!("{:?}", String::from_utf16_lossy(&out))
}

impl Side {
    pub fn new(api: &'static Api, dir: &str, tag: &str) -> Side {
        Side {
            api,
            dir: dir.into(),
            tag: tag.into(),
            db: [null_mut(); CONNECTIONS],
            stmt: [null_mut(); STATEMENTS],
            of: [0; STATEMENTS],
            about: Default::default(),
            blob: [null_mut(); 2],
            blob_of: [0; 2],
            backup: null_mut(),
            backup_to: 0,
            destroyed: 0,
            answers: (0..CONNECTIONS).map(|id| Box::new(Answers { id, ..Answers::default() })).collect(),
        }
    }

    fn user(&self, c: usize) -> P {
        &*self.answers[c] as *const Answers as P
    }

    /// Runs a line.
    pub fn run(&mut self, line: &str) -> Fields {
        cb::begin(self.api);
        let (call, sql) = line.split_once(" | ").unwrap_or((line, ""));
        let sql = sql.replace("DIR", &self.dir).replace("TAG", &self.tag);
        let words: Vec<&str> = call.split(' ').collect();
        let mut out = Fields::new();
        // SAFETY: the calls below keep to the interface: handles are used while they are open, texts are copied at once.
        let c = unsafe { self.call(&words, &sql, &mut out) };
        self.destroyed += cb::destroyed();
        let mut log = cb::end();
        // Questions of the authorizer's are compared as a set: which comes first where depends on when a part is looked at.
        let mut asked: Vec<String> = log.extract_if(.., |l| l.starts_with("auth ")).collect();
        asked.sort();
        asked.dedup();
        for l in asked {
            out.push(("log auth".into(), l));
        }
        for l in log {
            out.push((format!("log {}", l.split(' ').next().unwrap_or("")), l));
        }
        // What is asked for a statement that fails depends on how far it gets.
        if out.iter().any(|f| f.0 == "rc" && !matches!(f.1.as_str(), "0" | "100" | "101")) {
            out.retain(|f| f.0 != "log auth");
        }
        if let Some(c) = c
            && !self.db[c].is_null()
        {
            // SAFETY: the connection is open.
            unsafe { self.state(c, &mut out) };
        }
        for (_, v) in out.iter_mut().filter(|f| f.1.contains(&self.dir)) {
            *v = v.replace(&self.dir, "DIR");
        }
        out
    }

    /// What can be asked of a connection at any time.
    unsafe fn state(&self, c: usize, out: &mut Fields) {
        let (a, db) = (self.api, self.db[c]);
        let mut put = |n: &str, v: String| out.push((n.into(), v));
        // SAFETY: the connection is open.
        unsafe {
            let code = (a.errcode)(db);
            put("errcode", code.to_string());
            put("extended", (a.extended_errcode)(db).to_string());
            // Of a call that succeeded nothing is promised about them.
            let told = |n: &str| if matches!(code, 0 | 100 | 101) { format!("{n} (ok)") } else { n.into() };
            put(&told("errmsg"), text((a.errmsg)(db)).to_string());
            put(&told("offset"), (a.error_offset)(db).to_string());
            put("autocommit", (a.get_autocommit)(db).to_string());
            put("changes", (a.changes)(db).to_string());
            put("total_changes", (a.total_changes)(db).to_string());
            put("rowid", (a.last_insert_rowid)(db).to_string());
            for (n, p) in [("main", c"main"), ("all", c""), ("temp", c"temp"), ("aux", c"aux")] {
                let p = if p.is_empty() { null() } else { p.as_ptr() };
                put(&format!("txn {n}"), (a.txn_state)(db, p).to_string());
            }
        }
    }

    unsafe fn call(&mut self, w: &[&str], sql: &str, out: &mut Fields) -> Option<usize> {
        let slot = w.get(1).map_or(0, |w| number(w));
        let kind = w.get(1).and_then(|w| w.chars().next()).unwrap_or(' ');
        // SAFETY: as the functions that this one shares its work with say.
        unsafe {
            match kind {
                'c' => {
                    let known = slot < CONNECTIONS && (!self.db[slot].is_null() || w[0] == "open");
                    known.then(|| self.connection(slot, w, sql, out))?;
                    Some(slot)
                }
                's' => {
                    let of = self.of[slot];
                    if self.stmt[slot].is_null() && w[0] != "null" {
                        return None;
                    }
                    out.push((ABOUT.into(), self.about[slot].clone()));
                    self.statement(slot, w, sql, out);
                    Some(of)
                }
                'b' => {
                    let (of, b, a) = (self.blob_of[slot], self.blob[slot], self.api);
                    if b.is_null() {
                        return None;
                    }
                    let n = |i: usize| w.get(i).and_then(|w| w.parse::<i64>().ok()).unwrap_or(0);
                    let mut put = |n: &str, v: String| out.push((n.into(), v));
                    match w[0] {
                        "read" => {
                            let mut buffer = vec![0u8; 4096];
                            let size = n(2).min(4096) as c_int;
                            let rc = (a.blob_read)(b, buffer.as_mut_ptr() as P, size, n(3) as c_int);
                            put("rc", rc.to_string());
                            put("bytes", bytes(&buffer[..if rc == 0 { size.max(0) as usize } else { 0 }]));
                        }
                        "write" => {
                            let rc = (a.blob_write)(b, sql.as_ptr() as P, sql.len() as c_int, n(2) as c_int);
                            put("rc", rc.to_string());
                        }
                        "reopen" => put("rc", (a.blob_reopen)(b, n(2)).to_string()),
                        "size" => put("size", (a.blob_bytes)(b).to_string()),
                        _ => {
                            put("rc", (a.blob_close)(b).to_string());
                            self.blob[slot] = null_mut();
                        }
                    }
                    Some(of)
                }
                'k' => {
                    let (b, a) = (self.backup, self.api);
                    if b.is_null() {
                        return None;
                    }
                    let mut put = |n: &str, v: String| out.push((n.into(), v));
                    if w[0] == "copy" {
                        put("rc", (a.backup_step)(b, w[2].parse().unwrap_or(1)).to_string());
                        put("remaining", (a.backup_remaining)(b).to_string());
                        put("pages", (a.backup_pagecount)(b).to_string());
                    } else {
                        put("rc", (a.backup_finish)(b).to_string());
                        self.backup = null_mut();
                    }
                    Some(self.backup_to)
                }
                _ => None,
            }
        }
    }

    unsafe fn connection(&mut self, c_: usize, w: &[&str], sql: &str, out: &mut Fields) {
        let (a, db, user) = (self.api, self.db[c_], self.user(c_));
        let mut put = |n: &str, v: String| out.push((n.into(), v));
        let n = |i: usize| w.get(i).and_then(|w| w.parse::<i64>().ok()).unwrap_or(0);
        let word = |i: usize| w.get(i).copied().unwrap_or("");
        let csql = c(sql);
        let on = n(2) != 0;
        // SAFETY: the connection is open; all texts end with NUL and live across the calls.
        unsafe {
            match w[0] {
                "open" => {
                    let mut p = null_mut();
                    let rc = if word(2) == "wide" {
                        let t = wide(sql);
                        (a.open16)(t.as_ptr() as P, &mut p)
                    } else {
                        (a.open_v2)(csql.as_ptr(), &mut p, n(2) as c_int, null())
                    };
                    self.db[c_] = p;
                    // Debian's library has another bound than the pinned one, and ours has Debian's.
                    (a.limit)(p, 9, 32766);
                    put("rc", rc.to_string());
                }
                "close" => {
                    let rc = if word(2) == "v2" { (a.close_v2)(db) } else { (a.close)(db) };
                    put("rc", rc.to_string());
                    if rc == 0 {
                        self.db[c_] = null_mut();
                        // Those of a zombie are not used any more.
                        for (i, s) in self.stmt.iter_mut().enumerate() {
                            if self.of[i] == c_ && !s.is_null() {
                                put("last", (a.finalize)(*s).to_string());
                                *s = null_mut();
                            }
                        }
                        for (i, b) in self.blob.iter_mut().enumerate() {
                            if self.blob_of[i] == c_ && !b.is_null() {
                                put("last", (a.blob_close)(*b).to_string());
                                *b = null_mut();
                            }
                        }
                        if !self.backup.is_null() {
                            (a.backup_finish)(self.backup);
                            self.backup = null_mut();
                        }
                    }
                }
                "exec" => {
                    let mut message = null_mut();
                    let rc = (a.exec)(db, csql.as_ptr(), Some(cb::row), null_mut(), &mut message);
                    put("rc", rc.to_string());
                    put("message", text(message as S));
                    (a.free)(message);
                }
                "table" => {
                    let (mut t, mut rows, mut columns, mut message) = (null_mut(), 0, 0, null_mut());
                    let rc = (a.get_table)(db, csql.as_ptr(), &mut t, &mut rows, &mut columns, &mut message);
                    put("rc", rc.to_string());
                    put("size", format!("{rows}x{columns}"));
                    put("message", text(message as S));
                    if rc == 0 {
                        let cells = (rows + 1) as usize * columns as usize;
                        put("cells", (0..cells).map(|i| text(*t.add(i))).collect::<Vec<_>>().join(" "));
                        (a.free_table)(t);
                    }
                    (a.free)(message);
                }
                "prepare" => self.prepare(c_, w, sql, out),
                "errmsg16" => put("errmsg16", wide_text((a.errmsg16)(db))),
                "extended" => put("rc", (a.extended_result_codes)(db, n(2) as c_int).to_string()),
                "set_rowid" => (a.set_last_insert_rowid)(db, n(2)),
                "readonly" => {
                    put(
                        "readonly",
                        ["main", "temp", "aux", "none"]
                            .map(|d| (a.db_readonly)(db, c(d).as_ptr()))
                            .map(|n| n.to_string())
                            .join(" "),
                    );
                    put("names", (-1..5).map(|i| text((a.db_name)(db, i))).collect::<Vec<_>>().join(" "));
                }
                "next" => {
                    let mut list = Vec::new();
                    let mut s = null_mut();
                    loop {
                        s = (a.next_stmt)(db, s);
                        if s.is_null() {
                            break;
                        }
                        list.push(self.stmt.iter().position(|x| *x == s));
                    }
                    list.sort();
                    put("statements", format!("{list:?}"));
                }
                "interrupt" => {
                    (a.interrupt)(db);
                    put("interrupted", (a.is_interrupted)(db).to_string());
                }
                "limit" => put("old", (a.limit)(db, n(2) as c_int, n(3) as c_int).to_string()),
                "config" => {
                    let mut now = -7;
                    put("rc", (a.db_config)(db, n(2) as c_int, n(3) as c_int, &mut now).to_string());
                    put("now", now.to_string());
                }
                "flush" => put("rc", (a.db_cacheflush)(db).to_string()),
                "busy" => {
                    self.answers[c_].busy.set(n(2) as c_int);
                    let f = (n(2) > 0).then_some(cb::busy as unsafe extern "C" fn(P, c_int) -> c_int);
                    put("rc", (a.busy_handler)(db, f, user).to_string());
                }
                "busy_timeout" => put("rc", (a.busy_timeout)(db, n(2) as c_int).to_string()),
                "checkpoint" => {
                    let (mut x, mut y) = (-9, -9);
                    let name = c(word(3));
                    let name = if word(3).is_empty() { null() } else { name.as_ptr() };
                    put("rc", (a.wal_checkpoint)(db, name, n(2) as c_int, &mut x, &mut y).to_string());
                    put("frames", format!("{x} {y}"));
                }
                "autocheckpoint" => put("rc", (a.wal_autocheckpoint)(db, n(2) as c_int).to_string()),
                "metadata" => {
                    let names = [2, 3, 4].map(|i| c(word(i)));
                    let p = |i: usize| if word(i + 2) == "-" { null() } else { names[i].as_ptr() };
                    let (mut t, mut s, mut nn, mut pk, mut auto) = (null(), null(), -1, -1, -1);
                    let rc = (a.column_metadata)(
                        db,
                        p(0),
                        p(1),
                        p(2),
                        &mut t,
                        &mut s,
                        &mut nn,
                        &mut pk,
                        &mut auto,
                    );
                    put("rc", rc.to_string());
                    if rc == 0 {
                        put("column", format!("{} {} {nn} {pk} {auto}", text(t), text(s)));
                    }
                }
                "commit_hook" => {
                    self.answers[c_].commit.set((n(2) == 2) as c_int);
                    let old = (a.commit_hook)(db, on.then_some(cb::commit as _), user);
                    put("old", (old == user).to_string());
                }
                "rollback_hook" => {
                    let old = (a.rollback_hook)(db, on.then_some(cb::rollback as _), user);
                    put("old", (old == user).to_string());
                }
                "update_hook" => {
                    let old = (a.update_hook)(db, on.then_some(cb::update as _), user);
                    put("old", (old == user).to_string());
                }
                "preupdate_hook" => {
                    let old = (a.preupdate_hook)(db, on.then_some(cb::preupdate as _), user);
                    put("old", (old == user).to_string());
                }
                "wal_hook" => {
                    (a.wal_hook)(db, on.then_some(cb::wal as _), user);
                }
                "needed" => {
                    put("rc", (a.collation_needed)(db, user, on.then_some(cb::needed as _)).to_string());
                }
                "authorizer" => {
                    self.answers[c_].authorizer.set((n(3) as c_int, n(4) as c_int, n(5) as c_int));
                    self.answers[c_].quiet.set(n(2) == 2);
                    put("rc", (a.set_authorizer)(db, on.then_some(cb::authorize as _), user).to_string());
                }
                "progress" => {
                    self.answers[c_].progress.set((n(3) as c_int, n(4) as c_int));
                    (a.progress_handler)(db, n(2) as c_int, (n(2) > 0).then_some(cb::progress as _), user);
                }
                "trace" => {
                    let f = (n(2) > 0).then_some(cb::trace as _);
                    put("rc", (a.trace)(db, n(2) as u32, f, user).to_string());
                }
                "unlock" => put("rc", (a.unlock_notify)(db, on.then_some(cb::told as _), user).to_string()),
                "function" => {
                    let (name, args, flags) = (c(word(2)), n(3) as c_int, n(5) as c_int);
                    let free = Some(cb::unregistered as unsafe extern "C" fn(P));
                    let (scalar, step, total) = match word(4) {
                        "scalar" => (Some(cb::scalar as _), None, None),
                        "aggregate" => (None, Some(cb::add as _), Some(cb::total as _)),
                        "wrong" => (Some(cb::scalar as _), Some(cb::add as _), None),
                        _ => (None, None, None),
                    };
                    let name = name.as_ptr();
                    let rc = if word(4) == "window" {
                        let (add, total) = (Some(cb::add as _), Some(cb::total as _));
                        let (value, inverse) = (Some(cb::current as _), Some(cb::subtract as _));
                        (a.create_window_function)(
                            db, name, args, flags, user, add, total, value, inverse, free,
                        )
                    } else {
                        (a.create_function)(db, name, args, flags, user, scalar, step, total, free)
                    };
                    put("rc", rc.to_string());
                }
                "overload" => {
                    put("rc", (a.overload_function)(db, c(word(2)).as_ptr(), n(3) as c_int).to_string())
                }
                "collation" => {
                    let f = (n(4) != 0).then_some(cb::collate as _);
                    let free = Some(cb::unregistered as unsafe extern "C" fn(P));
                    put(
                        "rc",
                        (a.create_collation)(db, c(word(2)).as_ptr(), n(3) as c_int, user, f, free)
                            .to_string(),
                    );
                }
                "blob" => {
                    let b = number(word(2));
                    if !self.blob[b].is_null() {
                        put("rc", (a.blob_close)(self.blob[b]).to_string());
                    }
                    let (name, t, column) = (c(word(3)), c(word(4)), c(word(5)));
                    let mut p = null_mut();
                    let rc = (a.blob_open)(
                        db,
                        name.as_ptr(),
                        t.as_ptr(),
                        column.as_ptr(),
                        n(6),
                        n(7) as c_int,
                        &mut p,
                    );
                    put("rc", rc.to_string());
                    put("null", p.is_null().to_string());
                    (self.blob[b], self.blob_of[b]) = (p, c_);
                }
                "backup" => {
                    let from = self.db[number(word(3))];
                    if !self.backup.is_null() || from.is_null() {
                        return;
                    }
                    self.backup = (a.backup_init)(db, c(word(2)).as_ptr(), from, c(word(4)).as_ptr());
                    self.backup_to = c_;
                    put("null", self.backup.is_null().to_string());
                }
                "image" => {
                    let to = self.db[number(word(3))];
                    let mut size = -1i64;
                    let p = (a.serialize)(db, c(word(2)).as_ptr(), &mut size, n(5) as u32);
                    put("size", size.to_string());
                    put("null", p.is_null().to_string());
                    if !p.is_null() && n(5) == 0 {
                        if to.is_null() {
                            (a.free)(p);
                        } else {
                            let rc = (a.deserialize)(to, c(word(4)).as_ptr(), p, size, size, 3 | n(6) as u32);
                            put("deserialized", rc.to_string());
                        }
                    }
                }
                _ => {}
            }
        }
    }

    unsafe fn prepare(&mut self, c_: usize, w: &[&str], sql: &str, out: &mut Fields) {
        let (a, db, slot) = (self.api, self.db[c_], number(w[2]));
        let mut put = |n: &str, v: String| out.push((n.into(), v));
        let flags: u32 = w.get(4).and_then(|w| w.parse().ok()).unwrap_or(0);
        let length: c_int = w.get(5).and_then(|w| w.parse().ok()).unwrap_or(-1);
        let mut s = null_mut();
        // SAFETY: the texts end with zeros and live across the calls.
        unsafe {
            if !self.stmt[slot].is_null() {
                put("finalize", (a.finalize)(self.stmt[slot]).to_string());
                self.stmt[slot] = null_mut();
            }
            let rc;
            let used;
            if w[3].starts_with("16") {
                let t = wide(sql);
                let length = if length < 0 { length } else { length.min(t.len() as c_int * 2) };
                let p = t.as_ptr() as P;
                let mut tail = null_mut();
                rc = match w[3] {
                    "16" => (a.prepare16)(db, p, length, &mut s, &mut tail),
                    "16v2" => (a.prepare16_v2)(db, p, length, &mut s, &mut tail),
                    _ => (a.prepare16_v3)(db, p, length, flags, &mut s, &mut tail),
                };
                used = if tail.is_null() { -1 } else { tail as isize - p as isize };
            } else {
                let t = c(sql);
                let length = length.min(t.len() as c_int);
                let p = t.as_ptr();
                let mut tail = null();
                rc = match w[3] {
                    "v1" => (a.prepare)(db, p, length, &mut s, &mut tail),
                    "v2" => (a.prepare_v2)(db, p, length, &mut s, &mut tail),
                    _ => (a.prepare_v3)(db, p, length, flags, &mut s, &mut tail),
                };
                used = if tail.is_null() { -1 } else { tail as isize - p as isize };
            }
            (self.stmt[slot], self.of[slot]) = (s, c_);
            let legacy = matches!(w[3], "v1" | "16");
            let words = sql.split([' ', '(', '=']).filter(|w| !w.is_empty()).take(2).collect::<Vec<_>>();
            self.about[slot] = format!("{}{}", if legacy { "legacy " } else { "" }, words.join(" "));
            put("rc", rc.to_string());
            put("tail", used.to_string());
            put("null", s.is_null().to_string());
            if !s.is_null() {
                self.describe(s, out);
            }
        }
    }

    unsafe fn describe(&self, s: P, out: &mut Fields) {
        let a = self.api;
        let mut put = |n: &str, v: String| out.push((n.into(), v));
        // SAFETY: the statement is open.
        unsafe {
            let n = (a.column_count)(s);
            put("columns", n.to_string());
            for i in 0..n.min(12) {
                put("name", text((a.column_name)(s, i)));
                put("decltype", text((a.column_decltype)(s, i)));
                let of = [a.column_database_name, a.column_table_name, a.column_origin_name];
                put("origin", of.map(|f| text(f(s, i))).join("."));
            }
            put("name beyond", text((a.column_name)(s, n)));
            if n > 0 {
                put("name16", wide_text((a.column_name16)(s, 0)));
            }
            let n = (a.bind_parameter_count)(s);
            put(
                "parameters",
                (0..=n.min(8)).map(|i| text((a.bind_parameter_name)(s, i))).collect::<Vec<_>>().join(" "),
            );
            put("index", (a.bind_parameter_index)(s, c":n".as_ptr()).to_string());
            put("readonly", (a.stmt_readonly)(s).to_string());
            put("isexplain", (a.stmt_isexplain)(s).to_string());
            put("sql", text((a.sql)(s)));
        }
    }

    unsafe fn statement(&mut self, slot: usize, w: &[&str], sql: &str, out: &mut Fields) {
        let (a, s) = (self.api, self.stmt[slot]);
        let mut put = |n: &str, v: String| out.push((n.into(), v));
        let n = |i: usize| w.get(i).and_then(|w| w.parse::<i64>().ok()).unwrap_or(0);
        // SAFETY: the statement is open; what is bound lives as its destructor says.
        unsafe {
            match w[0] {
                // Settings are run to their end: stock holds a read transaction until then, for one row.
                "step" if !self.about[slot].contains("PRAGMA") => {
                    let rc = (a.step)(s);
                    put("rc", rc.to_string());
                    put("data", (a.data_count)(s).to_string());
                    if rc == 100 && n(2) == 0 {
                        let cells = (0..(a.column_count)(s)).map(|i| value((a.column_value)(s, i)));
                        put("row", cells.collect::<Vec<_>>().join("|"));
                    }
                }
                "run" | "step" => {
                    let mut rows = 0;
                    let mut rc = (a.step)(s);
                    while rc == 100 && rows < 200 {
                        let cells = (0..(a.column_count)(s)).map(|i| value((a.column_value)(s, i)));
                        say(format!("row {}", cells.collect::<Vec<_>>().join("|")));
                        rows += 1;
                        rc = (a.step)(s);
                    }
                    put("rc", rc.to_string());
                }
                "column" => {
                    let i = n(2) as c_int;
                    for how in &w[3..] {
                        let v = match *how {
                            "type" => (a.column_type)(s, i).to_string(),
                            "int" => (a.column_int)(s, i).to_string(),
                            "int64" => (a.column_int64)(s, i).to_string(),
                            "double" => format!("{:?}", (a.column_double)(s, i)),
                            "bytes" => (a.column_bytes)(s, i).to_string(),
                            "bytes16" => (a.column_bytes16)(s, i).to_string(),
                            "blob" => {
                                let p = (a.column_blob)(s, i) as *const u8;
                                format!("{} {}", p.is_null(), bytes(part(p, (a.column_bytes)(s, i))))
                            }
                            "text" => text((a.column_text)(s, i) as S),
                            "text16" => wide_text((a.column_text16)(s, i)),
                            _ => {
                                let v = (a.value_dup)((a.column_value)(s, i));
                                let shown = value(v);
                                (a.value_free)(v);
                                shown
                            }
                        };
                        put(how, v);
                    }
                }
                "reset" => put("rc", (a.reset)(s).to_string()),
                "clear" => put("rc", (a.clear_bindings)(s).to_string()),
                "finalize" => {
                    put("rc", (a.finalize)(s).to_string());
                    self.stmt[slot] = null_mut();
                }
                "about" => {
                    put("busy", (a.stmt_busy)(s).to_string());
                    put("data", (a.data_count)(s).to_string());
                    put("expired", (a.expired)(s).to_string());
                    let e = (a.expanded_sql)(s);
                    put("expanded", text(e as S));
                    (a.free)(e);
                    put("handle", ((a.db_handle)(s) == self.db[self.of[slot]]).to_string());
                    self.describe(s, out);
                }
                "status" => put(
                    "status",
                    [1, 2, 5, 6]
                        .map(|k| (a.stmt_status)(s, k, n(2) as c_int))
                        .map(|n| n.to_string())
                        .join(" "),
                ),
                "explain" => put("rc", (a.stmt_explain)(s, n(2) as c_int).to_string()),
                "transfer" => {
                    let to = self.stmt[number(w[2])];
                    if !to.is_null() {
                        put("rc", (a.transfer_bindings)(s, to).to_string());
                    }
                }
                "bind" => put("rc", self.bind(s, w, sql).to_string()),
                _ => {}
            }
        }
    }

    /// `bind sJ INDEX KIND HOW NUMBER | text`.
    unsafe fn bind(&self, s: P, w: &[&str], sql: &str) -> c_int {
        let a = self.api;
        let i: c_int = w[2].parse().unwrap_or(0);
        let x: i64 = w.get(5).and_then(|w| w.parse().ok()).unwrap_or(0);
        // Static: a text of the program's own that stays for good.
        let wide_bytes: Vec<u8> = sql.encode_utf16().flat_map(|u| u.to_ne_bytes()).collect();
        let b: &[u8] = if w[3].contains("16") { &wide_bytes } else { sql.as_bytes() };
        let transient: cb::Destructor = cb::Destructor { word: usize::MAX };
        // SAFETY: `transient` is the documented value; what is static is leaked, what is owned is freed by its destructor.
        unsafe {
            let (p, free) = match w[4] {
                "transient" => (b.as_ptr() as P, transient.function),
                "static" => (own(b), None),
                "null" => (null_mut(), None),
                _ => (own(b), Some(cb::release as unsafe extern "C" fn(P))),
            };
            let len = if x == -1 { -1 } else { b.len() as c_int };
            match w[3] {
                "null" => (a.bind_null)(s, i),
                "int" => (a.bind_int)(s, i, x as c_int),
                "int64" => (a.bind_int64)(s, i, x),
                "double" => (a.bind_double)(s, i, x as f64 / 7.0),
                "text" => {
                    (a.bind_text)(s, i, p, if w[4] == "transient" { b.len() as c_int } else { len }, free)
                }
                "text64" => (a.bind_text64)(s, i, p, b.len() as u64, free, 1),
                "text16" => {
                    (a.bind_text16)(s, i, p, if w[4] == "transient" { b.len() as c_int } else { len }, free)
                }
                "text16le" => (a.bind_text64)(s, i, p, b.len() as u64, free, 2),
                "blob" => (a.bind_blob)(s, i, p, b.len() as c_int, free),
                "blob64" => (a.bind_blob64)(s, i, p, b.len() as u64, free),
                "zeroblob" => (a.bind_zeroblob)(s, i, x as c_int),
                "zeroblob64" => (a.bind_zeroblob64)(s, i, x as u64),
                "pointer" => (a.bind_pointer)(s, i, own(b), c"kind".as_ptr(), Some(cb::release)),
                _ => {
                    let from = self.stmt[(x as usize) % STATEMENTS];
                    if from.is_null() {
                        return -1;
                    }
                    (a.bind_value)(s, i, (a.column_value)(from, 0))
                }
            }
        }
    }

    /// Closes all.
    pub fn finish(&mut self) -> Fields {
        let mut out = Fields::new();
        for b in 0..2 {
            out.extend(self.run(&format!("close b{b}")));
        }
        out.extend(self.run("finish k0"));
        for s in 0..STATEMENTS {
            out.extend(self.run(&format!("finalize s{s}")));
        }
        for c in 0..CONNECTIONS {
            out.extend(self.run(&format!("close c{c}")));
        }
        out.push(("destroyed".into(), self.destroyed.to_string()));
        out
    }
}
