//! The live end of one session, as a command reads it: entries, and the wish to stop.

use gembridge_core::log::{Attachment, Batch, From, Pace};
use gembridge_core::session::SessionHandle;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::CommandError;

/// What can happen while a turn runs.
pub enum Happening {
    Entries(Batch),
    /// Ctrl-C.
    Interrupted,
    /// Somebody wants this program to end.
    Terminated,
    /// The log went away: the store is broken or the session was closed.
    Gone,
}

pub struct Follower {
    attachment: Attachment,
    signals: Signals,
}

impl Follower {
    /// Follows from now on. The agent waits for a reader that is slow, such as a pipe.
    pub async fn attach(session: &SessionHandle) -> Result<Self, CommandError> {
        let attached = session.attach(From::Now, Pace::HoldAgent).await;
        let attachment = attached.map_err(|error| CommandError::from(error.into_failure()))?;
        Ok(Self { attachment, signals: Signals::listen()? })
    }

    pub async fn next(&mut self) -> Happening {
        tokio::select! {
            batch = self.attachment.follow.recv() => batch.map_or(Happening::Gone, Happening::Entries),
            happening = self.signals.next() => happening,
        }
    }

    /// Waits for a signal alone, while no turn runs.
    pub async fn signal(&mut self) -> Happening {
        self.signals.next().await
    }
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    fn listen() -> Result<Self, CommandError> {
        let listen = |kind| signal(kind).map_err(|error| anyhow::anyhow!("cannot listen for signals: {error}"));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Happening {
        tokio::select! {
            _ = self.interrupt.recv() => Happening::Interrupted,
            _ = self.terminate.recv() => Happening::Terminated,
            _ = self.hang_up.recv() => Happening::Terminated,
        }
    }
}
