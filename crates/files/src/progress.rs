//! Progress on standard error: a bar with rate and remaining time on a terminal, otherwise a line at the end of each
//! phase. A program that embeds the commands receives progress through a [`Listener`] instead.

use std::{
    fmt,
    io::IsTerminal,
    panic::resume_unwind,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::tell;
use fhaim_domain::counted;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Bars,
    Lines,
    Quiet,
}

/// Receives progress on the thread that does the work, and can stop the work.
pub trait Listener: Send + Sync {
    /// Receives that `done` of `total` units of a phase are done. A phase without a total counts no units.
    fn hear(&self, phase: &str, done: u64, total: Option<u64>);

    /// Whether the work should stop because its result is no longer wanted.
    fn is_stopped(&self) -> bool;
}

/// Panic payload that unwinds the stack of stopped work.
#[derive(Debug)]
pub struct Stopped;

/// Shows the phases of a command.
pub struct Progress {
    mode: Mode,
    listener: Option<Arc<dyn Listener>>,
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress")
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

/// Template of a phase with a known number of units.
const COUNTED: &str = "{msg:24} [{bar:30}] {pos}/{len} {unit} {per_sec} {eta} left";

/// Template of a phase of unknown length.
const UNCOUNTED: &str = "{msg:24} {spinner} {elapsed}";

impl Progress {
    /// Shows bars on a terminal, lines elsewhere, and nothing if `quiet`.
    pub fn new(quiet: bool) -> Self {
        let mode = match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Mode::Quiet,
            (false, true) => Mode::Bars,
            (false, false) => Mode::Lines,
        };
        Self {
            mode,
            listener: None,
        }
    }

    /// Shows nothing and reports to a listener.
    pub fn told_to(listener: Arc<dyn Listener>) -> Self {
        Self {
            mode: Mode::Quiet,
            listener: Some(listener),
        }
    }

    /// Starts a phase of `total` units.
    pub fn counted(
        &self,
        name: impl Into<String>,
        total: u64,
        unit: &'static str,
    ) -> PhaseProgress {
        let template = COUNTED.replace("{unit}", unit);
        let bar = ProgressBar::new(total);
        self.start(name.into(), bar, Some(total), &template, unit)
    }

    /// Starts a phase of unknown length.
    pub fn uncounted(&self, name: impl Into<String>) -> PhaseProgress {
        let bar = ProgressBar::new_spinner();
        self.start(name.into(), bar, None, UNCOUNTED, "")
    }

    /// Whether nothing is shown.
    pub fn is_quiet(&self) -> bool {
        self.mode == Mode::Quiet
    }

    /// Prints one line; call it before the phase that the line is about.
    pub fn say(&self, text: &str) {
        if self.mode != Mode::Quiet {
            tell(text);
        }
    }

    fn start(
        &self,
        name: String,
        bar: ProgressBar,
        total: Option<u64>,
        template: &str,
        unit: &'static str,
    ) -> PhaseProgress {
        if self.mode == Mode::Bars {
            // An invalid template keeps the default bar.
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.set_message(name.clone());
            bar.enable_steady_tick(Duration::from_millis(200));
        } else {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let phase = PhaseProgress {
            mode: self.mode,
            name,
            unit,
            total,
            bar,
            start: Instant::now(),
            listener: self.listener.clone(),
        };
        phase.tell(0);
        phase
    }
}

/// A phase in progress. If it is dropped before it is finished, it disappears from the terminal.
pub struct PhaseProgress {
    mode: Mode,
    name: String,
    unit: &'static str,
    total: Option<u64>,
    bar: ProgressBar,
    start: Instant,
    listener: Option<Arc<dyn Listener>>,
}

impl PhaseProgress {
    /// Reports the number of units done so far.
    pub fn reach(&self, units: u64) {
        self.bar.set_position(units);
        self.tell(units);
    }

    /// Reports to the listener, and unwinds the stack if the listener wants the work to stop.
    ///
    /// Unwinding works like a panic without a message. It drops, and erases, all values that were drawn or read, up to
    /// the caller that started the work and waits for it.
    fn tell(&self, units: u64) {
        let Some(listener) = &self.listener else {
            return;
        };
        if listener.is_stopped() {
            resume_unwind(Box::new(Stopped));
        }
        listener.hear(&self.name, units, self.total);
    }

    /// Returns the seconds since the phase started.
    pub fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Ends the phase, prints a summary line and returns the phase's duration in seconds.
    pub fn finish(self) -> f64 {
        let seconds = self.seconds();
        self.tell(self.total.unwrap_or_default());
        self.bar.finish_and_clear();
        if self.mode != Mode::Quiet {
            crate::tell_line(format_args!(
                "{}",
                summary(&self.name, self.bar.position(), self.unit, seconds)
            ));
        }
        seconds
    }
}

impl Drop for PhaseProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Describes a finished phase in one line: amount, duration and speed.
fn summary(name: &str, units: u64, unit: &str, seconds: f64) -> String {
    if unit.is_empty() || units == 0 {
        return format!("{name}: {seconds:.2} s");
    }
    let rate = units as f64 / seconds.max(1e-9);
    // `unit` is a plural.
    let one = unit.strip_suffix('s').unwrap_or(unit);
    let speed = match rate {
        ..1.0 => format!("{:.1} s per {one}", rate.recip()),
        ..10.0 => format!("{rate:.1} {unit}/s"),
        _ => format!("{rate:.0} {unit}/s"),
    };
    format!(
        "{name}: {} in {seconds:.2} s ({speed})",
        counted(units, one)
    )
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
    fn finished_phase_is_summarised_in_one_line() {
        assert_eq!(summary("fit", 0, "", 1.234), "fit: 1.23 s");
        assert_eq!(
            summary("tensor", 300, "tiles", 1.5),
            "tensor: 300 tiles in 1.50 s (200 tiles/s)"
        );
        assert_eq!(
            summary("rounds", 10, "rounds", 312.0),
            "rounds: 10 rounds in 312.00 s (31.2 s per round)"
        );
        assert_eq!(
            summary("fit", 1, "rounds", 2.0),
            "fit: 1 round in 2.00 s (2.0 s per round)"
        );
    }
}
