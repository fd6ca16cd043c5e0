//! The socket: messages in, messages out, both at the same time in one task.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::frame::{self, Decoder, Frame};
use super::intake::{Intake, Looked};
use crate::guard::memory_budget::Charge;

/// Why a connection ends, as its other end is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseCode(pub u16);

impl CloseCode {
    pub const NORMAL: Self = Self(1000);
    pub const GOING_AWAY: Self = Self(1001);
    pub const PROTOCOL: Self = Self(1002);
    pub const NOT_TEXT: Self = Self(1007);
    pub const POLICY: Self = Self(1008);
    pub const TOO_LARGE: Self = Self(1009);
    pub const TRY_AGAIN_LATER: Self = Self(1013);
}

pub struct WebSocket<S> {
    io: S,
    decoder: Decoder,
    intake: Intake,
    /// What is to be written, from the front.
    out: BytesMut,
    closing: Closing,
}

/// How far the closing handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    No,
    /// Our Close was written: nothing goes out after it.
    Sent,
    /// Both ends have sent theirs.
    Done,
}

/// What came of reading.
#[derive(Debug)]
pub enum Received {
    Text(String),
    /// A sign of life that needs nothing done.
    Sign,
    /// A message has begun whose end has not come: [`WebSocket::message_due`] says how long it may take.
    Begun,
    Ended(Arrived),
}

/// How the other end left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// It said goodbye.
    Close,
    /// It broke the standard and is told this.
    Broken(CloseCode),
    /// The connection is gone.
    Lost,
}

/// One read. On the stack, so that a socket that waits holds none.
const READ: usize = 16 << 10;

/// Buffers of this size are kept for the next socket that writes as much; small ones are cheap.
const LEAST_SPARE: usize = 16 << 10;
const MOST_SPARE: usize = 1 << 20;

thread_local! {
    /// The buffer that the last socket of this thread has written. A socket that waits holds none, and memory that was
    /// given back would have to be asked for again, page by page.
    static WRITTEN: Cell<BytesMut> = Cell::default();
}

impl<S: AsyncRead + AsyncWrite + Unpin> WebSocket<S> {
    /// `limit` is the largest message that the other end may send; `charge` is what holds it until its end comes.
    pub fn new(io: S, limit: usize, charge: Charge) -> Self {
        Self {
            io,
            decoder: Decoder::new(limit),
            intake: Intake::new(charge),
            out: BytesMut::new(),
            closing: Closing::No,
        }
    }

    /// By when the message that is coming must have come, or have found room.
    pub fn message_due(&self) -> Option<Instant> {
        self.intake.due()
    }

    /// Why the message that is coming is given up when it is due.
    pub fn message_overdue(&self) -> (CloseCode, &'static str) {
        self.intake.overdue()
    }

    /// Gives the message that is coming its whole time again: it was not read meanwhile.
    pub fn restart_message_clock(&mut self) {
        self.intake.restart_clock();
    }

    /// Where whole frames are appended: a head by [`super::write_header`], then its message.
    pub fn out(&mut self) -> &mut BytesMut {
        &mut self.out
    }

    /// Makes room for so many bytes.
    pub fn reserve(&mut self, bytes: usize) {
        if self.out.capacity() == 0 && bytes >= LEAST_SPARE {
            self.out = WRITTEN.take();
        }
        self.out.reserve(bytes);
    }

    /// Bytes that the other end has not taken.
    pub fn behind(&self) -> usize {
        self.out.len()
    }

    pub fn send(&mut self, message: &[u8]) {
        if self.closing == Closing::No {
            frame::write_header(&mut self.out, message.len());
            self.out.extend_from_slice(message);
        }
    }

    pub fn ping(&mut self) {
        if self.closing == Closing::No {
            frame::write_ping(&mut self.out);
        }
    }

    /// Says why it ends, once. Nothing goes out after it.
    pub fn close(&mut self, code: CloseCode, reason: &str) {
        if self.closing == Closing::No {
            self.closing = Closing::Sent;
            frame::write_close(&mut self.out, code.0, reason);
        }
    }

