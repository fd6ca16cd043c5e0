//! A session that remembers.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::conversation::Conversation;
use crate::error::EvaluateError;
use crate::evaluation::{self, Asked};
use crate::output;
use crate::prompt::Prompt;
use crate::reply::{Evaluated, Reply};
use crate::stream::TurnStream;

/// A session that remembers what was said in it. Dropping it ends it.
pub struct Session {
    conversation: Arc<Conversation>,
}

/// By what a session is found again, also by another process: see [`Adapter::resume`](crate::Adapter::resume).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionState {
    /// The agent's own name of the session.
    pub session_id: String,
    /// Where it works.
    pub workspace: PathBuf,
    /// By what that folder is known. A session is not gone on with in another folder of the same name: the agent would
    /// remember files that are not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_fingerprint: Option<String>,
    /// When it was last used, in milliseconds since 1970.
    pub last_used_ms: u64,
}

impl Session {
    pub(crate) fn new(conversation: Arc<Conversation>) -> Self {
        Self { conversation }
    }

    /// Asks, and waits for the whole answer. Dropping the future cancels the turn.
    pub async fn evaluate(&mut self, prompt: impl Into<Prompt> + Send) -> Result<Reply, EvaluateError> {
        evaluation::run(&self.conversation, self.asked(Asked::text(prompt.into()))?, None).await
    }

    /// The same with an answer of a type, as [`Adapter::evaluate_as`](crate::Adapter::evaluate_as).
    pub async fn evaluate_as<T>(&mut self, prompt: impl Into<Prompt> + Send) -> Result<Evaluated<T>, EvaluateError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        let asked = self.asked(Asked::of_type::<T>(prompt.into()))?;
        output::typed(evaluation::run(&self.conversation, asked, None).await?)
    }

    /// Asks, and gives what happens as it happens. A prompt that comes before the stream ended waits for its end.
    pub fn stream(&mut self, prompt: impl Into<Prompt>) -> Result<TurnStream, EvaluateError> {
        let asked = self.asked(Asked::text(prompt.into()))?;
        Ok(TurnStream::start(Arc::clone(&self.conversation), asked))
    }

    /// By what it is found again, once an agent has it. An agent that cannot load sessions begins anew.
    pub async fn state(&self) -> Result<Option<SessionState>, EvaluateError> {
        self.conversation.state().await
    }

    fn asked(&self, asked: Asked) -> Result<Asked, EvaluateError> {
        asked.check(self.conversation.terms())?;
        Ok(asked)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("id", &self.conversation.id).finish_non_exhaustive()
    }
}
