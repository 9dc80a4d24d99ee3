//! The WHERE clause as a list of terms: which tables each needs, and how it could drive an index.

use crate::bound::*;
use iolite_value::{Affinity, Collation, Value};

/// A set of sources of one arm, by position.
pub type Mask = u64;

/// One conjunct.
#[derive(Clone, Debug)]
pub struct Term {
    /// The condition.
    pub expr: Expr,
    /// The source whose ON clause it stands in.
    pub on: Option<usize>,
    /// Sources it reads.
    pub mask: Mask,
    /// Ways in which it says something about one column.
    pub forms: Vec<Form>,
    /// A disjunction whose arms might each use an index.
    pub or: Option<Vec<Vec<Term>>>,
    /// The share of rows for which it is true, where the query says so.
    pub truth: Option<f64>,
    /// Follows from others: helps to find rows, need not be tested. `expr` may be what it follows from.
    pub derived: bool,
    /// Of a derived one: `expr` is what follows, and it leaves out rows of its table before those of this source are there,
    /// which it follows from.
    pub narrows: Option<usize>,
}

impl Term {
    /// What follows from others says of one column.
    fn derived(expr: Expr, on: Option<usize>, mask: Mask, form: Form) -> Term {
        Term { expr, on, mask, forms: vec![form], or: None, truth: None, derived: true, narrows: None }
    }
}

/// What a form says about its column.
#[derive(Clone, Debug)]
pub enum Op {
    /// `= value`, or `IS value`.
    Eq {
        /// `IS`.
        null_ok: bool,
    },
    /// `< value` and the like.
    Range(CmpOp),
    /// The same of a row that begins with the column: what is said of its other fields. Rows that agree in as many of them as
    /// are looked at have to be compared as a whole.
    RowRange(CmpOp, Vec<Form>),
    /// `IN (list)`.
    InList(Box<InList>),
    /// Field `n` of `(...) IN (select)`.
    InSelect(Box<InSelect>, usize),
    /// `IS NULL`.
    IsNull,
    /// `IS NOT NULL`: a range from behind the NULLs on.
    NotNull,
}

/// A condition on one column (or indexed expression) of one source.
#[derive(Clone, Debug)]
pub struct Form {
    /// The source.
    pub source: usize,
    /// The column; `None` if `lhs` is an expression that only an index on it could use.
    pub column: Option<i32>,
    /// The constrained side.
    pub lhs: Expr,
    /// What is said.
    pub op: Op,
    /// The other side; a constant NULL where there is none.
    pub value: Expr,
    /// Sources that the other side reads.
    pub needs: Mask,
    /// The comparison's affinity.
    pub affinity: Affinity,
    /// The comparison's collating sequence.
    pub collation: Collation,
}

/// The sources' numbers by position.
pub struct Positions<'a>(pub &'a [Source]);

impl Positions<'_> {
    /// The mask of the sources that an expression reads. Tables of enclosing queries do not count.
    pub fn mask(&self, e: &Expr) -> Mask {
        let mut m = 0;
        e.tables(&mut |t| {
            if let Some(p) = self.position(t) {
                m |= 1 << p;
            }
        });
        m
    }

    /// Whether an index on an expression may have this one.
    fn may_be_indexed(&self, e: &Expr) -> bool {
        let mask = self.mask(e);
        let source = self.0.get(mask.trailing_zeros() as usize).filter(|_| mask.count_ones() == 1);
        source.and_then(Source::table).is_some_and(|(_, t)| t.indexes.borrow().iter().any(|i| i.has_expr()))
    }

    /// The position of a table.
    pub fn position(&self, t: TableId) -> Option<usize> {
        self.0.iter().position(|s| s.id == t)
    }
}

/// Analyses an arm's filter, which becomes the terms.
pub fn analyse(core: &mut Core) -> Vec<Term> {
    let filter = std::mem::take(&mut core.filter);
    let pos = Positions(&core.sources);
    let mut out = Vec::with_capacity(filter.len());
    for f in filter {
        let on = f.on.and_then(|t| pos.position(t));
        add(f.expr, on, &pos, &mut out);
    }
    transitive(&mut out, &pos);
    out
}

