//! A message for the agent: the first of a task, the next one, or an answer to what the task waits for.

use std::sync::Arc;

use bytes::Bytes;
use gembridge_core::driver::{Change, SlashCommands};
use gembridge_core::error::Error;
use gembridge_core::model::{
    AgentName, Answer, Ask, AskId, CallId, ClientId, ClientTool, Content, Opaque, Prompt, PromptLabel, Seq, SessionId,
    Timestamp,
};
use gembridge_core::session::{
    Accepted, NewSession, Precondition, SessionHandle, Submission, SubmitResults, Unanswered,
};
use gembridge_core::tool_host::Offer;
use serde_json::Value;

use super::confirm::{self, Resolved};
use super::get::shortened;
use super::{Caller, Found, content};
use crate::a2a::error::{Fault, Reason};
use crate::a2a::follow::{End, Follow, Step, Until};
use crate::a2a::index::Entry;
use crate::a2a::model::{State, Task, TaskId, TaskName};
use crate::a2a::runner;
use crate::a2a::wire::{Incoming, Reply, Send};
use crate::problem::Kind;

/// The most tools that a client offers.
const MOST_TOOLS: usize = 256;
const LONGEST_NAME: usize = 64;

impl Caller {
    pub async fn send(&self, request: Send) -> Result<Task, Fault> {
        let (reply, history) = (request.reply, request.history);
        let mut follow = self.begin(request).await?;
        let task = match (reply, follow.next().await?) {
            (Reply::AtOnce, Step::Task(task)) => *task,
            _ => follow.rest().await?,
        };
        Ok(shortened(task, history))
    }

    /// Takes the message, and follows its task from there on.
    pub async fn begin(&self, request: Send) -> Result<Follow, Fault> {
        let message = request.message;
        let decisions = confirm::decisions(&message.parts)?;
        let Some(task) = message.task.clone() else {
            if !decisions.is_empty() {
                return Err(Fault::params("a decision about a tool needs the `taskId` of the task that waits for it"));
            }
            return self.begin_task(message, request.reply).await;
        };
        let found = self.find(&task).await?;
        if message.context.as_ref().is_some_and(|context| **context != *found.name.context) {
            return Err(Fault::params(
                "`contextId` is not the context of this task; leave it out, or send the task's own",
            ));
        }
        let (whole, mut seen) = self.look(&found).await?;
        if whole.status.state.is_terminal() {
            let message = format!("the task `{}` is over; begin another one in its context", found.name.id);
            return Err(Fault::new(Reason::UnsupportedOperation, message));
        }
        let pending = seen.fold().pending();
        if decisions.is_empty() {
            self.drop_pending(&found, pending.calls().is_empty(), confirm::reject(pending)).await?;
            return self.go_on(found, message, None, request.reply).await;
        }
        let is_waiting = pending.holds_the_task() || !pending.calls().is_empty();
        if !is_waiting && let Some(words) = confirm::in_words(&decisions) {
            return self.go_on(found, message, Some(words), request.reply).await;
        }
        let resolved = confirm::resolve(decisions, pending)?;
        let asks: Vec<AskId> = resolved.answers.iter().map(|(ask, _)| ask.id).collect();
        let calls: Vec<CallId> = resolved.results.iter().map(|(call, _)| *call).collect();
        self.resolve(&found, resolved).await?;
        seen.settle(|fold| Resolved::is_settled(&asks, &calls, fold.pending())).await?;
        Ok(seen)
    }

    /// Goes on without what the task waits for: the client says something else.
    async fn drop_pending(&self, found: &Found, no_calls: bool, asks: Vec<(Ask, Answer)>) -> Result<(), Fault> {
        let results = Vec::new();
        self.answer(found, asks).await?;
        if !no_calls {
            let given = SubmitResults { results, unanswered: Unanswered::Close, by: ClientId::fresh() };
            found.handle.submit_results(given).await?;
        }
        Ok(())
    }

    async fn resolve(&self, found: &Found, resolved: Resolved) -> Result<(), Fault> {
        self.answer(found, resolved.answers).await?;
        if !resolved.results.is_empty() {
            let by = ClientId::fresh();
            let given = SubmitResults { results: resolved.results, unanswered: Unanswered::Wait, by };
            found.handle.submit_results(given).await?;
        }
        Ok(())
    }

    async fn answer(&self, found: &Found, answers: Vec<(Ask, Answer)>) -> Result<(), Fault> {
        for (ask, answer) in answers {
            found.handle.answer(ask.id, answer, ClientId::fresh()).await?;
        }
        Ok(())
    }