    /// Writes what there is; ready when all of it is out.
    pub fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.out.is_empty() {
            return Poll::Ready(Ok(()));
        }
        while !self.out.is_empty() {
            let written = ready!(Pin::new(&mut self.io).poll_write(cx, &self.out))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.out.advance(written);
        }
        put_by(std::mem::take(&mut self.out));
        Pin::new(&mut self.io).poll_flush(cx)
    }

    /// The next thing that the other end sent. Pings are answered here.
    pub fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Received> {
        loop {
            match self.decoder.next() {
                Ok(Some(Frame::Text(text))) => {
                    // A caller that keeps the message charges it again.
                    self.intake.release();
                    return Poll::Ready(Received::Text(text));
                }
                Ok(Some(Frame::Binary | Frame::Pong)) => return Poll::Ready(Received::Sign),
                Ok(Some(Frame::Ping(body))) => {
                    if self.closing == Closing::No {
                        frame::write_pong(&mut self.out, &body);
                    }
                    return Poll::Ready(Received::Sign);
                }
                Ok(Some(Frame::Close(code))) => {
                    self.close(code.map_or(CloseCode::NORMAL, CloseCode), "");
                    self.closing = Closing::Done;
                    return Poll::Ready(Received::Ended(Arrived::Close));
                }
                Err(code) => return Poll::Ready(Received::Ended(Arrived::Broken(code))),
                Ok(None) => {}
            }
            match ready!(self.intake.poll_hold(self.decoder.held(), cx)) {
                Looked::AsBefore => {}
                Looked::NewDeadline => return Poll::Ready(Received::Begun),
            }
            let mut scratch = [0; READ];
            let mut buffer = ReadBuf::new(&mut scratch);
            match ready!(Pin::new(&mut self.io).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => self.decoder.push(buffer.filled()),
                Ok(()) | Err(_) => return Poll::Ready(Received::Ended(Arrived::Lost)),
            }
        }
    }

    /// Ends the connection in order: what is left is written, and the other end's Close is waited for unless it came. Then
    /// we close the TCP connection: by the standard a client waits for the server to do so. The caller bounds the time.
    pub async fn finish(mut self) {
        let written = std::future::poll_fn(|cx| self.poll_write(cx)).await;
        if written.is_err() {
            return;
        }
        if self.intake.due().is_some() {
            // Its end may never come, and what came of it is not kept any longer.
            return self.read_past().await;
        }
        while self.closing != Closing::Done {
            match std::future::poll_fn(|cx| self.poll_receive(cx)).await {
                Received::Ended(Arrived::Broken(_)) | Received::Begun => return self.read_past().await,
                Received::Ended(_) => break,
                Received::Text(_) | Received::Sign => {}
            }
        }
        // Gone already, or going: both are the end.
        drop(std::future::poll_fn(|cx| Pin::new(&mut self.io).poll_shutdown(cx)).await);
    }

    /// Takes what the other end still sends until it has gone. A connection that is closed on unread bytes is reset, and
    /// the other end would never learn why.
    async fn read_past(mut self) {
        self.decoder = Decoder::new(0);
        self.intake.release();
        drop(std::future::poll_fn(|cx| Pin::new(&mut self.io).poll_shutdown(cx)).await);
        let mut scratch = vec![0; READ];
        loop {
            let mut buffer = ReadBuf::new(&mut scratch);
            let read = std::future::poll_fn(|cx| Pin::new(&mut self.io).poll_read(cx, &mut buffer)).await;
            if read.is_err() || buffer.filled().is_empty() {
                return;
            }
        }
    }
}

/// Keeps a buffer that was written for the next socket of this thread.
fn put_by(mut written: BytesMut) {
    written.clear();
    if written.try_reclaim(LEAST_SPARE) && !written.try_reclaim(MOST_SPARE + 1) {
        WRITTEN.set(written);
    }
}

#[cfg(test)]
mod tests {
    use gembridge_core::model::Principal;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;
    use crate::guard::body::BodyLimits;
    use crate::guard::memory_budget::MemoryBudget;
    use crate::identity::{Identity, Rank};

    fn charge() -> Charge {
        let owner = Identity { principal: Principal::new("ann"), rank: Rank::User };
        MemoryBudget::new(BodyLimits::default()).account(owner).charge()
    }

    /// A client's Close with this body, masked with zeros.
    fn close(body: &[u8]) -> Vec<u8> {
        let mut frame = vec![0x88, 0x80 | u8::try_from(body.len()).unwrap(), 0, 0, 0, 0];
        frame.extend_from_slice(body);
        frame
    }

    #[tokio::test]
    async fn who_sends_a_close_gets_one_back_and_then_the_end_of_the_connection() {
        for (sent, code) in [
            (&[3, 232][..], 1000_u16),
            (&[], 1000),
            (&[15, 160, b'x'], 4000),
            // Not a code that may be sent, half a code, and a reason that is not UTF-8.
            (&[3, 237], 1002),
            (&[3], 1002),
            (&[3, 232, 0xff], 1002),
        ] {
            let (mut client, io) = duplex(1_024);
            let mut socket = WebSocket::new(io, 1_024, charge());
            client.write_all(&close(sent)).await.unwrap();
            match std::future::poll_fn(|cx| socket.poll_receive(cx)).await {
                Received::Ended(Arrived::Close) => {}
                Received::Ended(Arrived::Broken(code)) => socket.close(code, ""),
                other => panic!("{other:?}"),
            }
            // The client keeps its side open: it waits for the server to close, as the standard says.
            let mut answer = Vec::new();
            let ended = async {
                tokio::select! {
                    read = client.read_to_end(&mut answer) => read.map(drop).unwrap(),
                    () = async { socket.finish().await; std::future::pending().await } => {}
                }
            };
            tokio::time::timeout(std::time::Duration::from_mins(1), ended).await.expect("the server closes");
            assert_eq!(answer, [&[0x88, 2], &code.to_be_bytes()[..]].concat(), "{sent:?}");
        }
    }

    #[tokio::test]
    async fn a_close_of_ours_waits_for_the_clients_and_messages_before_it_are_read_past() {
        let (mut client, io) = duplex(1_024);
        let mut socket = WebSocket::new(io, 1_024, charge());
        socket.close(CloseCode::GOING_AWAY, "bye");
        socket.send(b"too late");
        let finished = socket.finish();
        let left = async {
            let mut answer = [0; 7];
            client.read_exact(&mut answer).await.unwrap();
            assert_eq!(answer, *b"\x88\x05\x03\xe9bye");
            client.write_all(b"\x81\x82\0\0\0\0hi").await.unwrap();
            client.write_all(&close(&[3, 233])).await.unwrap();
            assert_eq!(client.read(&mut answer).await.unwrap(), 0, "nothing after the close but the end");
        };
        tokio::join!(finished, left);
    }
}