fn add(e: Expr, on: Option<usize>, pos: &Positions<'_>, out: &mut Vec<Term>) {
    let e = match e {
        Expr::Between { lo, hi }
            if (!matches!(lo.lhs, Expr::Call(_) | Expr::Subquery(..) | Expr::Case { .. })
                || pos.may_be_indexed(&lo.lhs))
                && !matches!(hi.lhs.without_collate(), Expr::CaseBase(..)) =>
        {
            add(Expr::Compare(lo), on, pos, out);
            add(Expr::Compare(hi), on, pos, out);
            return;
        }
        e => e,
    };
    if let (Expr::Call(c), Some(p)) = (&e, said_truth(&e)) {
        let from = out.len();
        add(c.args[0].clone(), on, pos, out);
        out[from..].iter_mut().for_each(|t| t.truth = Some(p));
        return;
    }
    let e = match or_as_in(&e).or_else(|| in_as_equality(&e)) {
        Some(i) => i,
        None => e,
    };
    let mut forms = Vec::new();
    forms_of(&e, pos, &mut forms);
    let or = or_arms(&e, on, pos);
    let mask = pos.mask(&e);
    let derived = like_range(&e, pos);
    out.push(Term { expr: e, on, mask, forms, or, truth: None, derived: false, narrows: None });
    for (expr, form) in derived {
        let mask = pos.mask(&expr);
        out.push(Term::derived(expr, on, mask, form));
    }
}

/// The share of rows for which a condition is true, by `likely(x)`, `unlikely(x)` or `likelihood(x, p)`.
pub(crate) fn said_truth(e: &Expr) -> Option<f64> {
    use iolite_ext::{Implementation, Inline};
    let Expr::Call(c) = e else { return None };
    match c.function.imp {
        Implementation::Inline(Inline::Likely) => {
            Some(if c.function.name.eq_ignore_ascii_case("unlikely") { 0.0625 } else { 0.9375 })
        }
        Implementation::Inline(Inline::Likelihood) => match c.args.get(1) {
            Some(Expr::Const(p)) => Some(p.to_real()),
            _ => None,
        },
        _ => None,
    }
}

/// The column that an expression is, as far as an index is concerned.
fn indexable(e: &Expr, pos: &Positions<'_>) -> Option<(usize, Option<i32>)> {
    match e {
        Expr::Column(c) => pos.position(c.table).map(|p| (p, Some(c.column))),
        Expr::Collate(inner, _) => indexable(inner, pos),
        Expr::Const(_) | Expr::Param(_) => None,
        other => {
            // An expression over one source: an index on that very expression might serve.
            let m = pos.mask(other);
            if m.count_ones() == 1 { Some((m.trailing_zeros() as usize, None)) } else { None }
        }
    }
}

/// As [`indexable`], of a field of a row: COLLATE keeps SQLite from seeing a column there.
fn in_row(e: &Expr, pos: &Positions<'_>) -> Option<(usize, Option<i32>)> {
    if matches!(e, Expr::Collate(..)) { None } else { indexable(e, pos) }
}

