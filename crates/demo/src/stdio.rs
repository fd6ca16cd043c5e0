//! Standard input and output without a thread in between where they are pipes or sockets, as they are under a gateway.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

pub(crate) fn input() -> Box<dyn AsyncRead + Unpin> {
    if let Ok(pipe) = duplicate(&io::stdin()).and_then(pipe::Receiver::from_owned_fd) {
        return Box::new(pipe);
    }
    match duplicate(&io::stdin()).and_then(socket) {
        Ok(socket) => Box::new(socket),
        Err(_neither) => Box::new(tokio::io::stdin()),
    }
}

pub(crate) fn output() -> Box<dyn AsyncWrite + Unpin> {
    match duplicate(&io::stdout()).and_then(pipe::Sender::from_owned_fd) {
        Ok(pipe) => Box::new(pipe),
        Err(_not_a_pipe) => Box::new(tokio::io::stdout()),
    }
}

fn duplicate(stream: &impl AsFd) -> io::Result<OwnedFd> {
    stream.as_fd().try_clone_to_owned()
}

fn socket(stream: OwnedFd) -> io::Result<UnixStream> {
    let socket = std::os::unix::net::UnixStream::from(stream);
    // A terminal or a file has no address, and stays as it is.
    socket.local_addr()?;
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}
