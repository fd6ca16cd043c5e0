//! Clients that keep their own history: what turns a stateless request into turns of sessions and their answers.
//!
//! A dialect decodes its request into a [`Request`], has it planned and started, and writes the pieces that come. Tool
//! rounds, required calls, structured output with its repair, stop sequences, limits, token counts, several answers and
//! the search for the session that already holds the history are here, once for all of them.

mod agent_tools;
mod answers;
mod calls;
mod catalog;
mod conversations;
mod ending;
mod error;
mod fingerprint;
mod history;
mod log_history;
mod observer;
mod plan;
#[cfg(test)]
mod properties;
mod queue_clock;
mod refused_asks;
mod repeats;
mod request;
mod required_output;
mod resume;
mod sink;
mod start;
mod started_turn;
mod stop_sequences;
mod surrogate;
mod token_count;
mod token_estimate;
mod turn_ledger;
mod turn_reader;

use std::sync::Arc;

use tokio_util::task::TaskTracker;

pub use answers::Exchange;
pub use catalog::{Catalog, CatalogConfig, Certainty, Entry, Resolved, UnknownModels, Unlisted};
pub use conversations::{Claim, ConversationLimits, Conversations, Held, Owner};
pub use error::{ExchangeError, Field};
pub use fingerprint::{FINGERPRINT_KEY, Fingerprint, Growing, Mark};
pub use history::{FittedHistory, fit, for_prompts, news};
pub use log_history::LoggedHistory;
pub use observer::ExchangeObserver;
pub use plan::Plan;
pub use repeats::SentRequest;
pub use request::{
    AtOnce, CallIds, CallRef, CallResult, Counts, FollowUp, NamedSession, OfferedTool, Request, TokenLimit, ToolChoice,
    Tools,
};
pub use sink::{AnswerPlace, AnswerSink, ExchangeMeta, Finish, Piece};
pub use token_count::TokenCount;

use self::repeats::Repeats;
use self::turn_ledger::ParkedTurnTokens;
use crate::directory::HistoryIndex;
use crate::error::Error;
use crate::model::SessionId;
use crate::session::{Sessions, Viewer};

#[derive(Clone, Debug)]
pub struct ExchangeConfig {
    /// About how many bytes of a conversation a new session is told.
    pub history_budget: usize,
    /// What the agent's own tools gave back is part of the answer.
    pub show_agent_tools: bool,
    pub conversations: ConversationLimits,
}

impl Default for ExchangeConfig {
    fn default() -> Self {
        Self { history_budget: 400_000, show_agent_tools: false, conversations: ConversationLimits::default() }
    }
}

/// Answers the requests of every dialect.
pub struct Exchanges {
    sessions: Arc<Sessions>,
    catalog: Arc<Catalog>,
    conversations: Arc<Conversations>,
    ledger: ParkedTurnTokens,
    repeats: Repeats,
    /// Histories that other gateways of the cluster have.
    cluster: Option<Arc<dyn HistoryIndex>>,
    config: ExchangeConfig,
    /// Turns that are being ended because their client left, and sessions that are being deleted because nothing was said.
    tasks: TaskTracker,
}

impl Exchanges {
    pub fn new(sessions: Arc<Sessions>, catalog: Arc<Catalog>, config: ExchangeConfig) -> Arc<Self> {
        let conversations = Conversations::new(config.conversations);
        Self::with(sessions, catalog, config, conversations, None)
    }

    /// One of several gateways: a history that is not here may be elsewhere, and is known there by the same fingerprint.
    pub fn in_cluster(
        sessions: Arc<Sessions>,
        catalog: Arc<Catalog>,
        config: ExchangeConfig,
        index: Arc<dyn HistoryIndex>,
        key: &[u8; FINGERPRINT_KEY],
    ) -> Arc<Self> {
        let conversations = Conversations::keyed(config.conversations, key);
        Self::with(sessions, catalog, config, conversations, Some(index))
    }

    fn with(
        sessions: Arc<Sessions>,
        catalog: Arc<Catalog>,
        config: ExchangeConfig,
        conversations: Conversations,
        cluster: Option<Arc<dyn HistoryIndex>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            conversations: Arc::new(conversations),
            cluster,
            ledger: ParkedTurnTokens::default(),
            repeats: Repeats::default(),
            sessions,
            catalog,
            config,
            tasks: TaskTracker::new(),
        })
    }

    pub fn sessions(&self) -> &Arc<Sessions> {
        &self.sessions
    }

    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// What a request is known by, should it be sent again.
    pub fn mark_of(&self, request: &[u8]) -> Mark {
        self.conversations.mark_of(request)
    }

    /// A session that a client names, if it may see it.
    pub async fn named_session(&self, id: SessionId, viewer: &Viewer) -> Result<NamedSession, Error> {
        let handle = self.sessions.get(id, viewer).await?;
        let owner = handle.owner();
        Ok(NamedSession { handle, owner })
    }

    /// Resolves when every turn whose client left has been told to end, and nothing is left of sessions in which nothing
    /// was said. Called once no request runs any more.
    pub async fn settle(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.tasks.reopen();
    }
}
