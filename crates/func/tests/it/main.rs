//! Every function's own examples, and what only a caller with a connection can see.

mod eval;

use eval::{World, run};

/// Runs one example; the answer if it is not the wanted one.
fn wrong(world: &World, example: &str) -> Option<String> {
    let (question, want) = example.split_once(" => ").unwrap_or_else(|| panic!("no answer in {example}"));
    let got = match run(world, question) {
        Ok(v) => eval::show(&v),
        Err(e) => format!("error: {}", e.message()),
    };
    (got != want).then(|| format!("{question} => {got}"))
}

fn check(world: &World, example: &str) {
    assert_eq!(wrong(world, example), None, "{example}");
}

#[test]
fn examples() {
    let world = World::new();
    let examples: Vec<&str> =
        iolite_func::tables().into_iter().flatten().flat_map(|e| e.examples).copied().collect();
    assert!(examples.len() > 250, "{} examples", examples.len());
    let bad: Vec<String> = examples.into_iter().filter_map(|e| wrong(&world, e)).collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn names_and_argument_counts_are_unique() {
    let mut seen = std::collections::HashSet::new();
    for entry in iolite_func::tables().into_iter().flatten() {
        assert!(seen.insert((entry.name, entry.args)), "{} {}", entry.name, entry.args);
    }
    assert_eq!(iolite_func::registry().functions().len(), seen.len());
}

#[test]
fn like_can_be_made_to_heed_case() {
    let mut world = World::new();
    check(&world, "like('A', 'a') => 1");
    iolite_func::set_case_sensitive_like(&mut world.registry, true);
    check(&world, "like('A', 'a') => 0");
    check(&world, "like('a%', 'abc', '!') => 1");
    let f = world.registry.function("like", 2).unwrap();
    assert_eq!(iolite_func::builtin_pattern(&f), Some(iolite_func::Pattern::LikeHeedingCase));
    let f = world.registry.function("glob", 2).unwrap();
    assert_eq!(iolite_func::builtin_pattern(&f), Some(iolite_func::Pattern::Glob));
    let f = world.registry.function("abs", 1).unwrap();
    assert_eq!(iolite_func::builtin_pattern(&f), None);
}

#[test]
fn a_replaced_or_removed_function_leaves_its_namesakes() {
    let mut registry = iolite_func::registry();
    let (two, three) = (registry.function("like", 2).unwrap(), registry.function("LIKE", 3).unwrap());
    registry.remove_function("Like", 3);
    assert!(registry.function("like", 3).is_none() && registry.function("like", 2).is_some());
    registry.remove_function("like", 2);
    assert!(!registry.has_function("like"));
    registry.add_function((*three).clone());
    assert!(registry.function("like", 2).is_none() && registry.function("like", 3).is_some());
    // A name that nobody has asked for yet.
    let mut registry = iolite_func::registry();
    let mut f = (*two).clone();
    f.name = "Abs".into();
    registry.add_function(f);
    assert!(registry.function("abs", 1).is_some() && registry.function("abs", 2).is_some());
}

#[test]
fn now_is_the_statement_s_time_everywhere() {
    let world = World::new();
    // The world stands still at 2024-02-29 12:34:56.789 UTC, one hour west of local time.
    for example in [
        "date('now') => '2024-02-29'",
        "datetime() => '2024-02-29 12:34:56'",
        "unixepoch('now', 'subsec') => 1709210096.789",
        "time('now', 'localtime') => '13:34:56'",
        "datetime('2024-01-01 00:30', 'utc') => '2023-12-31 23:30:00'",
        "strftime('%Y', 'now', 'utc') => '2024'",
        "datetime('subsec') => '2024-02-29 12:34:56.789'",
    ] {
        check(&world, example);
    }
}

#[test]
fn text_and_blobs_have_a_longest_length() {
    let mut world = World::new();
    world.limits.set(iolite_base::Limit::Length, 30);
    for question in [
        "replace('aaaaaaaaaa', 'a', 'bbbb')",
        "hex('aaaaaaaaaaaaaaaa')",
        "printf('%31d', 1)",
        "printf('%.30f', 1)",
        "printf('%031d', 1)",
        "printf('%*c', 31, 'x')",
        "zeroblob(31)",
        "randomblob(31)",
        "concat('aaaaaaaaaaaaaaa', 'aaaaaaaaaaaaaaaa')",
        "quote('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')",
        "json_array('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')",
        "strftime('%F%F%F%F', '2024-01-01')",
        "'aaaaaaaaaaaaaaaa'; 'aaaaaaaaaaaaaaaa' | group_concat(x)",
        "'aaaaaaaaaaaaaaaa'; 'aaaaaaaaaaaaaaaa' | json_group_array(x)",
    ] {
        let e = run(&world, question).expect_err(question);
        assert_eq!(e.code(), iolite_base::Code::Toobig, "{question}");
    }
}

#[test]
fn frames_that_lose_rows() {
    let world = World::new();
    // Frames of two rows over the rows before the bar.
    for (rows, call, want) in [
        ("1; 2; NULL; 4", "sum(x)", "1, 3, 2, 4"),
        ("1.5; 2; 3", "sum(x)", "1.5, 3.5, 5.0"),
        ("1; 2; 3", "avg(x)", "1.0, 1.5, 2.5"),
        ("'a'; NULL; 'b'; 'c'", "group_concat(x)", "'a', 'a', 'b', 'b,c'"),
        ("1; 22; 333; 4", "group_concat(x, x)", "'1', '12222', '22333333', '33344'"),
        ("1; NULL; 3", "count(x)", "1, 1, 1"),
        ("3; 1; 2", "median(x)", "3.0, 2.0, 1.5"),
        ("1; 2; 3", "json_group_array(x)", "'[1]', '[1,2]', '[2,3]'"),
    ] {
        assert_eq!(eval::slide(&world, rows, call, 2), want, "{call} over {rows}");
    }
}

#[test]
fn deep_json_is_malformed_not_fatal() {
    let world = World::new();
    let nested = |n: usize| format!("json('{}{}')", "[".repeat(n), "]".repeat(n));
    assert!(run(&world, &nested(1000)).is_ok());
    assert_eq!(run(&world, &nested(1001)).unwrap_err().message(), "malformed JSON");
    let blob = format!("json(x'{}')", {
        // 3,000 arrays, each in the next.
        let mut b: Vec<u8> = vec![0x0b];
        for _ in 0..3000 {
            let n = b.len() as u32;
            let mut outer = vec![0xeb];
            outer.extend_from_slice(&n.to_be_bytes());
            outer.append(&mut b);
            b = outer;
        }
        b.iter().map(|b| format!("{b:02x}")).collect::<String>()
    });
    assert_eq!(run(&world, &blob).unwrap_err().message(), "malformed JSON");
}

#[test]
fn damaged_blobs_never_panic() {
    let world = World::new();
    let mut state = 7u64;
    let calls = [
        "json(B)",
        "json_extract(B, '$.a[0]')",
        "json_set(B, '$.a', 1)",
        "json_patch(B, B)",
        "json_type(B)",
        "json_remove(B, '$[0]')",
        "json_valid(B, 8)",
        "json_error_position(B)",
        "json_pretty(B)",
        "json_array_length(B)",
    ];
    for _ in 0..4000 {
        let mut hex = String::new();
        for _ in 0..state % 12 + 1 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            hex.push_str(&format!("{:02x}", (state >> 40) as u8));
        }
        let call = calls[(state >> 33) as usize % calls.len()];
        let _ = run(&world, &call.replace('B', &format!("x'{hex}'")));
    }
}
