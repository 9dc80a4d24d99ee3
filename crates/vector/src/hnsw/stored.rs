//! A graph's links in a table of the same file: what a later process needs to be spared of linking all rows anew.
//!
//! ```text
//! _hnsw_links   0 -> header: sizes       n -> the n-th part of the nodes: place, sum of the code, levels, and a list of links for each level
//! ```
//!
//! They are written by the commands `rebuild` and `optimize`, and by nothing else: a row that is changed changes nothing here. So each node says of
//! which place it is, and of which code a sum: whoever reads it compares that with the table.
//!
//! What always holds: links that were read are numbers of nodes, and every node has room for its links. What is damaged or of another kind is as if
//! nothing were there: the table needs none of it.

use super::graph::Graph;
use super::links::Links;
use crate::ivf::format::{packed, sum};
use crate::rows::Rows;
use crate::store::{LINKS, Store};
use iolite_base::{Bytes, Code, Result, alloc};
use iolite_value::Value;

const MAGIC: u32 = 0x3167_6e68;
const HEADER: usize = 32;
/// So many nodes are in a row of the table.
const PART: usize = 256;

/// The graph of a column, as it was stored.
#[derive(Default)]
pub(crate) struct Stored {
    /// A node's place, and the sum of its code.
    pub nodes: Vec<(u64, u32)>,
    pub links: Links,
}

/// The sum of a node's code, with what stands beside it.
pub(crate) fn code_sum(bytes: &[u8]) -> u32 {
    sum(bytes) as u32
}

fn table(store: &Store, column: usize) -> String {
    store.shadow(&format!("hnsw_links{column:02}"))
}

/// Bytes that are read from the front.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn u8(&mut self) -> Option<usize> {
        self.take::<1>().map(|b| usize::from(b[0]))
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }
}

/// Takes the sum from the end of bytes; none: they are not what it was made of.
fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let (rest, last) = bytes.split_last_chunk::<8>()?;
    (u64::from_le_bytes(*last) == sum(rest)).then_some(rest)
}

/// Writes a graph; rows that are gone are left out, and so are those that wait.
pub(crate) fn write(store: &Store, column: usize, graph: &Graph, rows: &Rows) -> Result<()> {
    forget(store, column)?;
    let sql = format!("INSERT INTO {} VALUES(?1,?2)", table(store, column));
    let put = |id: usize, mut bytes: Vec<u8>| -> Result<()> {
        let s = sum(&bytes);
        bytes.extend_from_slice(&s.to_le_bytes());
        store.run(sql.clone(), &[Value::Int(id as i64), Value::Blob(Bytes::copy_of(&bytes)?, 0)])
    };
    let (mut numbers, mut kept) = (Vec::new(), Vec::new());
    alloc::reserve(&mut numbers, graph.linked())?;
    alloc::reserve(&mut kept, graph.linked())?;
    for node in 0..graph.linked() as u32 {
        let is_kept = !rows.is_gone(node as usize);
        numbers.push(if is_kept { kept.len() as u32 } else { u32::MAX });
        if is_kept {
            kept.push(node);
        }
    }
    let mut header = Vec::with_capacity(HEADER);
    let dimensions = store.config.vectors[column].dimensions;
    for n in [MAGIC, dimensions as u32, graph.m() as u32, kept.len() as u32, PART as u32, 0] {
        header.extend_from_slice(&n.to_le_bytes());
    }
    put(0, header)?;
    for (n, part) in kept.chunks(PART).enumerate() {
        let mut b = Vec::new();
        for node in part {
            let (_, place) = rows.of(*node as usize);
            b.extend_from_slice(&packed(place)?.to_le_bytes());
            b.extend_from_slice(&code_sum(graph.bytes_of(*node as usize)).to_le_bytes());
            let levels = graph.links().levels(*node);
            b.push(levels as u8);
            for level in 0..=levels {
                let links = graph.links();
                let children = links.children(*node, level);
                let at = b.len();
                b.extend([0, 0]);
                for (k, to) in links.of(*node, level).iter().enumerate() {
                    let to = numbers[*to as usize];
                    if to != u32::MAX {
                        b[at] += 1;
                        b[at + 1] += u8::from(k < children);
                        b.extend_from_slice(&to.to_le_bytes());
                    }
                }
            }
        }
        put(n + 1, b)?;
        store.check_interrupt()?;
    }
    Ok(())
}