fn forms_of(e: &Expr, pos: &Positions<'_>, out: &mut Vec<Form>) {
    match e {
        Expr::Compare(c) => {
            let op = match (c.op, c.null_eq) {
                (CmpOp::Eq, null_ok) => Op::Eq { null_ok },
                (CmpOp::Ne, _) => return,
                (_, true) => return,
                (op, false) => Op::Range(op),
            };
            let flipped = match &op {
                Op::Range(o) => Op::Range(o.swapped()),
                other => other.clone(),
            };
            for (lhs, value, op) in [(&c.lhs, &c.rhs, op), (&c.rhs, &c.lhs, flipped)] {
                let Some((source, column)) = indexable(lhs, pos) else { continue };
                let needs = pos.mask(value);
                if needs & 1 << source != 0 {
                    continue;
                }
                out.push(Form {
                    source,
                    column,
                    lhs: lhs.without_collate().clone(),
                    op,
                    value: value.clone(),
                    needs,
                    affinity: c.affinity,
                    collation: c.collation.clone(),
                });
            }
        }
        Expr::RowOrder(fields) => {
            let Some(op) = fields.last().map(|c| c.op) else { return };
            row_form(fields, op, |c| (&c.lhs, &c.rhs), pos, out);
            row_form(fields, op.swapped(), |c| (&c.rhs, &c.lhs), pos, out);
        }
        Expr::IsNull(inner) | Expr::NotNull(inner) => {
            let op = if matches!(e, Expr::IsNull(_)) { Op::IsNull } else { Op::NotNull };
            if let Some((source, column)) = indexable(inner, pos) {
                out.push(Form {
                    source,
                    column,
                    lhs: (**inner).clone(),
                    op,
                    value: Expr::Const(Value::Null),
                    needs: 0,
                    affinity: Affinity::Blob,
                    collation: inner.collation().map_or(Collation::Binary, |c| c.0),
                });
            }
        }
        Expr::InList(i) if !i.not => {
            if let Some((source, column)) = indexable(&i.lhs, pos) {
                let needs = i.list.iter().fold(0, |m, e| m | pos.mask(e));
                if needs & 1 << source == 0 {
                    out.push(Form {
                        source,
                        column,
                        lhs: i.lhs.without_collate().clone(),
                        op: Op::InList(i.clone()),
                        value: Expr::Const(Value::Null),
                        needs,
                        affinity: i.affinity,
                        collation: i.collation.clone(),
                    });
                }
            }
        }
        Expr::InSelect(i) if !i.not => {
            let mut needs = 0;
            for t in &i.select.outer {
                if let Some(p) = pos.position(*t) {
                    needs |= 1 << p;
                }
            }
            for (n, lhs) in i.lhs.iter().enumerate() {
                let found = if i.lhs.len() > 1 { in_row(lhs, pos) } else { indexable(lhs, pos) };
                if let Some((source, column)) = found
                    && needs & 1 << source == 0
                {
                    out.push(Form {
                        source,
                        column,
                        lhs: lhs.without_collate().clone(),
                        op: Op::InSelect(i.clone(), n),
                        value: Expr::Const(Value::Null),
                        needs,
                        affinity: i.affinities[n],
                        collation: i.collations[n].clone(),
                    });
                }
            }
        }
        _ => {}
    }
}

/// What the order of two rows says of the columns of the first; `sides` tells it from the second.
fn row_form(
    fields: &[Compare],
    op: CmpOp,
    sides: impl Fn(&Compare) -> (&Expr, &Expr),
    pos: &Positions<'_>,
    out: &mut Vec<Form>,
) {
    let needs = fields.iter().fold(0, |m, c| m | pos.mask(sides(c).1));
    let mut forms: Vec<Form> = Vec::with_capacity(fields.len());
    for c in fields {
        let (lhs, value) = sides(c);
        let Some((source, column)) = in_row(lhs, pos) else { break };
        if needs & 1 << source != 0 || forms.first().is_some_and(|f| f.source != source) {
            break;
        }
        forms.push(Form {
            source,
            column,
            lhs: lhs.without_collate().clone(),
            op: Op::Range(op),
            value: value.clone(),
            needs,
            affinity: c.affinity,
            collation: c.collation.clone(),
        });
    }
    if !forms.is_empty() {
        let mut first = forms.remove(0);
        first.op = Op::RowRange(op, forms);
        out.push(first);
    }
}

