//! Memory of a service under load. Reads the memory counters of Linux.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

#[path = "service/common/mod.rs"]
mod common;

use common::{Kind, Service};
use futures_util::StreamExt;

const ROWS: usize = 4_000_000;

/// Tests of one process must not measure each other's memory.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Returns a value of this process's memory status, in bytes.
fn status(name: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.unwrap().trim().strip_suffix(" kB").unwrap();
    kilobytes.trim().parse::<usize>().unwrap() << 10
}

/// Returns the peak of resident memory since the last [`forget_peak`], in bytes.
fn peak() -> usize {
    status("VmHWM:")
}

fn forget_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow"]
async fn long_table_is_streamed_in_bounded_memory() {
    let _alone = ALONE.lock().await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow"]
async fn wrong_sign_ins_take_bounded_memory_and_return_it() {
    let _alone = ALONE.lock().await;
    let service = Service::start_working(Kind::Sqlite).await;
    service.user("ana@x.example").await;
    forget_peak();
    let before = status("VmRSS:");
    let tried = (0..60).map(async |number: usize| {
        // Each from another account's allowance.
        let email = format!("nobody{number}@x.example");
        service.sign_in(&email, "not the password").await.status()
    });
    let tried = futures_util::future::join_all(tried).await;
    assert!(tried.iter().all(|status| *status == 401), "{tried:?}");
    let most = (peak() - before) >> 20;
    // Four hashes of 19 MiB at a time.
    assert!(most < 110, "{most} MB more during the sign-ins");
    let began = std::time::Instant::now();
    loop {
        let left = status("VmRSS:").saturating_sub(before) >> 20;
        if left < 20 {
            eprintln!("{most} MB at most, {left} MB after {:?}", began.elapsed());
            return;
        }
        assert!(began.elapsed().as_secs() < 60, "{left} MB are not returned");
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow"]
async fn forty_parquet_draws_of_one_account_take_bounded_memory() {
    let _alone = ALONE.lock().await;
    let service = Service::start_working(Kind::Sqlite).await;
    let ana = service.user("ana@x.example").await;
    let job = ana.done_job().await;
    forget_peak();
    let before = status("VmRSS:");
    let path = format!("/v1/jobs/{}/synthetic?rows={ROWS}&format=parquet", job.id);
    let asked = (0..40).map(|_| ana.send(reqwest::Method::GET, &path, None));
    // The client reads nothing, so that every table stays begun.
    let asked = futures_util::future::join_all(asked).await;
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    let served = asked.iter().filter(|answer| answer.status() == 200);
    let most = (peak() - before) >> 20;
    eprintln!("{} tables, {most} MB", served.count());
    assert!(most < 200, "{most} MB");
}
