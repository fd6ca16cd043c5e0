//! A connection's socket. It gives up on a peer that does not read, lets one that still sends read the answer, and
//! notices one that disconnects while nothing is read from it.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use crate::server::Deadlines;
use crate::server::activity::Activity;
use crate::server::connection_limits::Slot;
use crate::server::malformed;

pub struct Socket {
    stream: TcpStream,
    peer: SocketAddr,
    activity: Arc<Activity>,
    deadlines: Deadlines,
    /// Runs while the peer takes nothing.
    stall: Option<Pin<Box<Sleep>>>,
    closing: Closing,
    unread: Unread,
    /// What is left of the response that replaces hyper's bare refusal.
    rejection: Option<Bytes>,
    /// Held as long as the socket is open, also after an upgrade.
    _slot: Slot,
}

enum Closing {
    No,
    /// Our side is shut; what still comes is thrown away. To close with unread bytes would reset the connection, and
    /// a reset takes the answer with it.
    Lingering(Pin<Box<Sleep>>),
}

/// What is known of bytes that have arrived and were not read yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unread {
    Unknown,
    Some,
}

impl Socket {
    pub fn new(stream: TcpStream, peer: SocketAddr, activity: Arc<Activity>, deadlines: Deadlines, slot: Slot) -> Self {
        Self {
            stream,
            peer,
            activity,
            deadlines,
            stall: None,
            closing: Closing::No,
            unread: Unread::Unknown,
            rejection: None,
            _slot: slot,
        }
    }

    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// The result of a write, or an error once none has got through for too long.
    fn within_deadline<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stall = None;
            return written;
        }
        self.watch(cx)?;
        let limit = self.deadlines.send;
        let stall = self.stall.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(stall.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read its response")))
    }

    /// Fails when the peer has closed its end while it is being answered; otherwise the task is woken when it does. To
    /// read for that would take a buffer for as long as the answer lasts.
    fn watch(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        // What has come stands before the end, so that nothing is known of that until it is read.
        if self.unread == Unread::Some || !self.activity.is_answering() {
            return Ok(());
        }
        let mut next = [0];
        match self.stream.poll_peek(cx, &mut ReadBuf::new(&mut next)) {
            Poll::Pending => Ok(()),
            Poll::Ready(Ok(0)) => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the client has left")),
            Poll::Ready(Ok(_)) => {
                self.unread = Unread::Some;
                Ok(())
            }
            Poll::Ready(Err(failure)) => Err(failure),
        }
    }

    /// Whether these bytes refuse what was no request, and something else is to be said.
    fn is_rejection(&mut self, bytes: &[u8]) -> bool {
        if self.rejection.is_none() && self.activity.is_before_a_request() {
            self.rejection = malformed::instead_of(bytes, self.peer).map(Bytes::from);
        }
        self.rejection.is_some()
    }

    fn poll_reject(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.rejection.as_mut().filter(|rest| !rest.is_empty()) {
            let written = Pin::new(&mut self.stream).poll_write(cx, rest);
            if let Poll::Ready(Ok(sent)) = written {
                rest.advance(sent);
            }
            ready!(self.within_deadline(cx, written))?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Closing::Lingering(limit) = &mut self.closing else { return Poll::Ready(Ok(())) };
        let mut scratch = [0; 4096];
        loop {
            if limit.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
            let mut buffer = ReadBuf::new(&mut scratch);
            // An error here means that the peer is gone, which is what we wait for.
            if ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer)).is_err() || buffer.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

/// Small pieces at once, and an end for peers that vanished with our bytes unacknowledged.
pub fn tune(stream: &TcpStream, send: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    #[cfg(target_os = "linux")]
    {
        let millis = u32::try_from(send.as_millis()).unwrap_or(u32::MAX);
        rustix::net::sockopt::set_tcp_user_timeout(stream, millis)?;
    }
    Ok(())
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.unread = Unread::Unknown;
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut this.stream).poll_read(cx, buffer));
        if buffer.filled().len() > before {
            this.activity.bytes_came();
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.is_rejection(bytes) {
            return this.poll_reject(cx).map_ok(|()| bytes.len());
        }
        let written = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.within_deadline(cx, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if let [only] = slices
            && this.is_rejection(only)
        {
            return this.poll_reject(cx).map_ok(|()| only.len());
        }
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, slices);
        this.within_deadline(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.watch(cx)?;
        Pin::new(&mut this.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Closing::No = this.closing {
            ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
            if !this.activity.is_body_pending() {
                return Poll::Ready(Ok(()));
            }
            this.closing = Closing::Lingering(Box::pin(sleep(this.deadlines.linger)));
        }
        this.poll_linger(cx)
    }
}
