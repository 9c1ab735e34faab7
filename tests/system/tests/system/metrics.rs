//! What `infra/monitoring` asks for is there, and counts.

use fhaim_kit::{Backing, NAMES, Services, until};

use super::{PROGRAM, operators::ask};

fn metrics(services: &Services, service: usize) -> String {
    ask(
        &format!("{}/metrics", services.address(service)),
        None,
        None,
    )
    .1
}

/// The value of a metric with its labels.
fn value(metrics: &str, name: &str) -> Option<f64> {
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line?.parse().ok()
}

/// Rules and committees ask how much a counter grew: one that is first seen at 1 grew by nothing.
#[test]
fn counters_are_there_before_there_is_anything_to_count() {
    let services = Services::start(PROGRAM, &Backing::Local);
    let attempts = |task: &str| {
        ["done", "lost", "failed", "fault", "outage"]
            .map(|end| format!("task_attempts_total{{task=\"{task}\",end=\"{end}\"}}"))
    };
    let refused = ["refused", "frozen", "restored", "deleted"]
        .map(|end| format!("decryptions_refused_total{{end=\"{end}\"}}"));
    let at_accounts = ["sign-in-failed", "sign-in-limited", "key-refused"]
        .map(|event| format!("security_events_total{{service=\"generation\",event=\"{event}\"}}"));
    let batches =
        ["_count", "_bucket{le=\"600\"}"].map(|end| format!("batch_compute_seconds{end}"));
    let own: [Vec<String>; 3] = [
        [&attempts("job")[..], &at_accounts].concat(),
        [&attempts("batch")[..], &batches].concat(),
        [
            &refused[..],
            &[
                "releases_debited_total".to_owned(),
                "datasets_debited".to_owned(),
            ],
        ]
        .concat(),
    ];
    for (service, name) in NAMES.iter().enumerate() {
        let anyone = ["token-refused", "foreign-id"]
            .map(|event| format!("security_events_total{{service=\"{name}\",event=\"{event}\"}}"));
        // Those that are gauges are set when the service has asked its peers.
        until(|| {
            let shown = metrics(&services, service);
            match anyone
                .iter()
                .chain(&own[service])
                .find(|name| value(&shown, name) != Some(0.0))
            {
                Some(missing) => Err(format!("{missing}: {shown}")),
                None => Ok(()),
            }
        });
    }
}
