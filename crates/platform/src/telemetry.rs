//! Logs and metrics.

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::sync::OnceLock;
use tracing_subscriber::EnvFilter;

use crate::config::Log;

/// Bounds of the latency histogram, in seconds.
const LATENCIES: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
];

/// Bounds of the histogram of a batch's computation, in seconds: a large table's take minutes.
const COMPUTATIONS: [f64; 10] = [0.1, 0.5, 1.0, 2.5, 5.0, 15.0, 30.0, 60.0, 180.0, 600.0];

/// Sends logs to standard error; the first call in a process decides how.
pub fn log(config: &Log) {
    let filter = config.filter.as_deref().unwrap_or("info,sqlx=warn");
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // An error says that logs are set up already.
    let _ = if config.json {
        builder.json().try_init()
    } else {
        builder.with_target(false).try_init()
    };
}

/// The process's metrics, for `/metrics`. All services of one process share them, apart by their
/// `service` label.
pub fn metrics() -> Option<&'static PrometheusHandle> {
    static HANDLE: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
    HANDLE
        .get_or_init(|| {
            PrometheusBuilder::new()
                .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &LATENCIES)
                .ok()?
                // A full name comes before the suffix that it has.
                .set_buckets_for_metric(
                    Matcher::Full("batch_compute_seconds".to_owned()),
                    &COMPUTATIONS,
                )
                .ok()?
                .install_recorder()
                .ok()
        })
        .as_ref()
}

/// Shows a histogram before there is anything to record.
pub fn announce_histogram(histogram: &'static str) {
    let _ = metrics();
    // What is asked for is shown.
    let _ = metrics::histogram!(histogram);
}

/// Shows a counter at nought before there is anything to count. Prometheus sees a counter grow only
/// between two values: of one that appears as 1, a rule on its growth never learns.
pub fn announce(counter: &'static str, labels: &[(&'static str, &'static str)]) {
    // Before the recorder is there, counters are counted nowhere.
    let _ = metrics();
    metrics::counter!(counter, labels).increment(0);
}
