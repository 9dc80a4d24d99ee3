//! Which plan a query gets: one row by its key, the nearest rows, or all.
//!
//! The text that goes to the cursor has four characters for each of its arguments: what it is, which column, which operator, a filler.

use crate::config::{Column, Config, Type};
use iolite_base::{Code, Error, Result};
use iolite_ext::{Constraint, ConstraintOp, IndexInfo, OrderUse};

/// Letters of plans.
pub(crate) const ALL: char = '1';
pub(crate) const ONE: char = '2';
pub(crate) const NEAREST: char = '3';

/// Letters of arguments.
pub(crate) const KEY: u8 = b'!';
pub(crate) const MATCH: u8 = b'{';
pub(crate) const COUNT: u8 = b'}';
pub(crate) const KEYS: u8 = b'[';
pub(crate) const PARTITION: u8 = b']';
pub(crate) const METADATA: u8 = b'&';
pub(crate) const METADATA_LIST: u8 = b'#';
pub(crate) const DISTANCE: u8 = b'*';
/// How much of an index is looked at.
pub(crate) const PROBES: u8 = b'%';
pub(crate) const EF: u8 = b'~';

fn fail<T>(what: &str) -> Result<T> {
    Err(Error::sql(what))
}

/// The letter of a comparison.
fn letter(op: ConstraintOp) -> Option<u8> {
    Some(match op {
        ConstraintOp::Eq => b'a',
        ConstraintOp::Gt => b'b',
        ConstraintOp::Le => b'c',
        ConstraintOp::Lt => b'd',
        ConstraintOp::Ge => b'e',
        ConstraintOp::Ne => b'f',
        _ => return None,
    })
}

/// The comparison of a letter, as SQL writes it.
pub(crate) fn operator(letter: u8) -> &'static str {
    match letter {
        b'a' => "=",
        b'b' => ">",
        b'c' => "<=",
        b'd' => "<",
        b'e' => ">=",
        _ => "<>",
    }
}

/// Whether a comparison with this outcome is what the letter says.
pub(crate) fn holds(letter: u8, order: std::cmp::Ordering) -> bool {
    match letter {
        b'a' => order.is_eq(),
        b'b' => order.is_gt(),
        b'c' => order.is_le(),
        b'd' => order.is_lt(),
        b'e' => order.is_ge(),
        _ => order.is_ne(),
    }
}

/// Chooses.
pub(crate) fn choose(config: &Config, info: &mut IndexInfo) -> Result<()> {
    let is_match = |c: &Constraint| {
        c.op == ConstraintOp::Match && matches!(config.column(c.column), Some(Column::Vector(_)))
    };
    let matches: Vec<usize> =
        (0..info.constraints.len()).filter(|k| is_match(&info.constraints[*k])).collect();
    if matches.len() > 1 {
        return fail("only 1 MATCH operator is allowed in a single vec0 query");
    }
    if let Some(&m) = matches.first() {
        if !info.constraints[m].usable {
            return Err(Code::Constraint.into());
        }
        return nearest(config, info, m);
    }
    let key =
        |c: &Constraint| c.usable && c.op == ConstraintOp::Eq && config.column(c.column) == Some(Column::Key);
    if let Some(k) = info.constraints.iter().position(key) {
        (info.usage[k].arg, info.usage[k].omit) = (1, true);
        (info.index_num, info.index_str) = (1, format!("{ONE}{}___", KEY as char));
        (info.cost, info.rows, info.unique) = (10.0, 1, true);
        return Ok(());
    }
    info.index_str = ALL.to_string();
    (info.cost, info.rows) = (3_000_000.0, 100_000);
    Ok(())
}

struct Arguments<'a> {
    info: &'a mut IndexInfo,
    text: String,
    passed: i32,
}

impl Arguments<'_> {
    fn pass(&mut self, constraint: usize, what: [u8; 3], omit: bool) {
        self.passed += 1;
        self.info.usage[constraint].arg = self.passed;
        self.info.usage[constraint].omit = omit;
        self.text.extend(what.map(char::from));
        self.text.push('_');
    }
}

fn place(k: usize) -> u8 {
    b'A' + k as u8
}

