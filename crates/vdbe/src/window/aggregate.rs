//! Aggregates over frames.
//!
//! An aggregate takes in and takes out each row once, as the frame moves. `min` and `max` cannot take out: where the frame's
//! start moves, the rows that may yet be the extreme one are kept as a list, the present one first, those that a
//! later row has outdone left out. Where EXCLUDE is written each row's value is computed anew. What is kept from row to row
//! ([`Moving`]) serves until the partition ends, in as many steps as its rows arrive in.

use super::CHECK_EVERY;
use super::partition::Partition;
use crate::env::Env;
use crate::ops::aggregate::{arguments, make, with_context};
use iolite_base::{Encoding, Result};
use iolite_bytecode::{FrameEdge, FrameExclude, FunctionCall};
use iolite_ext::{Aggregate, AuxData, FunctionFlags};
use iolite_value::{Value, compare};
use std::collections::VecDeque;
use std::ops::Range;

/// What an aggregate keeps from row to row of a partition.
#[derive(Default)]
pub(super) struct Moving {
    /// Its state, and the frame that went into it.
    state: Option<Box<dyn Aggregate>>,
    held: Range<usize>,
    /// For `min` and `max`: the rows that may yet be the extreme one, of the rows before `seen`.
    candidates: VecDeque<usize>,
    seen: usize,
}

/// Puts the values of an aggregate for the rows at some places of a partition into its column. Those before have theirs.
#[allow(clippy::too_many_arguments)]
pub(super) fn over_frames(
    p: &Partition,
    places: Range<usize>,
    call: &FunctionCall,
    args: &[usize],
    filter: Option<usize>,
    moving: &mut Moving,
    env: &dyn Env,
    column: &mut [Value],
) -> Result<()> {
    let mut input = Input::new(p, call, args, filter, env);
    let excludes = p.pass.exclude != FrameExclude::Nothing;
    let flags = call.function.flags;
    let extreme = flags.has(FunctionFlags::MIN) || flags.has(FunctionFlags::MAX);
    if extreme && !excludes && p.pass.start != FrameEdge::UnboundedPreceding {
        return extremes(&input, places, moving, flags.has(FunctionFlags::MAX), column);
    }
    let state = match &mut moving.state {
        Some(state) => state,
        none => none.insert(make(call)?),
    };
    let held = &mut moving.held;
    let mut value_aux = AuxData::default();
    for at in places {
        if at % CHECK_EVERY == CHECK_EVERY - 1 {
            env.check_after(CHECK_EVERY)?;
        }
        let row = p.rows[at] as usize;
        let frame = p.whole_frame(at);
        if at > 0 && !excludes && frame == p.whole_frame(at - 1) {
            column[row] = column[p.rows[at - 1] as usize].clone();
            continue;
        }
        if excludes {
            *state = make(call)?;
            for r in p.frame(at) {
                input.step(&mut **state, r)?;
            }
        } else {
            input.shift(&mut **state, held, &frame)?;
            *held = frame.start..frame.end.max(held.end.max(frame.start));
        }
        column[row] = with_context(call, env, &mut value_aux, |c| state.value(c))?;
    }
    Ok(())
}

/// `min` or (`max`) `max` over frames whose start moves. Of equal values the last one counts.
fn extremes(
    input: &Input,
    places: Range<usize>,
    moving: &mut Moving,
    max: bool,
    column: &mut [Value],
) -> Result<()> {
    let p = input.p;
    let value = |at: usize| &p.row(at)[input.args[0]];
    let Moving { candidates, seen, .. } = moving;
    for at in places {
        if at % CHECK_EVERY == CHECK_EVERY - 1 {
            input.env.check_after(CHECK_EVERY)?;
        }
        let frame = p.whole_frame(at);
        for r in (*seen).max(frame.start)..frame.end {
            if value(r).is_null() || !input.passes(r) {
                continue;
            }
            let outdone = |back: &usize| {
                let o = compare::compare(value(*back), value(r), &input.call.collation);
                if max { o.is_le() } else { o.is_ge() }
            };
            while candidates.back().is_some_and(outdone) {
                candidates.pop_back();
            }
            candidates.push_back(r);
        }
        *seen = (*seen).max(frame.end);
        while candidates.front().is_some_and(|r| *r < frame.start) {
            candidates.pop_front();
        }
        column[p.rows[at] as usize] = candidates.front().map_or(Value::Null, |r| value(*r).clone());
    }
    Ok(())
}

/// The arguments of an aggregate, row by row.
struct Input<'a> {
    p: &'a Partition<'a>,
    call: &'a FunctionCall,
    args: &'a [usize],
    filter: Option<usize>,
    env: &'a dyn Env,
    enc: Encoding,
    aux: AuxData,
    /// The arguments of a row where they do not lie side by side.
    values: Vec<Value>,
    side_by_side: bool,
}

impl<'a> Input<'a> {
    fn new(
        p: &'a Partition<'a>,
        call: &'a FunctionCall,
        args: &'a [usize],
        filter: Option<usize>,
        env: &'a dyn Env,
    ) -> Input<'a> {
        Input {
            p,
            call,
            args,
            filter,
            env,
            enc: env.encoding(),
            aux: AuxData::default(),
            values: Vec::new(),
            side_by_side: args.windows(2).all(|w| w[1] == w[0] + 1),
        }
    }

    fn passes(&self, at: usize) -> bool {
        self.filter.is_none_or(|k| self.p.row(at)[k].truth() == Some(true))
    }

    /// Takes out of the state what only `held` has, and in what only `frame` has. Rows before a first frame that begins late
    /// go through the state, no more of them at a time than a frame has: a sum is a real from the first real on, whether
    /// that is in the frame or not.
    fn shift(&mut self, state: &mut dyn Aggregate, held: &Range<usize>, frame: &Range<usize>) -> Result<()> {
        for r in held.start..frame.start.min(held.end) {
            self.take(state, r, false)?;
        }
        let mut oldest = held.end;
        for r in held.end..frame.end {
            self.take(state, r, true)?;
            if oldest < frame.start && r + 1 < frame.end && r + 1 - oldest >= frame.len() {
                self.take(state, oldest, false)?;
                oldest += 1;
            }
        }
        (oldest..frame.start).try_for_each(|r| self.take(state, r, false))
    }

    fn step(&mut self, state: &mut dyn Aggregate, at: usize) -> Result<()> {
        self.take(state, at, true)
    }

    fn take(&mut self, state: &mut dyn Aggregate, at: usize, into: bool) -> Result<()> {
        if !self.passes(at) {
            return Ok(());
        }
        let row = self.p.row(at);
        let values = match self.args.first() {
            None => &[],
            Some(first) if self.side_by_side => &row[*first..][..self.args.len()],
            Some(_) => {
                self.values.clear();
                self.values.extend(self.args.iter().map(|k| row[*k].clone()));
                &self.values[..]
            }
        };
        if into && state.quick_step(values) {
            return Ok(());
        }
        let values = arguments(self.call, values, self.enc)?;
        with_context(self.call, self.env, &mut self.aux, |c| {
            if into { state.step(c, &values) } else { state.inverse(c, &values) }
        })
    }
}
