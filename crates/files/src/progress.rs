//! Where the work stands, on standard error: a bar with rate and time left on a terminal, a line
//! at the end of each phase elsewhere. A program that has linked the commands listens instead.

use std::{
    fmt,
    io::IsTerminal,
    panic::resume_unwind,
    sync::Arc,
    time::{Duration, Instant},
};

use fhaim_domain::counted;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Bars,
    Lines,
    Quiet,
}

/// Hears where the work stands, on whichever thread does it, and may end it there.
pub trait Listener: Send + Sync {
    /// `done` of `total` units of a phase are done; neither is counted where there is no total.
    fn hear(&self, phase: &str, done: u64, total: Option<u64>);

    /// Whether nobody wants the result any more.
    fn is_stopped(&self) -> bool;
}

/// Why the stack of work that nobody wants any more is unwound.
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
        Self {
            mode,
            listener: None,
        }
    }

    /// Shows nothing; somebody listens.
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

    /// Starts a phase whose length is not known.
    pub fn uncounted(&self, name: impl Into<String>) -> PhaseProgress {
        let bar = ProgressBar::new_spinner();
        self.start(name.into(), bar, None, UNCOUNTED, "")
    }

    /// Whether nothing is shown.
    pub fn is_quiet(&self) -> bool {
        self.mode == Mode::Quiet
    }

    /// One line, before the phase it is about.
    pub fn say(&self, text: &str) {
        if self.mode != Mode::Quiet {
            eprintln!("{text}");
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
            // A template that does not parse would show the default bar instead.
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

/// A phase under way; dropped unfinished, it disappears from the terminal.
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
    /// `units` are done in all.
    pub fn reach(&self, units: u64) {
        self.bar.set_position(units);
        self.tell(units);
    }

    /// Tells whoever listens. Where they want no more, the work's stack is unwound from here, as
    /// by a panic that nobody reports: all that was drawn or read is dropped, and erased, on the
    /// way to whoever started the work, and waits for it.
    fn tell(&self, units: u64) {
        let Some(listener) = &self.listener else {
            return;
        };
        if listener.is_stopped() {
            resume_unwind(Box::new(Stopped));
        }
        listener.hear(&self.name, units, self.total);
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Ends the phase and says how long it took.
    pub fn finish(self) -> f64 {
        let seconds = self.seconds();
        self.tell(self.total.unwrap_or_default());
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

impl Drop for PhaseProgress {
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
    // Units are named in the plural.
    let one = unit.strip_suffix('s').unwrap_or(unit);
    let speed = match rate {
        ..1.0 => format!("{:.1} s a {one}", rate.recip()),
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
    fn a_finished_phase_is_one_line() {
        assert_eq!(summary("fit", 0, "", 1.234), "fit: 1.23 s");
        assert_eq!(
            summary("tensor", 300, "tiles", 1.5),
            "tensor: 300 tiles in 1.50 s (200 tiles/s)"
        );
        assert_eq!(
            summary("rounds", 10, "rounds", 312.0),
            "rounds: 10 rounds in 312.00 s (31.2 s a round)"
        );
        assert_eq!(
            summary("fit", 1, "rounds", 2.0),
            "fit: 1 round in 2.00 s (2.0 s a round)"
        );
    }
}