/// `c = 1 OR c = 2 OR ...` is `c IN (1, 2, ...)`.
fn or_as_in(e: &Expr) -> Option<Expr> {
    let Expr::Or(..) = e else { return None };
    let mut arms = Vec::new();
    disjuncts(e, &mut arms);
    let mut column: Option<&Expr> = None;
    let mut list = Vec::new();
    let mut shape: Option<(Affinity, Collation)> = None;
    for a in arms {
        let (lhs, items, affinity, coll): (&Expr, Vec<Expr>, Affinity, &Collation) = match a {
            Expr::Compare(c) if c.op == CmpOp::Eq && !c.null_eq => match (&c.lhs, &c.rhs) {
                (Expr::Column(_), v) if !matches!(v, Expr::Column(_)) => {
                    (&c.lhs, vec![v.clone()], c.affinity, &c.collation)
                }
                (v, Expr::Column(_)) => (&c.rhs, vec![v.clone()], c.affinity, &c.collation),
                _ => return None,
            },
            _ => return None,
        };
        match column {
            None => column = Some(lhs),
            Some(c) if c.same(lhs) => {}
            Some(_) => return None,
        }
        match &shape {
            None => shape = Some((affinity, coll.clone())),
            Some((f, c)) if *f == affinity && c == coll => {}
            Some(_) => return None,
        }
        list.extend(items);
    }
    let (affinity, collation) = shape?;
    let lhs = column?.clone();
    if list.iter().any(|i| !i.is_constant()) {
        return None;
    }
    Some(Expr::InList(Box::new(InList { not: false, lhs, list, affinity, collation })))
}

/// `c IN (1)` is `c = 1`.
fn in_as_equality(e: &Expr) -> Option<Expr> {
    let Expr::InList(i) = e else { return None };
    let [rhs] = &i.list[..] else { return None };
    if i.not || !rhs.is_constant() || !matches!(i.lhs, Expr::Column(_)) {
        return None;
    }
    let (affinity, collation) = (i.affinity, i.collation.clone());
    let (lhs, rhs) = (i.lhs.clone(), rhs.clone());
    Some(Expr::Compare(Box::new(Compare { op: CmpOp::Eq, null_eq: false, affinity, collation, lhs, rhs })))
}

fn disjuncts<'e>(e: &'e Expr, out: &mut Vec<&'e Expr>) {
    match e {
        Expr::Or(a, b) => {
            disjuncts(a, out);
            disjuncts(b, out);
        }
        other => out.push(other),
    }
}

/// The arms of a disjunction, each a conjunction of terms.
pub(crate) fn arms(e: &Expr, on: Option<usize>, pos: &Positions<'_>) -> Option<Vec<Vec<Term>>> {
    let Expr::Or(..) = e else { return None };
    let mut arms = Vec::new();
    disjuncts(e, &mut arms);
    let terms = |a: &Expr| {
        let (mut list, mut terms) = (Vec::new(), Vec::new());
        a.clone().conjuncts(&mut list);
        list.into_iter().for_each(|c| add(c, on, pos, &mut terms));
        terms
    };
    Some(arms.into_iter().map(terms).collect())
}

/// The arms of a disjunction, if every arm has a term with a form.
fn or_arms(e: &Expr, on: Option<usize>, pos: &Positions<'_>) -> Option<Vec<Vec<Term>>> {
    let mut arms = arms(e, on, pos)?;
    for terms in &mut arms {
        // What leaves out NULLs alone leaves nearly all.
        terms.iter_mut().for_each(|t| t.forms.retain(|f| !matches!(f.op, Op::NotNull)));
        if !terms.iter().any(|t| !t.forms.is_empty()) {
            return None;
        }
    }
    Some(arms)
}

