//! The catalog's life: read at first need, read again when the file says that it has changed.

use crate::connection::Inner;
use iolite_base::{Code, Encoding, Error, Result, raw_text};
use iolite_btree::{Btree, TreeKind};
use iolite_catalog::{Schema, SchemaRow};
use iolite_value::{Value, record};
use std::rc::Rc;

impl Inner {
    /// Reads every schema that is not known yet.
    pub fn load_schemas(&self) -> Result<()> {
        let n = self.catalog.borrow().schemas.len();
        for db in 0..n {
            if !self.catalog.borrow().schemas[db].loaded {
                self.load_schema(db)?;
            }
        }
        Ok(())
    }

    /// Makes sure that what is known of the schemas is what the files say; with `reads`, it stays so until the statement ends.
    pub fn be_current(&self, schema: Option<&str>, reads: bool) -> Result<()> {
        let only = schema.map(|s| self.database_number(s)).transpose()?;
        let n = self.catalog.borrow().schemas.len();
        for db in (0..n).filter(|db| reads && only.is_none_or(|o| o == *db)) {
            if let Some(b) = self.btree_if_open(db) {
                b.begin_read()?;
            }
        }
        self.check_schemas();
        self.load_schemas()
    }

    /// Makes sure that what is known of one schema is what its file says, which is being read.
    pub fn know(&self, db: usize) -> Result<()> {
        self.look_again();
        if self.catalog.borrow().schemas[db].loaded { Ok(()) } else { self.load_schema(db) }
    }

    /// Forgets schemas that are not what the files say, because another connection has changed them: what is known lacks a name. Answers
    /// whether there was one. Where a file cannot be read now, what is known is all there is to say.
    pub fn look_again(&self) -> bool {
        self.forget_other(|then, now| now.is_ok_and(|n| n != then))
    }

    /// Forgets schemas that are not what the files say, after a rollback. Answers whether there was one.
    pub fn check_schemas(&self) -> bool {
        let found = self.forget_other(|then, now| now.ok() != Some(then));
        if found {
            self.expire_statements();
        }
        found
    }

    fn forget_other(&self, is_other: impl Fn(u32, Result<u32>) -> bool) -> bool {
        let mut stale = false;
        let n = self.catalog.borrow().schemas.len();
        for db in 0..n {
            let Some(b) = self.btree_if_open(db) else { continue };
            let schema = self.catalog.borrow().schemas[db].clone();
            if schema.loaded && is_other(schema.cookie, b.reading(|b| b.meta(1))) {
                self.forget_schema(db);
                stale = true;
            }
        }
        stale
    }

    /// Reads one database's schema.
    pub fn load_schema(&self, db: usize) -> Result<()> {
        let name = self.catalog.borrow().schemas[db].name.clone();
        self.let_go(db);
        let mut schema = Schema::new(&name);
        schema.encoding = self.encoding();
        let Some(bt) = self.btree_if_open(db) else {
            schema.loaded = true;
            self.put_schema(db, schema);
            return Ok(());
        };
        let stats = bt.reading(|bt| {
            self.read_schema(db, bt, &mut schema)?;
            Ok(take_stats(bt, &mut schema))
        })?;
        schema.loaded = true;
        self.put_schema(db, schema);
        stats
    }

    /// Drops the objects of a schema that is to be read anew, before as many are made: a large schema takes its memory once.
    fn let_go(&self, db: usize) {
        let mut catalog = self.catalog.borrow_mut();
        if !catalog.schemas[db].loaded {
            Rc::make_mut(&mut Rc::make_mut(&mut catalog).schemas[db]).clear();
        }
    }

    fn put_schema(&self, db: usize, schema: Schema) {
        let known = self.catalog.borrow().schemas[db].loaded;
        Rc::make_mut(&mut self.catalog.borrow_mut()).schemas[db] = Rc::new(schema);
        if known {
            self.renew_generation(db);
        } else {
            // Nobody's names meant what was not known.
            Rc::make_mut(&mut self.generations.borrow_mut())[db] += 1;
        }
    }

