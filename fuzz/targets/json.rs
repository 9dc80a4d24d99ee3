//! JSON texts, their binary form, and paths. A text that is JSON stays the same document through all forms.
//!
//! The input is the document; behind the last line end, if there is one, stands a path.

#![no_main]

use iolite::engine::Value;
use iolite_fuzz::{in_memory, rows, text, without_leak};
use libfuzzer_sys::fuzz_target;

const CALLS: [&str; 22] = [
    "json(?1)",
    "jsonb(?1)",
    "json_valid(?1, 15)",
    "json_type(?1, ?2)",
    "json_extract(?1, ?2, '$')",
    "?1 -> ?2",
    "?1 ->> ?2",
    "json_array_length(?1, ?2)",
    "json_error_position(?1)",
    "json_pretty(?1)",
    "json_quote(?1)",
    "json_remove(?1, ?2)",
    "json_set(?1, ?2, json('[1]'))",
    "json_insert(?1, ?2, 'x')",
    "json_replace(?1, ?2, 1.5)",
    "json_patch(?1, '{\"a\":null}')",
    "json_patch('{\"a\":[1,{\"b\":2}]}', ?1)",
    "jsonb_set(?1, ?2, ?1)",
    "json_array(json(?1), ?2)",
    "json_object('k', jsonb(?1))",
    "json_group_array(?1)",
    "jsonb_array_insert(?1, ?2, 3)",
];

fuzz_target!(|input: &[u8]| {
    without_leak(|| {
        let c = in_memory("");
        let (document, path) = match input.iter().rposition(|b| *b == b'\n') {
            Some(at) => (&input[..at], &input[at + 1..]),
            None => (input, &b"$.a[#-1]"[..]),
        };
        let path = Value::text(path).expect("memory");
        for document in [Value::text(document), Value::blob(document)].map(|d| d.expect("memory")) {
            let given = [document, path.clone()];
            let one = |sql: &str, given: &[Value]| {
                rows(&c, sql, given).and_then(|r| r.into_iter().next()?.into_iter().next())
            };
            for call in CALLS {
                one(&format!("SELECT {call}"), &given[..if call.contains("?2") { 2 } else { 1 }]);
            }
            rows(
                &c,
                "SELECT key, value, type, atom, id, parent, fullkey, path FROM json_each(?1)",
                &given[..1],
            );
            rows(
                &c,
                "SELECT key, value, type, atom, id, parent, fullkey, path FROM json_tree(?1, ?2)",
                &given,
            );
            rows(&c, "SELECT key, jsonb(value) FROM jsonb_tree(?1)", &given[..1]);
            // What one function makes of a document, all of them read, and it stays what it is. A blob counts as valid with numbers
            // that begin with zeros, as on SQLite.
            if matches!(given[0], Value::Text(..))
                && let Some(document) = one("SELECT json(?1)", &given[..1]).filter(|d| !d.is_null())
            {
                let document = [document];
                let same = text(&document[0]);
                let then = |call: &str| {
                    one(&format!("SELECT {call}"), &document).map(|v| text(&v)).unwrap_or_default()
                };
                assert_eq!(then("json_valid(?1)"), "1", "{same}");
                assert_eq!(then("json(jsonb(?1))"), same);
                assert_eq!(then("json(json_pretty(?1))"), same);
                assert!(rows(&c, "SELECT count(*) FROM json_tree(?1)", &document).is_some(), "{same}");
            }
        }
    });
});
