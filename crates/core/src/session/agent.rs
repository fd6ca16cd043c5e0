//! The agent behind a session, as the actor sees it: absent, on its way, or there.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::BoxFuture;
use crate::driver::{AgentSession, Driver, Opened, SessionSpec, Signal};
use crate::error::Error;
use crate::model::{Event, Failure, TurnId};
use crate::session::history_replay::{HistoryReplay, Past};
use crate::session::queue::{Memory, Waiting};
use crate::session::session_tools::{SessionTools, ToolsUpdate};
use crate::tool_host::ToolNews;

pub(super) enum Agent {
    /// None yet, or none any more.
    Absent,
    Opening {
        opening: BoxFuture<'static, Result<Arrival, Failure>>,
        tools: Option<SessionTools>,
    },
    Live {
        session: Box<dyn AgentSession>,
        signals: mpsc::Receiver<Vec<Signal>>,
        /// Where it finds the client's tools, if there were any when it was opened.
        tools: Option<SessionTools>,
        untold: Option<Untold>,
        cut_turns: CutTurns,
    },
}

/// What the agent does with turns that do not come to their end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CutTurns {
    Remembers,
    Forgets,
    /// It has forgotten one.
    Forgot,
}

/// An agent that is there, and what it has to be told of the session.
pub(super) struct Arrival {
    pub opened: Opened,
    pub recap: Option<HistoryReplay>,
}

/// What was said before the agent came and that it has not heard yet.
pub(super) struct Untold {
    pub recap: HistoryReplay,
    /// The agent's own name of the session, worth to be loaded again once it knows all of it.
    pub agent_session: Arc<str>,
    /// The last turn that began with the agent being told. What it did not answer to the end, it may have forgotten.
    pub told_in: Option<TurnId>,
}

/// What came out of waiting for the agent.
pub(super) enum AgentNews {
    Opened(Result<Arrival, Failure>),
    Signals(Vec<Signal>),
    Tools(ToolsUpdate),
    /// The driver let go of the session without a word.
    Vanished,
}

impl Agent {
    pub(super) fn open(driver: &Arc<dyn Driver>, spec: SessionSpec, tools: Option<SessionTools>, past: Past) -> Self {
        let driver = Arc::clone(driver);
        let opening = async move {
            let opened = driver.open(spec).await?;
            if opened.resumed {
                return Ok(Arrival { opened, recap: None });
            }
            let recap = past.recap().await.map_err(|error| Error::Store(error).into_failure())?;
            Ok(Arrival { opened, recap })
        };
        Self::Opening { opening: Box::pin(opening), tools }
    }

    /// One that cannot be opened, and says so as any other would.
    pub(super) fn failed(failure: Failure) -> Self {
        Self::Opening { opening: Box::pin(std::future::ready(Err(failure))), tools: None }
    }

    /// The agent is there.
    pub(super) fn arrive(
        &mut self,
        session: Box<dyn AgentSession>,
        signals: mpsc::Receiver<Vec<Signal>>,
        untold: Option<Untold>,
        cut_turns: CutTurns,
    ) {
        let tools = match std::mem::replace(self, Self::Absent) {
            Self::Opening { tools, .. } | Self::Live { tools, .. } => tools,
            Self::Absent => None,
        };
        *self = Self::Live { session, signals, tools, untold, cut_turns };
    }

    /// Hands it a prompt that waited, and with it what it has not heard: the event says so.
    pub(super) fn prompt(&mut self, waiting: &Waiting) -> Result<Option<Event>, Failure> {
        let Self::Live { session, untold, .. } = self else { return Ok(None) };
        let Some(untold) = untold else {
            session.prompt(&waiting.prompt)?;
            return Ok(None);
        };
        let retold = match waiting.memory {
            Memory::Unneeded => {
                session.prompt(&waiting.prompt)?;
                return Ok(None);
            }
            Memory::InPrompt => {
                session.prompt(&waiting.prompt)?;
                None
            }
            Memory::Replayed | Memory::Needed => {
                session.prompt(&untold.recap.before(&waiting.prompt))?;
                Some(Event::HistoryReplayed { left_out: untold.recap.left_out })
            }
        };
        untold.told_in = Some(waiting.turn);
        Ok(retold)
    }

    /// Whether it knows all that was said in its session.
    pub(super) fn knows_all(&self) -> bool {
        matches!(self, Self::Live { untold: None, .. }) && !self.has_forgotten()
    }

    /// A turn of it did not come to its end.
    pub(super) fn was_cut(&mut self) {
        if let Self::Live { cut_turns: cut_turns @ CutTurns::Forgets, .. } = self {
            *cut_turns = CutTurns::Forgot;
        }
    }

    pub(super) fn has_forgotten(&self) -> bool {
        matches!(self, Self::Live { cut_turns: CutTurns::Forgot, .. })
    }

    /// A turn ended well. If the agent was told in it what it had not heard, it knows all of it now: the agent's name
    /// of the session.
    pub(super) fn has_heard(&mut self, turn: TurnId) -> Option<Arc<str>> {
        let Self::Live { untold, .. } = self else { return None };
        untold.take_if(|untold| untold.told_in == Some(turn)).map(|untold| untold.agent_session)
    }

    pub(super) fn has_tools(&self) -> bool {
        matches!(self, Self::Opening { tools: Some(_), .. } | Self::Live { tools: Some(_), .. })
    }

    /// The endpoint of an agent that is there.
    pub(super) fn tools(&mut self) -> Option<&mut SessionTools> {
        match self {
            Self::Live { tools, .. } => tools.as_mut(),
            Self::Absent | Self::Opening { .. } => None,
        }
    }

    /// What the agent has done at its endpoint up to now, one by one.
    pub(super) fn tool_news_so_far(&mut self) -> Option<ToolNews> {
        self.tools().and_then(SessionTools::news_so_far)
    }

    pub(super) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    pub(super) fn live(&mut self) -> Option<&mut dyn AgentSession> {
        match self {
            Self::Live { session, .. } => Some(session.as_mut()),
            Self::Absent | Self::Opening { .. } => None,
        }
    }

    /// Waits for what comes next; for ever when there is no agent. May be dropped and called again.
    pub(super) async fn news(&mut self) -> AgentNews {
        match self {
            Self::Absent => std::future::pending().await,
            Self::Opening { opening, .. } => AgentNews::Opened(opening.await),
            Self::Live { signals, tools: None, .. } => signalled(signals.recv().await, signals),
            Self::Live { signals, tools: Some(tools), .. } => tokio::select! {
                // What the agent said before it did something comes first.
                biased;
                batch = signals.recv() => signalled(batch, signals),
                news = tools.news() => AgentNews::Tools(news),
            },
        }
    }
}

fn signalled(batch: Option<Vec<Signal>>, signals: &mut mpsc::Receiver<Vec<Signal>>) -> AgentNews {
    let Some(mut batch) = batch else { return AgentNews::Vanished };
    // What has come in the meantime goes into the same write.
    while batch.len() < MOST_SIGNALS_AT_ONCE
        && let Ok(more) = signals.try_recv()
    {
        batch.extend(more);
    }
    AgentNews::Signals(batch)
}

/// Enough to make writes cheap, few enough for commands to get a word in.
const MOST_SIGNALS_AT_ONCE: usize = 512;
