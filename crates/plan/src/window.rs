//! Splitting an arm with window functions: an input that computes what the windows and the result need of each row, and
//! a result over a row of that and of the functions' values.
//!
//! The parts of result and ORDER BY that hold no window function are computed by the input, once for each row, as large
//! as they are; the rest reads them as columns of a table of its own, the functions' values behind them.
//! Below such a part, aggregates and columns of virtual tables are read from SQLite's table of its own, which holds no
//! subtypes; neither do arguments that go through it, those of functions that say nothing of subtypes.

use crate::bound::*;
use crate::plan::*;
use crate::subtypes;
use iolite_ext::FunctionFlags;
use iolite_value::Collation;

/// Takes the window functions out of a plan whose loops and groups are settled; `order_by` is the query's, `binary` how the
/// database compares what has no collating sequence.
pub(crate) fn split(
    mut plan: CorePlan,
    defs: Vec<WindowDef>,
    order_by: &mut [OrderTerm],
    binary: &Collation,
) -> CorePlan {
    let id = defs.iter().find_map(|d| d.calls.first()).map_or(0, |c| c.id);
    let table = TableId::MAX - id;
    let from_modules = subtypes::modules(&plan);
    let mut carried = Carried { table, binary, list: Vec::new() };
    // What the functions themselves read comes first, as it is.
    let windows: Vec<WindowPass> = defs
        .into_iter()
        .map(|d| WindowPass {
            partition: d.partition.iter().map(|e| (carried.slot(e), collation(e, binary))).collect(),
            order: d.order.iter().map(|t| (carried.slot(&t.expr), t.clone())).collect(),
            delivered: 0,
            frame: d.frame,
            calls: d
                .calls
                .into_iter()
                .map(|mut c| {
                    for a in &mut c.args {
                        subtypes::strip(a, &from_modules, true);
                        if !c.function.flags.has(FunctionFlags::SUBTYPE) {
                            *a = std::mem::replace(a, Expr::int(0)).as_column();
                        }
                    }
                    PassCall {
                        args: c.args.iter().map(|a| carried.slot(a)).collect(),
                        filter: c.filter.as_ref().map(|f| carried.slot(f)),
                        call: c,
                    }
                })
                .collect(),
        })
        .collect();
    let mut result = std::mem::take(&mut plan.result);
    let shown: Vec<usize> = (0..result.len()).filter(|&k| result[k].changes_by_call()).collect();
    for e in result.iter_mut().chain(order_by.iter_mut().map(|t| &mut t.expr)) {
        subtypes::strip(e, &from_modules, true);
        carried.take(e);
    }
    let ids: Vec<AggId> = windows.iter().flat_map(|w| w.calls.iter().map(|c| c.call.id)).collect();
    let width = carried.list.len();
    for e in result.iter_mut().chain(order_by.iter_mut().map(|t| &mut t.expr)) {
        place_results(e, table, binary, width, &ids);
    }
    // What changes from call to call is sorted by as it is shown.
    for (t, k) in order_by.iter_mut().filter_map(|t| t.column.map(|k| (t, k))) {
        if shown.contains(&k) {
            t.expr = result[k].clone();
        }
    }
    let outer = CorePlan { rows: plan.rows, distinct: plan.distinct, result, ..CorePlan::default() };
    plan.distinct = Distinct::No;
    plan.result = carried.list.into();
    CorePlan { window: Some(Box::new(WindowPlan { input: plan, table, windows })), ..outer }
}

/// What the query is sorted by SQLite computes before all other windows, and shows as it was sorted by: where rows are equal to a
/// window, those of the first one that are in ORDER BY meet them in the order of the input.
pub(crate) fn sorted_by_first(result: &[Expr], defs: &mut Vec<WindowDef>, order_by: &[OrderTerm]) {
    if defs.len() < 2 {
        return;
    }
    let columns: Vec<&Expr> = order_by.iter().filter_map(|t| result.get(t.column?)).collect();
    let sorts =
        |id: AggId| columns.iter().any(|e| e.any(&mut |x| matches!(x, Expr::Window(w, _) if *w == id)));
    let calls = std::mem::take(&mut defs[0].calls);
    let (early, late): (Vec<_>, Vec<_>) = calls.into_iter().partition(|c| sorts(c.id));
    defs[0].calls = late;
    if !early.is_empty() {
        let first = &defs[0];
        let (partition, order, frame) = (first.partition.clone(), first.order.clone(), first.frame.clone());
        defs.push(WindowDef { partition, order, frame, calls: early });
    }
}

