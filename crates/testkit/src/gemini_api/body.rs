//! A response body that pauses, stalls or breaks where a script says so.

use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

#[derive(Debug)]
pub enum Piece {
    Bytes(Bytes),
    Pause(Duration),
    Stall,
    Break,
}

pub struct PacedBody {
    pieces: VecDeque<Piece>,
    pause: Option<Pin<Box<Sleep>>>,
}

impl PacedBody {
    pub fn new(pieces: Vec<Piece>) -> Self {
        Self { pieces: pieces.into(), pause: None }
    }
}

impl Body for PacedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(context));
                self.pause = None;
            }
            match self.pieces.pop_front() {
                None => return Poll::Ready(None),
                Some(Piece::Bytes(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Some(Piece::Pause(time)) => self.pause = Some(Box::pin(sleep(time))),
                Some(Piece::Stall) => self.pause = Some(Box::pin(sleep(Duration::from_hours(24)))),
                Some(Piece::Break) => return Poll::Ready(Some(Err(io::Error::other("cut as told")))),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && self.pause.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match (self.pieces.len(), self.pieces.front(), &self.pause) {
            (1, Some(Piece::Bytes(bytes)), None) => SizeHint::with_exact(bytes.len() as u64),
            _ => SizeHint::default(),
        }
    }
}
