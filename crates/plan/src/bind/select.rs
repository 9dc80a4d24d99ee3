//! Binding queries.

use super::expr::{fields, width};
use super::from::width_mismatch;
use super::*;
use iolite_base::{
    SmallStr,
    hash::{FastMap, FastSet},
};
use iolite_bytecode::ColumnMeta;
use iolite_sql::ast::Literal;
use iolite_value::Affinity;
use std::ops::Range;

impl Binder<'_> {
    /// Binds a whole query.
    pub fn select(&mut self, s: &ast::Select) -> Result<Select> {
        let mut out = Select::with_one_arm();
        self.select_into(s, &mut out)?;
        Ok(out)
    }

    /// As [`Binder::select`], into a query that is as [`Select::with_one_arm`] makes it.
    pub fn select_into(&mut self, s: &ast::Select, out: &mut Select) -> Result<()> {
        self.enter()?;
        let pushed = self.push_with(s.with.as_ref())?;
        self.enter_query();
        let around = (std::mem::take(&mut self.within), std::mem::replace(&mut self.in_query, true));
        let done = self.arms(s, out);
        (self.within, self.in_query) = around;
        if self.answers_nothing() {
            out.limit = Some(Expr::int(0));
        }
        self.pop_with(pushed);
        self.leave();
        done.map_err(|e| self.first_complaint(s, e))
    }

    /// What is told where something is wrong with a query: SQLite looks for all its tables first, those of nested queries included,
    /// then at LIMIT.
    #[cold]
    fn first_complaint(&mut self, s: &ast::Select, e: Error) -> Error {
        if e.code() != Code::Error || self.log.is_some() || self.home().is_some() || self.too_deep {
            return e;
        }
        let mut names = Vec::new();
        let mut note = |q: &ast::QualifiedName| names.push(q.clone());
        let mut walk = iolite_sql::walk::TableNames::new(&mut note);
        walk.select(s);
        let defined = walk.defined;
        let looked_at = looked_at(&names, &defined);
        let known: FastSet<String> = defined.iter().map(|d| d.0.to_ascii_lowercase()).collect();
        let is_there = |q: &ast::QualifiedName| {
            let name = &q.name.text;
            let defines = || {
                known.contains(&name.to_ascii_lowercase())
                    || self.ctes.iter().any(|c| same_name(&c.ast.name.text, name))
            };
            let schema = q.schema.as_ref().map(|s| &*s.text);
            schema.is_none() && defines()
                || self.find_table(schema, name).is_some()
                || self.env.virtual_tables && !matches!(self.env.connector.eponymous(name), Ok(None))
        };
        if let Some((q, _)) = names.iter().zip(&looked_at).find(|(q, looked_at)| **looked_at && !is_there(q))
        {
            return self.no_such_table(q);
        }
        self.complaint = None;
        self.limits(s).err().unwrap_or(e)
    }

    fn arms(&mut self, s: &ast::Select, out: &mut Select) -> Result<()> {
        if let Some(apart) = values::rows_apart(s) {
            return self.arms(&apart, out);
        }
        if s.compounds.is_empty() {
            let Select { cores, columns, order_by, .. } = out;
            self.core_ordered(&s.first, &s.order_by, (&mut cores[0], columns, order_by))?;
            if let ast::SelectCore::Values(_) = s.first
                && !s.order_by.is_empty()
            {
                out.order_by = self.compound_order(&s.order_by, out, &[])?;
            }
            (out.limit, out.offset) = self.limits(s)?;
            return Ok(());
        }
        let max = self.env.limits.get(Limit::CompoundSelect) as usize;
        let values = |c: &(_, ast::SelectCore)| matches!(c.1, ast::SelectCore::Values(_));
        // Behind VALUES nobody counts.
        if max > 0 && s.compounds.len() + 1 > max && !s.compounds.last().is_some_and(values) {
            return Err(Error::sql("too many terms in compound SELECT"));
        }
        // The arms from the last to the first: of several errors, it is the last arm's that stock tells of.
        let arms = s.compounds.len() + 1;
        let mut cores = Vec::with_capacity(arms);
        let mut outs: Vec<Few<OutColumn>> = Vec::with_capacity(arms);
        let asks = self.asks();
        let mut asked = Vec::new();
        if asks {
            self.ask_query()?;
        }
        for i in (0..arms).rev() {
            let arm = if i == 0 { &s.first } else { &s.compounds[i - 1].1 };
            let before = self.put_off_so_far();
            let (core, columns) = self.core(arm)?;
            if asks {
                asked.push(self.put_off(before));
            }
            if outs.last().is_some_and(|o| o.len() != columns.len()) {
                let (op, right) = &s.compounds[i];
                return Err(width_mismatch(*op, right));
            }
            outs.push(columns);
            cores.push(core);
        }
        if asks {
            self.arms_asked(asked)?;
        }
        cores.reverse();
        outs.reverse();
        let mut columns = outs[0].clone();
        for (c, last) in columns.iter_mut().zip(&outs[arms - 1]) {
            c.last = Some(Box::new(last.meta.clone()));
        }
        for (i, c) in columns.iter_mut().enumerate() {
            let found = cores.iter().find_map(|k| k.result.get(i).and_then(|e| e.collation()));
            c.collation = found.map_or(self.binary(), |f| f.0);
        }
        for (i, c) in columns.iter_mut().enumerate() {
            c.affinity = column_affinity(&cores, i);
        }
        out.cores = cores.into();
        out.ops = s.compounds.iter().map(|(op, _)| *op).collect();
        out.columns = columns;
        out.order_by = self.compound_order(&s.order_by, out, &outs)?;
        let sets = out.ops.iter().any(|op| *op != ast::CompoundOp::UnionAll);
        if sets && s.order_by.iter().any(|t| matches!(t.expr, ast::Expr::Collate(..))) {
            // SQLite sorts such a query as one in FROM, whose columns are declared as the last arm's.
            let named = super::from::query_columns(out, &[], false, self.binary());
            for (i, c) in out.columns.iter_mut().enumerate() {
                if let Some(last) = &c.last {
                    c.meta = ColumnMeta { name: (&*named.name(i)).into(), ..(**last).clone() };
                }
            }
        }
        (out.limit, out.offset) = self.limits(s)?;
        Ok(())
    }

    /// LIMIT and OFFSET: they see no columns, neither of the query nor of those around it.
    pub(crate) fn limits(&mut self, s: &ast::Select) -> Result<(Option<Expr>, Option<Expr>)> {
        if s.limit.is_none() {
            return Ok((None, None));
        }
        let scopes = std::mem::replace(&mut self.scopes, Few::one(Scope::default()));
        let frames = std::mem::take(&mut self.frames);
        let out = (|| -> Result<_> {
            let l = s.limit.as_ref().map(|e| self.expr(e)).transpose()?;
            let o = s.offset.as_ref().map(|e| self.expr(e)).transpose()?;
            Ok((l, o))
        })();
        (self.scopes, self.frames) = (scopes, frames);
        out
    }

    /// ORDER BY of a compound: each term is a result column.
    pub(crate) fn compound_order(
        &mut self,
        terms: &[ast::SortTerm],
        s: &Select,
        arms: &[Few<OutColumn>],
    ) -> Result<Vec<OrderTerm>> {
        let n = s.columns.len();
        let mut out = Vec::new();
        for (i, t) in terms.iter().enumerate() {
            let mut e = &t.expr;
            let mut coll = None;
            while let ast::Expr::Collate(inner, name) = e {
                if coll.is_none() {
                    coll = Some(self.collation(&name.text)?);
                }
                e = inner;
            }
            let column = match ordinal(e) {
                Some(k) => {
                    if k < 1 || k > n as i64 {
                        return Err(out_of_range(i, "ORDER", n, e.place()));
                    }
                    Some(k as usize - 1)
                }
                None => self.match_result(e, s, arms)?,
            };
            let Some(column) = column else {
                return Err(Error::sql(format!(
                    "{} ORDER BY term does not match any column in the result set",
                    nth(i + 1)
                )));
            };
            let stand_in = s.cores[0].result.get(column).cloned().unwrap_or(Expr::int(0));
            let mut term = self.order_term(stand_in, Some(column), t);
            term.collation = coll.unwrap_or_else(|| s.columns[column].collation.clone());
            out.push(term);
        }
        Ok(out)
    }

    fn match_result(&mut self, e: &ast::Expr, s: &Select, arms: &[Few<OutColumn>]) -> Result<Option<usize>> {
        let name = match e {
            ast::Expr::Column { schema: None, table: None, column } => Some(&column.text),
            _ => None,
        };
        if let Some(name) = name.filter(|_| arms.is_empty()) {
            let by_name = s.columns.iter().position(|c| c.meta.name.eq_ignore_ascii_case(name));
            if by_name.is_some() {
                return Ok(by_name);
            }
        }
        // The leftmost arm that has such a result counts: by its alias, or as an expression, bound in that arm's scope.
        for (k, core) in s.cores.iter().enumerate() {
            let is_alias = |r: &OutColumn| {
                (r.aliased || r.starred) && name.is_some_and(|n| r.meta.name.eq_ignore_ascii_case(n))
            };
            if let Some(i) = arms.get(k).and_then(|arm| arm.iter().position(is_alias)) {
                return Ok(Some(i));
            }
            let mut scope = Scope { phase: Phase::Groups, ..Scope::default() };
            for src in &core.sources {
                scope.sources.push(self.scope_of(src)?);
            }
            scope.aggs = core.aggs.clone();
            scope.windows = core.windows.clone();
            self.scopes.push(scope);
            let bound = self.expr(e);
            self.scopes.pop();
            if let Ok(b) = bound
                && let Some(i) = core.result.iter().position(|r| r.without_collate().same(&b))
            {
                return Ok(Some(i));
            }
        }
        Ok(None)
    }

    fn scope_of(&self, src: &Source) -> Result<ScopeSource> {
        let columns = match &src.kind {
            SourceKind::Table { table, .. } | SourceKind::Virtual { table, .. } => {
                Columns::Table(table.clone())
            }
            SourceKind::Subquery(q) => super::from::query_columns(&q.select, &[], false, self.binary()),
            SourceKind::Working(_) => Columns::Query(Rc::from([])),
        };
        let db = src.table().map(|t| t.0);
        Ok(ScopeSource { id: src.id, db, name: src.name.clone(), columns, hidden: Vec::new() })
    }

    /// One arm without an order of its own.
    pub(crate) fn core(&mut self, c: &ast::SelectCore) -> Result<(Core, Few<OutColumn>)> {
        let (mut core, mut columns) = (Core::default(), Few::new());
        self.core_ordered(c, &[], (&mut core, &mut columns, &mut Vec::new()))?;
        Ok((core, columns))
    }

    /// An arm, into its place in a query, with its columns, and its order if it is the only one.
    fn core_ordered(
        &mut self,
        c: &ast::SelectCore,
        order_by: &[ast::SortTerm],
        out: (&mut Core, &mut Few<OutColumn>, &mut Vec<OrderTerm>),
    ) -> Result<()> {
        self.scopes.push(Scope::default());
        let summary = self.row_that_summarizes(c);
        let bound = match summary.as_ref().unwrap_or(c) {
            ast::SelectCore::Values(rows) => self.values(rows, out.0, out.1),
            ast::SelectCore::Query(q) => {
                let mut bound = self.ask_query();
                if bound.is_ok() {
                    bound = self.query(q, order_by, out);
                }
                bound.and_then(|()| self.query_asked())
            }
        };
        self.scopes.pop();
        bound
    }

    pub(super) fn top(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("a query is being bound")
    }

    fn query(
        &mut self,
        q: &ast::Query,
        order_by: &[ast::SortTerm],
        (core, columns, order): (&mut Core, &mut Few<OutColumn>, &mut Vec<OrderTerm>),
    ) -> Result<()> {
        core.distinct = q.distinct;
        self.top().groups = !q.group_by.is_empty();
        if !q.windows.is_empty() {
            self.window_clause(&q.windows)?;
        }
        let mut on = Vec::new();
        if let Some(f) = &q.from {
            on = self.tables_of(f, core)?;
            if self.asks() {
                self.tables_asked();
            }
        }
        if self.log.is_some() {
            // Names in windows that nobody uses are renamed, too.
            for w in q.windows.iter().map(|w| &w.1) {
                for e in w.partition_by.iter().chain(w.order_by.iter().map(|t| &t.expr)) {
                    let _ = self.expr(e);
                }
            }
        }
        // The result list comes first: WHERE may use its aliases.
        *columns = Few::with_capacity(q.columns.len());
        core.result = Few::with_capacity(q.columns.len());
        self.top().phase = Phase::Groups;
        for c in &q.columns {
            self.result_column(c, core, columns)?;
        }
        if core.result.len() > self.env.limits.get(Limit::Column) as usize {
            return Err(Error::sql("too many columns in result set"));
        }
        for (c, e) in columns.iter().zip(&core.result).filter(|(c, _)| c.aliased) {
            self.top().aliases.push((c.meta.name.clone(), e.clone()));
        }
        // ON belongs to WHERE, and may use aliases like it.
        let before_having = self.top().aggs.len();
        if let Some(h) = &q.having {
            // An aggregate in HAVING alone does not make one.
            if q.group_by.is_empty() && !self.top().has_agg {
                return Err(Error::sql("HAVING clause on a non-aggregate query").nowhere());
            }
            // Groups are chosen before any window is looked at.
            self.top().in_window = true;
            let having = self.expr(h);
            self.top().in_window = false;
            core.having = Some(having?);
        }
        let after_having = self.top().aggs.len();
        self.top().phase = Phase::Rows;
        let mut filter = Few::new();
        if let Some(w) = &q.filter {
            self.conditions(w, None, &mut filter)?;
        }
        self.on_clauses(on, core)?;
        match core.filter.is_empty() {
            true => core.filter = filter,
            false => core.filter.extend(filter),
        }
        self.top().phase = Phase::Groups;
        self.late_arguments(core)?;
        let most = self.env.limits.get(Limit::Column) as usize;
        for (terms, clause) in [(order_by.len(), "ORDER"), (q.group_by.len(), "GROUP")] {
            if terms > most {
                return Err(Error::sql(format!("too many terms in {clause} BY clause")));
            }
        }
        let grouped = self.top().has_agg || !q.group_by.is_empty();
        for (i, t) in order_by.iter().enumerate() {
            let term = self.order_by_term(i, t, core, columns)?;
            order.push(term);
        }
        if !grouped && self.top().has_agg {
            let name = self.top().aggs.last().map_or("".into(), |a| a.function.name.clone());
            return Err(Error::sql(format!("misuse of aggregate: {name}()")));
        }
        self.top().phase = Phase::GroupBy;
        for (i, g) in q.group_by.iter().enumerate() {
            let mut bare = g;
            while let ast::Expr::Collate(inner, _) = bare {
                bare = inner;
            }
            let e = match ordinal(bare) {
                Some(k) => {
                    if k < 1 || k > core.result.len() as i64 {
                        let place = bare.place().filter(|_| is_no_number(k));
                        return Err(out_of_range(i, "GROUP", core.result.len(), place));
                    }
                    let mut e = g;
                    while let ast::Expr::Collate(inner, name) = e {
                        self.collation(&name.text)?;
                        e = inner;
                    }
                    core.result[k as usize - 1].clone()
                }
                None => self.expr(g)?,
            };
            // By its number: where a name stands for one, that is told otherwise.
            let mut window = None;
            e.any(&mut |x| {
                window = if let Expr::Window(id, _) = x { Some(*id) } else { window };
                window.is_some()
            });
            if let Some(id) = window {
                let calls = self.top().windows.iter().flat_map(|w| &w.calls);
                let name = calls.filter(|c| c.id == id).map(|c| c.function.name.clone()).next();
                let text = format!("misuse of window function {}()", name.unwrap_or_default());
                let plain = ordinal(bare).and_then(|k| match q.columns.get(k as usize - 1) {
                    Some(ast::ResultColumn::Expr { expr: ast::Expr::Call(c), .. }) if c.over.is_some() => {
                        Some(c.span.start)
                    }
                    _ => None,
                });
                return Err(plain.map_or_else(|| Error::sql(&*text), |at| Error::sql(&*text).at(at)));
            }
            if e.any(&mut |x| matches!(x, Expr::Agg(..))) {
                return Err(
                    Error::sql("aggregate functions are not allowed in the GROUP BY clause").nowhere()
                );
            }
            core.group_by.push(e);
        }
        self.top().phase = Phase::Groups;
        let having = before_having..after_having;
        having_last(&mut self.top().aggs, having, order);
        let scope = self.top();
        core.aggregate = scope.has_agg || !q.group_by.is_empty();
        core.aggs = std::mem::take(&mut scope.aggs);
        core.windows = std::mem::take(&mut scope.windows);
        if core.aggregate && core.group_by.is_empty() {
            // One row at the most comes out: its order does not matter.
            order.clear();
        }
        Ok(())
    }

    fn order_by_term(
        &mut self,
        i: usize,
        t: &ast::SortTerm,
        core: &Core,
        columns: &[OutColumn],
    ) -> Result<OrderTerm> {
        let mut e = &t.expr;
        let mut coll = None;
        while let ast::Expr::Collate(inner, name) = e {
            if coll.is_none() {
                coll = Some(self.collation(&name.text).map_err(Error::nowhere));
            }
            e = inner;
        }
        let mut column = None;
        if let Some(k) = ordinal(e) {
            if k < 1 || k > core.result.len() as i64 {
                let place = e.place().filter(|_| is_no_number(k));
                return Err(out_of_range(i, "ORDER", core.result.len(), place));
            }
            column = Some(k as usize - 1);
        } else if let ast::Expr::Column { schema: None, table: None, column: name } = e {
            let named = |c: &OutColumn| c.aliased || c.starred;
            column = columns.iter().position(|c| named(c) && c.meta.name.eq_ignore_ascii_case(&name.text));
            if self.log.is_some() && column.is_some_and(|c| columns[c].starred) {
                // Where a column is renamed, its name behind a star is, too.
                let _ = self.expr(e);
            }
        }
        let expr = match column {
            Some(c) => core.result[c].clone(),
            None => self.expr(e)?,
        };
        let column = column.or_else(|| core.result.iter().position(|r| r.same_form(&expr)));
        let mut term = self.order_term(expr, column, t);
        if let Some(c) = coll {
            let c = c?;
            term.expr = Expr::Collate(Box::new(term.expr), c.clone());
            term.collation = c;
        }
        Ok(term)
    }

    fn result_column(
        &mut self,
        c: &ast::ResultColumn,
        core: &mut Core,
        columns: &mut Few<OutColumn>,
    ) -> Result<()> {
        match c {
            ast::ResultColumn::Expr { expr, alias, span } => {
                let e = self.expr(expr)?;
                let name: Rc<str> = match alias {
                    Some(a) => (&*a.text).into(),
                    None => self.result_name(expr, &e, *span),
                };
                let mut out = self.out_column(&e, name);
                out.aliased = alias.is_some();
                if alias.is_none() {
                    let mut under = expr;
                    while let ast::Expr::Collate(e, _) = under {
                        under = e;
                    }
                    if let ast::Expr::Column { column, .. } = under
                        && *column.text != *out.meta.name
                    {
                        out.inner_name = Some((&*column.text).into());
                    }
                    let bare = bare_column(expr);
                    if !std::ptr::eq(bare, expr) && matches!(bare, ast::Expr::Column { .. }) {
                        let inner = self.expr(bare)?;
                        out.stored_name = Some(self.result_name(bare, &inner, *span));
                    }
                }
                columns.push(out);
                core.result.push(e);
            }
            ast::ResultColumn::Star(span) => {
                if self.top().sources.is_empty() {
                    return Err(Error::sql("no tables specified"));
                }
                let n = self.top().sources.len();
                for s in 0..n {
                    self.star(s, core, columns, false, None).map_err(|e| e.at(span.start))?;
                }
            }
            ast::ResultColumn::TableStar(t) => {
                let n = self.top().sources.len();
                let mut any = false;
                for s in 0..n {
                    let src = &self.top().sources[s];
                    if src.name.eq_ignore_ascii_case(&t.text) {
                        any = true;
                        self.star(s, core, columns, true, None).map_err(|e| e.at(t.span.end + 1))?;
                    } else if let Columns::Query(q) = &src.columns
                        && q.iter().any(|c| c.inside.as_ref().is_some_and(|i| i.belongs_to(&t.text)))
                    {
                        any = true;
                        self.star(s, core, columns, true, Some(&t.text))?;
                    }
                }
                if !any {
                    return Err(Error::sql(format!("no such table: {}", t.text)));
                }
            }
        }
        Ok(())
    }

    fn star(
        &mut self,
        s: usize,
        core: &mut Core,
        columns: &mut Few<OutColumn>,
        qualified: bool,
        only: Option<&str>,
    ) -> Result<()> {
        let src = &self.top().sources[s];
        let (id, cols, hidden) = (src.id, src.columns.clone(), src.hidden.clone());
        let table_name = src.name.clone();
        let count = self.top().sources.len();
        for i in 0..cols.len() {
            if let (Some(only), Columns::Query(q)) = (only, &cols) {
                if !q[i].inside.as_ref().is_some_and(|x| x.belongs_to(only) && !x.hidden) {
                    continue;
                }
            } else if cols.is_hidden(i) || !qualified && hidden.contains(&i) {
                continue;
            }
            let name = cols.name(i);
            let merges =
                |x: &ScopeSource| x.hidden.iter().any(|h| x.columns.name(*h).eq_ignore_ascii_case(&name));
            let bare = core.sources.iter().skip(s + 1).any(|x| x.join.right)
                && self.top().sources[s + 1..].iter().any(merges);
            if count > 1 && !bare && only.is_none() {
                self.is_the_only(s, i)?;
            }
            if self.log.is_none() && bare {
                // On the left of a RIGHT JOIN what USING merges is looked for by its bare name, which may mean another, too.
                let bare =
                    ast::Name { text: (&*name).into(), quote: ast::Quote::Bracket, span: Default::default() };
                self.bind_column(None, None, &bare).map_err(Error::without_offset)?;
            }
            let mut e = self.column_of(id, &cols, i)?;
            if (!qualified || bare)
                && let Some((_, m)) = self.top().merged.iter().find(|(m, _)| m.eq_ignore_ascii_case(&name))
            {
                e = m.clone();
            }
            e = self.authorized(self.scopes.len() - 1, e)?;
            let mut shown = name.clone();
            if self.full_names() && !self.env.short_column_names && count > 0 {
                shown = format!("{table_name}.{name}").into();
            }
            let mut out = self.out_column(&e, shown);
            out.starred = true;
            columns.push(out);
            core.result.push(e);
        }
        Ok(())
    }

    /// The columns that are bound are those of a view or of CREATE TABLE AS: no PRAGMA changes their names.
    fn own_names(&self) -> bool {
        self.named_for_good || !self.views.is_empty()
    }

    /// Result columns have their tables' names before their own.
    fn full_names(&self) -> bool {
        self.env.full_column_names && !self.own_names()
    }

    fn result_name(&mut self, ast: &ast::Expr, e: &Expr, span: ast::Span) -> Rc<str> {
        if let (ast::Expr::Column { .. }, Expr::Column(c)) = (ast, e)
            && (self.env.short_column_names || self.env.full_column_names || self.own_names())
        {
            for scope in self.scopes.iter().rev() {
                if let Some(s) = scope.sources.iter().find(|s| s.id == c.table) {
                    let name: Rc<str> = match (&s.columns, c.column) {
                        (Columns::Table(t), ROWID) => match t.rowid_alias {
                            Some(i) => t.columns[i].name.clone(),
                            None => "rowid".into(),
                        },
                        (cols, i) => cols.name(i as usize),
                    };
                    if self.full_names() {
                        let table = match &s.columns {
                            Columns::Table(t) => t.name.clone(),
                            Columns::Query(_) => s.name.clone(),
                        };
                        return format!("{table}.{name}").into();
                    }
                    return name;
                }
            }
        }
        if let ast::Expr::Column { column, .. } = ast
            && matches!(e, Expr::TriggerColumn(..) | Expr::Case { .. })
        {
            return (&*column.text).into();
        }
        span.of(self.text).into()
    }

    /// What the API and enclosing queries see of a result expression.
    pub(crate) fn out_column(&self, e: &Expr, name: Rc<str>) -> OutColumn {
        let mut meta = ColumnMeta { name, decltype: None, origin: None };
        if let Expr::Column(c) = e {
            self.describe(c, &mut meta);
        }
        if let Expr::Subquery(s, n) = e
            && let Some(c) = s.select.columns.get(*n)
        {
            let seen = c.last.as_deref().unwrap_or(&c.meta);
            meta.decltype = seen.decltype.clone();
            meta.origin = seen.origin.clone();
        }
        let collation = e.collation().map_or(self.binary(), |c| c.0);
        let affinity = e.affinity();
        OutColumn {
            meta,
            aliased: false,
            starred: false,
            inner_name: None,
            stored_name: None,
            last: None,
            affinity,
            collation,
        }
    }

    fn describe(&self, c: &ColumnRef, meta: &mut ColumnMeta) {
        let source = self.scopes.iter().rev().find_map(|s| s.sources.iter().find(|x| x.id == c.table));
        let Some(s) = source else { return };
        match &s.columns {
            Columns::Table(t) => {
                let returned = self.returned.as_ref().filter(|r| r.id == c.table).map(|r| r.db);
                let db =
                    s.db.or(returned)
                        .map_or_else(|| "main".into(), |d| self.env.catalog.schemas[d].name.clone());
                // The type of a hidden column is empty where that of others is none.
                let mut hidden = false;
                let (decl, name): (Rc<str>, Rc<str>) = match (c.column, t.rowid_alias) {
                    (ROWID, None) => ("INTEGER".into(), "rowid".into()),
                    (i, alias) => {
                        let i = if i == ROWID { alias.unwrap_or(0) } else { i as usize };
                        hidden = t.columns[i].hidden;
                        (t.columns[i].decltype.clone(), t.columns[i].name.clone())
                    }
                };
                meta.decltype = (hidden || !decl.is_empty()).then_some(decl);
                meta.origin = Some((db, t.name.clone(), name));
            }
            Columns::Query(q) => {
                if let Some(col) = q.get(c.column as usize) {
                    let seen = col.out.last.as_deref().unwrap_or(&col.out.meta);
                    meta.decltype = seen.decltype.clone();
                    meta.origin = seen.origin.clone();
                }
            }
        }
    }

    /// Binds the `RETURNING` list over a scope that holds the table alone.
    pub(crate) fn returning_list(
        &mut self,
        list: &[ast::ResultColumn],
        target: &Target,
    ) -> Result<(Vec<Expr>, Vec<OutColumn>)> {
        let returned = Returned { id: target.id, name: target.table.name.clone(), db: target.db };
        let former = self.returned.replace(returned);
        // Names of databases mean nothing here.
        let databases: Vec<Option<usize>> = self.top().sources.iter_mut().map(|s| s.db.take()).collect();
        let out = self.returned_columns(list);
        for (s, db) in self.top().sources.iter_mut().zip(databases) {
            s.db = db;
        }
        self.returned = former;
        out
    }

    fn returned_columns(&mut self, list: &[ast::ResultColumn]) -> Result<(Vec<Expr>, Vec<OutColumn>)> {
        let mut core = Core::default();
        let mut columns = Few::new();
        for c in list {
            if matches!(c, ast::ResultColumn::TableStar(_)) {
                return Err(Error::sql("RETURNING may not use \"TABLE.*\" wildcards"));
            }
            self.result_column(c, &mut core, &mut columns)?;
            // Where in the statement an aggregate stands that may not, is not told here.
            self.complaint = self.complaint.take().map(Error::nowhere);
        }
        if !self.top().aggs.is_empty() {
            let name = self.top().aggs[0].function.name.clone();
            return Err(Error::sql(format!("misuse of aggregate function {name}()")));
        }
        debug_assert!(core.result.iter().all(|e| width(e) == 1 && fields(e.clone()).len() == 1));
        Ok((core.result.into_iter().collect(), columns.into_iter().collect()))
    }
}