/// Whether rows in the order of the first window, in which they come out, are in the query's order.
pub(crate) fn orders(defs: &[WindowDef], order_by: &[OrderTerm], binary: &Collation) -> bool {
    let Some(first) = defs.first().filter(|_| !order_by.is_empty()) else { return false };
    let mut terms = input_order(first, binary).into_iter();
    order_by.iter().all(|t| terms.next().is_some_and(|own| own.same(t)))
}

/// The order in which a window wants its rows.
pub(crate) fn input_order(d: &WindowDef, binary: &Collation) -> Vec<OrderTerm> {
    let plain = |e: &Expr| OrderTerm {
        expr: e.clone(),
        column: None,
        desc: false,
        nulls_large: false,
        collation: collation(e, binary),
    };
    d.partition.iter().map(plain).chain(d.order.iter().cloned()).collect()
}

fn collation(e: &Expr, binary: &Collation) -> Collation {
    e.collation().map_or_else(|| binary.clone(), |c| c.0)
}

struct Carried<'b> {
    table: TableId,
    binary: &'b Collation,
    list: Vec<Expr>,
}

impl Carried<'_> {
    fn slot(&mut self, e: &Expr) -> usize {
        let bare = |x: &Expr| matches!(x, Expr::NoSubtype(_));
        match self.list.iter().position(|x| x.same(e) && bare(x) == bare(e)) {
            Some(k) => k,
            None => {
                self.list.push(e.clone());
                self.list.len() - 1
            }
        }
    }

    /// Puts columns in the place of the largest parts without a window function.
    fn take(&mut self, e: &mut Expr) {
        if e.is_constant() {
            return;
        }
        if e.any(&mut |x| matches!(x, Expr::Window(..))) {
            e.children_mut(&mut |c| self.take(c));
            return;
        }
        let column = self.slot(e) as i32;
        let c = ColumnRef {
            table: self.table,
            column,
            affinity: e.affinity(),
            collation: collation(e, self.binary),
        };
        let explicit = matches!(e.collation(), Some((_, true)));
        let named = Expr::Column(c.clone());
        *e = if explicit { Expr::Collate(Box::new(named), c.collation) } else { named };
    }
}

fn place_results(e: &mut Expr, table: TableId, binary: &Collation, width: usize, ids: &[AggId]) {
    if let Expr::Window(id, affinity) = e {
        let at = ids.iter().position(|k| k == id).unwrap_or(0);
        let column = (width + at) as i32;
        *e = Expr::Column(ColumnRef { table, column, affinity: *affinity, collation: binary.clone() });
        return;
    }
    e.children_mut(&mut |c| place_results(c, table, binary, width, ids));
}

impl OrderTerm {
    /// Whether both order rows alike.
    fn same(&self, other: &OrderTerm) -> bool {
        self.expr.same(&other.expr)
            && self.desc == other.desc
            && self.nulls_large == other.nulls_large
            && self.collation == other.collation
    }
}

impl WindowDef {
    /// Whether both are the same window.
    pub fn same(&self, other: &WindowDef) -> bool {
        let all = |a: &[Expr], b: &[Expr]| a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.same(y));
        all(&self.partition, &other.partition)
            && self.order.len() == other.order.len()
            && self.order.iter().zip(&other.order).all(|(a, b)| a.same(b))
            && self.frame.same(&other.frame)
    }

    /// All expressions in it.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let calls = self.calls.iter().flat_map(|c| c.args.iter().chain(&c.filter));
        self.partition.iter().chain(self.order.iter().map(|t| &t.expr)).chain(calls)
    }

    /// As [`WindowDef::exprs`], to change them.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let calls = self.calls.iter_mut().flat_map(|c| c.args.iter_mut().chain(&mut c.filter));
        self.partition.iter_mut().chain(self.order.iter_mut().map(|t| &mut t.expr)).chain(calls)
    }
}

impl Frame {
    fn same(&self, other: &Frame) -> bool {
        let bound = |a: &FrameBound, b: &FrameBound| match (a, b) {
            (FrameBound::Preceding(x), FrameBound::Preceding(y))
            | (FrameBound::Following(x), FrameBound::Following(y)) => x.same(y),
            _ => std::mem::discriminant(a) == std::mem::discriminant(b),
        };
        self.unit == other.unit
            && self.exclude == other.exclude
            && bound(&self.start, &other.start)
            && bound(&self.end, &other.end)
    }
}

impl Default for Frame {
    /// From the partition's first row to the last peer of the present one.
    fn default() -> Frame {
        Frame {
            unit: iolite_sql::ast::FrameUnit::Range,
            start: FrameBound::UnboundedPreceding,
            end: FrameBound::CurrentRow,
            exclude: Default::default(),
        }
    }
}
