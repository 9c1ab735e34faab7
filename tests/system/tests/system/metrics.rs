//! Metrics that `infra/monitoring` uses.

use fhaim_kit::{Backing, NAMES, ServiceOptions, Services, name_of, until};

use super::{PROGRAM, operators::ask};

fn metrics(services: &Services, service: usize) -> String {
    ask(
        &format!("{}/metrics", services.address(service)),
        None,
        None,
    )
    .1
}

/// Returns the value of a metric with these labels.
fn value(metrics: &str, name: &str) -> Option<f64> {
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line?.parse().ok()
}

/// Alerts use the increase of a counter. A counter that first appears with the value 1 has no increase.
#[test]
fn counters_exist_with_zero_before_the_first_event() {
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
        // Gauges are set once the service has asked its peers.
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

/// The second computation service has the handlers of the first one, and services with key shares those of the crypto
/// service.
#[test]
fn metrics_of_services_with_shared_handlers_have_their_own_names() {
    let options = ServiceOptions {
        witness: true,
        keys: 2,
        ..ServiceOptions::new(PROGRAM)
    };
    let services = Services::start_in(&Backing::Local, options);
    for service in services.numbers().skip(NAMES.len()) {
        let own = format!("service=\"{}\"", name_of(service));
        let expected = [
            format!("security_events_total{{{own},event=\"token-refused\"}} 0"),
            format!("security_events_total{{{own},event=\"foreign-id\"}} 0"),
            format!("database_connections{{{own}}} "),
        ];
        // Gauges are set once the service has asked its peers.
        let shown = until(|| {
            let shown = metrics(&services, service);
            match expected.iter().find(|line| !shown.contains(*line)) {
                Some(missing) => Err(format!("{missing}: {shown}")),
                None => Ok(shown),
            }
        });
        let mut foreign = shown.lines().filter(|line| line.contains("service=\""));
        assert_eq!(foreign.find(|line| !line.contains(&own)), None);
    }
}