    fn read_schema(&self, db: usize, bt: &Btree, schema: &mut Schema) -> Result<()> {
        schema.cookie = bt.meta(1)?;
        schema.format = bt.meta(2)?;
        self.size_cache(db, bt)?;
        let enc = bt.meta(5)?;
        if enc != 0 {
            let enc = Encoding::from_header(enc & 3).unwrap_or(Encoding::Utf8);
            if db == 0 {
                schema.encoding = enc;
            } else if enc != self.encoding() && db != 1 {
                return Err(Error::sql(
                    "attached databases must use the same text encoding as main database",
                ));
            }
        } else if db == 0 {
            schema.encoding = bt.encoding()?;
        }
        if schema.format > 4 {
            return Err(Error::sql("unsupported file format"));
        }
        let enc = schema.encoding;
        let (pages, trusting) = (bt.page_count(), self.settings.writable_schema());
        for_schema_rows(bt, enc, None, &mut |row| match schema.add_row(&row, pages, trusting) {
            // Who may write to the schema can mend it: what makes sense is there.
            Err(e) if trusting && e.code() == Code::Corrupt => Ok(()),
            added => added,
        })
    }

    /// Gives the cache the size that the header names (`PRAGMA default_cache_size`), unless somebody has said otherwise.
    fn size_cache(&self, db: usize, bt: &Btree) -> Result<()> {
        let pages = bt.meta(3)? as i32;
        let sized = self.databases.borrow().get(db).is_some_and(|d| d.cache_sized.replace(true));
        if pages != 0 && !sized {
            bt.set_cache_size(pages.saturating_abs())?;
        }
        Ok(())
    }

    /// Takes in the schema rows of one table that the catalog does not know yet.
    pub fn parse_schema_rows(&self, db: usize, table: Option<&str>) -> Result<()> {
        let bt = self.btree_of(db)?;
        let Some(table) = table else {
            return self.load_schema(db);
        };
        let (format, pages, trusting) = (bt.meta(2)?, bt.page_count(), self.settings.writable_schema());
        let mut rows = Vec::new();
        let known = self.catalog.borrow().schemas[db].clone();
        for_schema_rows(&bt, self.encoding(), Some(table), &mut |row| {
            if !knows(&known, &row) {
                rows.push(row.into_owned());
            }
            Ok(())
        })?;
        drop(known);
        let mut taken = Ok(());
        self.edit_schema(db, |schema| {
            schema.format = format;
            taken = rows.iter().try_for_each(|row| schema.add_row(row, pages, trusting));
        });
        if rows.iter().any(|r| r.kind.as_deref() == Some("index") && r.sql.is_some()) {
            // A new index may serve any of them.
            self.expire_statements();
        }
        if taken.is_err() {
            // What of it was taken is not what the statement leaves.
            self.forget_schema(db);
        }
        taken
    }

    /// Reads the statistics into the catalog.
    pub fn read_stats(&self, db: usize) -> Result<()> {
        let mut rc = self.catalog.borrow().schemas[db].clone();
        let Some(bt) = self.btree_if_open(db) else { return Ok(()) };
        let schema = Rc::make_mut(&mut rc);
        if schema.table("sqlite_stat1").is_none() {
            return Ok(());
        }
        schema.clear_stats();
        bt.reading(|bt| take_stats(bt, schema))?;
        Rc::make_mut(&mut self.catalog.borrow_mut()).schemas[db] = rc;
        // There may be better plans now.
        self.expire_statements();
        Ok(())
    }

    /// A schema is another one now: programs over it are compiled anew before their next run. Where it is that of temporary
    /// objects, all programs are: names mean those first, and may have meant something else.
    fn renew_generation(&self, db: usize) {
        if db == 1 {
            self.expire_statements();
        } else {
            Rc::make_mut(&mut self.generations.borrow_mut())[db] += 1;
        }
    }

