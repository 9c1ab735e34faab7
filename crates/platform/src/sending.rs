//! Answers that nobody takes in: their connections are closed by the system after a while.
//!
//! A caller that asks for much and reads nothing would else keep its place for good, without any right.
//! Who reads a little now and then keeps it: what is sent has no pace that it must have.

use std::time::Duration;

use tokio::net::TcpStream;

/// What was sent, or waits to be, is taken in so soon.
const TAKEN_WITHIN: Duration = if cfg!(test) {
    Duration::from_secs(1)
} else {
    Duration::from_secs(120)
};

/// Has a connection closed once nothing that is sent on it was taken in for two minutes, where the
/// system can do that (TCP_USER_TIMEOUT, which counts a window that stays shut too).
pub fn limit(stream: &TcpStream) {
    #[cfg(target_os = "linux")]
    {
        let milliseconds = TAKEN_WITHIN.as_millis() as u32;
        // Without it a connection is as good as before.
        let _ = rustix::net::sockopt::set_tcp_user_timeout(stream, milliseconds);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (stream, TAKEN_WITHIN);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use axum::{Router, routing::get};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    async fn ask(address: std::net::SocketAddr, path: &str) -> std::io::Result<TcpStream> {
        let mut stream = TcpStream::connect(address).await?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        // Where it is refused it may be closed already.
        let _ = stream.write_all(request.as_bytes()).await;
        Ok(stream)
    }

    /// Whoever asked for something large on every connection there is, and read none of it, shut
    /// everybody else out.
    #[tokio::test]
    async fn who_reads_nothing_keeps_no_place() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = Router::new()
            .route("/", get(|| async { "well" }))
            .route("/large", get(|| async { vec![0u8; 64 << 20] }));
        let (_stopper, signal) = crate::shutdown::channel();
        tokio::spawn(crate::connections::serve(listener, routes, 1, signal));
        let unread = ask(address, "/large").await.unwrap();
        let mut answer = String::new();
        for _ in 0..40 {
            tokio::time::sleep(Duration::from_millis(250)).await;
            let mut asking = ask(address, "/").await.unwrap();
            // Refused with a reset while the place is taken.
            let _ = asking.read_to_string(&mut answer).await;
            if answer.ends_with("well") {
                break;
            }
        }
        assert!(answer.ends_with("well"), "nobody is let in: {answer:?}");
        drop(unread);
    }
}