    /// The first message of a task, in a conversation that is there or in a new one.
    async fn begin_task(&self, message: Incoming, reply: Reply) -> Result<Follow, Fault> {
        let known = match message.context.as_deref() {
            Some(context) => self.context(context).await?,
            None => None,
        };
        let (handle, is_new) = match known {
            Some(handle) => (handle, false),
            None => (self.new_session(&message).await?, true),
        };
        let id = TaskId::new(handle.id(), fresh_number()?);
        let context = message.context.clone().unwrap_or_else(|| handle.id().to_string());
        let name = Arc::new(TaskName { id, context: context.into() });
        let found = Found { name, handle, start: Seq::START };
        let session = found.handle.id();
        let begun = self.submit(&found, &message, None).await;
        match begun {
            Ok(accepted) => {
                let found = Found { start: Seq(accepted.seq.0.saturating_sub(1)), ..found };
                self.follow_turn(found, accepted, reply).await
            }
            Err(fault) => {
                // It is empty, and no client knows its id.
                if is_new && let Err(error) = self.app.sessions().remove(session, &self.viewer).await {
                    tracing::debug!(%session, %error, "a session that could not begin is left behind");
                }
                Err(fault)
            }
        }
    }

    async fn go_on(
        &self,
        found: Found,
        message: Incoming,
        words: Option<Vec<Content>>,
        reply: Reply,
    ) -> Result<Follow, Fault> {
        let accepted = self.submit(&found, &message, words).await?;
        self.follow_turn(found, accepted, reply).await
    }

    async fn follow_turn(&self, found: Found, accepted: Accepted, reply: Reply) -> Result<Follow, Fault> {
        self.app.index.put(Entry {
            name: Arc::clone(&found.name),
            principal: found.handle.owner().principal,
            start: found.start,
            state: State::Submitted,
            at: Timestamp::now(),
            closed: None,
        });
        let own = Found {
            name: Arc::clone(&found.name),
            handle: found.handle.clone(),
            start: Seq(accepted.seq.0.saturating_sub(1)),
        };
        if reply == Reply::AtOnce {
            // The task is all that the client gets, so it must be there after a power cut too.
            accepted.durable.await.map_err(Error::from)?;
        }
        runner::run(&self.app, self.follow(&own, Until::Entry(accepted.seq), End::AfterItsTurns).await?);
        self.follow(&found, Until::Entry(accepted.seq), End::AtRest).await
    }

    async fn submit(&self, found: &Found, message: &Incoming, words: Option<Vec<Content>>) -> Result<Accepted, Fault> {
        let agent = found.handle.owner().agent;
        if found.start > Seq::START {
            // A new session was begun with the model.
            self.choose_model(&found.handle, message).await?;
        }
        let content = match words {
            Some(words) => words,
            None => content::contents(&message.parts, self.app.parts.catalog.abilities(&agent))?,
        };
        let label = PromptLabel {
            message: message.id.as_str().into(),
            task: found.name.id.to_string().into(),
            context: Arc::clone(&found.name.context),
        };
        let prompt = Prompt { label: Some(label), ..Prompt::new(content) };
        let offer = match tools(&message.metadata["tools"])? {
            // Later messages leave the tools as they are.
            None if found.start == Seq::START => self.operator_tools()?,
            offer => offer,
        };
        let submission = || Submission {
            prompt: prompt.clone(),
            by: ClientId::fresh(),
            precondition: Precondition::Any,
            offer: offer.clone(),
        };
        match found.handle.submit(submission()).await {
            // The agent was opened without an endpoint for tools. The next one is told what was said.
            Err(Error::MovedOn) => {
                found.handle.release_agent().await?;
                Ok(found.handle.submit(submission()).await?)
            }
            accepted => Ok(accepted?),
        }
    }

    fn operator_tools(&self) -> Result<Option<Offer>, Fault> {
        let Some(source) = &self.app.parts.config.operator_tools else { return Ok(None) };
        let list = source.list().map_err(|why| Fault::new(Reason::Gateway(Kind::Internal), why))?;
        tools(&list)
    }

