//! Ctrl-C and its relatives, as something to wait for.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

pub struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

/// What the person or the system wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// Ctrl-C: end what runs now.
    CtrlC,
    /// Leave, and be quick.
    Leave,
}

impl Interrupts {
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    pub async fn next(&mut self) -> Interrupt {
        tokio::select! {
            _ = self.interrupt.recv() => Interrupt::CtrlC,
            _ = self.terminate.recv() => Interrupt::Leave,
            _ = self.hang_up.recv() => Interrupt::Leave,
        }
    }
}
