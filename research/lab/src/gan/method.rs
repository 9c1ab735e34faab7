//! The training methods, over the records of parties.

use clap::ValueEnum;
use fhaim_files::memory::Unit;
use fhaim_files::progress::Progress;
use fhaim_gan::{
    Examples, Federation, Gan, MAX_PAIRS, MAX_VALUES, Model, Optimiser, PrivGan, Privacy, Sampling,
    Training, federate, record_sampling, train, train_parts,
};
use rand_chacha::ChaCha20Rng;

use crate::gan::args::NetworkArguments;
use crate::gan::failure::Failure;

/// Default values of flags. The flags' help texts repeat them.
const CLIP: f64 = 0.01;
pub const PARTICIPATION: f64 = 0.1;
const LOCAL_STEPS: usize = 10;
const MU: f32 = 0.5;
const LAMBDA: f32 = 1.0;
const BATCH: usize = 64;
const PRIVGAN_BATCH: usize = 256;

/// A training method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// Pool all records, in the clear
    Central,
    /// Train each party separately, in the clear
    Local,
    /// FedAvg GAN, or FedProx GAN with --mu: no clipping and no noise
    Federated,
    /// privGAN: train each party separately, with its records in two parts; no guarantee
    Privgan,
    /// DPGAN: train each party separately, with every record clipped and noised
    Dpgan,
    /// DP-FedAvg GAN: clip and noise every party's change; with --local-steps 1, DP-FedSGD GAN
    DpFedavg,
    /// DP-FedProx GAN: as dp-fedavg, with parties pulled back to the start of the round
    DpFedprox,
}

/// The unit that a budget protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protected {
    /// The presence of a record.
    Record,
    /// The participation of a party, with all of its records.
    Party,
}

impl Protected {
    /// Returns the unit in the usage history.
    pub fn unit(self) -> Unit {
        match self {
            Self::Record => Unit::AddedOrRemoved,
            Self::Party => Unit::Party,
        }
    }
}

impl Method {
    /// Returns the name of the method on the command line.
    pub fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Whether parties train one pair of networks together.
    pub fn is_federated(self) -> bool {
        matches!(self, Self::Federated | Self::DpFedavg | Self::DpFedprox)
    }

    /// Returns the optimisers of a discriminator and of a generator (Saleem and Fan, appendix A). The paper names none for
    /// the methods without privacy: `federated` has those of DP-FedAvg GAN, and the others Adam, as in privGAN.
    pub fn optimisers(self, discriminator: f32, generator: f32) -> (Optimiser, Optimiser) {
        let (adam, sgd) = (Optimiser::adam, |rate| Optimiser::Sgd { rate });
        match self {
            Self::Central | Self::Local | Self::Privgan => (adam(discriminator), adam(generator)),
            Self::Dpgan => (sgd(discriminator), adam(generator)),
            Self::Federated | Self::DpFedavg | Self::DpFedprox => {
                (sgd(discriminator), sgd(generator))
            }
        }
    }

    /// Returns the default number of records per step (Saleem and Fan, appendix A).
    pub fn batch(self) -> usize {
        match self {
            Self::Privgan => PRIVGAN_BATCH,
            _ => BATCH,
        }
    }

    /// Returns the number of pairs of networks that it trains for this number of parties.
    fn pairs(self, parties: usize) -> usize {
        match self {
            Self::Central | Self::Federated | Self::DpFedavg | Self::DpFedprox => 1,
            Self::Local | Self::Dpgan => parties,
            Self::Privgan => parties.saturating_mul(2),
        }
    }

    /// Returns the unit that the method's budget protects; `None` if the method has no budget.
    pub fn protected(self) -> Option<Protected> {
        match self {
            Self::Central | Self::Local | Self::Federated | Self::Privgan => None,
            Self::Dpgan => Some(Protected::Record),
            Self::DpFedavg | Self::DpFedprox => Some(Protected::Party),
        }
    }
}

/// The noise that keeps a budget, with its cost. It is computed before training.
pub struct Kept {
    /// Noise of each party that trains separately, or one entry for all parties that train together.
    noise: Vec<Privacy>,
    /// Accounted epsilons, one for each entry of `noise`.
    epsilons: Vec<f64>,
    /// The largest epsilon.
    pub epsilon: f64,
    /// The largest noise multiplier.
    pub multiplier: f64,
}

