//! A bounded pipe from a blocking writer thread to an asynchronous reader.

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use std::io::{self, Write};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Size of a piece in bytes.
const PIECE: usize = 64 << 10;

/// Number of pieces that may wait for the reader.
const PIECES: usize = 8;

/// Time without a read after which the reader counts as gone.
const STALL: Duration = Duration::from_secs(60);

enum Piece {
    Bytes(Bytes),
    /// The writer has finished. Without this piece, the stream ends with an error.
    End,
}

/// The writing end, for a thread that may block.
pub struct Pipe {
    sender: Sender<Piece>,
    runtime: Handle,
    piece: Vec<u8>,
}

/// Makes a pipe. Must be called within the runtime.
pub fn pipe() -> (Pipe, impl Stream<Item = io::Result<Bytes>> + Send + 'static) {
    let (sender, receiver) = mpsc::channel(PIECES);
    let pipe = Pipe {
        sender,
        runtime: Handle::current(),
        piece: Vec::with_capacity(PIECE),
    };
    (pipe, stream::unfold(Some(receiver), read))
}

async fn read(
    receiver: Option<Receiver<Piece>>,
) -> Option<(io::Result<Bytes>, Option<Receiver<Piece>>)> {
    let mut receiver = receiver?;
    match receiver.recv().await {
        Some(Piece::Bytes(bytes)) => Some((Ok(bytes), Some(receiver))),
        Some(Piece::End) => None,
        None => Some((Err(io::Error::other("the table is incomplete")), None)),
    }
}

impl Pipe {
    /// Sends the remaining bytes and the end marker.
    ///
    /// # Errors
    /// The reader has gone.
    pub fn finish(mut self) -> io::Result<()> {
        self.send_piece()?;
        self.send(Piece::End)
    }

    fn send_piece(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE));
        self.send(Piece::Bytes(piece.into()))
    }

    fn send(&self, piece: Piece) -> io::Result<()> {
        let sent = self
            .runtime
            .block_on(self.sender.send_timeout(piece, STALL));
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(PIECE - self.piece.len());
        self.piece.extend_from_slice(&bytes[..taken]);
        if self.piece.len() == PIECE {
            self.send_piece()?;
        }
        Ok(taken)
    }

    /// Pieces are sent when they are full, and the last by [`Pipe::finish`].
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt;
    use tokio::task::spawn_blocking;

    #[tokio::test]
    async fn written_bytes_arrive_in_order() {
        let sent: Vec<u8> = (0..1_000_000u32).map(|i| (i % 251) as u8).collect();
        let (mut pipe, stream) = pipe();
        let copy = sent.clone();
        let writing = spawn_blocking(move || {
            pipe.write_all(&copy)?;
            pipe.finish()
        });
        let pieces: Vec<io::Result<Bytes>> = stream.collect().await;
        writing.await.unwrap().unwrap();
        let received: Vec<u8> = pieces
            .into_iter()
            .flat_map(|piece| piece.unwrap())
            .collect();
        assert_eq!(received, sent);
    }

    #[tokio::test]
    async fn stream_of_an_unfinished_writer_ends_with_an_error() {
        let (mut pipe, stream) = pipe();
        spawn_blocking(move || pipe.write_all(&[0; PIECE + 1]))
            .await
            .unwrap()
            .unwrap();
        let pieces: Vec<io::Result<Bytes>> = stream.collect().await;
        assert_eq!(pieces.len(), 2);
        assert!(pieces[0].is_ok());
        let broken = pieces[1].as_ref().unwrap_err();
        assert_eq!(broken.to_string(), "the table is incomplete");
    }

    #[tokio::test]
    async fn writer_without_a_reader_gets_broken_pipe() {
        let (mut pipe, stream) = pipe();
        drop(stream);
        let written = spawn_blocking(move || pipe.write_all(&[0; PIECE]))
            .await
            .unwrap();
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