fn nearest(config: &Config, info: &mut IndexInfo, m: usize) -> Result<()> {
    let find = |ok: &dyn Fn(&Constraint) -> bool| info.constraints.iter().position(|c| c.usable && ok(c));
    let k = find(&|c| c.op == ConstraintOp::Eq && config.column(c.column) == Some(Column::K));
    let limit = find(&|c| c.op == ConstraintOp::Limit);
    let offset = info.constraints.iter().any(|c| c.op == ConstraintOp::Offset);
    let count = match (k, limit) {
        (Some(_), Some(_)) => return fail("Only LIMIT or 'k =?' can be provided, not both"),
        (Some(k), None) => k,
        (None, Some(l)) if !offset => l,
        _ => return fail("A LIMIT or 'k = ?' constraint is required on vec0 knn queries."),
    };
    if info.order_use == OrderUse::Sorted && !info.order_by.is_empty() {
        match info.order_by[..] {
            [o] if config.column(o.column) == Some(Column::Distance) && o.column >= 0 => {
                if o.desc {
                    return fail(
                        "Only ascending in ORDER BY distance clause is supported, DESC is not supported yet.",
                    );
                }
                info.ordered = true;
            }
            _ => {
                return fail(
                    "Only a single 'ORDER BY distance' clause is allowed on vec0 KNN queries, not on other columns",
                );
            }
        }
    }
    let Some(Column::Vector(v)) = config.column(info.constraints[m].column) else {
        return Err(Code::Internal.into());
    };
    let mut a = Arguments { info, text: NEAREST.to_string(), passed: 0 };
    a.pass(m, [MATCH, place(v), b'_'], true);
    a.pass(count, [COUNT, b'_', b'_'], true);
    for i in 0..a.info.constraints.len() {
        let c = a.info.constraints[i].clone();
        if i == m || i == count || !c.usable || matches!(c.op, ConstraintOp::Limit | ConstraintOp::Offset) {
            continue;
        }
        match config.column(c.column) {
            Some(Column::Key) if c.is_in && c.op == ConstraintOp::Eq => {
                a.info.usage[i].list = true;
                a.pass(i, [KEYS, b'_', b'_'], true);
            }
            Some(Column::Partition(k)) => {
                if let Some(op) = letter(c.op) {
                    // Each value of an IN is a search of its own: together they are not sorted.
                    a.info.ordered &= !c.is_in;
                    a.pass(i, [PARTITION, place(k), op], true);
                }
            }
            Some(Column::Metadata(k)) => metadata(config, &mut a, (i, &c), k)?,
            Some(Column::Probes) if c.op == ConstraintOp::Eq && !c.is_in => {
                a.pass(i, [PROBES, b'_', b'_'], true);
            }
            Some(Column::Ef) if c.op == ConstraintOp::Eq && !c.is_in => {
                a.pass(i, [EF, b'_', b'_'], true);
            }
            Some(Column::Probes) => return fail("probes can only be compared by 'probes = ?'."),
            Some(Column::Ef) => return fail("ef can only be compared by 'ef = ?'."),
            Some(Column::Auxiliary(_)) => {
                return fail(
                    "An illegal WHERE constraint was provided on a vec0 auxiliary column in a KNN query.",
                );
            }
            Some(Column::Distance) => match letter(c.op) {
                Some(op) if !matches!(c.op, ConstraintOp::Eq | ConstraintOp::Ne) => {
                    a.pass(i, [DISTANCE, b'_', op], true);
                }
                _ => {
                    return fail(
                        "Illegal WHERE constraint on distance column in a KNN query. Only one of GT, GE, LT, LE constraints are allowed.",
                    );
                }
            },
            _ => {}
        }
    }
    let text = a.text;
    (info.index_num, info.index_str) = (0, text);
    (info.cost, info.rows) = (30.0, 10);
    Ok(())
}

fn metadata(config: &Config, a: &mut Arguments<'_>, (i, c): (usize, &Constraint), k: usize) -> Result<()> {
    let Some(op) = letter(c.op) else {
        return fail(
            "An illegal WHERE constraint was provided on a vec0 metadata column in a KNN query. Only one of EQUALS, GREATER_THAN, LESS_THAN_OR_EQUAL, LESS_THAN, GREATER_THAN_OR_EQUAL, NOT_EQUALS is allowed.",
        );
    };
    let ty = config.metadata[k].ty;
    if c.is_in {
        if !matches!(ty, Type::Integer | Type::Text) {
            return fail("'xxx in (...)' is only available on INTEGER or TEXT metadata columns.");
        }
        a.info.usage[i].list = true;
        a.pass(i, [METADATA_LIST, place(k), op], true);
        return Ok(());
    }
    if ty == Type::Boolean && !matches!(c.op, ConstraintOp::Eq | ConstraintOp::Ne) {
        return fail("ONLY EQUALS (=) or NOT_EQUALS (!=) operators are allowed on boolean metadata columns.");
    }
    a.pass(i, [METADATA, place(k), op], true);
    Ok(())
}
