//! An executor as a program: Ballista's, with our operators and codec.

use ballista_core::config::TaskSchedulingPolicy;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use fhaim_ballista::codec::Codec;
use fhaim_ballista::config::{Executor, MESSAGE_BYTES, Trouble};
use fhaim_ballista::program;
use fhaim_ballista::site::Site;
use fhaim_platform::blobs::Blobs;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    program::main("fhaim-executor", "Computes tasks of batches", serve)
}

async fn serve(config: Executor) -> Result<(), Trouble> {
    std::fs::create_dir_all(&config.work)?;
    let site = Arc::new(Site::new(Blobs::open(&config.blobs)?));
    let host = config.listen.ip().to_string();
    let executor = ExecutorProcessConfig {
        external_host: Some(config.name.unwrap_or_else(|| host.clone())),
        bind_host: host,
        port: config.listen.port(),
        scheduler_host: config.scheduler_host,
        scheduler_port: config.scheduler_port,
        scheduler_connect_timeout_seconds: 60,
        vcores: config.tasks.max(1),
        task_scheduling_policy: TaskSchedulingPolicy::PullStaged,
        work_dir: Some(config.work.to_string_lossy().into_owned()),
        grpc_max_decoding_message_size: MESSAGE_BYTES,
        grpc_max_encoding_message_size: MESSAGE_BYTES,
        executor_heartbeat_interval_seconds: config.heartbeat_seconds,
        memory_pool_size: Some(config.memory_bytes),
        override_config_producer: Some(Arc::new(fhaim_ballista::config::session)),
        override_physical_codec: Some(Arc::new(Codec::at(site))),
        job_data_ttl_seconds: 24 * 3600,
        job_data_clean_up_interval_seconds: 600,
        ..ExecutorProcessConfig::default()
    };
    let served = start_executor_process(Arc::new(executor)).await;
    served.map_err(|error| Trouble::Ballista(error.to_string()))
}
