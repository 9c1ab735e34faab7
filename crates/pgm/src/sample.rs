//! Synthetic records by rounding.

use rand::Rng;
use rand::seq::SliceRandom;

use crate::Model;
use crate::propagation::NodePlan;

impl Model {
    /// Columns of `records` synthetic records, by attribute.
    ///
    /// From the roots of the junction tree down, the records that share a separator state are
    /// spread over the states of the node's other attributes in proportion to their conditional
    /// probability, rounded (McKenna et al. 2022, appendix on synthetic data generation): a state
    /// that expects x of them gets floor(x) or ceil(x), by systematic sampling with one uniform
    /// start, so on average exactly x; so does every run of states, hence every value of the
    /// node's first attribute. Which record of the group gets which state is shuffled.
    pub fn sample<R: Rng + ?Sized>(&self, records: usize, rng: &mut R) -> Vec<Vec<u32>> {
        let ranks = self.tree.rank.len();
        let mut by_rank = vec![vec![0u32; records]; ranks];
        for (node, plan) in self.propagation.nodes().iter().enumerate() {
            let marginal = self.beliefs.node(plan, node);
            let mut groups = group_by_separator(plan, &by_rank, records);
            let blocks = marginal.chunks_exact(plan.block().max(1));
            for (block, group) in blocks.zip(&mut groups) {
                group.shuffle(rng);
                let counts = spread(block, group.len(), rng);
                assign(plan, group, counts, &mut by_rank);
            }
        }
        let columns = self.tree.rank.iter();
        columns
            .map(|&rank| std::mem::take(&mut by_rank[rank]))
            .collect()
    }
}

/// The records of each separator state.
fn group_by_separator(plan: &NodePlan, by_rank: &[Vec<u32>], records: usize) -> Vec<Vec<u32>> {
    let separator = &plan.axes[..plan.separator];
    let mut groups = vec![Vec::new(); separator.iter().map(|axis| axis.size).product()];
    let mut states = vec![0; records];
    for axis in separator {
        let values = states.iter_mut().zip(&by_rank[axis.rank]);
        values.for_each(|(state, &value)| *state = *state * axis.size + value as usize);
    }
    for (record, &state) in states.iter().enumerate() {
        groups[state].push(record as u32);
    }
    groups
}

/// Splits `count` records over states in proportion to `weights`, each to within one of its
/// share: (state, records) for states that get any.
fn spread<R: Rng + ?Sized>(weights: &[f64], count: usize, rng: &mut R) -> Vec<(usize, usize)> {
    let mut counts = Vec::new();
    if count == 0 {
        return counts;
    }
    let sum: f64 = weights.iter().sum();
    // A group that the model deems impossible can only come of underflow; any state will do.
    let share = |w: f64| {
        if sum > 0.0 {
            w / sum * count as f64
        } else {
            count as f64 / weights.len() as f64
        }
    };
    let start: f64 = rng.random();
    let (mut reached, mut given) = (start, 0);
    for (state, &weight) in weights.iter().enumerate() {
        reached += share(weight);
        let upto = (reached as usize).min(count);
        if upto > given {
            counts.push((state, upto - given));
            given = upto;
        }
    }
    // Rounding may leave the sum of shares a hair short of the count.
    if let Some(last) = counts.last_mut() {
        last.1 += count - given;
    } else {
        let top = (0..weights.len()).max_by(|&a, &b| weights[a].total_cmp(&weights[b]));
        counts.push((top.unwrap_or(0), count));
    }
    counts
}

/// Writes the states of the node's own attributes to the records of a group, in order.
fn assign(plan: &NodePlan, group: &[u32], counts: Vec<(usize, usize)>, by_rank: &mut [Vec<u32>]) {
    let mut records = group.iter();
    for (state, count) in counts {
        let (mut rest, mut values) = (state, Vec::new());
        for axis in plan.axes[plan.separator..].iter().rev() {
            values.push((axis.rank, (rest % axis.size) as u32));
            rest /= axis.size;
        }
        for &record in records.by_ref().take(count) {
            for &(rank, value) in &values {
                by_rank[rank][record as usize] = value;
            }
        }
    }
}