/// What an expression is under COLLATE, `likely()` and their kin.
fn bare_column(e: &ast::Expr) -> &ast::Expr {
    match e {
        ast::Expr::Collate(inner, _) => bare_column(inner),
        ast::Expr::Call(c)
            if ["likely", "unlikely", "likelihood"].iter().any(|n| c.name.text.eq_ignore_ascii_case(n)) =>
        {
            c.args.first().map_or(e, bare_column)
        }
        other => other,
    }
}

/// The affinity of column `i` of a compound of `cores`.
pub(crate) fn column_affinity<'c, C>(cores: C, i: usize) -> Affinity
where
    C: IntoIterator<Item = &'c Core>,
    C::IntoIter: Clone,
{
    let cores = cores.into_iter();
    // The rows of a VALUES list that comes first are arms like others; of a later one nothing is known.
    let first = cores.clone().take(1).flat_map(|k| {
        let rows = k.values.iter().skip(1).filter_map(move |r| r.get(i));
        k.result.get(i).into_iter().chain(rows).map(|e| (e, false))
    });
    let rest = cores.skip(1).filter_map(|k| Some((k.result.get(i)?, k.values.len() > 1)));
    compound_affinity(first.chain(rest))
}

/// The affinity of a compound's column: that of the first arm that has one, unless another arm may bring what it would
/// convert (documentation page `datatype3`, section 3.3, leaves the choice among the arms open). An arm is an expression
/// and whether it is but the first of several `VALUES`, of which nothing is known.
pub(super) fn compound_affinity<'e>(arms: impl Iterator<Item = (&'e Expr, bool)> + Clone) -> Affinity {
    let own = |(e, several): (&Expr, bool)| if several { Affinity::None } else { e.affinity() };
    let Some(at) = arms.clone().position(|a| own(a) != Affinity::None) else { return Affinity::None };
    let affinity = arms.clone().nth(at).map_or(Affinity::None, own);
    let all = |(e, several): (&Expr, bool)| if several { NUMBERS | TEXTS | BLOBS } else { classes(e) };
    let others = arms.clone().enumerate().filter(|(i, _)| *i != at).fold(0, |m, (_, a)| m | all(a));
    let mut arms = arms;
    match affinity {
        Affinity::Text if others & NUMBERS != 0 => Affinity::Blob,
        a if a > Affinity::Text && others & TEXTS != 0 => Affinity::Blob,
        // A CAST that comes first gives no type to the others.
        a if a > Affinity::Text && matches!(arms.next(), Some((Expr::Cast(..), _))) => Affinity::Flexnum,
        a => a,
    }
}

