//! EXPLAIN and EXPLAIN QUERY PLAN laid out for reading.

use crate::shell::Shell;
use iolite::engine::{Error, Statement, Step, Value};

/// Prints the rows of EXPLAIN QUERY PLAN as a tree.
pub fn print_query_plan(shell: &mut Shell, s: &mut Statement) -> Result<(), Error> {
    let mut nodes: Vec<(i64, i64, String)> = Vec::new();
    while s.step()? == Step::Row {
        let row = s.row();
        let int = |i: usize| row.get(i).map_or(0, Value::to_int);
        nodes.push((int(0), int(1), row.get(3).map_or(String::new(), Value::to_string_lossy)));
    }
    if nodes.is_empty() {
        return Ok(());
    }
    shell.say("QUERY PLAN");
    // A node whose parent is not listed stands at the top; the depth is bounded by the number of nodes.
    let known = |id: i64| nodes.iter().any(|n| n.0 == id);
    let mut lines = Vec::new();
    let mut stack: Vec<(usize, String, bool)> = Vec::new();
    let children = |parent: Option<i64>| -> Vec<usize> {
        let under = |n: &(i64, i64, String)| match parent {
            Some(p) => n.1 == p,
            None => n.1 == 0 || !known(n.1),
        };
        (0..nodes.len()).filter(|i| under(&nodes[*i])).collect()
    };
    let push = |stack: &mut Vec<(usize, String, bool)>, list: Vec<usize>, indent: &str| {
        for (k, i) in list.iter().enumerate().rev() {
            stack.push((*i, indent.to_string(), k + 1 == list.len()));
        }
    };
    push(&mut stack, children(None), "");
    while let Some((i, indent, last)) = stack.pop() {
        lines.push(format!("{indent}{}{}", if last { "`--" } else { "|--" }, nodes[i].2));
        if lines.len() > nodes.len() {
            break;
        }
        let deeper = format!("{indent}{}", if last { "   " } else { "|  " });
        if nodes[i].0 != 0 {
            push(&mut stack, children(Some(nodes[i].0)), &deeper);
        }
    }
    for l in lines {
        shell.say(&l);
    }
    Ok(())
}

/// Prints the rows of EXPLAIN in columns, loops indented.
pub fn print_program(shell: &mut Shell, s: &mut Statement) -> Result<(), Error> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    while s.step()? == Step::Row {
        rows.push(s.row().iter().map(Value::to_string_lossy).collect());
    }
    let indents = indents(&rows);
    let widths = [4usize, 13, 4, 4, 4, 13, 2, 13];
    let names = ["addr", "opcode", "p1", "p2", "p3", "p4", "p5", "comment"];
    let cells = |texts: &[&str], indent: usize| {
        let mut line = String::new();
        for (i, (t, w)) in texts.iter().zip(widths).enumerate() {
            if i > 0 {
                line.push_str("  ");
            }
            let text = if i == 1 { format!("{:indent$}{t}", "") } else { t.to_string() };
            line.push_str(&format!("{text:<w$}"));
        }
        line
    };
    shell.say(&cells(&names, 0));
    let rules: Vec<String> = widths.iter().map(|w| "-".repeat(*w)).collect();
    shell.say(&cells(&rules.iter().map(String::as_str).collect::<Vec<_>>(), 0));
    for (row, indent) in rows.iter().zip(indents) {
        let texts: Vec<&str> = row.iter().map(String::as_str).collect();
        shell.say(&cells(&texts, indent));
    }
    Ok(())
}

/// Two spaces for each loop that an instruction stands in: a loop runs from the target of a backward jump to it.
fn indents(rows: &[Vec<String>]) -> Vec<usize> {
    let mut out = vec![0; rows.len()];
    for (at, row) in rows.iter().enumerate() {
        let op = row.get(1).map_or("", String::as_str);
        let loops = ["Next", "Prev", "VNext", "SorterNext", "VPrev", "Goto"].contains(&op);
        let target: usize = row.get(3).and_then(|t| t.parse().ok()).unwrap_or(usize::MAX);
        if loops && target < at && (op != "Goto" || target > 1) {
            for o in &mut out[target..at] {
                *o += 2;
            }
        }
    }
    out
}