impl Kept {
    /// Returns the epsilon of a party, by its number.
    pub fn party_epsilon(&self, party: usize) -> f64 {
        let own = self.epsilons.get(party).or(self.epsilons.first());
        own.copied().unwrap_or(self.epsilon)
    }

    fn noise(&self, party: usize) -> Option<&Privacy> {
        self.noise.get(party).or(self.noise.first())
    }
}

/// Returns the noise with which a method keeps (epsilon, delta), or `None` if the method has no budget. Rejects
/// settings that cannot be trained.
pub fn keep(
    method: Method,
    parties: &[Examples],
    arguments: &NetworkArguments,
    budget: Option<(f64, f64)>,
) -> Result<Option<Kept>, Failure> {
    let training = arguments.training(method);
    let sampled: Vec<Sampling> = match (method.protected(), budget) {
        (Some(_), None) => {
            return Err(Failure::Usage(format!("{} needs --epsilon", method.name())));
        }
        (None, Some(_)) => {
            return Err(Failure::Usage(format!(
                "{} has no privacy budget: leave out --epsilon",
                method.name()
            )));
        }
        (None, None) => Vec::new(),
        (Some(Protected::Record), Some(_)) => {
            let of = |party| record_sampling(party, &training);
            parties.iter().map(of).collect()
        }
        (Some(Protected::Party), Some(_)) => {
            vec![federation(method, arguments, None).sampling(&training)]
        }
    };
    check_size(method, parties, &training)?;
    match budget {
        Some(budget) => Ok(Some(with_noise(&sampled, arguments, budget)?)),
        None => Ok(None),
    }
}

/// Computes the least noise for each entry. If one of them cannot be protected by any noise, none is trained.
fn with_noise(
    sampled: &[Sampling],
    arguments: &NetworkArguments,
    (epsilon, delta): (f64, f64),
) -> Result<Kept, Failure> {
    let mut kept = Kept {
        noise: Vec::new(),
        epsilons: Vec::new(),
        epsilon: 0.0,
        multiplier: 0.0,
    };
    for sampling in sampled {
        let privacy = Privacy {
            clip: arguments.clip.unwrap_or(CLIP),
            multiplier: sampling.multiplier(epsilon, delta)?,
        };
        privacy.check()?;
        let spent = sampling.epsilon(privacy.multiplier, delta)?;
        // Parties have different records, so the largest epsilon is a bound for every record.
        kept.epsilon = kept.epsilon.max(spent);
        kept.multiplier = kept.multiplier.max(privacy.multiplier);
        kept.noise.push(privacy);
        kept.epsilons.push(spent);
    }
    Ok(kept)
}

/// Trains with a method, and with the noise that keeps its budget.
pub fn train_by(
    method: Method,
    parties: &[Examples],
    arguments: &NetworkArguments,
    kept: Option<&Kept>,
    (rng, progress): (&mut ChaCha20Rng, &Progress),
) -> Result<Model, Failure> {
    let training = arguments.training(method);
    let steps = u64::from(training.steps);
    let count = match method {
        Method::Central | Method::Federated | Method::DpFedavg | Method::DpFedprox => 1,
        Method::Local | Method::Privgan | Method::Dpgan => parties.len() as u64,
    };
    let unit = if method.is_federated() {
        "rounds"
    } else {
        "steps"
    };
    let phase = progress.counted(format!("train {}", method.name()), count * steps, unit);
    // Parties that train separately do so one after the other.
    let tell = |party: usize| {
        let phase = &phase;
        move |step: u32| phase.reach(party as u64 * steps + u64::from(step))
    };
    let model = match method {
        Method::Central => {
            let all = pool(parties)?;
            let gan = train(&all, &training, None, rng, &tell(0))?;
            saved(vec![gan], &[all.len()])
        }
        Method::Local | Method::Dpgan => {
            let noise = |party| kept.and_then(|kept| kept.noise(party));
            let gans = parties
                .iter()
                .enumerate()
                .map(|(number, party)| train(party, &training, noise(number), rng, &tell(number)));
            saved(gans.collect::<Result<_, _>>()?, &sizes(parties))
        }
        Method::Privgan => in_parts(parties, &training, arguments, rng, tell),
        Method::Federated | Method::DpFedavg | Method::DpFedprox => {
            let federation = federation(method, arguments, kept.and_then(|kept| kept.noise(0)));
            let mut participation = fhaim_dp::fork(rng);
            let all = sizes(parties).iter().sum();
            let drawn = (&mut participation, rng);
            let gan = federate(parties, &training, &federation, drawn, &tell(0))?;
            saved(vec![gan], &[all])
        }
    }?;
    phase.finish();
    Ok(model)
}

