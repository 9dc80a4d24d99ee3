//! Pieces of a page: escaped text, tables, bar charts as inline SVG.

/// A text inside a page.
pub fn escape(s: &str) -> String {
    s.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A figure in few digits.
pub fn figure(x: f64) -> String {
    let a = x.abs();
    match a {
        _ if a >= 10_000.0 => format!("{x:.0}"),
        _ if a >= 100.0 => format!("{x:.1}"),
        _ if a >= 1.0 => format!("{x:.2}"),
        _ => format!("{x:.3}"),
    }
}

/// A table; the first row holds the heads.
pub fn table(rows: &[Vec<String>]) -> String {
    let mut out = String::from("<table>");
    for (i, r) in rows.iter().enumerate() {
        let tag = if i == 0 { "th" } else { "td" };
        out.push_str("<tr>");
        for c in r {
            let number = i > 0 && c.chars().next().is_some_and(|c| c.is_ascii_digit() || c == '-');
            let class = if number { " class=n" } else { "" };
            out.push_str(&format!("<{tag}{class}>{}</{tag}>", escape(c)));
        }
        out.push_str("</tr>");
    }
    out + "</table>"
}

/// A bar: label, value, and the ends of its spread.
pub struct Bar {
    /// What it stands for.
    pub label: String,
    /// Which colour: the engine's name.
    pub series: String,
    /// Its length.
    pub value: f64,
    /// First and third quartile.
    pub spread: (f64, f64),
}

/// The engine's colour, the same in all charts.
pub fn colour(engine: &str) -> &'static str {
    match engine {
        "iolite" => "#3157c8",
        "iolite rows" => "#8fa8ec",
        "stock" => "#8a8a8a",
        "duckdb" => "#e0a800",
        "berkeley" => "#7a4fa3",
        "lmdb" => "#2e8b57",
        // With a setting or by another way, reported apart.
        _ if engine.starts_with("iolite") => "#4aa3a1",
        _ => "#c0562f",
    }
}

/// A chart of horizontal bars in groups; on a logarithmic scale where values span more than two decades.
pub fn bars(title: &str, unit: &str, groups: &[(String, Vec<Bar>)]) -> String {
    const LEFT: f64 = 250.0;
    const WIDTH: f64 = 480.0;
    const STEP: f64 = 15.0;
    let all = || groups.iter().flat_map(|g| &g.1).map(|b| b.value).filter(|v| *v > 0.0);
    let (least, most) = (all().fold(f64::MAX, f64::min), all().fold(0.0, f64::max));
    if most == 0.0 {
        return String::new();
    }
    let logarithmic = most / least > 100.0;
    let low = 10f64.powf(least.log10().floor());
    let length = |v: f64| match logarithmic {
        true => (v.max(low) / low).log10() / (most / low).log10() * WIDTH,
        false => v / most * WIDTH,
    };
    let mut body = String::new();
    let mut y = 30.0;
    for (name, list) in groups {
        body.push_str(&format!(
            "<text x='{}' y='{}' text-anchor='end'>{}</text>",
            LEFT - 8.0,
            y + 11.0,
            escape(name)
        ));
        for b in list {
            let (w, from, to) = (length(b.value), length(b.spread.0), length(b.spread.1));
            body.push_str(&format!(
                "<rect x='{LEFT}' y='{y}' width='{w:.1}' height='12' fill='{}'><title>{} {}: {} {unit}</title></rect>\
                 <line x1='{:.1}' x2='{:.1}' y1='{m}' y2='{m}' stroke='#222'/>\
                 <text x='{:.1}' y='{}' class='v'>{} {}</text>",
                colour(&b.series),
                escape(name),
                escape(&b.label),
                figure(b.value),
                LEFT + from,
                LEFT + to.min(WIDTH),
                LEFT + w.max(to.min(WIDTH)) + 6.0,
                y + 10.0,
                figure(b.value),
                escape(&b.label),
                m = y + 6.0,
            ));
            y += STEP;
        }
        y += 7.0;
    }
    let scale = if logarithmic { ", logarithmic" } else { "" };
    format!(
        "<figure><svg viewBox='0 0 900 {:.0}' width='900' height='{:.0}' role='img'>\
         <text x='0' y='15' class='t'>{} ({unit}{scale})</text>{body}</svg></figure>",
        y + 5.0,
        y + 5.0,
        escape(title)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_charts_closed() {
        assert_eq!(
            table(&[vec!["a<b".into()], vec!["1".into()]]),
            "<table><tr><th>a&lt;b</th></tr><tr><td class=n>1</td></tr></table>"
        );
        let bar = |v| Bar { label: "x".into(), series: "stock".into(), value: v, spread: (v, v) };
        let c = bars("t", "us", &[("g".into(), vec![bar(1.0), bar(1000.0)])]);
        assert!(c.contains("logarithmic") && c.ends_with("</svg></figure>"));
        assert_eq!(bars("t", "us", &[]), "");
    }
}
