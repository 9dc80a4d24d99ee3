//! Windows: `OVER`, `WINDOW`, frames.

use super::*;

impl Parser<'_> {
    /// What follows `OVER`.
    pub(super) fn over(&mut self) -> Result<Over> {
        if self.eat(T::LParen) {
            self.enter(3)?;
            let window = self.window()?;
            self.expect(T::RParen)?;
            self.leave(3);
            return Ok(Over::Window(Box::new(window)));
        }
        Ok(Over::Name(self.name()?))
    }

    /// `WINDOW name AS (definition), ...`.
    pub(super) fn window_clause(&mut self) -> Result<Vec<(Name, Window)>> {
        self.bump();
        let mut windows = Vec::new();
        loop {
            let name = self.name()?;
            self.expect(T::As)?;
            self.expect(T::LParen)?;
            let window = self.window()?;
            self.expect(T::RParen)?;
            windows.push((name, window));
            if !self.eat(T::Comma) {
                return Ok(windows);
            }
        }
    }

    #[inline(never)]
    fn window(&mut self) -> Result<Window> {
        let keyword = matches!(self.tok.kind, T::Partition | T::Order | T::Range | T::Rows | T::Groups);
        let base = if !keyword && self.tok.kind.is_nm() { Some(self.take_name()) } else { None };
        let mut window = Window { base, partition_by: Vec::new(), order_by: Vec::new(), frame: None };
        if self.eat(T::Partition) {
            self.expect(T::By)?;
            window.partition_by = self.expr_list()?;
        }
        if self.tok.kind == T::Order {
            window.order_by = self.order_by()?;
        }
        let unit = match self.tok.kind {
            T::Range => FrameUnit::Range,
            T::Rows => FrameUnit::Rows,
            T::Groups => FrameUnit::Groups,
            _ => return Ok(window),
        };
        self.bump();
        let (start, end) = if self.eat(T::Between) {
            let start = self.bound(false)?;
            self.expect(T::And)?;
            (start, self.bound(true)?)
        } else {
            (self.bound(false)?, FrameBound::CurrentRow)
        };
        let mut exclude = FrameExclude::Nothing;
        if self.eat(T::Exclude) {
            exclude = match self.tok.kind {
                T::No => {
                    self.bump();
                    self.expect(T::Others)?;
                    FrameExclude::NoOthers
                }
                T::Current => {
                    self.bump();
                    self.expect(T::Row)?;
                    FrameExclude::CurrentRow
                }
                T::Group => {
                    self.bump();
                    FrameExclude::Group
                }
                T::Ties => {
                    self.bump();
                    FrameExclude::Ties
                }
                _ => return Err(self.unexpected()),
            };
        }
        use FrameBound::{CurrentRow, Following, Preceding};
        if matches!((&start, &end), (CurrentRow, Preceding(_)) | (Following(_), Preceding(_) | CurrentRow)) {
            return Err(Error::sql("unsupported frame specification"));
        }
        window.frame = Some(Frame { unit, start, end, exclude });
        Ok(window)
    }

    fn bound(&mut self, end: bool) -> Result<FrameBound> {
        if self.eat(T::Unbounded) {
            let (kind, bound) = match end {
                true => (T::Following, FrameBound::UnboundedFollowing),
                false => (T::Preceding, FrameBound::UnboundedPreceding),
            };
            self.expect(kind)?;
            return Ok(bound);
        }
        if self.eat(T::Current) {
            self.expect(T::Row)?;
            return Ok(FrameBound::CurrentRow);
        }
        let e = Box::new(self.expr()?);
        let bound = match self.tok.kind {
            T::Preceding => FrameBound::Preceding(e),
            T::Following => FrameBound::Following(e),
            _ => return Err(self.unexpected()),
        };
        self.bump();
        Ok(bound)
    }
}