/// `column LIKE 'abc%'` lies between `'ABC'` and `'abd'`: usable where the column compares without case (LIKE), or
/// by bytes (GLOB).
fn like_range(e: &Expr, pos: &Positions<'_>) -> Vec<(Expr, Form)> {
    let Expr::Call(call) = e else { return Vec::new() };
    // A user's function of this name may say anything.
    let Some(pattern) = iolite_func::builtin_pattern(&call.function).filter(|_| call.args.len() >= 2) else {
        return Vec::new();
    };
    let glob = pattern == iolite_func::Pattern::Glob;
    let heeds_case = pattern != iolite_func::Pattern::Like;
    let (Expr::Const(Value::Text(pattern, _)), Expr::Column(c)) = (&call.args[0], &call.args[1]) else {
        return Vec::new();
    };
    let Some(source) = pos.position(c.table) else { return Vec::new() };
    let stop: &[u8] = if glob { b"*?[" } else { b"%_" };
    let escape = match call.args.get(2) {
        None => None,
        // One character that means nothing by itself.
        Some(Expr::Const(Value::Text(e, _))) if e.len() == 1 && !stop.contains(&e[0]) => Some(e[0]),
        Some(_) => return Vec::new(),
    };
    let mut prefix = Vec::new();
    let mut bytes = pattern.iter();
    while let Some(b) = bytes.next() {
        let b = if Some(*b) == escape { bytes.next() } else { Some(b).filter(|b| !stop.contains(b)) };
        match b {
            Some(b) => prefix.push(*b),
            None => break,
        }
    }
    let prefix = &prefix[..];
    if prefix.is_empty() || prefix.iter().any(|b| *b >= 0x7f) {
        return Vec::new();
    }
    // Columns of other affinities may hold numbers, which no text that begins so looks like.
    let text = c.affinity == Affinity::Text;
    if !text && (prefix == b"-" || number_like(prefix)) {
        return Vec::new();
    }
    let affinity = if text { Affinity::Text } else { Affinity::Blob };
    let collation = if heeds_case { Collation::Binary } else { Collation::Nocase };
    let mut lo = prefix.to_vec();
    let mut hi = prefix.to_vec();
    if !heeds_case {
        lo.make_ascii_uppercase();
        hi.make_ascii_lowercase();
    }
    let last = hi.len() - 1;
    if !heeds_case && (hi[last] == b'@' || hi[last] == b'Z') {
        return Vec::new();
    }
    hi[last] += 1;
    let mut out = Vec::new();
    for (op, bytes) in [(CmpOp::Ge, lo), (CmpOp::Lt, hi)] {
        let Ok(v) = Value::text(bytes) else { return Vec::new() };
        let value = Expr::Const(v);
        let expr = Expr::Compare(Box::new(Compare {
            op,
            null_eq: false,
            affinity,
            collation: collation.clone(),
            lhs: call.args[1].clone(),
            rhs: value.clone(),
        }));
        let form = Form {
            source,
            column: Some(c.column),
            lhs: call.args[1].clone(),
            op: Op::Range(op),
            value,
            needs: 0,
            affinity,
            collation: collation.clone(),
        };
        out.push((expr, form));
    }
    out
}

/// Whether a number may begin with these bytes, or with the next higher ones.
fn number_like(prefix: &[u8]) -> bool {
    let mut next = prefix.to_vec();
    if let Some(b) = next.last_mut() {
        *b += 1;
    }
    let letters = |b: &[u8]| b.iter().any(|c| c.is_ascii_alphabetic() && !c.eq_ignore_ascii_case(&b'e'));
    let number =
        |b: &[u8]| !letters(b) && std::str::from_utf8(b).is_ok_and(|s| s.trim().parse::<f64>().is_ok());
    number(prefix) || number(&next)
}

/// Equal columns beyond which no more is concluded from a chain of equalities.
const MAX_EQUAL: usize = 11;

/// Columns that are equal in every row that comes out, and what one of them is held against.
struct EqualColumns {
    columns: Vec<ColumnRef>,
    collation: Collation,
}

