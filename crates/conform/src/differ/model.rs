//! What the generator knows of the schema: read back from stock SQLite after each change, so that it is right also
//! after errors and rollbacks.

use iolite_stock::{Connection, Value};

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The declared type.
    pub decltype: String,
    /// Computed from others: cannot be assigned.
    pub generated: bool,
    /// Part of the primary key.
    pub pk: bool,
    /// NOT NULL.
    pub not_null: bool,
}

/// A table or view.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its database.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// A view.
    pub view: bool,
    /// Has a rowid.
    pub rowid: bool,
    /// STRICT.
    pub strict: bool,
    /// The columns of each UNIQUE constraint, index and primary key without expressions and WHERE.
    pub keys: Vec<Vec<String>>,
    /// Its foreign keys.
    pub references: Vec<Reference>,
}

/// A foreign key.
#[derive(Clone, Debug)]
pub struct Reference {
    /// The parent table's name.
    pub parent: String,
    /// A column of the child and the parent's column that it names, if it names one.
    pub columns: Vec<(String, Option<String>)>,
}

impl Table {
    /// `schema.table`.
    pub fn full(&self) -> String {
        format!("{}.{}", self.schema, quote(&self.name))
    }

    /// The columns that INSERT and UPDATE may name.
    pub fn assignable(&self) -> Vec<&Column> {
        self.columns.iter().filter(|c| !c.generated).collect()
    }
}

/// The schema.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// Tables and views.
    pub tables: Vec<Table>,
    /// Database and name of each index that was created by name.
    pub indexes: Vec<(String, String)>,
    /// Database and name of each trigger.
    pub triggers: Vec<(String, String)>,
    /// Tables that have triggers.
    pub triggered: Vec<String>,
    /// Attached databases.
    pub attached: Vec<String>,
}

impl Model {
    /// Reads the schema.
    pub fn read(c: &Connection) -> Model {
        let text = |v: &Value| match v {
            Value::Text(b) => String::from_utf8_lossy(b).into_owned(),
            _ => String::new(),
        };
        let int = |v: &Value| if let Value::Int(i) = v { *i } else { 0 };
        let mut m = Model::default();
        let query = |sql: &str| c.query(sql).unwrap_or_default();
        for r in query(
            "SELECT schema, name, type, wr, strict FROM pragma_table_list WHERE name NOT LIKE 'sqlite_%'",
        ) {
            let (schema, name, ty) = (text(&r[0]), text(&r[1]), text(&r[2]));
            let q = |s: &str| s.replace('\'', "''");
            let columns = query(&format!(
                "SELECT name, type, hidden, pk, \"notnull\" FROM pragma_table_xinfo('{}', '{}')",
                q(&name),
                q(&schema)
            ))
            .iter()
            .map(|c| Column {
                name: text(&c[0]),
                decltype: text(&c[1]),
                generated: int(&c[2]) > 1,
                pk: int(&c[3]) > 0,
                not_null: int(&c[4]) > 0,
            })
            .collect::<Vec<_>>();
            if columns.is_empty() {
                continue;
            }
            let keys = query(&format!(
                "SELECT (SELECT group_concat(coalesce(name, '?'), ',') FROM pragma_index_info(l.name, '{}')) \
                 FROM pragma_index_list('{}', '{}') l WHERE \"unique\" AND NOT partial",
                q(&schema),
                q(&name),
                q(&schema)
            ));
            let mut keys: Vec<Vec<String>> =
                keys.iter().map(|k| text(&k[0]).split(',').map(String::from).collect::<Vec<_>>()).collect();
            let pk: Vec<String> = columns.iter().filter(|c| c.pk).map(|c| c.name.clone()).collect();
            if !pk.is_empty() {
                keys.push(pk);
            }
            // A key that holds the rowid's alias beside others is no target of an upsert.
            let alias = columns.iter().filter(|c| c.pk).count() == 1 && ty == "table";
            let is_alias = |k: &String| {
                alias
                    && columns
                        .iter()
                        .any(|c| c.name == *k && c.pk && c.decltype.eq_ignore_ascii_case("INTEGER"))
            };
            let mut references: Vec<Reference> = Vec::new();
            for r in query(&format!(
                "SELECT seq, \"table\", \"from\", \"to\" FROM pragma_foreign_key_list('{}', '{}') ORDER BY id, seq",
                q(&name),
                q(&schema)
            )) {
                if int(&r[0]) == 0 {
                    references.push(Reference { parent: text(&r[1]), columns: Vec::new() });
                }
                let to = if matches!(r[3], Value::Null) { None } else { Some(text(&r[3])) };
                if let Some(last) = references.last_mut() {
                    last.columns.push((text(&r[2]), to));
                }
            }
            keys.retain(|k| k.len() == 1 || !k.iter().any(is_alias));
            keys.retain(|k| k.iter().all(|c| columns.iter().any(|x| x.name == *c)));
            m.tables.push(Table {
                schema,
                name,
                columns,
                view: ty == "view",
                rowid: ty == "table" && int(&r[3]) == 0,
                strict: int(&r[4]) != 0,
                keys,
                references,
            });
        }
        for r in query("SELECT name FROM pragma_database_list") {
            let db = text(&r[0]);
            for o in
                query(&format!("SELECT type, name, tbl_name FROM {db}.sqlite_schema WHERE sql IS NOT NULL"))
            {
                match text(&o[0]).as_str() {
                    "index" => m.indexes.push((db.clone(), text(&o[1]))),
                    "trigger" => {
                        m.triggers.push((db.clone(), text(&o[1])));
                        m.triggered.push(text(&o[2]));
                    }
                    _ => {}
                }
            }
            if db != "main" && db != "temp" {
                m.attached.push(db);
            }
        }
        m
    }
}

/// A name as SQL needs it.
pub fn quote(name: &str) -> String {
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !name.is_empty()
        && !name.as_bytes()[0].is_ascii_digit()
        && !name.eq_ignore_ascii_case("order");
    if plain { name.into() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}