    /// Changes a schema in place.
    pub fn edit_schema(&self, db: usize, f: impl FnOnce(&mut Schema)) {
        let mut catalog = self.catalog.borrow_mut();
        f(Rc::make_mut(&mut Rc::make_mut(&mut catalog).schemas[db]));
        drop(catalog);
        self.renew_generation(db);
    }

    /// Forgets a schema: it is read again before the next statement is prepared.
    pub fn forget_schema(&self, db: usize) {
        self.edit_schema(db, |s| s.loaded = false);
    }
}

/// Takes the rows of `sqlite_stat1` into a schema, if it has this table.
fn take_stats(bt: &Btree, schema: &mut Schema) -> Result<()> {
    let Some(root) = schema.table("sqlite_stat1").map(|t| t.root.get()) else { return Ok(()) };
    for_rows(bt, root, schema.encoding, &|_| Ok(true), &mut |v| {
        let text = |i: usize| v.get(i).filter(|x| !x.is_null()).map(Value::text_carried);
        if let (Some(t), Some(stat)) = (text(0), text(2)) {
            schema.add_stat(&t, text(1).as_deref(), &stat);
        }
        Ok(())
    })
}

/// Whether the object of a row is there.
fn knows(schema: &Schema, row: &SchemaRow<'_>) -> bool {
    let name = row.name.as_deref().unwrap_or_default();
    match row.kind.as_deref().unwrap_or_default().to_ascii_lowercase().as_str() {
        "table" | "view" => schema.table(name).is_some_and(|t| t.root.get() != 1),
        "index" => schema.index(name).is_some_and(|i| i.root.get() != 0),
        _ => schema.trigger(name).is_some(),
    }
}

/// Hands the rows of the schema table to `f`, or those of objects of one table.
fn for_schema_rows(
    bt: &Btree,
    enc: Encoding,
    of: Option<&str>,
    f: &mut dyn FnMut(SchemaRow<'_>) -> Result<()>,
) -> Result<()> {
    let wanted = of.map(raw_text::decode);
    let is_wanted = |rec: &[u8]| match &wanted {
        Some(name) if enc == Encoding::Utf8 => is_of_table(rec, name),
        _ => Ok(true),
    };
    for_rows(bt, 1, enc, &is_wanted, &mut |v| {
        let text = |i: usize| v.get(i).filter(|x| !x.is_null()).map(Value::text_carried);
        let row = SchemaRow { kind: text(0), name: text(1), table: text(2), root: text(3), sql: text(4) };
        let is = |of: &str| row.table.as_ref().is_some_and(|t| t.eq_ignore_ascii_case(of));
        if of.is_none_or(is) { f(row) } else { Ok(()) }
    })
}

/// Whether a row's third field may be this name: most rows of a large schema need no further look.
fn is_of_table(rec: &[u8], name: &[u8]) -> Result<bool> {
    let mut header = record::Header::new(rec)?;
    header.next(rec)?;
    header.next(rec)?;
    Ok(header.next(rec)?.is_none_or(|(_, bytes)| bytes.eq_ignore_ascii_case(name)))
}

/// Hands the rows of a table to `f`, of which the records are wanted.
fn for_rows(
    bt: &Btree,
    root: u32,
    enc: Encoding,
    wanted: &dyn Fn(&[u8]) -> Result<bool>,
    f: &mut dyn FnMut(Vec<Value>) -> Result<()>,
) -> Result<()> {
    if bt.page_count() == 0 {
        return Ok(());
    }
    let mut c = bt.cursor(root, TreeKind::Table, false)?;
    let mut rec = Vec::new();
    let mut more = c.first()?;
    while more {
        c.read_entry(&mut rec)?;
        if wanted(&rec)? {
            f(record::decode(&rec, enc)?)?;
        }
        more = c.next()?;
    }
    Ok(())
}