/// Rejects more networks than may be in memory, or in a file.
fn check_size(method: Method, parties: &[Examples], training: &Training) -> Result<(), Failure> {
    let Some(first) = parties.first() else {
        return Ok(());
    };
    let (pairs, parameters) = (
        method.pairs(parties.len()),
        training.parameters(first.shape())?,
    );
    if pairs <= MAX_PAIRS && pairs.saturating_mul(parameters) <= MAX_VALUES {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{pairs} pairs of networks of {parameters} parameters each are too many: at most {MAX_PAIRS} pairs and \
         {MAX_VALUES} parameters in total are possible; use fewer --parties, or smaller --hidden or --filters"
    )))
}

fn saved(gans: Vec<Gan>, records: &[usize]) -> Result<Model, Failure> {
    let records = records
        .iter()
        .map(|&n| u32::try_from(n).unwrap_or(u32::MAX))
        .collect();
    Ok(Model::new(gans, records)?)
}

fn sizes(parties: &[Examples]) -> Vec<usize> {
    parties.iter().map(Examples::len).collect()
}

/// Joins the records of all parties.
pub fn pool(parties: &[Examples]) -> Result<Examples, Failure> {
    let (first, others) = parties
        .split_first()
        .ok_or_else(|| Failure::Usage("there are no parties".to_owned()))?;
    let joined = others.iter().try_fold(first.clone(), Examples::join);
    Ok(joined?)
}

/// Trains privGAN on the two halves of each party's records. A party with one record has it in both halves.
fn in_parts<T: Fn(u32)>(
    parties: &[Examples],
    training: &Training,
    arguments: &NetworkArguments,
    rng: &mut ChaCha20Rng,
    tell: impl Fn(usize) -> T,
) -> Result<Model, Failure> {
    let options = PrivGan {
        lambda: lambda(arguments),
        ..PrivGan::default()
    };
    let (mut gans, mut records) = (Vec::new(), Vec::new());
    for (number, party) in parties.iter().enumerate() {
        let half = |odd: usize| -> Vec<usize> {
            (0..party.len())
                .filter(|n| n % 2 == odd % party.len())
                .collect()
        };
        let parts = [party.select(&half(0))?, party.select(&half(1))?];
        gans.extend(train_parts(&parts, training, &options, rng, &tell(number))?);
        records.extend(parts.iter().map(Examples::len));
    }
    saved(gans, &records)
}

/// Returns lambda of privGAN.
pub fn lambda(arguments: &NetworkArguments) -> f32 {
    arguments.lambda.unwrap_or(LAMBDA)
}

/// Returns the settings of federated training.
pub fn federation(
    method: Method,
    arguments: &NetworkArguments,
    privacy: Option<&Privacy>,
) -> Federation {
    Federation {
        rate: arguments.participation.unwrap_or(PARTICIPATION),
        local_steps: arguments.local_steps.unwrap_or(LOCAL_STEPS),
        mu: match method {
            Method::DpFedprox => arguments.mu.unwrap_or(MU),
            Method::Federated => arguments.mu.unwrap_or(0.0),
            _ => 0.0,
        },
        privacy: privacy.copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optimisers_are_those_of_the_paper() {
        let kinds = |method: Method| {
            let (discriminator, generator) = method.optimisers(0.2, 0.1);
            [discriminator, generator].map(|optimiser| match optimiser {
                Optimiser::Sgd { rate } => ("sgd", rate),
                Optimiser::Adam { rate, .. } => ("adam", rate),
            })
        };
        for method in [Method::DpFedprox, Method::DpFedavg, Method::Federated] {
            assert_eq!(kinds(method), [("sgd", 0.2), ("sgd", 0.1)], "{method:?}");
        }
        assert_eq!(kinds(Method::Dpgan), [("sgd", 0.2), ("adam", 0.1)]);
        assert_eq!(kinds(Method::Privgan), [("adam", 0.2), ("adam", 0.1)]);
        assert_eq!(
            (Method::Privgan.batch(), Method::DpFedprox.batch()),
            (256, 64)
        );
    }
}
