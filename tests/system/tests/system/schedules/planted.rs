//! Planted losses and repetitions, which the checks must find.

use std::{collections::BTreeSet, fs, mem, time::Instant};

use fhaim_kit::Backing;
use fhaim_protocol::crypto::chain::Act;

use super::{
    COMPUTATION, CRYPTO, SetBack, Stage, chains,
    plan::Setup,
    users::{DatasetRecord, User},
    verdict,
};
use crate::operators::on_database;

/// Returns a dataset with the results of one job.
fn used(user: &User<'_>, name: &str) -> DatasetRecord {
    let mut record = user.create(0, None, name);
    user.job(&mut record).unwrap();
    record
}

/// Checks a dataset, and returns the findings.
fn findings(stage: &Stage, user: &User<'_>, mut record: DatasetRecord) -> Vec<String> {
    verdict::judge_dataset(stage, user, &mut record);
    mem::take(&mut *stage.findings.lock().unwrap())
}

fn assert_names(findings: &[String], words: &str) {
    assert!(
        findings.iter().any(|finding| finding.contains(words)),
        "{words}: {findings:?}"
    );
}

#[test]
#[ignore = "slow; needs mount and faketime"]
fn planted_losses_and_repetitions_are_found() {
    let setup = Setup {
        seed: 0,
        users: 1,
        witness: false,
        keys: 1,
        is_joint: false,
        sets_back: false,
        begins_with_jobs: false,
    };
    let stage = Stage::new(setup, &Backing::Local);
    let user = User::new(&stage, "ana");
    let [whole, lost, wrong, forgotten] =
        ["whole", "lost", "wrong", "forgotten"].map(|name| used(&user, name));
    *stage.quiet.lock().unwrap() = Some(Instant::now());

    let positions = stage_with_doubled_position(&stage, &whole);
    assert_names(&positions, "a position served two releases");

    let uploads = stage.services.home(COMPUTATION).join("blobs/uploads");
    fs::remove_dir_all(uploads.join(&lost.dataset)).unwrap();
    let integer = format!(
        "UPDATE chain SET answers = replace(answers, '[[', '[[1') \
         WHERE dataset = '{}' AND kind = 'released'",
        wrong.dataset
    );
    assert!(on_database(&stage.services, CRYPTO, &integer).0 > 0);
    let last = format!(
        "DELETE FROM chain WHERE dataset = '{0}' \
         AND height = (SELECT max(height) FROM chain WHERE dataset = '{0}')",
        forgotten.dataset
    );
    assert_eq!(on_database(&stage.services, CRYPTO, &last).0, 1);
    // The service has the datasets in memory.
    for service in [COMPUTATION, CRYPTO] {
        stage.services.kill(service);
        stage.services.launch(service);
    }
    stage.services.wait_until_ready();

    assert_eq!(findings(&stage, &user, whole), Vec::<String>::new());
    assert_names(&findings(&stage, &user, lost), "is refused without a loss");
    assert_names(&findings(&stage, &user, wrong), "are wrong");
    assert_names(
        &findings(&stage, &user, forgotten),
        "is refused without a loss",
    );
}

/// Adds an earlier ledger in which another release has the position of a dataset's last release, and returns the findings.
fn stage_with_doubled_position(stage: &Stage, record: &DatasetRecord) -> Vec<String> {
    let mut before = chains::read(&stage.services, CRYPTO);
    let acts = before.get_mut(&record.dataset).unwrap();
    let Some(Act::Released { entries, .. }) = acts.last_mut() else {
        panic!("the last act is no release");
    };
    entries[0].debit.digest[0] ^= 1;
    stage.set_backs.lock().unwrap().push(SetBack {
        service: CRYPTO,
        copied: Instant::now(),
        at: Instant::now(),
        before,
        lost: BTreeSet::new(),
    });
    verdict::judge_positions(stage, std::slice::from_ref(record));
    stage.set_backs.lock().unwrap().clear();
    mem::take(&mut *stage.findings.lock().unwrap())
}