    /// The session of a context: one of any API by its id, or one that the client gave a name.
    async fn context(&self, context: &str) -> Result<Option<SessionHandle>, Fault> {
        let named = self.app.index.context(&self.identity.principal, &context.into());
        let Some(id) = named.or_else(|| SessionId::of_our_form(context)) else { return Ok(None) };
        match self.app.sessions().get(id, &self.viewer).await {
            Ok(handle) => Ok(Some(handle)),
            Err(Error::UnknownSession(_)) if named.is_some() => Ok(None),
            Err(Error::UnknownSession(_)) => {
                Err(Fault::params("this `contextId` was not found; leave it out to begin a conversation"))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn new_session(&self, message: &Incoming) -> Result<SessionHandle, Fault> {
        let (agent, model) = match model(&message.metadata)? {
            Some(name) => {
                let resolved = self.app.parts.catalog.resolve(name)?;
                (resolved.agent, resolved.model)
            }
            None => (self.default_agent()?, None),
        };
        let usual = self.app.sessions().agents().find(|(name, _)| **name == agent);
        let usual = usual.and_then(|(_, setup)| setup.driver.offers()?.model.clone());
        let session = NewSession {
            principal: self.identity.principal.clone(),
            agent,
            workspace: None,
            model: model.clone(),
            mode: None,
            tool_servers: Vec::new(),
            slash: SlashCommands::AsText,
        };
        let handle = self.app.sessions().create(session).await?;
        if let Some(usual) = usual.filter(|usual| model.as_ref().is_some_and(|model| model != usual)) {
            self.app.index.lend_model(handle.id(), usual);
        }
        Ok(handle)
    }

    fn default_agent(&self) -> Result<AgentName, Fault> {
        let missing = || Fault::new(Reason::UnsupportedOperation, "no agent is served here");
        self.app.parts.catalog.agents().next().cloned().ok_or_else(missing)
    }

    /// The model for this message, where it names one, and the session's own otherwise.
    async fn choose_model(&self, handle: &SessionHandle, message: &Incoming) -> Result<(), Fault> {
        let owner = handle.owner();
        let wanted = match model(&message.metadata)? {
            Some(name) => {
                let wanted = self.app.parts.catalog.resolve(name)?;
                if wanted.agent != owner.agent {
                    let agent = &owner.agent;
                    let message =
                        format!("`{name}` is no model of `{agent}`, which has this conversation; begin another");
                    return Err(Fault::params(message));
                }
                wanted.model
            }
            None => self.app.index.usual_model(handle.id()),
        };
        let Some(wanted) = wanted.filter(|wanted| owner.model.as_ref() != Some(wanted)) else { return Ok(()) };
        if model(&message.metadata)?.is_some() {
            let described = handle.describe().await?;
            if let Some(usual) = described.facts.model.or(described.record.model) {
                self.app.index.lend_model(handle.id(), usual);
            }
        }
        handle.change(Change::Model(wanted)).await?;
        Ok(())
    }
}

/// The model that `_model` names.
fn model(metadata: &Value) -> Result<Option<&str>, Fault> {
    match &metadata["_model"] {
        Value::Null => Ok(None),
        Value::String(name) => Ok(Some(name)),
        _ => Err(Fault::params("`metadata._model` is the name of a model")),
    }
}

/// The tools that the client runs. A message without a list leaves them as they are.
fn tools(list: &Value) -> Result<Option<Offer>, Fault> {
    let list = match list {
        Value::Null => return Ok(None),
        Value::Array(list) if list.len() <= MOST_TOOLS => list,
        _ => return Err(Fault::params(format!("`metadata.tools` is a list of at most {MOST_TOOLS} tools"))),
    };
    let mut tools: Vec<ClientTool> = Vec::with_capacity(list.len());
    for described in list {
        let tool = tool(described)?;
        if tools.iter().any(|known| known.name == tool.name) {
            return Err(Fault::params(format!("the tool `{}` stands twice; give each a name of its own", tool.name)));
        }
        tools.push(tool);
    }
    Ok(Some(Offer { tools: tools.into(), format: None }))
}

fn tool(described: &Value) -> Result<ClientTool, Fault> {
    let name = described["name"].as_str().unwrap_or_default();
    let is_sound = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if !(1..=LONGEST_NAME).contains(&name.len()) || !name.bytes().all(is_sound) {
        let message = format!("a tool needs a `name` of letters, digits, `_`, `-` and `.`, at most {LONGEST_NAME}");
        return Err(Fault::params(message));
    }
    let schema = match &described["parameters"] {
        Value::Null => None,
        Value::Object(_) => Some(Opaque(Bytes::from(described["parameters"].to_string()))),
        _ => return Err(Fault::params(format!("`parameters` of the tool `{name}` is a JSON schema, an object"))),
    };
    Ok(ClientTool { name: name.into(), description: described["description"].as_str().map(Into::into), schema })
}

/// Sets a task apart from the others of its session.
fn fresh_number() -> Result<u32, Fault> {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).map_err(|error| {
        Fault::new(Reason::Gateway(Kind::Internal), format!("the system gives no random numbers: {error}"))
    })?;
    Ok(u32::from_le_bytes(bytes))
}
