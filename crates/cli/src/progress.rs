//! Where the work stands, on standard error: a bar with rate and time left on a terminal, a line
//! at the end of each phase elsewhere.

use std::{
    io::IsTerminal,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Bars,
    Lines,
    Quiet,
}

/// Shows the phases of a command.
#[derive(Debug)]
pub struct Progress {
    mode: Mode,
}

/// What a phase counts.
const COUNTED: &str = "{msg:24} [{bar:30}] {pos}/{len} {unit} {per_sec} {eta} left";

/// What a phase of unknown length shows.
const UNCOUNTED: &str = "{msg:24} {spinner} {elapsed}";

impl Progress {
    /// Bars on a terminal, lines elsewhere, nothing if `quiet`.
    pub fn new(quiet: bool) -> Self {
        let mode = match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Mode::Quiet,
            (false, true) => Mode::Bars,
            (false, false) => Mode::Lines,
        };
        Self { mode }
    }

    /// Starts a phase of `total` units.
    pub fn counted(&self, name: impl Into<String>, total: u64, unit: &'static str) -> Phase {
        let template = COUNTED.replace("{unit}", unit);
        self.start(name.into(), ProgressBar::new(total), &template, unit)
    }

    /// Starts a phase whose length is not known.
    pub fn uncounted(&self, name: impl Into<String>) -> Phase {
        self.start(name.into(), ProgressBar::new_spinner(), UNCOUNTED, "")
    }

    /// One line, before the phase it is about.
    pub fn say(&self, text: &str) {
        if self.mode != Mode::Quiet {
            eprintln!("{text}");
        }
    }

    fn start(&self, name: String, bar: ProgressBar, template: &str, unit: &'static str) -> Phase {
        if self.mode == Mode::Bars {
            // A template that does not parse would show the default bar instead.
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.set_message(name.clone());
            bar.enable_steady_tick(Duration::from_millis(200));
        } else {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        Phase {
            mode: self.mode,
            name,
            unit,
            bar,
            start: Instant::now(),
        }
    }
}

/// A phase under way; dropped unfinished, it disappears from the terminal.
#[derive(Debug)]
pub struct Phase {
    mode: Mode,
    name: String,
    unit: &'static str,
    bar: ProgressBar,
    start: Instant,
}

impl Phase {
    /// `units` are done in all.
    pub fn reach(&self, units: u64) {
        self.bar.set_position(units);
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Ends the phase and says how long it took.
    pub fn finish(self) -> f64 {
        let seconds = self.seconds();
        self.bar.finish_and_clear();
        if self.mode != Mode::Quiet {
            eprintln!(
                "{}",
                summary(&self.name, self.bar.position(), self.unit, seconds)
            );
        }
        seconds
    }
}

impl Drop for Phase {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// One line on a finished phase: how long, how much, how fast.
fn summary(name: &str, units: u64, unit: &str, seconds: f64) -> String {
    if unit.is_empty() || units == 0 {
        return format!("{name}: {seconds:.2} s");
    }
    let rate = units as f64 / seconds.max(1e-9);
    format!("{name}: {units} {unit} in {seconds:.2} s ({rate:.0} {unit}/s)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_parse() {
        for template in [COUNTED.replace("{unit}", "cells"), UNCOUNTED.to_owned()] {
            assert!(ProgressStyle::with_template(&template).is_ok());
        }
    }

    #[test]
    fn a_finished_phase_is_one_line() {
        assert_eq!(summary("fit", 0, "", 1.234), "fit: 1.23 s");
        assert_eq!(
            summary("tensor", 300, "tiles", 1.5),
            "tensor: 300 tiles in 1.50 s (200 tiles/s)"
        );
    }
}
