//! Checks that runs with contradictory releases end with an error that contains the releases.

use fhaim_domain::{Domain, Schema};
use fhaim_dp::Rho;
use fhaim_release::{MechanismJob, MechanismRun, ReleaseRequest, ReleaseSource, SourceError};
use fhaim_synth::{Error, MechanismName, drive};

/// Answers with large integers that no table can have.
struct Contradictory;

impl ReleaseSource for Contradictory {
    fn release(&mut self, requests: &[ReleaseRequest]) -> Result<Vec<Vec<i64>>, SourceError> {
        let answer = |request: &ReleaseRequest| {
            let cells = request.statistic.cells() as i64;
            let cell = |cell| 1_000_000 * (1 - 2 * ((cell + i64::from(request.number)) % 2));
            (0..cells).map(cell).collect()
        };
        Ok(requests.iter().map(answer).collect())
    }
}

#[test]
fn contradictory_releases_end_with_an_error_that_keeps_them() {
    for name in ["staged", "fhaim-l2"] {
        let mechanism: MechanismName = name.parse().unwrap();
        let rho = Rho::from_f64_down(0.1).unwrap();
        let job = MechanismJob::new(Domain::new(vec![4, 3, 5]), rho, 1000);
        let run =
            MechanismRun::new(mechanism.start(job.clone()).unwrap(), job, Vec::new()).unwrap();
        let error = drive(run, &mut Contradictory, &mut |_| {}).unwrap_err();
        let Error::Unfitted(unfitted) = error else {
            panic!("{name}: {error}");
        };
        assert!(unfitted.loss > unfitted.values as f64);
        assert!(unfitted.releases.len() >= 3, "{}", unfitted.releases.len());
        let costs = unfitted.releases.iter().map(|release| release.rho);
        assert_eq!(Rho::checked_sum(costs), Some(unfitted.spent));
        let columns = ["age", "sex", "ward"].map(|column| {
            format!(r#"{{"name": "{column}", "kind": "categorical", "categories": ["a", "b", "c", "d", "e"]}}"#)
        });
        let schema = format!(r#"{{"name": "t", "columns": [{}]}}"#, columns.join(","));
        let schema = Schema::from_json("t", schema.as_bytes()).unwrap();
        let text = unfitted.describe(&schema);
        assert!(text.contains("the columns that differ most are "), "{text}");
        let named = ["age", "sex", "ward"].map(|column| text.contains(column));
        assert!(named.contains(&true), "{text}");
    }
}
