//! Divides a stage's budget among its items.

/// Divides a stage's budget by [`water_fill`], leaving out items that would get less than `least`.
/// Those would need more noise than the ladder has, and would teach nothing.
pub(super) fn worthwhile_shares(
    budget: f64,
    least: f64,
    weights: &[f64],
    spent: &[f64],
) -> Vec<f64> {
    let mut weights = weights.to_vec();
    loop {
        let shares = water_fill(budget, &weights, spent);
        let small = (0..weights.len()).filter(|&i| weights[i] > 0.0 && shares[i] < least);
        let dropped: Vec<usize> = small.collect();
        if dropped.is_empty() {
            return shares;
        }
        for i in dropped {
            weights[i] = 0.0;
        }
    }
}

/// Spends `budget` so that the total of each item, including earlier spending, is as close as
/// possible to being proportional to its weight: r_i = max(0, level * weight_i - spent_i).
fn water_fill(budget: f64, weights: &[f64], spent: &[f64]) -> Vec<f64> {
    // Items in order of the level at which they start to fill.
    let mut order: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] > 0.0).collect();
    order.sort_by(|&i, &j| (spent[i] / weights[i]).total_cmp(&(spent[j] / weights[j])));
    let (mut weight, mut poured, mut level) = (0.0, budget, 0.0);
    for (position, &i) in order.iter().enumerate() {
        weight += weights[i];
        poured += spent[i];
        level = poured / weight;
        let next = order.get(position + 1);
        if next.is_none_or(|&j| level <= spent[j] / weights[j]) {
            break;
        }
    }
    (0..weights.len())
        .map(|i| (level * weights[i] - spent[i]).max(0.0))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn water_filling_levels_the_totals() {
        let weights = [1.0, 2.0, 4.0, 0.5];
        let spent = [0.3, 0.1, 0.0, 0.9];
        let poured = water_fill(1.0, &weights, &spent);
        assert!((poured.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert_eq!(poured[3], 0.0);
        let level = |i: usize| (poured[i] + spent[i]) / weights[i];
        let filled: Vec<usize> = (0..4).filter(|&i| poured[i] > 0.0).collect();
        for &i in &filled {
            assert!((level(i) - level(filled[0])).abs() < 1e-12);
        }
        for i in (0..4).filter(|i| !filled.contains(i)) {
            assert!(spent[i] / weights[i] >= level(filled[0]));
        }
    }
}
