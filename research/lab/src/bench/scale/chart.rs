//! Draws the results as an SVG picture: a panel each for seconds, megabytes sent and memory, with logarithmic axes.

use std::fmt::Write;

use super::{Figures, Row, series};

const PANEL: (f64, f64) = (300.0, 220.0);
const LEFT: f64 = 56.0;
const TOP: f64 = 34.0;
const STEP: f64 = PANEL.0 + 72.0;
const LEGEND: f64 = 18.0;

/// Colours of the series, used again if there are more series.
const COLOURS: [&str; 12] = [
    "#1b6ca8", "#c4501b", "#2a7f3f", "#7a3e9d", "#8a6d00", "#555555", "#d6336c", "#0097a7",
    "#000000", "#8bc34a", "#5c3317", "#b39ddb",
];

/// Title of a panel, and the value that it shows.
type Measure = (&'static str, fn(&Figures) -> f64);

const MEASURES: [Measure; 3] = [
    ("seconds", |figures| figures.seconds),
    ("MB sent", |figures| figures.upload_bytes as f64 / 1e6),
    ("MB of memory at the peak", |figures| {
        figures.peak_memory_bytes.unwrap_or(0) as f64 / 1e6
    }),
];

/// The points of a curve.
type Curve = Vec<(f64, f64)>;

/// Returns an SVG of all series with more than one run.
pub fn picture(rows: &[Row]) -> String {
    let all = series(rows);
    let width = LEFT + STEP * MEASURES.len() as f64;
    let height = TOP + PANEL.1 + 44.0 + LEGEND * all.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    for (number, (title, value)) in MEASURES.iter().enumerate() {
        let curve = |points: &[(f64, Figures)]| -> Curve {
            let points = points.iter().map(|(size, figures)| (*size, value(figures)));
            points.filter(|(_, y)| *y > 0.0).collect()
        };
        let curves: Vec<Curve> = all.iter().map(|(_, points)| curve(points)).collect();
        panel(&mut svg, LEFT + STEP * number as f64, title, &curves);
    }
    for (number, ((name, _), colour)) in all.iter().zip(COLOURS.iter().cycle()).enumerate() {
        let y = TOP + PANEL.1 + 48.0 + LEGEND * number as f64;
        let end = LEFT + 24.0;
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{y}\" x2=\"{end}\" y2=\"{y}\" stroke=\"{colour}\" stroke-width=\"2\"/>\
             <text x=\"{}\" y=\"{}\">{name}</text>",
            end + 8.0,
            y + 4.0
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// Returns the range of powers of ten that contains all values.
fn decades(values: impl Iterator<Item = f64>) -> (i32, i32) {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values {
        low = low.min(value.log10());
        high = high.max(value.log10());
    }
    if low > high {
        return (0, 1);
    }
    let (low, high) = (low.floor() as i32, high.ceil() as i32);
    (low, high.max(low + 1))
}

fn panel(svg: &mut String, left: f64, title: &str, curves: &[Curve]) {
    let across = decades(curves.iter().flatten().map(|point| point.0));
    let up = decades(curves.iter().flatten().map(|point| point.1));
    let place = |value: f64, (low, high): (i32, i32), length: f64| {
        (value.log10() - f64::from(low)) / f64::from(high - low) * length
    };
    let x = |value: f64| left + place(value, across, PANEL.0);
    let y = |value: f64| TOP + PANEL.1 - place(value, up, PANEL.1);
    let _ = writeln!(
        svg,
        "<text x=\"{left}\" y=\"{}\" font-size=\"13\">{title}</text>",
        TOP - 12.0
    );
    let (right, bottom) = (left + PANEL.0, TOP + PANEL.1);
    for power in across.0..=across.1 {
        let at = x(10f64.powi(power));
        let _ = writeln!(
            svg,
            "<line x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{bottom}\" stroke=\"#ddd\"/>\
             <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            bottom + 16.0,
            tick(power)
        );
    }
    for power in up.0..=up.1 {
        let at = y(10f64.powi(power));
        let _ = writeln!(
            svg,
            "<line x1=\"{left}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 6.0,
            at + 4.0,
            tick(power)
        );
    }
    for (curve, colour) in curves.iter().zip(COLOURS.iter().cycle()) {
        let points = curve
            .iter()
            .map(|&(a, b)| format!("{:.1},{:.1}", x(a), y(b)));
        let points: Vec<String> = points.collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            points.join(" ")
        );
    }
}

fn tick(power: i32) -> String {
    match power {
        -2..=-1 => format!("{:.*}", power.unsigned_abs() as usize, 10f64.powi(power)),
        0..=3 => format!("{:.0}", 10f64.powi(power)),
        _ => format!("1e{power}"),
    }
}