const NUMBERS: u8 = 1;
const TEXTS: u8 = 2;
const BLOBS: u8 = 4;

/// The storage classes that an expression's values may have, as far as its form tells.
fn classes(e: &Expr) -> u8 {
    match e {
        Expr::Const(v) => match v.class() {
            iolite_value::StorageClass::Null => 0,
            iolite_value::StorageClass::Text => TEXTS,
            iolite_value::StorageClass::Blob => BLOBS,
            _ => NUMBERS,
        },
        Expr::Binary(BinOp::Concat, ..) => TEXTS | BLOBS,
        Expr::Call(_) | Expr::Agg(..) | Expr::Param(_) => NUMBERS | TEXTS | BLOBS,
        Expr::Column(_) | Expr::Cast(..) | Expr::Subquery(..) => match e.affinity() {
            Affinity::Text => TEXTS | BLOBS,
            a if a > Affinity::Text => NUMBERS | BLOBS,
            _ => NUMBERS | TEXTS | BLOBS,
        },
        Expr::Case { arms, otherwise, .. } => {
            let results = arms.iter().map(|(_, r)| r).chain(otherwise.as_deref());
            results.fold(0, |m, r| m | classes(r))
        }
        Expr::Collate(inner, _)
        | Expr::Plus(inner)
        | Expr::IfNotNullRow(_, inner)
        | Expr::NoSubtype(inner)
        | Expr::Merged(inner) => classes(inner),
        _ => NUMBERS,
    }
}

