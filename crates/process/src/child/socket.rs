//! Our end of a child's standard input. The event loop watches it for what the guard reports, and for room only while
//! there is none: a child that reads would otherwise wake us with every line it takes.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use tokio::net::unix::pipe::{Receiver, Sender};

/// Half of it is watched at a time, which the event loop does for the ends of pipes; reading and writing are the same.
#[derive(Debug)]
pub(crate) struct Socket(Receiver);

impl Socket {
    pub(crate) fn new(socket: UnixStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Receiver::from_owned_fd_unchecked(socket.into()).map(Self)
    }

    pub(super) async fn readable(&self) -> io::Result<()> {
        self.0.readable().await
    }

    pub(super) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(buffer)
    }

    pub(super) fn try_write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(rustix::io::writev(self, slices)?)
    }

    /// Waits for room. To be asked only when there was none.
    pub(super) async fn writable(&self) -> io::Result<()> {
        Sender::from_owned_fd_unchecked(self.as_fd().try_clone_to_owned()?)?.writable().await
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
