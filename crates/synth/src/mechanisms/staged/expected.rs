//! What a run can be expected to ask for, by public numbers alone.

use super::extent::most_groups;
use super::options::StagedOptions;
use crate::expected::{Expected, ExpectedBatch};
use crate::mechanisms::block::{functions, pair_cost};
use crate::mechanisms::columns::OneWays;
use fhaim_release::Job;
use std::collections::BTreeSet;

/// Records over the scale of a probe of two groups an attribute: up to the first next to no pair joins the model, from
/// the second on it is as large as it may be. Of seven tables from 286 to 10 million records, at epsilon 1.
const FILLS: [f64; 2] = [20.0, 300.0];

/// The finer probe, of up to eight groups, has about so many times the scale of one of two.
const FINER_SCALE: f64 = 1.75;

/// Of all cells that blocks of up to eight groups may have, a batch asks for this power: of wide attributes the few
/// groups that vary. Of five tables with 144 to 3,888 such cells, within a factor of 1.4.
const RESOLVED: f64 = 0.9;

/// What of all groups a batch's second factors are, and of all pairs the blocks of a stage have variances of their own.
/// Of the same tables.
const FACTORS: f64 = 0.75;
const STAGE_VARIANCES: f64 = 0.35;

/// How far a model will fill its cap: the further, the more the probe's noise is below the number of records.
fn model_share(seen: f64) -> f64 {
    let [first, last] = FILLS;
    ((seen - first) / (last - first)).clamp(0.0, 1.0)
}

/// The total and 1-ways, the probe, and the stages, each of which asks for the 1-ways again.
pub(super) fn expected(job: &Job, options: &StagedOptions, records: usize) -> Expected {
    let pairs = job.workload.pairs().len();
    let cost = pairs as f64 * pair_cost([2, 2]);
    let scale = (cost / (2.0 * options.probe_share * job.rho.to_f64())).sqrt();
    let seen = records as f64 / (job.holders.inflation() * scale);
    let sizes = job.domain.sizes();
    let widths: BTreeSet<usize> = sizes.iter().copied().collect();
    let one_ways = ExpectedBatch {
        sums: OneWays::new(job, options.digit_weight).cells(),
        // The total's, and one for all attributes of one size.
        variances: 1 + widths.len(),
        ..ExpectedBatch::default()
    };
    let wanted: Vec<[usize; 2]> = job
        .workload
        .pairs()
        .iter()
        .map(|pair| pair.attributes.map(|a| sizes[a]))
        .collect();
    let fine =
        most_groups(options, &wanted).filter(|_| seen * options.fine_probe_scale >= FINER_SCALE);
    let fine_probe = fine.is_some();
    let probe = (seen * options.largest_probe_scale >= 1.0).then(|| blocks(job, fine.unwrap_or(2)));
    // A fine probe is asked for in two parts of the same blocks, the first of which is the look.
    let parts = 1 + usize::from(fine_probe && options.first_look > 0.0);
    // Blocks of a probe have one scale, so that one variance goes with two widths.
    let two_widths = job.workload.pairs().iter().map(|pair| {
        let mut widths = pair.attributes.map(|a| job.domain.size(a));
        widths.sort_unstable();
        widths
    });
    let probed = two_widths.collect::<BTreeSet<_>>().len();
    let mut batches = vec![one_ways];
    let mut stage = one_ways;
    if let Some(fine) = probe {
        let part = ExpectedBatch {
            variances: probed.min(fine.products),
            ..fine
        };
        batches.extend(vec![part; parts]);
        // Of a coarse probe half of the pairs are worth more.
        let joined = if seen > FILLS[0] { 1.0 } else { 0.5 };
        stage.products = share(fine.products, joined);
        stage.factors = fine.factors;
        stage.variances += if seen > FILLS[0] {
            share(pairs, STAGE_VARIANCES)
        } else {
            probed
        };
    }
    batches.extend(vec![stage; usize::from(super::options::STAGES)]);
    Expected {
        batches,
        model_share: model_share(seen),
    }
}

/// Blocks of all pairs in at most so many groups an attribute, as many as resolve something.
fn blocks(job: &Job, groups: usize) -> ExpectedBatch {
    let cells = |&attribute: &usize| functions(job.domain.size(attribute).min(groups));
    let pairs = job.workload.pairs().iter();
    let most: usize = pairs
        .map(|pair| pair.attributes.iter().map(cells).product::<usize>())
        .sum();
    let factors: usize = (0..job.domain.len()).map(|a| cells(&a)).sum();
    ExpectedBatch {
        products: if groups == 2 {
            most
        } else {
            (most as f64).powf(RESOLVED) as usize
        },
        factors: share(factors, FACTORS),
        ..ExpectedBatch::default()
    }
}

/// A share of a number, and at least one of any.
fn share(number: usize, share: f64) -> usize {
    ((number as f64 * share) as usize).max(number.min(1))
}
