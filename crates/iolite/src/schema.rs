//! The catalog's life: read at first need, read again when the file says that it has changed.

use crate::connection::Inner;
use iolite_base::{Code, Encoding, Error, Result};
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

    /// Forgets schemas that are not what the files say, because another connection has changed them: what is known lacks a name. Answers
    /// whether there was one. Where a file cannot be read now, what is known is all there is to say.
    pub fn look_again(&self) -> bool {
        self.forget_other(|then, now| now.is_ok_and(|n| n != then))
    }

    /// Forgets schemas that are not what the files say, after a rollback. Answers whether there was one.
    pub fn check_schemas(&self) -> bool {
        self.forget_other(|then, now| now.ok() != Some(then))
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
        for_schema_rows(bt, enc, &mut |row| match schema.add_row(&row, pages, trusting) {
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
        let mut rc = self.catalog.borrow().schemas[db].clone();
        let schema = Rc::make_mut(&mut rc);
        schema.format = bt.meta(2)?;
        let (pages, trusting) = (bt.page_count(), self.settings.writable_schema());
        for_schema_rows(&bt, self.encoding(), &mut |row| {
            let (kind, name) =
                (row.kind.as_deref().unwrap_or_default(), row.name.as_deref().unwrap_or_default());
            if !row.table.as_ref().is_some_and(|t| t.eq_ignore_ascii_case(table)) {
                return Ok(());
            }
            let is = |k: &str| kind.eq_ignore_ascii_case(k);
            let known = if is("table") || is("view") {
                schema.table(name).is_some_and(|t| t.root.get() != 1)
            } else if is("index") {
                schema.index(name).is_some_and(|i| i.root.get() != 0)
            } else {
                schema.trigger(name).is_some()
            };
            if known {
                return Ok(());
            }
            schema.add_row(&row, pages, trusting)
        })?;
        Rc::make_mut(&mut self.catalog.borrow_mut()).schemas[db] = rc;
        self.renew_generation(db);
        Ok(())
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
        self.renew_generation(db);
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
    for_rows(bt, root, schema.encoding, &mut |v| {
        let text = |i: usize| v.get(i).filter(|x| !x.is_null()).map(Value::text_carried);
        if let (Some(t), Some(stat)) = (text(0), text(2)) {
            schema.add_stat(&t, text(1).as_deref(), &stat);
        }
        Ok(())
    })
}

fn for_schema_rows(bt: &Btree, enc: Encoding, f: &mut dyn FnMut(SchemaRow<'_>) -> Result<()>) -> Result<()> {
    for_rows(bt, 1, enc, &mut |v| {
        let text = |i: usize| v.get(i).filter(|x| !x.is_null()).map(Value::text_carried);
        f(SchemaRow { kind: text(0), name: text(1), table: text(2), root: text(3), sql: text(4) })
    })
}

fn for_rows(bt: &Btree, root: u32, enc: Encoding, f: &mut dyn FnMut(Vec<Value>) -> Result<()>) -> Result<()> {
    if bt.page_count() == 0 {
        return Ok(());
    }
    let mut c = bt.cursor(root, TreeKind::Table, false)?;
    let mut more = c.first()?;
    while more {
        let mut rec = iolite_base::alloc::zeroed(c.payload_len() as usize)?;
        c.read_payload(0, &mut rec)?;
        f(record::decode(&rec, enc)?)?;
        more = c.next()?;
    }
    Ok(())
}
