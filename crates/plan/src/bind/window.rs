//! Binding `OVER`: window definitions and calls of window functions (documentation page `windowfunctions`).

use super::*;
use iolite_ext::{Function, FunctionFlags, Implementation, Inline};
use iolite_value::Affinity;

/// The frame that a function has, whatever is written. Functions of one window with different frames are computed one after the
/// other, which shows in the order of rows that nothing else decides.
fn own_frame(f: &Function) -> Option<Frame> {
    use FrameBound::{CurrentRow, Following, UnboundedFollowing, UnboundedPreceding};
    use ast::FrameUnit::{Groups, Range, Rows};
    let Implementation::Inline(what) = f.imp else { return None };
    let (unit, start, end) = match what {
        Inline::RowNumber | Inline::Lag => (Rows, UnboundedPreceding, CurrentRow),
        Inline::Rank | Inline::DenseRank => (Range, UnboundedPreceding, CurrentRow),
        Inline::PercentRank => (Groups, CurrentRow, UnboundedFollowing),
        Inline::CumeDist => (Groups, Following(Expr::int(1)), UnboundedFollowing),
        Inline::Ntile => (Rows, CurrentRow, UnboundedFollowing),
        Inline::Lead => (Rows, UnboundedPreceding, UnboundedFollowing),
        _ => return None,
    };
    Some(Frame { unit, start, end, exclude: Default::default() })
}

