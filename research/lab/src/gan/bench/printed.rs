//! Figures that Saleem and Fan print for MNIST, without noise. Their classifier, networks and records are different.
//!
//! They belong to the settings of the paper: MNIST, dense networks, a rate of 2e-4, and ten parties of which each takes
//! part with probability 0.1. The paper does not tell the numbers of steps and the widths of the networks.

use crate::gan::args::{BenchArguments, RATE};
use crate::gan::method::{Method, PARTICIPATION, federation};

/// K in the paper.
const PARTIES: usize = 10;

/// Returns the inception score and the Fréchet distance (Table II, for the natural split only), or `None` at other
/// settings.
pub fn quality(arguments: &BenchArguments, method: Method, rule: &str) -> Option<[f64; 2]> {
    if !has_published_settings(arguments, method) {
        return None;
    }
    match (method, rule) {
        (Method::Central, _) => Some([9.2, 12.2]),
        (Method::Local, "ns") => Some([5.5, 40.8]),
        (Method::Federated, "ns") => Some([8.4, 16.21]),
        _ => None,
    }
}

/// Returns white box and Monte Carlo in percent, and total variation (Table III), or `None` at other settings.
pub fn attacks(arguments: &BenchArguments, method: Method, rule: &str) -> Option<[f64; 3]> {
    if !has_published_settings(arguments, method) {
        return None;
    }
    match (method, rule) {
        (Method::Central, _) => Some([48.1, 77.1, 0.438]),
        (Method::Local, "ns") => Some([11.5, 68.8, 0.37]),
        (Method::Local, "qli") => Some([25.1, 72.1, 0.45]),
        (Method::Local, "dli") => Some([17.5, 69.3, 0.41]),
        (Method::Local, "qs") => Some([18.25, 70.5, 0.44]),
        (Method::Federated, "ns") => Some([21.5, 72.8, 0.44]),
        (Method::Federated, "qli") => Some([20.0, 71.1, 0.41]),
        (Method::Federated, "dli") => Some([20.5, 68.1, 0.40]),
        (Method::Federated, "qs") => Some([21.12, 72.2, 0.43]),
        _ => None,
    }
}

/// Whether all settings are those of the paper, as far as it tells them.
fn has_published_settings(arguments: &BenchArguments, method: Method) -> bool {
    let network = &arguments.network;
    let split = arguments.split_among.unwrap_or(arguments.parties);
    let has_networks = arguments.images == "mnist"
        && network.filters.is_empty()
        && network.rate == RATE
        && network.discriminator_rate.is_none();
    let has_parties = (arguments.parties, split) == (PARTIES, PARTIES);
    let federation = federation(method, network, None);
    let has_federation = !method.is_federated()
        || (network.batch.is_none() && federation.mu == 0.0 && federation.rate == PARTICIPATION);
    has_networks && (method == Method::Central || (has_parties && has_federation))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        arguments: BenchArguments,
    }

    fn shown(method: Method, rule: &str, flags: &str) -> (bool, bool) {
        let words = ["bench"].into_iter().chain(flags.split_whitespace());
        let arguments = Command::parse_from(words).arguments;
        (
            quality(&arguments, method, rule).is_some(),
            attacks(&arguments, method, rule).is_some(),
        )
    }

    /// Table II is for the natural split, Table III for all of them.
    #[test]
    fn printed_figures_appear_only_at_published_settings() {
        for method in [Method::Local, Method::Federated] {
            assert_eq!(shown(method, "ns", ""), (true, true));
            for rule in ["qli", "dli", "qs"] {
                assert_eq!(shown(method, rule, ""), (false, true), "{method:?} {rule}");
            }
            assert_eq!(shown(method, "dli:0.1", ""), (false, false));
            for flags in [
                "--parties 5",
                "--rate 1e-3",
                "--images fashion",
                "--split-among 40",
            ] {
                assert_eq!(shown(method, "ns", flags), (false, false), "{flags}");
            }
        }
        for flags in ["--participation 1", "--mu 0.5", "--batch 32"] {
            assert_eq!(
                shown(Method::Federated, "ns", flags),
                (false, false),
                "{flags}"
            );
        }
        // The number of parties does not matter for all records in one place.
        assert_eq!(shown(Method::Central, "ns", "--parties 5"), (true, true));
        assert_eq!(shown(Method::DpFedprox, "ns", ""), (false, false));
    }
}