/// What is said of a column holds of each that equals it: from `a = b` and `b = c` follows `a = c`, from `a = b` and
/// `b > 5` follows `a > 5`.
fn transitive(terms: &mut Vec<Term>, pos: &Positions<'_>) {
    let sources = pos.0;
    if sources.iter().any(|s| s.join.right) {
        return;
    }
    let inner = |t: &Term| !t.derived && t.on.is_none_or(|p| !sources[p].join.left);
    // Nothing follows where no two columns are said to be equal.
    let equalities: Vec<usize> = (0..terms.len()).filter(|n| columns_of(&terms[*n]).is_some()).collect();
    if equalities.is_empty() {
        return;
    }
    let mut classes: Vec<EqualColumns> = Vec::new();
    for t in equalities.iter().map(|n| &terms[*n]).filter(|t| inner(t)) {
        let Some((c, a, b)) = columns_of(t) else { continue };
        let alike = a.affinity == b.affinity || a.affinity.is_numeric() && b.affinity.is_numeric();
        let alike = alike && a.collation == b.collation;
        if !c.null_eq && alike && t.mask.count_ones() == 2 {
            join_classes(&mut classes, a, b, &c.collation);
        }
    }
    let mut new: Vec<Term> = Vec::new();
    constants(terms, &equalities, pos, &inner, &mut new);
    for class in &classes {
        for t in terms.iter().filter(|t| inner(t)) {
            for f in t.forms.iter().filter(|f| f.collation == class.collation && spreads(f)) {
                let Expr::Column(said) = &f.lhs else { continue };
                if !class.columns.iter().any(|c| is_column(c, said)) {
                    continue;
                }
                for c in class.columns.iter().filter(|c| !is_column(c, said)) {
                    let Some(source) = pos.position(c.table) else { continue };
                    let says = |t: &Term| t.says(f, source, Some(c.column));
                    if f.needs & 1 << source != 0 || terms.iter().any(says) || new.iter().any(says) {
                        continue;
                    }
                    let mut op = f.op.clone();
                    if let Op::Eq { null_ok } = &mut op {
                        *null_ok = false;
                    }
                    let form = Form {
                        source,
                        column: Some(c.column),
                        lhs: Expr::Column(c.clone()),
                        op,
                        value: f.value.clone(),
                        needs: f.needs,
                        affinity: f.affinity,
                        collation: f.collation.clone(),
                    };
                    let mask = 1 << source | form.needs;
                    // A list of constants leaves out rows of a table before those of the other are there.
                    let constant = |l: &InList| l.list.iter().all(|e| matches!(e, Expr::Const(_)));
                    let (expr, narrows) = match &f.op {
                        Op::InList(l) if source != f.source && constant(l) => {
                            let list = InList { lhs: Expr::Column(c.clone()), ..(**l).clone() };
                            (Expr::InList(Box::new(list)), Some(f.source))
                        }
                        _ => (t.expr.clone(), None),
                    };
                    new.push(Term { narrows, ..Term::derived(expr, None, mask, form) });
                }
            }
        }
    }
    terms.extend(new);
}

/// From `a = 5` and `a = b` follows `5 = b`, compared as `a = b` is; `equalities` are terms like the latter.
fn constants(
    terms: &[Term],
    equalities: &[usize],
    pos: &Positions<'_>,
    inner: &dyn Fn(&Term) -> bool,
    new: &mut Vec<Term>,
) {
    for t in terms.iter().filter(|t| inner(t)) {
        let Expr::Compare(c) = &t.expr else { continue };
        let (Expr::Column(fixed), value) = (&c.lhs, &c.rhs) else { continue };
        // What IS a value that is not NULL equals it.
        let known = match value {
            Expr::Const(v) => !c.null_eq || !v.is_null(),
            Expr::Param(_) => !c.null_eq,
            _ => false,
        };
        if c.op != CmpOp::Eq || !known || !c.collation.is_binary() {
            continue;
        }
        // Where nothing is converted, 1 equals 1.0, and they are other texts.
        let exact =
            c.affinity > Affinity::Blob || matches!(value, Expr::Const(Value::Text(..) | Value::Blob(..)));
        for other in equalities.iter().map(|n| &terms[*n]).filter(|t| inner(t)) {
            let Some((o, a, b)) = columns_of(other) else { continue };
            if !exact && o.affinity == Affinity::Text {
                continue;
            }
            let column = if is_column(a, fixed) { b } else { a };
            if !is_column(a, fixed) && !is_column(b, fixed) {
                continue;
            }
            let Some(source) = pos.position(column.table) else { continue };
            if o.null_eq || is_column(column, fixed) {
                continue;
            }
            // A column of texts holds what the value becomes as a text, which is not the value where nothing else is converted.
            let as_text = c.affinity == Affinity::Text && !o.affinity.is_numeric();
            let (value, affinity) = match value {
                Expr::Const(v) if as_text => {
                    let mut v = v.clone();
                    if Affinity::Text.apply(&mut v).is_err() {
                        continue;
                    }
                    (Expr::Const(v), o.affinity)
                }
                _ => (value.clone(), if as_text { Affinity::Text } else { o.affinity }),
            };
            let form = Form {
                source,
                column: Some(column.column),
                lhs: Expr::Column(column.clone()),
                op: Op::Eq { null_ok: false },
                value: value.clone(),
                needs: 0,
                affinity,
                collation: o.collation.clone(),
            };
            if terms.iter().chain(new.iter()).any(|t| t.says(&form, source, form.column)) {
                continue;
            }
            let compare = Compare { lhs: form.lhs.clone(), rhs: value, affinity, ..o.clone() };
            let expr = Expr::Compare(Box::new(compare));
            let (mask, forms) = (1 << source, vec![form]);
            new.push(Term {
                expr,
                on: None,
                mask,
                forms,
                or: None,
                truth: None,
                derived: true,
                narrows: pos.position(fixed.table).filter(|f| *f != source),
            });
        }
    }
}

