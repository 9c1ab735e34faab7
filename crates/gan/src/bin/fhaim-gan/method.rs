//! The methods, over the records of parties.

use clap::ValueEnum;
use fhaim_gan::{
    Examples, Federation, Gan, MAX_PAIRS, MAX_VALUES, Model, PrivGan, Privacy, Training, federate,
    record_sampling, train, train_parts,
};
use rand_chacha::ChaCha20Rng;

use crate::args::NetworkArguments;
use crate::failure::Failure;

/// What flags are where they are not given; their help says so.
const CLIP: f64 = 0.01;
const PARTICIPATION: f64 = 0.1;
const MU: f32 = 0.5;
const LAMBDA: f32 = 1.0;

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

    /// Whether parties train one pair of networks together.
    pub fn is_federated(self) -> bool {
        matches!(self, Self::Federated | Self::DpFedavg | Self::DpFedprox)
    }

    /// Pairs of networks that it trains among so many parties.
    fn pairs(self, parties: usize) -> usize {
        match self {
            Self::Central | Self::Federated | Self::DpFedavg | Self::DpFedprox => 1,
            Self::Local | Self::Dpgan => parties,
            Self::Privgan => parties.saturating_mul(2),
        }
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
    check_size(method, parties, &training)?;
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
        Method::Privgan => in_parts(parties, &training, arguments.lambda.unwrap_or(LAMBDA), rng),
        Method::Dpgan => {
            let clip = arguments.clip.unwrap_or(CLIP);
            alone_with_noise(parties, &training, clip, budget, rng)
        }
        Method::Federated | Method::DpFedavg | Method::DpFedprox => {
            together(method, parties, arguments, budget, rng)
        }
    }
}

/// Refuses more networks than may be in memory, or in a file.
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
        "{pairs} pairs of networks of {parameters} parameters each are too many: there may be {MAX_PAIRS} pairs, and \
         {MAX_VALUES} parameters together; take fewer --parties, or smaller --hidden or --filters"
    )))
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
    let (mut noise, mut spent, mut most) = (Vec::new(), 0.0f64, 0.0f64);
    // Of all parties before any trains: one that no noise protects keeps all of them from it.
    for party in parties {
        let sampling = record_sampling(party, training);
        let multiplier = sampling.multiplier(epsilon, delta)?;
        let privacy = Privacy { clip, multiplier };
        privacy.check()?;
        spent = spent.max(sampling.epsilon(multiplier, delta)?);
        most = most.max(multiplier);
        noise.push(privacy);
    }
    let trained = parties.iter().zip(&noise);
    let gans = trained.map(|(party, privacy)| train(party, training, Some(privacy), rng));
    let gans = gans.collect::<Result<_, _>>()?;
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
        rate: arguments.participation.unwrap_or(PARTICIPATION),
        local_steps: arguments.local_steps.unwrap_or(1),
        mu: match method {
            Method::DpFedprox => arguments.mu.unwrap_or(MU),
            _ => 0.0,
        },
        privacy: None,
    };
    let (mut spent, mut multiplier) = (None, None);
    if let Some((epsilon, delta)) = budget {
        let sampling = federation.sampling(&training);
        let found = sampling.multiplier(epsilon, delta)?;
        (spent, multiplier) = (Some(sampling.epsilon(found, delta)?), Some(found));
        let privacy = Privacy {
            clip: arguments.clip.unwrap_or(CLIP),
            multiplier: found,
        };
        privacy.check()?;
        federation.privacy = Some(privacy);
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
