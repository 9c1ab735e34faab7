//! Plays simulated schedules, and prints counts of their events.

use clap::{Arg, ArgAction, Command, value_parser};
use fhaim_simulation::{Counts, Mutant, Options, Simulation};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let number = |name: &'static str, default: &'static str| {
        Arg::new(name)
            .long(name)
            .default_value(default)
            .value_parser(value_parser!(u64))
    };
    let flag = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
    let arguments = Command::new("fhaim-simulation")
        .about("Simulate all entities in one process over an unreliable network")
        .arg(number("from", "0").help("First seed"))
        .arg(number("seeds", "1000").help("Number of seeds"))
        .arg(flag("encrypted").help("Use real ciphertexts"))
        .arg(flag("witness").help("Add a second computation service"))
        .arg(
            flag("keyshare")
                .conflicts_with("encrypted")
                .help("Add a service that shares the key with the crypto service"),
        )
        .arg(flag("trace").help("Print every event"))
        .arg(
            Arg::new("seed")
                .long("seed")
                .value_parser(value_parser!(u64))
                .help("Play only this seed"),
        )
        .arg(
            Arg::new("mutant")
                .long("mutant")
                .value_parser(mutant)
                .help("Build in a fault, such as FreshSealing (a variant of Mutant)"),
        )
        .get_matches();
    let options = Options {
        encrypted: arguments.get_flag("encrypted"),
        witness: arguments.get_flag("witness"),
        keyshare: arguments.get_flag("keyshare"),
        trace: arguments.get_flag("trace"),
        mutant: arguments.get_one("mutant").copied(),
    };
    let from = arguments.get_one::<u64>("from").copied().unwrap_or(0);
    let seeds = arguments.get_one::<u64>("seeds").copied().unwrap_or(0);
    let seeds = match arguments.get_one::<u64>("seed") {
        Some(&seed) => seed..seed + 1,
        None => from..from.saturating_add(seeds),
    };
    let started = Instant::now();
    let mut simulation = Simulation::default();
    let mut counts = Counts::default();
    let mut failed = 0u64;
    for seed in seeds {
        let played = simulation.play(seed, &options);
        counts.add(&played.counts);
        for violation in &played.violations {
            println!("seed {seed}: {violation}");
        }
        failed += u64::from(!played.violations.is_empty());
    }
    print!("{counts}");
    println!("| schedules failed | {failed} |");
    println!("| seconds | {:.0} |", started.elapsed().as_secs_f64());
    ExitCode::from(u8::from(failed > 0))
}

fn mutant(name: &str) -> Result<Mutant, String> {
    let known = Mutant::ALL.into_iter();
    let mut known = known.filter(|mutant| format!("{mutant:?}") == name);
    known.next().ok_or_else(|| {
        let names: Vec<_> = Mutant::ALL.iter().map(|m| format!("{m:?}")).collect();
        format!("must be one of {}", names.join(", "))
    })
}
