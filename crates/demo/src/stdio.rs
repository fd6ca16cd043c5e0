//! Standard input and output without a thread in between where they are pipes, as they are under a gateway.

use std::io;
use std::os::fd::AsFd;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::pipe;

pub(crate) fn input() -> Box<dyn AsyncRead + Unpin> {
    let pipe = io::stdin().as_fd().try_clone_to_owned().and_then(pipe::Receiver::from_owned_fd);
    match pipe {
        Ok(pipe) => Box::new(pipe),
        Err(_not_a_pipe) => Box::new(tokio::io::stdin()),
    }
}

pub(crate) fn output() -> Box<dyn AsyncWrite + Unpin> {
    let pipe = io::stdout().as_fd().try_clone_to_owned().and_then(pipe::Sender::from_owned_fd);
    match pipe {
        Ok(pipe) => Box::new(pipe),
        Err(_not_a_pipe) => Box::new(tokio::io::stdout()),
    }
}
