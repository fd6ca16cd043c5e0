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

/// How much of a line went out at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    Whole,
    /// The rest of it goes out with the next call of [`Writer::write_lines`].
    InPart,
}

#[derive(Debug)]
enum State {
    BetweenLines,
    /// The rest of a line that was begun, without its newline.
    Owing(Bytes),
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

    /// Writes many lines with as few system calls as the child's reading allows, under one deadline. A line that was
    /// begun is finished first.
    pub async fn write_lines(&mut self, lines: &[Bytes]) -> Result<(), WriteError> {
        let owed = self.owed()?;
        let slices = owed.iter().chain(lines).flat_map(|line| [IoSlice::new(line), IoSlice::new(b"\n")]);
        let mut slices: Vec<IoSlice<'_>> = slices.collect();
        self.state = State::MidLine;
        match tokio::time::timeout(self.deadline, write_all(&self.link.socket, &mut slices)).await {
            Ok(Ok(())) => {
                self.state = State::BetweenLines;
                Ok(())
            }
            Ok(Err(error)) => Err(self.failed(error)),
            Err(_) => Err(WriteError::Deadline(self.deadline)),
        }
    }

    /// Writes one line as far as the child takes it without waiting; the newline is added. Nothing is written while
    /// another line is owed.
    pub fn begin_line(&mut self, line: &Bytes) -> Result<Begun, WriteError> {
        if self.owed()?.is_some() {
            return Err(WriteError::Torn);
        }
        match try_write(&self.link.socket, &[IoSlice::new(line), IoSlice::new(b"\n")]) {
            Ok(Some(written)) if written > line.len() => Ok(Begun::Whole),
            Ok(written) => {
                self.state = State::Owing(line.slice(written.unwrap_or(0)..));
                Ok(Begun::InPart)
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Writes these bytes as they are, without a newline, and ends the child's input.
    pub async fn write_last(&mut self, bytes: impl Into<Bytes>) -> Result<(), WriteError> {
        let owed = self.owed()?;
        let bytes = bytes.into();
        let before = owed.iter().flat_map(|line| [IoSlice::new(line), IoSlice::new(b"\n")]);
        let mut slices: Vec<IoSlice<'_>> = before.chain([IoSlice::new(&bytes)]).collect();
        self.state = State::MidLine;
        match tokio::time::timeout(self.deadline, write_all(&self.link.socket, &mut slices)).await {
            Ok(Ok(())) => {
                self.close();
                Ok(())
            }
            Ok(Err(error)) => Err(self.failed(error)),
            Err(_) => Err(WriteError::Deadline(self.deadline)),
        }
    }

    /// Ends the child's input. The child itself goes on until it ends or is ended.
    pub fn close(&mut self) {
        self.state = State::Closed;
        self.link.close_input();
    }

    /// The rest of a line that was begun.
    fn owed(&self) -> Result<Option<Bytes>, WriteError> {
        match &self.state {
            State::BetweenLines => Ok(None),
            State::Owing(rest) => Ok(Some(rest.clone())),
            State::MidLine => Err(WriteError::Torn),
            State::Closed => Err(WriteError::Gone),
        }
    }

    fn failed(&mut self, error: io::Error) -> WriteError {
        if !is_gone(&error) {
            self.state = State::MidLine;
            return WriteError::Io(error);
        }
        self.state = State::Closed;
        WriteError::Gone
    }
}

async fn write_all(socket: &Socket, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    while !slices.is_empty() {
        match try_write(socket, &slices[..slices.len().min(MAX_SLICES)])? {
            Some(written) => IoSlice::advance_slices(&mut slices, written),
            None => socket.writable().await?,
        }
    }
    Ok(())
}

/// How much the child took, or `None` while it takes nothing.
fn try_write(socket: &Socket, slices: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
    loop {
        match socket.try_write_vectored(slices) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => return Ok(Some(written)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::NotConnected)
}
