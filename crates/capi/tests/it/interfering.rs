//! Functions of the program that change the rows which the statement that calls them is at work on.

use super::*;
use iolite_capi::function::sqlite3_context_db_handle;
use iolite_capi::function::sqlite3_user_data;

/// Runs the text that it was registered with, once, where its argument is 3; always 1.
unsafe extern "C" fn act(cx: *mut CContext, _: c_int, v: *mut *mut CValue) {
    unsafe {
        if sqlite3_value_int64(*v) == 3 {
            let sql = sqlite3_user_data(cx) as *mut String;
            let sql = std::mem::take(&mut *sql);
            if !sql.is_empty() {
                exec(sqlite3_context_db_handle(cx), &sql);
            }
        }
        sqlite3_result_int64(cx, 1);
    }
}

/// What `act` does in the midst of a statement.
const ACTS: [&str; 8] = [
    "delete from t where id = 3",
    "delete from t",
    "update t set id = id + 1000 where id = 3",
    "update t set a = 7 where id = 3",
    "update t set b = 7 where id = 3",
    "update t set a = 7",
    "insert or replace into t values(3, 9, 9, 9)",
    "insert into t(a, b, c) values(1, 1, 1)",
];

const STATEMENTS: [&str; 14] = [
    "update t set b = b + 1 where a = 1 and act(id)",
    "update t set b = b + 1 where act(id)",
    "update t set b = 9 where id = 3 and act(id)",
    "update t set b = act(id) + 5",
    "update t set c = act(id) + 5 where a = 1",
    "update t set a = act(id) + 5 where id = 3",
    "update t set b = 9, c = (select act(t.id)) where a = 1",
    "update t set id = id + act(id) * 5 where id = 3",
    "update t set b = act(t.id) from u where u.id = t.id",
    "insert into t values(3, 1, 1, 1) on conflict(id) do update set b = act(id)",
    "insert into t values(3, 1, 1, 1) on conflict(id) do update set b = 4 where act(t.id)",
    "delete from t where a = 1 and act(id)",
    "delete from t where act(id)",
    "delete from t where a = 1 returning act(id)",
];

/// A row that went, or became another, while the values to be written were computed is not brought back, nor are entries of
/// indexes left behind that are not its own.
#[test]
fn rows_and_indexes_stay_together_where_functions_interfere() {
    for kind in ["", " without rowid"] {
        for (statement, action) in STATEMENTS.iter().flat_map(|s| ACTS.iter().map(move |a| (s, a))) {
            let db = open();
            let mut sql = String::from(*action);
            let p = &mut sql as *mut String as *mut c_void;
            unsafe { sqlite3_create_function(db, c"act".as_ptr(), 1, 1, p, Some(act), None, None) };
            exec(db, &format!("create table t(id integer primary key, a, b, c){kind}"));
            exec(
                db,
                "create table u(id integer primary key); create index ta on t(a); create index tbc on t(b, c)",
            );
            exec(db, "create index tc on t(c) where a > 0");
            for i in 1..9 {
                exec(
                    db,
                    &format!(
                        "insert into t values({i}, {}, {}, {i}); insert into u values({i})",
                        i % 2,
                        i % 5
                    ),
                );
            }
            exec(db, statement);
            let found = one(db, "pragma integrity_check");
            assert_eq!(found, "ok", "{statement}, and in its midst {action}{kind}");
            assert_eq!(unsafe { sqlite3_close(db) }, 0);
        }
    }
}