/// Puts the aggregates that HAVING has brought behind those of ORDER BY: the last `min` or `max` of the list says which row stands
/// for a group.
fn having_last(aggs: &mut Vec<Agg>, having: Range<usize>, order: &[OrderTerm]) {
    if having.is_empty() {
        return;
    }
    let mut in_order = Vec::new();
    for term in order {
        term.expr.any(&mut |e| {
            if let Expr::Agg(id, _) = e {
                in_order.push(*id);
            }
            false
        });
    }
    let place = |id| in_order.iter().position(|i| *i == id).unwrap_or(usize::MAX);
    // Of those that no term of ORDER BY names, what came with HAVING comes last.
    let late = aggs.split_off(having.start).into_iter().enumerate();
    let mut all: Vec<_> = late.map(|(i, a)| (place(a.id), i < having.len(), a)).collect();
    all.sort_by_key(|(place, own, _)| (*place, *own));
    aggs.extend(all.into_iter().map(|(_, _, a)| a));
}

/// A term that is an integer constant: the number of a result column.
fn ordinal(e: &ast::Expr) -> Option<i64> {
    match e {
        // Only what fits 32 bits is a number of a column: what is larger is a constant like any other.
        ast::Expr::Literal(Literal::Integer(t), _) => {
            let number = match t.strip_prefix("0x").or_else(|| t.strip_prefix("0X")) {
                Some(hex) => i32::from_str_radix(&hex.replace('_', ""), 16),
                None => t.parse::<i32>(),
            };
            number.ok().map(i64::from)
        }
        ast::Expr::Unary(ast::UnaryOp::Neg, a) => ordinal(a).map(|k| -k),
        ast::Expr::Unary(ast::UnaryOp::Plus, a) => ordinal(a),
        _ => None,
    }
}

