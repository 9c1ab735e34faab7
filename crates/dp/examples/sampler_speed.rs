//! Measures the time to draw a noise ladder: nanoseconds per sample by level, and samples per
//! second for a page with all levels.

use std::time::Instant;

use fhaim_dp::{BASE_SCALE, DiscreteGaussian, Ladder, LadderPlan, MAX_LEVELS, PAGE};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

fn main() -> Result<(), fhaim_dp::Error> {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    for level in (0..MAX_LEVELS).step_by(6) {
        let gaussian = DiscreteGaussian::new(BASE_SCALE << level)?;
        let count = 200_000;
        let start = Instant::now();
        let sum: i64 = (0..count).map(|_| gaussian.sample(&mut rng)).sum();
        let nanoseconds = start.elapsed().as_nanos() / count;
        println!("level {level:2}: {nanoseconds} ns per sample (sum {sum})");
    }
    let plan = LadderPlan::new(2 * PAGE, 1 << 48)?;
    let start = Instant::now();
    let ladder = Ladder::draw(plan, &mut rng);
    let rate = plan.samples() as f64 / start.elapsed().as_secs_f64();
    println!("{ladder:?}: {rate:.0} samples per second");
    Ok(())
}