/// Forgets what was stored; makes the table, if somebody has dropped it.
pub(crate) fn forget(store: &Store, column: usize) -> Result<()> {
    store.run(format!("CREATE TABLE IF NOT EXISTS {}{LINKS}", table(store, column)), &[])?;
    store.run(format!("DELETE FROM {}", table(store, column)), &[])
}

/// Reads a graph with room for `m` links; none: there is none, or it is damaged or another one, or not even a table.
pub(crate) fn read(store: &Store, column: usize, m: usize) -> Result<Option<Stored>> {
    match read_table(store, column, m) {
        Err(e) if e.code() == Code::Error => Ok(None),
        read => read,
    }
}

fn read_table(store: &Store, column: usize, m: usize) -> Result<Option<Stored>> {
    let dimensions = store.config.vectors[column].dimensions;
    let (mut count, mut next, mut sound) = (0, 0i64, true);
    let mut stored = Stored { links: Links::new(m), ..Stored::default() };
    let sql = format!("SELECT id,data FROM {} ORDER BY id", table(store, column));
    store.rows(sql, &[], |row| {
        sound = match row {
            [Value::Int(id), Value::Blob(b, _)] if *id == next => match (checked(b), next) {
                (Some(b), 0) => {
                    let header = read_header(b, dimensions, m);
                    count = header.unwrap_or(0);
                    alloc::reserve(&mut stored.nodes, count.min(1 << 20))?;
                    header.is_some()
                }
                (Some(b), _) => read_part(b, count, &mut stored)?.is_some(),
                (None, _) => false,
            },
            _ => false,
        };
        next += 1;
        Ok(sound)
    })?;
    let sound = sound && next > 0 && stored.nodes.len() == count && stored.links.are_sound();
    Ok(sound.then_some(stored))
}

/// Whether there is something that cannot be read.
pub(crate) fn is_damaged(store: &Store, column: usize) -> Result<bool> {
    let m = store.config.vectors[column].graph().map_or(2, |o| o.m);
    let count = format!("SELECT count(*) FROM {}", table(store, column));
    match store.row(count, &[], |row| Ok(row.first().map_or(0, Value::to_int))) {
        Err(e) if e.code() == Code::Error => Ok(true),
        rows => Ok(rows? != Some(0) && read(store, column, m)?.is_none()),
    }
}

fn read_header(b: &[u8], dimensions: usize, m: usize) -> Option<usize> {
    let mut input = Input(b);
    let mut next = || input.u32().map(|n| n as usize);
    let fits = next()? == MAGIC as usize && next()? == dimensions && next()? == m;
    let count = next()?;
    (fits && next()? == PART && count < 1 << 31).then_some(count)
}

fn read_part(b: &[u8], count: usize, to: &mut Stored) -> Result<Option<()>> {
    let mut input = Input(b);
    while !input.0.is_empty() {
        let Some((place, code)) = input.take::<8>().zip(input.u32()) else { return Ok(None) };
        alloc::reserve(&mut to.nodes, 1)?;
        to.nodes.push((u64::from_le_bytes(place), code));
        let Some(levels) = input.u8() else { return Ok(None) };
        if !to.links.add(levels)? || to.nodes.len() > count {
            return Ok(None);
        }
        let node = to.nodes.len() as u32 - 1;
        for level in 0..=levels {
            let Some((n, children)) = input.u8().zip(input.u8()) else { return Ok(None) };
            let links: Option<Vec<u32>> =
                (0..n).map(|_| input.u32().filter(|n| (*n as usize) < count)).collect();
            match links {
                Some(links) if children <= n && n <= to.links.room(level) => {
                    to.links.set(node, level, &links, children);
                }
                _ => return Ok(None),
            }
        }
    }
    Ok(Some(()))
}
