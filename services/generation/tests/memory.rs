//! A long table is streamed in bounded memory. Reads the memory counters of Linux.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

#[path = "service/common/mod.rs"]
mod common;

use common::{Kind, Service};
use futures_util::StreamExt;

const ROWS: usize = 4_000_000;

/// Returns the peak of resident memory since the last [`forget_peak`], in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let kilobytes = line.trim().strip_suffix(" kB").unwrap();
    kilobytes.trim().parse::<usize>().unwrap() << 10
}

fn forget_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow"]
async fn long_table_is_streamed_in_bounded_memory() {
    let service = Service::start_working(Kind::Sqlite).await;
    let ana = service.user("ana@x.example").await;
    let job = ana.done_job().await;
    for format in ["csv", "parquet"] {
        forget_peak();
        let before = peak();
        let path = format!("/v1/jobs/{}/synthetic?rows={ROWS}&format={format}", job.id);
        let response = ana.send(reqwest::Method::GET, &path, None).await;
        let (mut bytes, mut lines) = (0, 0);
        let mut body = response.bytes_stream();
        while let Some(piece) = body.next().await {
            let piece = piece.unwrap();
            bytes += piece.len();
            lines += piece.iter().filter(|&&byte| byte == b'\n').count();
        }
        if format == "csv" {
            assert_eq!(lines, ROWS + 1);
        }
        let grown = (peak() - before) >> 20;
        eprintln!(
            "{format}: {} MB streamed, {grown} MB more memory",
            bytes >> 20
        );
        // The codes of the table would take 76 MB.
        assert!(grown < 48, "{format}: {grown} MB");
    }
}
