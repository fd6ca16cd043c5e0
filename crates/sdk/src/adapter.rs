//! One agent, ready to be asked.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tokio::sync::OnceCell;

use crate::builder::{AdapterBuilder, AgentChoice};
use crate::engine::{Engine, EngineConfig};
use crate::error::EvaluateError;
use crate::evaluation::{self, Asked};
use crate::output;
use crate::prompt::Prompt;
use crate::reply::{Evaluated, Reply};
use crate::session::{Session, SessionState};
use crate::stream::TurnStream;

/// One agent, ready to be asked. Clones share its processes.
///
/// The first prompt starts the agent; its process serves all sessions that it can hold and stays for the next prompt. Where the last
/// clone is dropped everything ends in the background; [`close`](Self::close) waits for it. An adapter belongs to the
/// runtime in which its first prompt was made.
#[derive(Clone)]
pub struct Adapter {
    inner: Arc<Inner>,
}

struct Inner {
    config: Arc<EngineConfig>,
    engine: OnceCell<Arc<Engine>>,
}

impl Adapter {
    /// Gemini CLI. `gemini_acp`: starts within 15 s, is over after 500 ms of quiet, and is allowed everything once.
    pub fn gemini() -> AdapterBuilder {
        AdapterBuilder::new(AgentChoice::Known("gemini"))
    }

    /// Claude, by its ACP adapter.
    pub fn claude() -> AdapterBuilder {
        AdapterBuilder::new(AgentChoice::Known("claude"))
    }

    /// Codex, by its ACP adapter.
    pub fn codex() -> AdapterBuilder {
        AdapterBuilder::new(AgentChoice::Known("codex"))
    }

    /// `OpenCode`.
    pub fn opencode() -> AdapterBuilder {
        AdapterBuilder::new(AgentChoice::Known("opencode"))
    }

    /// Qwen Code.
    pub fn qwen() -> AdapterBuilder {
        AdapterBuilder::new(AgentChoice::Known("qwen"))
    }

    /// The agent that ships with this library: no model, no login, the same answer each time. For tests and first steps.
    pub fn demo() -> AdapterBuilder {
        AdapterBuilder::new(AgentChoice::Known("demo"))
    }

    /// The agent that a running gateway serves: the same types, with the sessions in the gateway. Needs the `gembridge` binary, whose
    /// `gembridge connect` relays; functions and typed answers need a gateway on this machine that allows them
    /// (`acp.allow_mcp_servers`).
    pub fn gateway(url: impl Into<String>, key: impl Into<String>) -> AdapterBuilder {
        AdapterBuilder::new(AgentChoice::Gateway { url: url.into() }).env("GEMBRIDGE_KEY", key)
    }

    /// Any program that speaks ACP on its standard streams. The name is in lower case; `args` makes it speak ACP.
    pub fn custom(name: impl Into<String>, program: impl Into<PathBuf>) -> AdapterBuilder {
        AdapterBuilder::new(AgentChoice::Custom { name: name.into(), program: program.into() })
    }

    pub(crate) fn new(config: EngineConfig) -> Self {
        Self { inner: Arc::new(Inner { config: Arc::new(config), engine: OnceCell::new() }) }
    }

    /// Such as `gemini_acp`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.config.adapter
    }

    /// Asks in a session of its own, and waits for the whole answer. Dropping the future cancels the turn.
    pub async fn evaluate(&self, prompt: impl Into<Prompt> + Send) -> Result<Reply, EvaluateError> {
        let asked = Asked::text(prompt.into());
        asked.check(&self.inner.config.terms)?;
        let conversation = self.engine().await?.converse(None).await?;
        evaluation::run(&conversation, asked, None).await
    }

    /// The same with an answer of a type. The agent delivers it through a tool that checks it against the type's schema, or
    /// as text; what does not fit goes back to it with what is wrong, twice.
    pub async fn evaluate_as<T>(&self, prompt: impl Into<Prompt> + Send) -> Result<Evaluated<T>, EvaluateError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        let asked = Asked::of_type::<T>(prompt.into());
        asked.check(&self.inner.config.terms)?;
        let conversation = self.engine().await?.converse(None).await?;
        output::typed(evaluation::run(&conversation, asked, None).await?)
    }

    /// Asks in a session of its own, and gives what happens as it happens. Dropping the stream cancels the turn.
    pub async fn stream(&self, prompt: impl Into<Prompt> + Send) -> Result<TurnStream, EvaluateError> {
        let asked = Asked::text(prompt.into());
        asked.check(&self.inner.config.terms)?;
        let conversation = self.engine().await?.converse(None).await?;
        Ok(TurnStream::start(conversation, asked))
    }

    /// A session that remembers what was said in it, prompt after prompt.
    pub async fn session(&self) -> Result<Session, EvaluateError> {
        Ok(Session::new(self.engine().await?.converse(None).await?))
    }

    /// A session of before, also of another process: where the agent can load it, it remembers.
    pub async fn resume(&self, state: &SessionState) -> Result<Session, EvaluateError> {
        Ok(Session::new(self.engine().await?.converse(Some(state)).await?))
    }

    /// Ends every session and every process of the agent, and waits until all are gone.
    pub async fn close(self) {
        if let Some(engine) = self.inner.engine.get() {
            engine.shut_down().await;
        }
    }

    /// How many processes of the agent run now.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.inner.engine.get().map_or(0, |engine| engine.processes())
    }

    async fn engine(&self) -> Result<&Arc<Engine>, EvaluateError> {
        let config = &self.inner.config;
        self.inner.engine.get_or_try_init(|| async { Engine::start(Arc::clone(config)).await.map(Arc::new) }).await
    }
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adapter").field("name", &self.inner.config.adapter).finish_non_exhaustive()
    }
}
