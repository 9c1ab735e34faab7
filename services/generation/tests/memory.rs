//! A long table is streamed in memory that does not grow with it.
#![allow(clippy::unwrap_used)]

#[path = "service/common/mod.rs"]
mod common;

use common::{Kind, Service};
use futures_util::StreamExt;

const ROWS: usize = 4_000_000;

/// The most resident memory since the last [`forget_peak`], in bytes, where the system tells.
fn peak() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: usize = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kilobytes << 10)
}

fn forget_peak() -> bool {
    std::fs::write("/proc/self/clear_refs", "5").is_ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_table_takes_no_more_memory_than_a_short_one() {
    let service = Service::start_working(Kind::Sqlite).await;
    let ana = service.user("ana@x.example").await;
    let job = ana.done_job().await;
    for format in ["csv", "parquet"] {
        let measured = forget_peak();
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
        let (true, Some(before), Some(after)) = (measured, before, peak()) else {
            eprintln!("skipped: this system does not tell a process' peak memory");
            continue;
        };
        let grown = (after - before) >> 20;
        eprintln!(
            "{format}: {} MB streamed, {grown} MB more memory",
            bytes >> 20
        );
        // Its codes alone would take 76 MB.
        assert!(grown < 48, "{format}: {grown} MB");
    }
}
