//! The summary of a run.

use std::fmt;

use fhaim_domain::counted;
use fhaim_eval::Fact;
use fhaim_files::shown;
use fhaim_pgm::FitReport;
use fhaim_synth::Timing;
use serde::Serialize;

use crate::generate::args::GenerateArguments;
use crate::{alone::Alone, encrypted::Costs, error::Error, output};

/// Summary of a run, which `--json` prints.
#[derive(Debug, Serialize)]
pub struct Summary {
    pub dataset: String,
    pub mechanism: String,
    /// Whether the run was under encryption. A command that continues a finished run has no costs of encryption.
    #[serde(skip)]
    pub is_encrypted: bool,
    pub epsilon: f64,
    pub delta: f64,
    pub rho: f64,
    pub rho_spent: f64,
    pub releases: usize,
    pub records: usize,
    pub model_bytes: usize,
    pub model_cliques: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fit: Option<Fit>,
    pub seconds: f64,
    pub timings: Vec<Timing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encryption: Option<Costs>,
    /// Results that each of several holders would get by itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alone: Vec<Alone>,
    pub out: String,
}

/// The distance of the model from its measurements.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Fit {
    /// Half of the squared distances, in units of the noise.
    pub loss: f64,
    /// The loss that noise accounts for: half of the number of measured values.
    pub noise_loss: f64,
    pub measured_values: usize,
}

impl From<FitReport> for Fit {
    fn from(report: FitReport) -> Self {
        Self {
            loss: report.loss,
            noise_loss: report.noise_loss(),
            measured_values: report.values,
        }
    }
}

impl fmt::Display for Fit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "loss {:.1}; noise accounts for about {:.1}",
            self.loss, self.noise_loss
        )
    }
}

impl Summary {
    /// Returns the facts for a report about how the table was made.
    pub fn facts(&self) -> Vec<Fact> {
        let fact = |name: &str, value: String| Fact {
            name: name.to_owned(),
            value,
        };
        let how = match self.is_encrypted {
            true => "under encryption",
            false => "in the clear",
        };
        let facts = vec![
            fact("Mechanism", format!("{} ({how})", self.mechanism)),
            fact("Epsilon", self.epsilon.to_string()),
            fact("Delta", format!("{:e}", self.delta)),
            fact(
                "Rho spent",
                format!("{:.6} of {:.6}", self.rho_spent, self.rho),
            ),
            fact("Releases", self.releases.to_string()),
            fact("Seconds", format!("{:.1}", self.seconds)),
        ];
        let fit = self.fit.map(|fit| fact("Fit", fit.to_string()));
        let alone = self.alone.iter();
        let alone = alone.map(|alone| fact(&format!("Holder {}", alone.holder), alone.words()));
        facts.into_iter().chain(fit).chain(alone).collect()
    }
}

/// Prints the summary of a run.
pub fn print_summary(arguments: &GenerateArguments, summary: &Summary) -> Result<(), Error> {
    if arguments.json {
        return output::print_json(summary);
    }
    output::print(&summary.to_string())
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} in {}",
            self.dataset,
            counted(self.records, "synthetic record"),
            shown(&self.out)
        )?;
        writeln!(
            f,
            "{} releases spent rho = {:.6} of {:.6} (epsilon {}, delta {:e}); {:.2} s",
            self.releases, self.rho_spent, self.rho, self.epsilon, self.delta, self.seconds
        )?;
        for alone in &self.alone {
            writeln!(f, "holder {}: {}", alone.holder, alone.words())?;
        }
        match self.encryption.as_ref().and_then(Costs::rounds) {
            Some(rounds) => rounds.fmt(f),
            None => Ok(()),
        }
    }
}
