//! `sqlite3_deserialize`, `sqlite3_serialize` and backups between connections.

use super::*;

/// A folder that is removed with its content.
pub struct Folder(std::path::PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("iolite-capi-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn file(&self, name: &str) -> CString {
        CString::new(self.0.join(name).to_str().unwrap()).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn open_file(name: &CStr) -> *mut Db {
    let mut db = null_mut();
    assert_eq!(unsafe { sqlite3_open(name.as_ptr(), &mut db) }, 0);
    db
}

/// The image of a database that `sql` makes.
fn image(sql: &str) -> Vec<u8> {
    let db = open();
    unsafe {
        assert_eq!(exec(db, sql), 0);
        let mut size = 0;
        let p = sqlite3_serialize(db, c"main".as_ptr(), &mut size, 0);
        let out = std::slice::from_raw_parts(p, size as usize).to_vec();
        sqlite3_free(p as *mut c_void);
        sqlite3_close(db);
        out
    }
}

const FREE_ON_CLOSE: u32 = 1;
const RESIZEABLE: u32 = 2;
const READ_ONLY: u32 = 4;

fn deserialize(db: *mut Db, name: &CStr, bytes: &[u8], flags: u32) -> c_int {
    unsafe {
        let p = sqlite3_malloc64(bytes.len().max(1) as u64) as *mut u8;
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), p, bytes.len());
        let n = bytes.len() as i64;
        sqlite3_deserialize(db, name.as_ptr(), p, n, n, flags | FREE_ON_CLOSE)
    }
}

#[test]
fn an_image_takes_the_place_of_a_file_which_stays() {
    let dir = Folder::new("deserialize");
    let file = dir.file("precious.db");
    let db = open_file(&file);
    let other = image("create table t(v); insert into t values('other')");
    unsafe {
        exec(db, "create table t(v); insert into t values('precious'); attach ':memory:' as m");
        let s = prepare(db, "select v from t");
        // Not while it is read, written or copied.
        assert_eq!((sqlite3_step(s), deserialize(db, c"main", &other, RESIZEABLE)), (100, 5));
        sqlite3_reset(s);
        exec(db, "begin; insert into t values(1)");
        assert_eq!(deserialize(db, c"main", &other, RESIZEABLE), 5);
        exec(db, "rollback");
        let target = open();
        let b = sqlite3_backup_init(target, c"main".as_ptr(), db, c"main".as_ptr());
        assert_eq!(deserialize(db, c"main", &other, RESIZEABLE), 5);
        sqlite3_backup_finish(b);
        sqlite3_close(target);
        assert_eq!((deserialize(db, c"temp", &other, 0), deserialize(db, c"none", &other, 0)), (1, 1));

        assert_eq!(deserialize(db, c"main", &other, RESIZEABLE), 0);
        // Statements made before read what is there now.
        assert_eq!((sqlite3_step(s), text(sqlite3_column_text(s, 0) as _)), (100, "other".into()));
        sqlite3_finalize(s);
        assert_eq!(exec(db, "insert into t select hex(zeroblob(5000)) from t; create index i on t(v)"), 0);
        assert_eq!(one(db, "pragma integrity_check"), "ok");
        assert_eq!(text(sqlite3_db_filename(db, c"main".as_ptr())), "");
        // An attached one as well.
        assert_eq!(deserialize(db, c"m", &other, RESIZEABLE), 0);
        assert_eq!(one(db, "select v from m.t"), "other");
        assert_eq!(sqlite3_close(db), 0);
        let again = open_file(&file);
        assert_eq!(one(again, "select group_concat(v) from t"), "precious");
        sqlite3_close(again);
    }
    let left: Vec<_> = std::fs::read_dir(&dir.0).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["precious.db"]);
}

#[test]
fn flags_and_limits_of_an_image() {
    let db = open();
    let small = image("create table t(v); insert into t values(1)");
    let grow = "insert into t values(zeroblob(100000))";
    unsafe {
        assert_eq!(deserialize(db, c"main", &small, READ_ONLY), 0);
        // It is a file that may be written, whose lock nobody gets.
        assert_eq!((exec(db, grow), sqlite3_db_readonly(db, c"main".as_ptr())), (8, 0));
        assert_eq!(one(db, "select count(*) from t"), "1");
        // Without RESIZEABLE there is no more room than the buffer has.
        assert_eq!(deserialize(db, c"main", &small, 0), 0);
        assert_eq!((exec(db, "update t set v = 2"), exec(db, grow)), (0, 13));
        assert_eq!(
            (one(db, "select group_concat(v) from t"), one(db, "pragma integrity_check")),
            ("2".into(), "ok".into())
        );
        assert_eq!(deserialize(db, c"main", &small, RESIZEABLE), 0);
        let mut limit = 50_000i64;
        let main = c"main".as_ptr();
        assert_eq!(sqlite3_file_control(db, main, 36, &mut limit as *mut i64 as *mut c_void), 0);
        assert_eq!((limit, exec(db, grow)), (50_000, 13));
        limit = -1;
        assert_eq!(sqlite3_file_control(db, main, 36, &mut limit as *mut i64 as *mut c_void), 0);
        assert_eq!(limit, 50_000);
        limit = 500_000;
        assert_eq!(sqlite3_file_control(db, main, 36, &mut limit as *mut i64 as *mut c_void), 0);
        assert_eq!(exec(db, grow), 0);
        // Bytes that are no database are found out when they are read; nothing is an empty database.
        assert_eq!(deserialize(db, c"main", &[b'x'; 4096], RESIZEABLE), 0);
        assert_eq!((exec(db, "select * from sqlite_schema"), sqlite3_errcode(db)), (26, 26));
        assert_eq!(deserialize(db, c"main", b"", RESIZEABLE), 0);
        assert_eq!((exec(db, "create table n(a)"), one(db, "select count(*) from n")), (0, "0".into()));
        // A log is not beside it.
        let mut log = small.clone();
        log[18..20].fill(2);
        assert_eq!(deserialize(db, c"main", &log, RESIZEABLE), 0);
        assert_eq!(exec(db, "select * from t"), 14);
        sqlite3_close(db);
    }
}

#[test]
fn a_database_in_a_backup_is_not_detached() {
    let (a, b) = (open(), open());
    unsafe {
        exec(a, "attach ':memory:' as x; create table x.t(v); insert into x.t values(zeroblob(50000))");
        exec(b, "attach ':memory:' as y");
        let backup = sqlite3_backup_init(b, c"y".as_ptr(), a, c"x".as_ptr());
        assert_eq!(sqlite3_backup_step(backup, 2), 0);
        assert_eq!((exec(a, "detach x"), text(sqlite3_errmsg(a))), (1, "database x is locked".into()));
        assert_eq!((exec(b, "detach y"), text(sqlite3_errmsg(b))), (1, "database y is locked".into()));
        assert_eq!((sqlite3_close(a), sqlite3_close(b)), (5, 5));
        assert_eq!(sqlite3_backup_step(backup, -1), 101);
        assert_eq!(sqlite3_backup_finish(backup), 0);
        assert_eq!((exec(a, "detach x"), one(b, "select length(v) from y.t")), (0, "50000".into()));
        assert_eq!(exec(b, "detach y"), 0);
        assert_eq!((sqlite3_close(a), sqlite3_close(b)), (0, 0));
    }
}
