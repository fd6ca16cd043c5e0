//! The agent behind a session, as the actor sees it: absent, on its way, or there.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::BoxFuture;
use crate::driver::{AgentSession, Driver, Opened, SessionSpec, Signal};
use crate::model::Failure;

pub(super) enum Agent {
    /// None yet, or none any more.
    Absent,
    Opening(BoxFuture<'static, Result<Opened, Failure>>),
    Live {
        session: Box<dyn AgentSession>,
        signals: mpsc::Receiver<Vec<Signal>>,
    },
}

/// What came out of waiting for the agent.
pub(super) enum AgentNews {
    Opened(Result<Opened, Failure>),
    Signals(Vec<Signal>),
    /// The driver let go of the session without a word.
    Vanished,
}

impl Agent {
    pub(super) fn open(driver: &Arc<dyn Driver>, spec: SessionSpec) -> Self {
        let driver = Arc::clone(driver);
        Self::Opening(Box::pin(async move { driver.open(spec).await }))
    }

    pub(super) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    pub(super) fn live(&mut self) -> Option<&mut dyn AgentSession> {
        match self {
            Self::Live { session, .. } => Some(session.as_mut()),
            Self::Absent | Self::Opening(_) => None,
        }
    }

    /// Waits for what comes next; for ever when there is no agent. May be dropped and called again.
    pub(super) async fn news(&mut self) -> AgentNews {
        match self {
            Self::Absent => std::future::pending().await,
            Self::Opening(opening) => AgentNews::Opened(opening.await),
            Self::Live { signals, .. } => match signals.recv().await {
                Some(mut batch) => {
                    // What has come in the meantime goes into the same write.
                    while batch.len() < MOST_SIGNALS_AT_ONCE
                        && let Ok(more) = signals.try_recv()
                    {
                        batch.extend(more);
                    }
                    AgentNews::Signals(batch)
                }
                None => AgentNews::Vanished,
            },
        }
    }
}

/// Enough to make writes cheap, few enough for commands to get a word in.
const MOST_SIGNALS_AT_ONCE: usize = 512;
