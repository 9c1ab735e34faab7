//! The scheduler as a program: Ballista's, with our codec.

use ballista_core::config::TaskSchedulingPolicy;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::start_server;
use fhaim_ballista::codec::Codec;
use fhaim_ballista::config::{MESSAGE_BYTES, Scheduler, Trouble};
use fhaim_ballista::program;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    program::main("fhaim-scheduler", "Hands out the tasks of batches", serve)
}

async fn serve(config: Scheduler) -> Result<(), Trouble> {
    let ballista =
        |error: ballista_core::error::BallistaError| Trouble::Ballista(error.to_string());
    let timeout = config.executor_timeout_seconds;
    let scheduler = SchedulerConfig {
        external_host: config.name,
        bind_host: config.listen.ip().to_string(),
        bind_port: config.listen.port(),
        scheduling_policy: TaskSchedulingPolicy::PullStaged,
        grpc_server_max_decoding_message_size: MESSAGE_BYTES,
        grpc_server_max_encoding_message_size: MESSAGE_BYTES,
        grpc_client_max_message_size: MESSAGE_BYTES,
        executor_timeout_seconds: timeout,
        expire_dead_executor_interval_seconds: (timeout / 4).max(1),
        no_executors_grace_period_seconds: timeout.saturating_mul(3),
        task_max_failures: config.tries,
        stage_max_failures: config.tries,
        override_physical_codec: Some(Arc::new(Codec::default())),
        ..SchedulerConfig::default()
    };
    let cluster = BallistaCluster::new_from_config(&scheduler).await;
    let cluster = cluster.map_err(ballista)?;
    let served = start_server(cluster, config.listen, Arc::new(scheduler)).await;
    served.map_err(ballista)
}
