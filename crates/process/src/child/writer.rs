//! Lines into a child, each call with a deadline: a child that does not read cannot hold us up.

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::Duration;

use super::Link;
use super::socket::Socket;
use bytes::Bytes;

/// The kernel takes no more slices in one call.
const MAX_SLICES: usize = 1024;

/// Why a line did not go out whole.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("the child did not read its input for {0:?}")]
    Deadline(Duration),
    #[error("the child closed its input")]
    Gone,
    /// An earlier call failed or was dropped in the middle of a line; a further line would be glued to the half one.
    #[error("an earlier line was cut off; the child's input is unusable")]
    Torn,
    #[error("cannot write to the child: {0}")]
    Io(io::Error),
}

/// Writes lines to a child's standard input.
#[derive(Debug)]
pub struct Writer {
    link: Arc<Link>,
    deadline: Duration,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    BetweenLines,
    MidLine,
    Closed,
}

impl Writer {
    pub(crate) fn new(link: Arc<Link>, deadline: Duration) -> Self {
        Self { link, deadline, state: State::BetweenLines }
    }

    /// Writes one line; the newline is added.
    ///
    /// Let the future finish: dropped in the middle of a line, it leaves the input [torn](WriteError::Torn).
    pub async fn write_line(&mut self, line: impl Into<Bytes>) -> Result<(), WriteError> {
        self.write_lines(&[line.into()]).await
    }

    /// Writes many lines with as few system calls as the child's reading allows, under one deadline.
    pub async fn write_lines(&mut self, lines: &[Bytes]) -> Result<(), WriteError> {
        match self.state {
            State::BetweenLines => {}
            State::MidLine => return Err(WriteError::Torn),
            State::Closed => return Err(WriteError::Gone),
        }
        let slices = lines.iter().flat_map(|line| [IoSlice::new(line), IoSlice::new(b"\n")]);
        let mut slices: Vec<IoSlice<'_>> = slices.collect();
        self.state = State::MidLine;
        match tokio::time::timeout(self.deadline, write_all(&self.link.socket, &mut slices)).await {
            Ok(Ok(())) => {
                self.state = State::BetweenLines;
                Ok(())
            }
            Ok(Err(error)) if is_gone(&error) => {
                self.state = State::Closed;
                Err(WriteError::Gone)
            }
            Ok(Err(error)) => Err(WriteError::Io(error)),
            Err(_) => Err(WriteError::Deadline(self.deadline)),
        }
    }

    /// Ends the child's input. The child itself goes on until it ends or is ended.
    pub fn close(&mut self) {
        self.state = State::Closed;
        self.link.close_input();
    }
}

async fn write_all(socket: &Socket, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    while !slices.is_empty() {
        match socket.try_write_vectored(&slices[..slices.len().min(MAX_SLICES)]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut slices, written),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => socket.writable().await?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::NotConnected)
}
