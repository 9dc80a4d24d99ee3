//! Changesets and patchsets as they come: read, turned round, joined, rebased, applied.

#![no_main]

use iolite_fuzz::{in_memory, integrity, judged, without_leak};
use iolite_session::{Applying, Conflict, Decision, Group, Input, Output, Reader, Rebaser, apply, invert};
use libfuzzer_sys::fuzz_target;
use std::rc::Rc;

const SETUP: &str = "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c); CREATE TABLE w(k TEXT, n, v, PRIMARY KEY(k, n)) WITHOUT ROWID;
INSERT INTO t VALUES(1, 'one', 1.5), (2, 'two', x'02'), (3, NULL, 3); INSERT INTO w VALUES('a', 1, 2), ('b', 2, NULL)";

/// Answers conflicts in turn.
struct InTurn(std::cell::Cell<usize>);

impl Applying for InTurn {
    fn conflict(
        &self,
        kind: Conflict,
        _: &Rc<iolite_session::Change>,
        _: Option<&[iolite::engine::Value]>,
    ) -> Option<Decision> {
        self.0.set(self.0.get() + 1);
        let replaces = matches!(kind, Conflict::Data | Conflict::Conflict);
        Some(if self.0.get().is_multiple_of(2) && replaces { Decision::Replace } else { Decision::Omit })
    }

    fn violated(&self, _: i64) -> Option<Decision> {
        Some(Decision::Omit)
    }
}

fuzz_target!(|input: &[u8]| {
    without_leak(|| {
        for inverts in [false, true] {
            let mut reader = Reader::new(Input::whole(input), inverts);
            while let Ok(Some(change)) = reader.next().map_err(judged) {
                for n in 0..change.table.columns() {
                    let _ = (change.old_value(n), change.new_value(n));
                }
            }
        }
        let mut turned = Output::default();
        let inverse = invert(Input::whole(input), &mut turned).and_then(|()| turned.finish());
        let mut group = Group::new();
        let joined = group.add(&mut Reader::new(Input::whole(input), false), None).and_then(|()| {
            let mut out = Output::default();
            group.output(&mut out)?;
            out.finish()
        });
        let c = in_memory(SETUP);
        let host = c.host();
        for set in [Some(input), joined.as_deref().ok(), inverse.as_deref().ok()].into_iter().flatten() {
            let decided = apply(&*host, Input::whole(set), &InTurn(Default::default()), 0);
            if let Ok(decided) = decided.map_err(judged) {
                let mut r = Rebaser::new();
                if r.configure(Input::whole(&decided)).is_ok() {
                    let _ = r.rebase(Input::whole(input), &mut Output::default()).map_err(judged);
                }
            }
        }
        let mut r = Rebaser::new();
        let _ = r.configure(Input::whole(input)).map_err(judged);
        assert_eq!(integrity(&c).as_deref(), Some("ok"));
    });
});
