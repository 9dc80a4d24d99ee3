//! A share of `cdiffer`: drawn sequences of C calls on both libraries. It needs our shared library beside it, which cargo makes
//! for this crate's dependency.

#[test]
fn drawn_calls_answer_as_on_stock() {
    let known = concat!(env!("CARGO_MANIFEST_DIR"), "/src/bin/cdiffer/known.txt");
    let mut c = std::process::Command::new(env!("CARGO_BIN_EXE_cdiffer"));
    // How many kinds are left to be explained or mended: the number may only fall.
    c.args(["--sequences", "400", "--seed", "77", "--show", "5", "--most", "35", "--known", known]);
    let o = c.output().expect("cdiffer runs");
    let text = String::from_utf8_lossy(&o.stdout);
    assert!(o.status.success(), "{text}\n{}", String::from_utf8_lossy(&o.stderr));
}