fn out_of_range(i: usize, clause: &str, n: usize, place: Option<u32>) -> Error {
    Error::sql(format!("{} {clause} BY term out of range - should be between 1 and {n}", nth(i + 1)))
        .at_place(place)
}

/// Whether it is a number that no query can have a column of: such a term is told of with its place.
fn is_no_number(k: i64) -> bool {
    !(1..=0xffff).contains(&k)
}

pub(crate) fn nth(n: usize) -> String {
    let suffix = match (n % 10, n % 100) {
        (1, x) if x != 11 => "st",
        (2, x) if x != 12 => "nd",
        (3, x) if x != 13 => "rd",
        _ => "th",
    };
    format!("{n}{suffix}")
}

/// Which of the names of tables in a query count: queries of WITH that nobody names are not looked at. Each definition is
/// followed once.
fn looked_at(names: &[ast::QualifiedName], defined: &[(SmallStr, Range<usize>)]) -> Vec<bool> {
    // The innermost definition around each name: those around others come behind them in the list.
    let mut home: Vec<Option<usize>> = vec![None; names.len()];
    for (k, (_, within)) in defined.iter().enumerate().rev() {
        home[within.clone()].fill(Some(k));
    }
    let mut by_name: FastMap<String, Vec<usize>> = FastMap::default();
    for (k, (name, _)) in defined.iter().enumerate() {
        by_name.entry(name.to_ascii_lowercase()).or_default().push(k);
    }
    let mut out: Vec<bool> = home.iter().map(Option::is_none).collect();
    let mut open: Vec<usize> = (0..names.len()).filter(|i| out[*i]).collect();
    while let Some(i) = open.pop() {
        if names[i].schema.is_some() {
            continue;
        }
        for k in by_name.remove(&names[i].name.text.to_ascii_lowercase()).unwrap_or_default() {
            for n in defined[k].1.clone().filter(|n| home[*n] == Some(k)) {
                if !std::mem::replace(&mut out[n], true) {
                    open.push(n);
                }
            }
        }
    }
    out
}