impl Binder<'_> {
    /// Binds a call with `OVER`.
    pub(crate) fn window_call(&mut self, c: &ast::Call, over: &ast::Over, f: Rc<Function>) -> Result<Expr> {
        let name = &c.name.text;
        let at = c.span.start;
        let own = f.flags.has(FunctionFlags::WINDOW_ONLY);
        let aggregate = matches!(f.imp, Implementation::Aggregate(_));
        if !(own || aggregate && f.flags.has(FunctionFlags::WINDOW)) {
            return Err(Error::sql(format!("{name}() may not be used as a window function")).at(at));
        }
        if c.star && !(aggregate && f.args == 0) {
            return Err(Error::sql(format!("wrong number of arguments to function {name}()")).at(at));
        }
        if self.scopes.last().is_none_or(|s| s.phase != Phase::Groups || s.in_window) {
            let e = Error::sql(format!("misuse of window function {name}()")).at(at);
            return self.complain(e, &c.args);
        }
        if c.distinct {
            return Err(Error::sql("DISTINCT is not supported for window functions").nowhere());
        }
        if c.filter.is_some() && own {
            return Err(
                Error::sql("FILTER clause may only be used with aggregate window functions").nowhere()
            );
        }
        if !c.order_by.is_empty() {
            return Err(Error::sql(format!("ORDER BY may not be used with non-aggregate {name}()")).at(at));
        }
        let window = match self.resolve_window(over) {
            Ok(w) => w,
            Err(e) => {
                // A RANGE that lacks its one term is complained of all the same.
                if let ast::Over::Window(w) = over {
                    self.frame(w.frame.as_ref(), w.order_by.len())?;
                }
                return Err(e);
            }
        };
        let scope = self.scopes.len() - 1;
        self.scopes[scope].in_window = true;
        let bound = self.window_parts(c, &window);
        self.scopes[scope].in_window = false;
        let (call_args, filter, mut def) = bound?;
        if let Some(frame) = own_frame(&f) {
            def.frame = frame;
        }
        let collation = call_args.iter().find_map(|a| a.collation()).map_or(self.binary(), |c| c.0);
        let id = self.new_agg();
        let result = Expr::Window(id, Affinity::None).of_arguments(&call_args);
        let call = WindowCall { id, function: f, args: call_args, filter, collation };
        let known = &mut self.scopes[scope].windows;
        match known.iter_mut().find(|w| w.same(&def)) {
            Some(w) => w.calls.push(call),
            None => {
                def.calls.push(call);
                known.push(def);
            }
        }
        Ok(result)
    }

    #[allow(clippy::type_complexity)]
    fn window_parts(
        &mut self,
        c: &ast::Call,
        w: &ast::Window,
    ) -> Result<(Vec<Expr>, Option<Expr>, WindowDef)> {
        let args: Result<Vec<Expr>> = c.args.iter().map(|a| self.expr(a)).collect();
        let args = args?;
        if let Some(e) = self.complaint.take() {
            return Err(e);
        }
        // Behind what is wrong with the arguments nothing is looked at; of the rest, what is wrong last is told.
        let partition: Result<Vec<Expr>> = w.partition_by.iter().map(|e| self.expr(e)).collect();
        let partition = partition.or_else(|e| self.noted(e))?;
        let order = self.plain_order(&w.order_by).or_else(|e| self.noted(e))?;
        let filter = c.filter.as_ref().map(|f| self.expr(f)).transpose().or_else(|e| self.noted(e))?;
        if let Some(e) = self.complaint.take() {
            return Err(e);
        }
        let frame = self.frame(w.frame.as_ref(), order.len())?;
        Ok((args, filter, WindowDef { partition, order, frame, calls: Vec::new() }))
    }

    /// The definition that `OVER` means, with that of the window it is based on.
    fn resolve_window(&self, over: &ast::Over) -> Result<ast::Window> {
        match over {
            ast::Over::Name(n) => self.named_window(n).cloned(),
            ast::Over::Window(w) => self.completed_window(w),
        }
    }

    fn named_window(&self, n: &ast::Name) -> Result<&ast::Window> {
        let named = self.scopes.last().map_or(&[][..], |s| &s.named_windows);
        let written = n.written();
        // Quotes belong to the names of windows.
        let found = named.iter().rev().find(|(k, _)| k.eq_ignore_ascii_case(&written));
        found.map(|(_, w)| w).ok_or_else(|| Error::sql(format!("no such window: {written}")).nowhere())
    }

    /// A definition with what it takes from its base window.
    fn completed_window(&self, w: &ast::Window) -> Result<ast::Window> {
        let mut out = w.clone();
        let Some(base) = &w.base else { return Ok(out) };
        let b = self.named_window(base)?;
        let what = if !w.partition_by.is_empty() {
            Some("PARTITION clause")
        } else if !b.order_by.is_empty() && !w.order_by.is_empty() {
            Some("ORDER BY clause")
        } else if b.frame.is_some() {
            Some("frame specification")
        } else {
            None
        };
        if let Some(what) = what {
            return Err(Error::sql(format!("cannot override {what} of window: {}", base.written())));
        }
        out.partition_by = b.partition_by.clone();
        if out.order_by.is_empty() {
            out.order_by = b.order_by.clone();
        }
        out.base = None;
        Ok(out)
    }

    /// Takes in a WINDOW clause.
    pub(crate) fn window_clause(&mut self, list: &[(ast::Name, ast::Window)]) -> Result<()> {
        for (i, (name, w)) in list.iter().enumerate() {
            // The base of the first is not looked at.
            let w = if i == 0 { ast::Window { base: None, ..w.clone() } } else { self.completed_window(w)? };
            let scope = self.scopes.last_mut().expect("a query is being bound");
            scope.named_windows.push(((&*name.written()).into(), w));
        }
        Ok(())
    }

    fn frame(&mut self, f: Option<&ast::Frame>, order: usize) -> Result<Frame> {
        let Some(f) = f else { return Ok(Frame::default()) };
        let rank = |b: &ast::FrameBound| match b {
            ast::FrameBound::UnboundedPreceding => 0,
            ast::FrameBound::Preceding(_) => 1,
            ast::FrameBound::CurrentRow => 2,
            ast::FrameBound::Following(_) => 3,
            ast::FrameBound::UnboundedFollowing => 4,
        };
        let (start, end) = (rank(&f.start), rank(&f.end));
        if start == 4 || end == 0 || start > end {
            return Err(Error::sql("unsupported frame specification"));
        }
        let offset = |r: i32| r == 1 || r == 3;
        if f.unit == ast::FrameUnit::Range && (offset(start) || offset(end)) && order != 1 {
            return Err(Error::sql("RANGE with offset PRECEDING/FOLLOWING requires one ORDER BY expression"));
        }
        Ok(Frame {
            unit: f.unit,
            start: self.frame_bound(&f.start)?,
            end: self.frame_bound(&f.end)?,
            exclude: f.exclude,
        })
    }

    fn frame_bound(&mut self, b: &ast::FrameBound) -> Result<FrameBound> {
        // An offset that is not constant counts as NULL.
        let offset = |e: Expr| if e.is_constant() { e } else { Expr::Const(iolite_value::Value::Null) };
        Ok(match b {
            ast::FrameBound::UnboundedPreceding => FrameBound::UnboundedPreceding,
            ast::FrameBound::Preceding(e) => FrameBound::Preceding(offset(self.expr(e)?)),
            ast::FrameBound::CurrentRow => FrameBound::CurrentRow,
            ast::FrameBound::Following(e) => FrameBound::Following(offset(self.expr(e)?)),
            ast::FrameBound::UnboundedFollowing => FrameBound::UnboundedFollowing,
        })
    }
}
