//! Schemas: CREATE, DROP, ALTER and their kin.

use super::generate::{Gen, Scope, Source};
use super::model::{Table, quote};

const TYPES: &[&str] = &[
    "INTEGER",
    "INT",
    "TEXT",
    "TEXT",
    "REAL",
    "BLOB",
    "NUMERIC",
    "VARCHAR(10)",
    "",
    "BOOLEAN",
    "DATE",
    "DOUBLE",
    "BIGINT",
    "DECIMAL(10,2)",
];
const STRICT_TYPES: &[&str] = &["INTEGER", "INT", "TEXT", "REAL", "BLOB", "ANY"];
const NAMES: &[&str] = &["a", "b", "c", "d", "e", "key", "x y", "Ünï"];

impl Gen<'_> {
    fn conflict(&mut self) -> String {
        if self.rng.chance(75) {
            return String::new();
        }
        format!(" ON CONFLICT {}", self.one(&["IGNORE", "REPLACE", "FAIL", "ABORT", "ROLLBACK"]))
    }

    fn database(&mut self) -> String {
        if !self.model.attached.is_empty() && self.rng.chance(15) {
            let i = self.rng.below(self.model.attached.len());
            return format!("{}.", self.model.attached[i]);
        }
        self.one(&["", "", "", "main."])
    }

    /// A table.
    pub fn create_table(&mut self) -> String {
        let temp = self.rng.chance(10);
        let name = self.name("tab");
        let strict = self.rng.chance(15);
        let without_rowid = self.rng.chance(22);
        let n = self.rng.range(1, 6);
        let mut columns = Vec::new();
        let mut scope = Source { alias: String::new(), columns: Vec::new() };
        // 0: none, 1: on a column, 2: for the table.
        let pk = if without_rowid { self.rng.range(1, 2) } else { self.rng.range(0, 2) };
        let pk_column = self.rng.below(n);
        for (i, raw) in NAMES.iter().enumerate().take(n) {
            let column = quote(raw);
            let ty = if strict { self.one(STRICT_TYPES) } else { self.one(TYPES) };
            let mut def = format!("{column} {ty}");
            if pk == 1 && i == pk_column {
                if !without_rowid && self.rng.chance(60) {
                    def = format!("{column} INTEGER PRIMARY KEY{}", self.conflict());
                    if self.rng.chance(35) {
                        def += " AUTOINCREMENT";
                    }
                } else {
                    def +=
                        &format!(" PRIMARY KEY{}{}", self.one(&["", "", " DESC", " ASC"]), self.conflict());
                }
            } else if i > 0 && self.rng.chance(12) {
                self.schema_expr = true;
                let e = self.expr(&Scope::of(scope.clone()), 1);
                self.schema_expr = false;
                def += &format!(
                    " {}AS ({e}){}",
                    self.one(&["", "GENERATED ALWAYS "]),
                    self.one(&["", " STORED", " VIRTUAL"])
                );
            } else {
                if self.rng.chance(14) {
                    def += &format!(" UNIQUE{}", self.conflict());
                }
                // Behind a virtual column stock's integrity_check takes the default for the value.
                if !columns.iter().any(|c: &String| c.contains(" AS (")) && self.rng.chance(12) {
                    def += &format!(
                        " DEFAULT {}",
                        self.one(&["1", "'dflt'", "NULL", "-2.5", "(1+2)", "TRUE", "''"])
                    );
                    if self.rng.chance(50) {
                        def += &format!(" NOT NULL{}", self.conflict());
                    }
                } else if self.rng.chance(7) {
                    def += &format!(" NOT NULL{}", self.conflict());
                }
            }
            if self.rng.chance(20) {
                def += &format!(" COLLATE {}", self.collation());
            }
            if self.rng.chance(9) {
                let check =
                    self.one(&["typeof(X) <> 'real' OR X < 100", "length(X) < 20", "X > -9e18 OR X < 'zz'"]);
                def += &format!(" CONSTRAINT ck{i} CHECK ({})", check.replace('X', &column));
            }
            if !self.features.foreign_keys && self.rng.chance(4) {
                def += &format!(
                    " REFERENCES parent{}",
                    self.one(&[
                        "",
                        " ON DELETE CASCADE",
                        " ON UPDATE SET NULL DEFERRABLE INITIALLY DEFERRED"
                    ])
                );
            }
            scope.columns.push(column);
            columns.push(def);
        }
        if pk == 2 {
            let mut keys: Vec<String> = scope.columns.clone();
            let rot = pk_column % n;
            keys.rotate_left(rot);
            keys.truncate(self.rng.range(1, 2));
            let keys: Vec<String> = keys
                .into_iter()
                .map(|k| {
                    format!("{k}{}{}", self.one(&["", "", " COLLATE NOCASE"]), self.one(&["", "", " DESC"]))
                })
                .collect();
            columns.push(format!("PRIMARY KEY ({}){}", keys.join(", "), self.conflict()));
        }
        if n > 1 && self.rng.chance(15) {
            columns.push(format!(
                "CONSTRAINT uq UNIQUE ({}, {}){}",
                scope.columns[0],
                scope.columns[n - 1],
                self.conflict()
            ));
        }
        if self.rng.chance(8) {
            columns.push(format!("CHECK ({} IS NOT 'forbidden')", scope.columns[0]));
        }
        if !self.features.foreign_keys && self.rng.chance(5) {
            columns.push(format!("FOREIGN KEY ({}) REFERENCES parent(a, b)", scope.columns[0]));
        }
        let db = if temp { String::new() } else { self.database() };
        if self.features.foreign_keys {
            for _ in 0..self.rng.weighted([35, 45, 20].into_iter()) {
                columns.push(self.foreign_key(&name, &db, temp, &scope.columns));
            }
        }
        let mut options = Vec::new();
        if without_rowid {
            options.push("WITHOUT ROWID");
        }
        if strict {
            options.push("STRICT");
        }
        let place = if temp {
            "TEMP TABLE ".to_string()
        } else {
            format!("TABLE {}", self.one(&["", "", "", "IF NOT EXISTS "]))
        };
        let tail = if options.is_empty() { String::new() } else { format!(" {}", options.join(", ")) };
        format!("CREATE {place}{db}{name}({}){tail}", columns.join(", "))
    }

    /// A foreign key of the table that is being made, mostly to a key of a table that is there, or to the table itself.
    fn foreign_key(&mut self, name: &str, db: &str, temp: bool, own: &[String]) -> String {
        let schema = match db.trim_end_matches('.') {
            _ if temp => "temp",
            "" => "main",
            other => other,
        };
        let parents: Vec<Table> = self
            .model
            .tables
            .iter()
            .filter(|t| t.schema == schema && (!t.view || self.serial.is_multiple_of(9)))
            .cloned()
            .collect();
        let (parent, key) = if parents.is_empty() || self.rng.chance(20) {
            let key = self.rng.pick(own).clone();
            (name.to_string(), vec![key])
        } else {
            let p = self.rng.pick(&parents).clone();
            let key = if !p.keys.is_empty() && self.rng.chance(92) {
                self.rng.pick(&p.keys).clone()
            } else {
                vec![self.rng.pick(&p.columns).name.clone()]
            };
            (p.name.clone(), key.iter().map(|c| quote(c)).collect())
        };
        let mut from: Vec<String> = own.to_vec();
        let rot = self.rng.below(from.len());
        from.rotate_left(rot);
        from.truncate(key.len());
        let to = if self.rng.chance(80) { format!("({})", key.join(", ")) } else { String::new() };
        let mut clause = format!("FOREIGN KEY ({}) REFERENCES {}{to}", from.join(", "), quote(&parent));
        for event in ["DELETE", "UPDATE"] {
            if self.rng.chance(75) {
                let action =
                    self.one(&["CASCADE", "CASCADE", "SET NULL", "SET DEFAULT", "RESTRICT", "NO ACTION"]);
                clause += &format!(" ON {event} {action}");
            }
        }
        clause +=
            &self.one(&["", "", "", " DEFERRABLE", " DEFERRABLE INITIALLY DEFERRED", " NOT DEFERRABLE"]);
        clause
    }

    /// CREATE TABLE AS.
    pub fn create_table_as(&mut self) -> String {
        let q = self.core(&Scope::default(), 2, None);
        let name = self.name("cta");
        let order: Vec<String> = (1..=q.columns).map(|i| format!("{i} COLLATE BINARY")).collect();
        let q = if q.sql.starts_with("VALUES") {
            format!("SELECT * FROM ({}) ORDER BY {}", q.sql, order.join(", "))
        } else {
            format!("{} ORDER BY {} LIMIT 30", q.sql, order.join(", "))
        };
        format!("CREATE {}TABLE {name} AS {q}", self.one(&["", "", "TEMP "]))
    }

    /// An index.
    pub fn create_index(&mut self) -> Option<String> {
        let t = self.base_table()?;
        let name = self.name("idx");
        let sc = Scope::of(Source { alias: String::new(), columns: self.source(&t, "", false).columns });
        let unique = if self.rng.chance(20) { "UNIQUE " } else { "" };
        self.schema_expr = true;
        let terms: Vec<String> = (0..self.rng.range(1, 3))
            .map(|_| {
                let base =
                    if self.rng.chance(20) { format!("({})", self.expr(&sc, 1)) } else { self.column(&sc) };
                let coll = if self.rng.chance(20) {
                    format!(" COLLATE {}", self.collation())
                } else {
                    String::new()
                };
                format!("{base}{coll}{}", self.one(&["", "", " DESC", " ASC"]))
            })
            .collect();
        let filter =
            if self.rng.chance(20) { format!(" WHERE {}", self.condition(&sc, 1)) } else { String::new() };
        self.schema_expr = false;
        Some(format!(
            "CREATE {unique}INDEX {}.{name} ON {}({}){filter}",
            t.schema,
            quote(&t.name),
            terms.join(", ")
        ))
    }

    /// A view.
    pub fn create_view(&mut self) -> String {
        let name = self.name("view");
        let q = match self.rng.below(8) {
            0 => self.compound(&Scope::default(), 1, None),
            1 | 2 => self.nested_query(1),
            3 => self.over_nested(1).1,
            _ => self.core(&Scope::default(), 2, None),
        };
        let columns = if self.rng.chance(60) {
            let names: Vec<String> = (1..=q.columns).map(|i| format!("v{i}")).collect();
            format!("({})", names.join(", "))
        } else {
            String::new()
        };
        format!("CREATE {}VIEW {name}{columns} AS {}", self.one(&["", "", "TEMP "]), q.sql)
    }

    /// A trigger.
    pub fn create_trigger(&mut self) -> Option<String> {
        let name = self.name("trg");
        let views: Vec<Table> =
            self.model.tables.iter().filter(|t| t.view && t.schema == "main").cloned().collect();
        let instead = !views.is_empty() && self.rng.chance(if self.features.alter { 50 } else { 25 });
        let t = if instead { self.rng.pick(&views).clone() } else { self.base_table()? };
        let event = self.rng.below(3);
        let columns: Vec<String> = t.columns.iter().map(|c| quote(&c.name)).collect();
        let event_text = match event {
            0 => "INSERT".to_string(),
            1 if self.rng.chance(40) => format!("UPDATE OF {}", self.rng.pick(&columns)),
            1 => "UPDATE".to_string(),
            _ => "DELETE".to_string(),
        };
        let time =
            if instead { "INSTEAD OF".to_string() } else { self.one(&["BEFORE", "AFTER", "AFTER", ""]) };
        let mut sc = Scope::default();
        if event != 0 {
            sc.sources.push(Source { alias: "old".into(), columns: columns.clone() });
        }
        if event != 2 {
            // Before the change stock has not computed the new row's generated columns, and shows what happens to
            // be in their place.
            let early = matches!(&*time, "BEFORE" | "");
            let known = t.columns.iter().filter(|c| !early || !c.generated);
            sc.sources.push(Source { alias: "new".into(), columns: known.map(|c| quote(&c.name)).collect() });
        }
        let each = self.one(&["", " FOR EACH ROW"]);
        let when = match self.rng.below(10) {
            0..=2 => format!(" WHEN {}", self.condition(&sc, 1)),
            // What the statement has done so far.
            3 => format!(
                " WHEN {}",
                self.one(&["changes() > 0", "total_changes() % 2", "last_insert_rowid() % 2"])
            ),
            _ => String::new(),
        };
        let mut body = String::new();
        for _ in 0..self.rng.range(1, 2) {
            body += &self.trigger_step(&sc, &t);
            body += "; ";
        }
        let schema = if t.schema == "temp" || self.rng.chance(10) {
            "TEMP TRIGGER ".into()
        } else {
            format!("TRIGGER {}.", t.schema)
        };
        let on = if schema.starts_with("TEMP") { t.full() } else { quote(&t.name) };
        Some(format!("CREATE {schema}{name} {time} {event_text} ON {on}{each}{when} BEGIN {body}END"))
    }

    fn trigger_step(&mut self, sc: &Scope, of: &Table) -> String {
        let same: Vec<Table> =
            self.model.tables.iter().filter(|t| !t.view && t.schema == of.schema).cloned().collect();
        if same.is_empty() {
            return format!("SELECT {}", self.column(sc));
        }
        let t = self.rng.pick(&same).clone();
        let all: Vec<_> = t.assignable().into_iter().cloned().collect();
        match self.rng.below(10) {
            0..=4 => {
                let names: Vec<String> = all.iter().map(|c| quote(&c.name)).collect();
                let values: Vec<String> = all
                    .iter()
                    .map(|c| {
                        if c.pk && c.decltype == "INTEGER" {
                            "NULL".into()
                        } else if self.rng.chance(50) && !t.strict {
                            self.column(sc)
                        } else {
                            self.value_for(c, t.strict)
                        }
                    })
                    .collect();
                let policy = self.one(&["OR IGNORE ", "OR REPLACE ", "OR IGNORE "]);
                // Without their names, these may be too few later on.
                let names = match self.features.alter && self.rng.chance(40) {
                    true => String::new(),
                    false => format!("({})", names.join(", ")),
                };
                format!("INSERT {policy}INTO {}{names} VALUES ({})", quote(&t.name), values.join(", "))
            }
            5..=6 if !all.is_empty() => {
                let c = self.rng.pick(&all).clone();
                let inner = Scope { sources: vec![self.source(&t, &quote(&t.name), false)] };
                format!(
                    "UPDATE OR IGNORE {} SET {} = {} WHERE {} = {}",
                    quote(&t.name),
                    quote(&c.name),
                    self.column(sc),
                    self.column(&inner),
                    self.column(sc)
                )
            }
            7 => {
                let inner = Scope { sources: vec![self.source(&t, &quote(&t.name), false)] };
                format!("DELETE FROM {} WHERE {} = {}", quote(&t.name), self.column(&inner), self.column(sc))
            }
            8 => {
                let what =
                    self.one(&["IGNORE", "ABORT, 'stop'", "FAIL, 'fail' || 1", "ROLLBACK, 'back'", "IGNORE"]);
                format!("SELECT RAISE({what}) WHERE {} = {}", self.column(sc), self.literal())
            }
            _ => format!("SELECT {} FROM {}", self.column(sc), quote(&t.name)),
        }
    }

    /// A DROP.
    pub fn drop_something(&mut self) -> Option<(&'static str, String)> {
        let r = self.rng.below(10);
        if r < 4 && !self.model.indexes.is_empty() {
            let (db, n) = self.rng.pick(&self.model.indexes).clone();
            return Some(("drop index", format!("DROP INDEX {db}.{}", quote(&n))));
        }
        if r < 7 && !self.model.triggers.is_empty() {
            let (db, n) = self.rng.pick(&self.model.triggers).clone();
            return Some(("drop trigger", format!("DROP TRIGGER {db}.{}", quote(&n))));
        }
        let t = self.any_table()?;
        if t.view {
            return Some(("drop view", format!("DROP VIEW {}", t.full())));
        }
        Some(("drop table", format!("DROP TABLE {}", t.full())))
    }

    /// ALTER TABLE.
    pub fn alter(&mut self) -> Option<String> {
        let t = self.base_table()?;
        let c = quote(&self.rng.pick(&t.columns).name);
        let full = t.full();
        Some(match self.rng.below(8) {
            0 => format!("ALTER TABLE {full} RENAME TO {}", self.name("ren")),
            1..=3 => {
                format!("ALTER TABLE {full} RENAME {}{c} TO {}", self.one(&["", "COLUMN "]), self.name("rc"))
            }
            4..=5 => {
                let n = self.name("add");
                let tail = self.one(&[
                    "",
                    " DEFAULT 7",
                    " TEXT NOT NULL DEFAULT 'x'",
                    " INTEGER",
                    " CHECK (1)",
                    " COLLATE NOCASE",
                    " AS (1+1)",
                    " NOT NULL",
                    " UNIQUE",
                ]);
                let ty = if t.strict && !tail.starts_with(" TEXT") && !tail.starts_with(" INTEGER") {
                    " ANY"
                } else {
                    ""
                };
                format!("ALTER TABLE {full} ADD COLUMN {n}{ty}{tail}")
            }
            _ => format!("ALTER TABLE {full} DROP COLUMN {c}"),
        })
    }

    /// PRAGMAs that describe or set.
    pub fn pragma(&mut self) -> Option<String> {
        let t = self.any_table()?;
        let name = t.name.replace('\'', "''");
        let schema = t.schema.clone();
        Some(match self.rng.below(23) {
            0 | 1 => format!("PRAGMA {schema}.table_info('{name}')"),
            2 | 3 => format!("PRAGMA {schema}.table_xinfo('{name}')"),
            4 | 5 => format!("PRAGMA {schema}.index_list('{name}')"),
            6 => format!("PRAGMA {schema}.foreign_key_list('{name}')"),
            7..=9 if !self.model.indexes.is_empty() => {
                let (db, i) = self.rng.pick(&self.model.indexes).clone();
                format!("PRAGMA {db}.{}('{i}')", self.one(&["index_info", "index_xinfo"]))
            }
            10 => "PRAGMA table_list".into(),
            11 => format!("PRAGMA user_version = {}", self.small()),
            12 => "PRAGMA user_version".into(),
            // Not how many pages there are: how cells are spread over pages is nowhere laid down.
            13 => format!(
                "PRAGMA {}",
                self.one(&[
                    "max_page_count",
                    "journal_size_limit",
                    "encoding",
                    "page_size",
                    "auto_vacuum",
                    "schema_version"
                ])
            ),
            14 => "PRAGMA integrity_check".into(),
            15 => "PRAGMA quick_check".into(),
            16 => format!("PRAGMA recursive_triggers = {}", self.one(&["0", "1"])),
            17 => "PRAGMA incremental_vacuum(2)".into(),
            19 => format!("PRAGMA reverse_unordered_selects = {}", self.one(&["0", "0", "1"])),
            18 if self.features.foreign_keys => {
                format!("PRAGMA defer_foreign_keys = {}", self.one(&["0", "1"]))
            }
            20 if self.features.foreign_keys => {
                self.one(&["PRAGMA foreign_key_check", "PRAGMA foreign_keys", "PRAGMA foreign_keys = 1"])
            }
            21 => format!("PRAGMA cache_size = {}", self.one(&["5", "10", "-2000"])),
            22 => "PRAGMA application_id".into(),
            _ => "PRAGMA collation_list".into(),
        })
    }
}
