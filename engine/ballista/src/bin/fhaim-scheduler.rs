//! A Ballista scheduler with our codec. It accepts only clients with a certificate.

use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpcServer;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::create_scheduler;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use fhaim_ballista::codec::Codec;
use fhaim_ballista::config::{MESSAGE_BYTES, Scheduler, Trouble};
use fhaim_ballista::program;
use fhaim_ballista::tls::Identity;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    program::main("fhaim-scheduler", "Schedule tasks of batches", serve)
}

/// Runs the scheduler's server. Ballista's own server does not support TLS, and has more routes than executors and the
/// computation service need.
async fn serve(config: Scheduler) -> Result<(), Trouble> {
    let ballista =
        |error: ballista_core::error::BallistaError| Trouble::Ballista(error.to_string());
    let identity = Identity::read(&config.tls)?;
    let timeout = config.executor_timeout_seconds;
    let scheduler = SchedulerConfig {
        external_host: config.name,
        bind_host: config.listen.ip().to_string(),
        bind_port: config.listen.port(),
        scheduling_policy: TaskSchedulingPolicy::PullStaged,
        grpc_server_max_decoding_message_size: MESSAGE_BYTES,
        grpc_server_max_encoding_message_size: MESSAGE_BYTES,
        grpc_client_max_message_size: MESSAGE_BYTES,
        use_tls: true,
        override_create_grpc_client_endpoint: Some(identity.everywhere()),
        executor_timeout_seconds: timeout,
        expire_dead_executor_interval_seconds: (timeout / 4).max(1),
        no_executors_grace_period_seconds: timeout.saturating_mul(3),
        task_max_failures: config.tries,
        stage_max_failures: config.tries,
        override_physical_codec: Some(Arc::new(Codec::default())),
        ..SchedulerConfig::default()
    };
    scheduler.validate().map_err(ballista)?;
    let cluster = BallistaCluster::new_from_config(&scheduler).await;
    let cluster = cluster.map_err(ballista)?;
    let scheduler =
        create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, Arc::new(scheduler));
    let most = MESSAGE_BYTES as usize;
    let service = SchedulerGrpcServer::new(scheduler.await.map_err(ballista)?)
        .max_decoding_message_size(most)
        .max_encoding_message_size(most);
    let served = identity.server()?.add_service(service).serve(config.listen);
    let served = served.await;
    served.map_err(|error| Trouble::Ballista(error.to_string()))
}