/// The columns that a term says are equal.
fn columns_of(t: &Term) -> Option<(&Compare, &ColumnRef, &ColumnRef)> {
    let Expr::Compare(c) = &t.expr else { return None };
    let (Expr::Column(a), Expr::Column(b)) = (&c.lhs, &c.rhs) else { return None };
    (c.op == CmpOp::Eq).then_some((c, a, b))
}

/// Adds `a = b` to the classes of equal columns.
fn join_classes(classes: &mut Vec<EqualColumns>, a: &ColumnRef, b: &ColumnRef, collation: &Collation) {
    let of = |classes: &[EqualColumns], c: &ColumnRef| {
        let holds = |k: &EqualColumns| k.collation == *collation && k.columns.iter().any(|x| is_column(x, c));
        classes.iter().position(holds)
    };
    match (of(classes, a), of(classes, b)) {
        (None, None) => {
            classes.push(EqualColumns { columns: vec![a.clone(), b.clone()], collation: collation.clone() });
        }
        (Some(k), None) if classes[k].columns.len() < MAX_EQUAL => classes[k].columns.push(b.clone()),
        (None, Some(k)) if classes[k].columns.len() < MAX_EQUAL => classes[k].columns.push(a.clone()),
        (Some(k), Some(l)) if k != l && classes[k].columns.len() + classes[l].columns.len() <= MAX_EQUAL => {
            let more = std::mem::take(&mut classes[l].columns);
            classes[k].columns.extend(more);
            classes.swap_remove(l);
        }
        _ => {}
    }
}

/// Whether both are the same column.
pub(crate) fn is_column(a: &ColumnRef, b: &ColumnRef) -> bool {
    a.table == b.table && a.column == b.column
}

/// Whether what a form says of its column can be said of an equal one, too. Queries are not run twice for that.
fn spreads(f: &Form) -> bool {
    match &f.op {
        Op::Eq { .. } | Op::Range(_) => !crate::expr::has_subquery(&f.value),
        Op::InList(l) => !l.list.iter().any(crate::expr::has_subquery),
        Op::RowRange(..) | Op::InSelect(..) | Op::IsNull | Op::NotNull => false,
    }
}

impl Term {
    /// Whether it says already of this column what a form says.
    fn says(&self, new: &Form, source: usize, column: Option<i32>) -> bool {
        self.forms.iter().filter(|f| f.source == source && f.column == column).any(|f| {
            let same = match (&f.op, &new.op) {
                (Op::Eq { .. }, Op::Eq { .. }) => true,
                (Op::Range(a), Op::Range(b)) => a == b,
                (Op::InList(a), Op::InList(b)) => {
                    a.list.len() == b.list.len() && a.list.iter().zip(&b.list).all(|(a, b)| a.same(b))
                }
                _ => false,
            };
            same && f.value.same(&new.value)
        })
    }
}
