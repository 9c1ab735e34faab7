//! A Ballista executor with our operators and codec. It accepts only clients with a certificate.

use arrow_flight::flight_service_server::FlightServiceServer;
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::error::BallistaError;
use ballista_executor::ArrowFlightServerProvider;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_executor::flight_service::BallistaFlightService;
use fhaim_ballista::codec::Codec;
use fhaim_ballista::config::{Executor, MESSAGE_BYTES, Trouble, session};
use fhaim_ballista::program;
use fhaim_ballista::site::Site;
use fhaim_ballista::tls::Identity;
use fhaim_platform::blobs::Blobs;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    program::main("fhaim-executor", "Run tasks of batches", serve)
}

async fn serve(config: Executor) -> Result<(), Trouble> {
    std::fs::create_dir_all(&config.work)?;
    let identity = Identity::read(&config.tls)?;
    let site = Arc::new(Site::new(Blobs::open(&config.blobs)?));
    let host = config.listen.ip().to_string();
    let connects = identity.clone();
    let executor = ExecutorProcessConfig {
        external_host: Some(config.name.unwrap_or_else(|| host.clone())),
        bind_host: host,
        port: config.listen.port(),
        scheduler_host: config.scheduler_host,
        scheduler_port: config.scheduler_port,
        scheduler_connect_timeout_seconds: 60,
        vcores: config.tasks.max(1),
        // Executors poll for tasks, so that others connect to them only for results.
        task_scheduling_policy: TaskSchedulingPolicy::PullStaged,
        work_dir: Some(config.work.to_string_lossy().into_owned()),
        grpc_max_decoding_message_size: MESSAGE_BYTES,
        grpc_max_encoding_message_size: MESSAGE_BYTES,
        executor_heartbeat_interval_seconds: config.heartbeat_seconds,
        memory_pool_size: Some(config.memory_bytes),
        override_create_grpc_client_endpoint: Some(identity.everywhere()),
        override_arrow_flight_service: Some(results(identity)),
        override_config_producer: Some(Arc::new(move || session(&connects))),
        override_physical_codec: Some(Arc::new(Codec::at(site))),
        job_data_ttl_seconds: 24 * 3600,
        job_data_clean_up_interval_seconds: 600,
        ..ExecutorProcessConfig::default()
    };
    let served = start_executor_process(Arc::new(executor)).await;
    served.map_err(|error| Trouble::Ballista(error.to_string()))
}

/// Serves the results in the work folder. Replaces Ballista's own server, which does not support TLS.
fn results(identity: Identity) -> Arc<ArrowFlightServerProvider> {
    Arc::new(move |work, address, mut shutdown, _| {
        let identity = identity.clone();
        tokio::spawn(async move {
            let most = MESSAGE_BYTES as usize;
            let service = FlightServiceServer::new(BallistaFlightService::new(work))
                .max_decoding_message_size(most)
                .max_encoding_message_size(most);
            let server = identity.server();
            let mut server = server.map_err(|error| BallistaError::General(error.to_string()))?;
            let served = server.add_service(service);
            let served = served.serve_with_shutdown(address, shutdown.recv());
            served.await.map_err(BallistaError::TonicError)
        })
    })
}
