//! The methods, over the records of parties.

use clap::ValueEnum;
use fhaim_gan::{
    Examples, Federation, Gan, Model, PrivGan, Privacy, Training, federate, record_sampling, train,
    train_parts,
};
use rand_chacha::ChaCha20Rng;

use crate::args::NetworkArguments;
use crate::failure::Failure;

/// How networks are trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// All records in one place, in the clear
    Central,
    /// Each party alone, in the clear
    Local,
    /// DP-FedAvg GAN without noise
    Federated,
    /// privGAN: each party alone, its records in two parts; no guarantee
    Privgan,
    /// DPGAN: each party alone, every record clipped and noised
    Dpgan,
    /// DP-FedAvg GAN: every party's change clipped and noised
    DpFedavg,
    /// DP-FedProx GAN: the same, parties held back
    DpFedprox,
}

/// Whose budget an epsilon is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Record,
    Party,
}

impl Method {
    /// The name as users write it.
    pub fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Whose budget it keeps; none where it keeps none.
    pub fn unit(self) -> Option<Unit> {
        match self {
            Self::Central | Self::Local | Self::Federated | Self::Privgan => None,
            Self::Dpgan => Some(Unit::Record),
            Self::DpFedavg | Self::DpFedprox => Some(Unit::Party),
        }
    }
}

/// Networks, and what they cost.
pub struct Trained {
    pub model: Model,
    /// Epsilon as accounted: of dpgan the largest party's.
    pub epsilon: Option<f64>,
    /// The largest multiplier of noise.
    pub multiplier: Option<f64>,
}

/// Trains by a method; the budget is (epsilon, delta) where the method keeps one.
pub fn train_by(
    method: Method,
    parties: &[Examples],
    arguments: &NetworkArguments,
    budget: Option<(f64, f64)>,
    rng: &mut ChaCha20Rng,
) -> Result<Trained, Failure> {
    let budget = match (method.unit(), budget) {
        (Some(_), None) => {
            return Err(Failure::Usage(format!("{} needs --epsilon", method.name())));
        }
        (None, Some(_)) => {
            return Err(Failure::Usage(format!(
                "{} keeps no budget: leave out --epsilon",
                method.name()
            )));
        }
        (_, budget) => budget,
    };
    let training = arguments.training();
    match method {
        Method::Central => {
            let all = pool(parties)?;
            let gan = train(&all, &training, None, rng)?;
            plain(vec![gan], &[all.len()])
        }
        Method::Local => {
            let gans = parties
                .iter()
                .map(|party| train(party, &training, None, rng));
            plain(gans.collect::<Result<_, _>>()?, &sizes(parties))
        }
        Method::Privgan => in_parts(parties, &training, arguments.lambda, rng),
        Method::Dpgan => alone_with_noise(parties, &training, arguments.clip, budget, rng),
        Method::Federated | Method::DpFedavg | Method::DpFedprox => {
            together(method, parties, arguments, budget, rng)
        }
    }
}

fn plain(gans: Vec<Gan>, records: &[usize]) -> Result<Trained, Failure> {
    Ok(Trained {
        model: saved(gans, records)?,
        epsilon: None,
        multiplier: None,
    })
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

/// All records in one list.
pub fn pool(parties: &[Examples]) -> Result<Examples, Failure> {
    let (first, others) = parties
        .split_first()
        .ok_or_else(|| Failure::Usage("there is no party".to_owned()))?;
    let joined = others.iter().try_fold(first.clone(), Examples::join);
    Ok(joined?)
}

/// Each party's records in two halves; a party with one record has it in both.
fn in_parts(
    parties: &[Examples],
    training: &Training,
    lambda: f32,
    rng: &mut ChaCha20Rng,
) -> Result<Trained, Failure> {
    let options = PrivGan {
        lambda,
        ..PrivGan::default()
    };
    let (mut gans, mut records) = (Vec::new(), Vec::new());
    for party in parties {
        let half = |odd: usize| -> Vec<usize> {
            (0..party.len())
                .filter(|n| n % 2 == odd % party.len())
                .collect()
        };
        let parts = [party.select(&half(0))?, party.select(&half(1))?];
        gans.extend(train_parts(&parts, training, &options, rng)?);
        records.extend(parts.iter().map(Examples::len));
    }
    plain(gans, &records)
}

fn alone_with_noise(
    parties: &[Examples],
    training: &Training,
    clip: f64,
    budget: Option<(f64, f64)>,
    rng: &mut ChaCha20Rng,
) -> Result<Trained, Failure> {
    let (epsilon, delta) = budget.unwrap_or((0.0, 0.0));
    let (mut gans, mut spent, mut most) = (Vec::new(), 0.0f64, 0.0f64);
    for party in parties {
        let sampling = record_sampling(party, training);
        let multiplier = sampling.multiplier(epsilon, delta)?;
        spent = spent.max(sampling.epsilon(multiplier, delta)?);
        most = most.max(multiplier);
        let privacy = Privacy { clip, multiplier };
        gans.push(train(party, training, Some(&privacy), rng)?);
    }
    Ok(Trained {
        model: saved(gans, &sizes(parties))?,
        // Parties' records are not the same ones: the largest epsilon is everyone's bound.
        epsilon: Some(spent),
        multiplier: Some(most),
    })
}

fn together(
    method: Method,
    parties: &[Examples],
    arguments: &NetworkArguments,
    budget: Option<(f64, f64)>,
    rng: &mut ChaCha20Rng,
) -> Result<Trained, Failure> {
    let training = arguments.training();
    let mut federation = Federation {
        rate: arguments.participation,
        local_steps: arguments.local_steps,
        mu: if method == Method::DpFedprox {
            arguments.mu
        } else {
            0.0
        },
        privacy: None,
    };
    let (mut spent, mut multiplier) = (None, None);
    if let Some((epsilon, delta)) = budget {
        let sampling = federation.sampling(&training);
        let found = sampling.multiplier(epsilon, delta)?;
        (spent, multiplier) = (Some(sampling.epsilon(found, delta)?), Some(found));
        federation.privacy = Some(Privacy {
            clip: arguments.clip,
            multiplier: found,
        });
    }
    let mut participation = fhaim_dp::fork(rng);
    let gan = federate(parties, &training, &federation, (&mut participation, rng))?;
    let all = sizes(parties).iter().sum();
    Ok(Trained {
        model: saved(vec![gan], &[all])?,
        epsilon: spent,
        multiplier,
    })
}
