//! Connections whose clients do not read their answers: the system closes them after a while.
//!
//! Otherwise a caller that asks for much and reads nothing would keep its place forever, without any right to it. A
//! caller that reads a little now and then keeps its place, because there is no minimum rate for answers.

use std::time::Duration;

use tokio::net::TcpStream;

/// Time within which the client must acknowledge sent or waiting data.
const TAKEN_WITHIN: Duration = if cfg!(test) {
    Duration::from_secs(1)
} else {
    Duration::from_secs(120)
};

/// Makes the system close a connection if the client has acknowledged nothing for two minutes, where the system
/// supports this (TCP_USER_TIMEOUT, which also counts a window that stays closed).
pub fn limit(stream: &TcpStream) {
    #[cfg(target_os = "linux")]
    {
        let milliseconds = TAKEN_WITHIN.as_millis() as u32;
        // If this fails, the connection works without the limit.
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
        // A refused connection may be closed already.
        let _ = stream.write_all(request.as_bytes()).await;
        Ok(stream)
    }

    /// A client that asks for large answers on every connection and reads nothing must not shut others out.
    #[tokio::test]
    async fn caller_that_reads_nothing_loses_its_place() {
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
        assert!(
            answer.ends_with("well"),
            "the second caller was never answered: {answer:?}"
        );
        drop(unread);
    }
}
