//! Logs and metrics.

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::sync::OnceLock;
use tracing_subscriber::EnvFilter;

use crate::config::Log;

/// Bounds of the latency histogram, in seconds.
const LATENCIES: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
];

/// Bounds of the histogram of a batch's computation, in seconds. Batches of large tables take minutes.
const COMPUTATIONS: [f64; 10] = [0.1, 0.5, 1.0, 2.5, 5.0, 15.0, 30.0, 60.0, 180.0, 600.0];

/// Sends logs to standard error. Only the first call in a process has an effect.
pub fn log(config: &Log) {
    let filter = config.filter.as_deref().unwrap_or("info,sqlx=warn");
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // An error means that logs are set up already.
    let _ = if config.json {
        builder.json().try_init()
    } else {
        builder.with_target(false).try_init()
    };
}

/// Returns the process's metrics, for `/metrics`. All services of one process share them, and their `service` labels
/// differ.
pub fn metrics() -> Option<&'static PrometheusHandle> {
    static HANDLE: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
    HANDLE
        .get_or_init(|| {
            PrometheusBuilder::new()
                .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &LATENCIES)
                .ok()?
                // A full name takes precedence over a suffix.
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
    // A histogram is shown once it has been requested.
    let _ = metrics::histogram!(histogram);
}

/// Shows a counter as zero before there is anything to count. Prometheus sees growth only between two values, so a
/// rule on growth would never notice a counter that first appears as 1.
pub fn announce(counter: &'static str, labels: &[(&'static str, &'static str)]) {
    // Counters that are used before the recorder is installed are lost.
    let _ = metrics();
    metrics::counter!(counter, labels).increment(0);
}
