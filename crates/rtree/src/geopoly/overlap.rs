//! How two polygons lie to each other: a line sweeps over both from left to right.
//!
//! Between two places where edges begin or end, the edges that the line meets are in an order from bottom to top; what lies
//! between two of them is in one polygon, in both, or in none. Edges of different polygons that change places cross.

use super::polygon::Polygon;

/// How the first polygon lies to the second, with the number that SQL sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Relation {
    Apart = 0,
    Overlap = 1,
    Inside = 2,
    Around = 3,
    Same = 4,
}

/// An edge that is not vertical, from left to right.
struct Edge {
    slope: f64,
    offset: f64,
    start: f64,
    /// Where the line meets it.
    y: f64,
    /// Whose it is, as a bit.
    owner: usize,
}

/// An edge begins or ends at a place.
struct Event {
    x: f64,
    ends: bool,
    edge: usize,
}

fn add(polygon: &Polygon, owner: usize, edges: &mut Vec<Edge>, events: &mut Vec<Event>) {
    for (a, b) in polygon.edges() {
        if a.0 == b.0 {
            continue;
        }
        let (a, b) = if a.0 > b.0 { (b, a) } else { (a, b) };
        let slope = ((b.1 - a.1) / (b.0 - a.0)) as f64;
        let offset = b.1 as f64 - b.0 as f64 * slope;
        let (start, edge) = (a.1 as f64, edges.len());
        edges.push(Edge { slope, offset, start, y: 0.0, owner });
        events.push(Event { x: a.0 as f64, ends: false, edge });
        events.push(Event { x: b.0 as f64, ends: true, edge });
    }
}

/// How the first polygon lies to the second.
pub(crate) fn relation(first: &Polygon, second: &Polygon) -> Relation {
    let (mut edges, mut events) = (Vec::new(), Vec::new());
    add(first, 1, &mut edges, &mut events);
    add(second, 2, &mut edges, &mut events);
    // Of events at one place the later one goes first. Adding 0 makes both zeros the same.
    events.reverse();
    events.sort_by(|a, b| (a.x + 0.0).total_cmp(&(b.x + 0.0)));
    let mut at = match events.first() {
        Some(e) if e.x == 0.0 => -1.0,
        _ => 0.0,
    };
    // Which kinds of area there are: by the bits of the polygons that they are in.
    let mut areas = [false; 4];
    let mut active: Vec<usize> = Vec::new();
    let mut sorted = true;
    for event in &events {
        if event.x != at {
            at = event.x;
            if !sorted {
                sort(&mut active, &edges);
                sorted = true;
            }
            let mut inside = 0;
            let mut last: Option<usize> = None;
            for &e in &active {
                if last.is_some_and(|l| edges[l].y != edges[e].y) {
                    areas[inside] = true;
                }
                inside ^= edges[e].owner;
                last = Some(e);
            }
            let mut last: Option<usize> = None;
            for &e in &active {
                edges[e].y = edges[e].slope * at + edges[e].offset;
                if let Some(l) = last.map(|l| &edges[l]) {
                    if l.y > edges[e].y && l.owner != edges[e].owner {
                        return Relation::Overlap;
                    }
                    if l.y != edges[e].y {
                        areas[inside] = true;
                    }
                }
                inside ^= edges[e].owner;
                last = Some(e);
            }
        }
        if event.ends {
            active.retain(|e| *e != event.edge);
        } else {
            edges[event.edge].y = edges[event.edge].start;
            active.insert(0, event.edge);
            sorted = false;
        }
    }
    match areas {
        [_, _, _, false] => Relation::Apart,
        [_, true, true, _] => Relation::Overlap,
        [_, true, false, _] => Relation::Around,
        [_, false, true, _] => Relation::Inside,
        [_, false, false, _] => Relation::Same,
    }
}

/// Sorts edges from bottom to top; of those that begin at one point the steeper one is above.
fn sort(active: &mut [usize], edges: &[Edge]) {
    active.sort_by(|a, b| {
        let (a, b) = (&edges[*a], &edges[*b]);
        (a.y + 0.0).total_cmp(&(b.y + 0.0)).then_with(|| (a.slope + 0.0).total_cmp(&(b.slope + 0.0)))
    });
}
