//! Logs and metrics.

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::sync::OnceLock;
use tracing_subscriber::EnvFilter;

use crate::config::Log;

/// Bounds of the latency histogram, in seconds.
const LATENCIES: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
];

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
                .install_recorder()
                .ok()
        })
        .as_ref()
}
