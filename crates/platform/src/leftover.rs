//! Reading the rest of a request's body before the answer is sent.
//!
//! If a service answers before it has read the whole body and then hangs up, the connection breaks while the caller
//! is still sending. The caller sees a broken pipe, and never learns that its token had expired, or that its object
//! was too large. The rest of the body is therefore read and discarded before the answer is sent, within bounds.

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::header::EXPECT;
use axum::middleware::Next;
use axum::response::Response;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot;

/// Largest number of bytes that is read, more than any object of an upload has.
const MAX_BYTES: u64 = 16 << 20;

/// Time within which the rest must arrive.
const WITHIN: Duration = Duration::from_secs(2);

/// A body that is returned to its lender when its reader has finished with it.
struct Lent {
    body: Option<Body>,
    back: Option<oneshot::Sender<Body>>,
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Body::size_hint).unwrap_or_default()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let (Some(body), Some(back)) = (self.body.take(), self.back.take())
            && !body.is_end_stream()
        {
            // The receiver is gone if the call was abandoned.
            let _ = back.send(body);
        }
    }
}

/// Answers a request, and reads the rest of the body that its handler left before the answer is sent.
pub async fn read_out(request: Request, next: Next) -> Response {
    // A caller with this header sends nothing before it is told to.
    let waits = request.headers().contains_key(EXPECT);
    let (back, mut returned) = oneshot::channel();
    let request = request.map(|body| {
        Body::new(Lent {
            body: Some(body),
            back: Some(back),
        })
    });
    let response = next.run(request).await;
    if let Ok(body) = returned.try_recv()
        && !waits
    {
        // Later bytes are not waited for.
        let _ = tokio::time::timeout(WITHIN, discard(body)).await;
    }
    response
}

/// Reads and discards up to [`MAX_BYTES`].
async fn discard(mut body: Body) {
    let mut left = MAX_BYTES;
    if body.size_hint().lower() > left {
        return;
    }
    while let Some(Ok(frame)) = body.frame().await {
        let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
        match left.checked_sub(bytes) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::http::StatusCode;
    use axum::routing::post;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    /// Without the layer, the connection is closed while the caller sends the second half.
    #[tokio::test]
    async fn caller_that_is_still_sending_gets_the_answer() {
        let refuse = || async { StatusCode::UNAUTHORIZED };
        let routes = Router::new().route("/", post(refuse));
        let routes = routes.layer(axum::middleware::from_fn(read_out));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let mut stream = TcpStream::connect(address).await.unwrap();
        let length = 8 << 20;
        let head = format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let half = vec![b' '; length / 2];
        stream.write_all(&half).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        stream.write_all(&half).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 401");
    }

    #[tokio::test]
    async fn endless_bodies_are_not_read_forever() {
        let endless = futures_util::stream::repeat_with(|| {
            Ok::<_, std::io::Error>(Bytes::from_static(&[0; 1 << 10]))
        });
        discard(Body::from_stream(endless)).await;
    }
}
