//! One round: a prompt, and as many exchanges as the functions of this program are called in it.

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use gembridge_core::BoxFuture;
use gembridge_core::error::Error as CoreError;
use gembridge_core::exchange::{
    AtOnce, CallIds, CallRef, CallResult, Certainty, Counts, Exchange, FollowUp, OfferedTool, Request, Resolved,
    TokenLimit, ToolChoice, Tools,
};
use gembridge_core::log::LogEntry;
use gembridge_core::model::{
    Answer as AskAnswer, Ask, AskBody, CallName, ClientCall, ClientId, Content, Event, Message, Outcome, Part, Role,
    Seq, Subject, Text,
};
use gembridge_core::session::{SessionHandle, Viewer};
use tokio::time::Instant;

use super::Evaluation;
use super::answer::{Answer, Draft};
use super::exchange_sink::{ExchangeSink, Step};
use super::tool_tracker::ToolTracker;
use crate::engine::owner;
use crate::error::{ErrorKind, EvaluateError, Phase};
use crate::event::TurnEvent;
use crate::permission::{PermissionRequest, Permissions};
use crate::reply::{PlanEntry, Usage};
use crate::tool::{Consequence, Tool, ToolError, returned};

/// Answers to the agent's questions that somebody is still thinking about.
type Answers = FuturesUnordered<BoxFuture<'static, ()>>;

/// How long the end of a turn is waited for beyond the time that an agent may take to stop.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// What became of a call.
type Called = (ClientCall, Result<String, String>);

impl Evaluation<'_> {
    pub(super) async fn round(&mut self, content: Vec<Content>) -> Result<Answer, EvaluateError> {
        let tools = self.conversation.terms().tools.iter().map(Tool::name);
        let mut draft = Draft::new(ToolTracker::new(&self.conversation.engine.config.profile, tools));
        let said = Message { role: Role::User, parts: content.into_iter().map(Part::Content).collect() };
        let mut history = vec![said];
        let mut follow_up = None;
        loop {
            self.exchange(history.clone().into(), follow_up.take(), &mut draft).await?;
            let calls = std::mem::take(&mut draft.calls);
            if calls.is_empty() {
                return Ok(draft.into_answer());
            }
            let results = self.call_tools(calls, &mut draft).await?;
            history.extend(as_messages(&results));
            let result = |(call, result): Called| CallResult {
                call: CallRef::Id(call.id.to_string()),
                result: returned(&result),
            };
            let results = results.into_iter().map(result).collect();
            follow_up = Some(FollowUp { results, unanswered: Vec::new(), more: Vec::new() });
        }
    }

    /// One exchange, until the agent is done or waits for this program.
    async fn exchange(
        &mut self,
        history: Arc<[Message]>,
        follow_up: Option<FollowUp>,
        draft: &mut Draft,
    ) -> Result<(), EvaluateError> {
        let exchanges = &self.conversation.engine.exchanges;
        let named = self.conversation.named().await?;
        let handle = named.handle.clone();
        let request = Request {
            principal: owner(),
            viewer: Viewer::Principal(owner()),
            resolved: Resolved {
                agent: named.owner.agent.clone(),
                model: named.owner.model.clone(),
                certainty: Certainty::Listed,
                fell_back: false,
            },
            session: Some(named),
            history,
            follow_up,
            tools: self.tools(),
            output: self.form.clone(),
            stop: self.terms.stop.clone(),
            limit: self.terms.max_tokens.map(|tokens| TokenLimit { tokens, counts: Counts::Text }),
            answers: 1,
        };
        let mut exchange = exchanges.start(exchanges.plan(request)?, None, None)?;
        let expiry = self.drive(&mut exchange, &handle, draft).await?;
        if exchange.meta().session.is_some_and(|session| session != self.conversation.id) {
            let message = "the agent could not be offered what this prompt needs; begin a new session";
            return Err(EvaluateError::request(ErrorKind::Internal, message));
        }
        let failure = exchange.take_failure();
        let is_finished = matches!(draft.outcome, Some(Outcome::Finished(_)));
        match (failure, expiry) {
            (None, Expiry::NotYet) => Ok(()),
            // It had said its last word by then.
            (None, Expiry::Expired) if is_finished => Ok(()),
            (_, Expiry::Expired) => Err(expired()),
            (Some(failure), Expiry::NotYet) => Err(failure.into()),
        }
    }

    fn tools(&self) -> Tools {
        let tools = &self.conversation.terms().tools;
        let offered = tools.iter().map(|tool| OfferedTool { tool: tool.declared.clone(), strict: true }).collect();
        Tools { offered, choice: ToolChoice::Auto, call_ids: CallIds::Told, at_once: AtOnce::Many }
    }

    /// Follows the exchange to its end. At the deadline the agent is told to stop, and then ended.
    async fn drive(
        &mut self,
        exchange: &mut Exchange,
        handle: &SessionHandle,
        draft: &mut Draft,
    ) -> Result<Expiry, EvaluateError> {
        let mut sink = ExchangeSink::default();
        let mut answers = Answers::new();
        let mut expiry = Expiry::NotYet;
        let mut alarm = pin!(until(self.deadline));
        while !exchange.is_over() {
            tokio::select! {
                // The deadline goes first: an agent that never stops sending must not keep it waiting.
                biased;
                () = &mut alarm => match (expiry, draft.turn) {
                    (Expiry::NotYet, Some(turn)) => {
                        expiry = Expiry::Expired;
                        let last = Instant::now() + self.conversation.engine.config.cancel_grace + LAST_WORDS;
                        alarm.set(until(Some(last)));
                        handle.cancel_turn(turn).await?;
                    }
                    // It waits for its agent still; whoever lets go of it takes it back.
                    (Expiry::NotYet, None) | (Expiry::Expired, _) => return Err(expired()),
                },
                Some(()) = answers.next(), if !answers.is_empty() => {}
                () = poll_fn(|cx| exchange.poll_step(cx, &mut sink)) => {}
            }
            while let Some(step) = sink.steps.pop_front() {
                self.take(step, handle, draft, &mut answers).await?;
            }
        }
        Ok(expiry)
    }

    async fn take(
        &mut self,
        step: Step,
        handle: &SessionHandle,
        draft: &mut Draft,
        answers: &mut Answers,
    ) -> Result<(), EvaluateError> {
        match step {
            Step::Entry(entry) => {
                for missed in self.missed(&entry, draft).await? {
                    self.note(&missed, handle, draft, answers).await;
                }
                self.note(&entry, handle, draft, answers).await;
            }
            Step::Text(text) => {
                draft.text.push_str(&text);
                self.emitter.emit(TurnEvent::Text(text)).await;
            }
            Step::Thought(text) => {
                draft.thoughts.push_str(&text);
                self.emitter.emit(TurnEvent::Thought(text)).await;
            }
            Step::Refusal(text) => {
                draft.is_refused = true;
                draft.text.push_str(&text);
                self.emitter.emit(TurnEvent::Text(text)).await;
            }
            Step::Call(call) => {
                self.emitter.emit(TurnEvent::Tool(draft.tools.called(&call))).await;
                draft.calls.push(call);
            }
            Step::Finish(finish) => draft.finish = Some(finish),
        }
        Ok(())
    }

    /// What happened between two exchanges, while a function of this program ran.
    async fn missed(&self, entry: &LogEntry, draft: &Draft) -> Result<Vec<LogEntry>, EvaluateError> {
        let is_next = draft.seen == Seq::START || entry.seq.0 <= draft.seen.0 + 1;
        if is_next {
            return Ok(Vec::new());
        }
        let store = &self.conversation.engine.store;
        let read = store.read(self.conversation.id, draft.seen, Seq(entry.seq.0 - 1), usize::MAX).await;
        let mut entries = read.map_err(CoreError::from)?;
        entries.retain(|missed| missed.turn.is_some() && missed.turn == draft.turn);
        Ok(entries)
    }

    /// What happened beside the answer's text.
    async fn note(&mut self, entry: &LogEntry, handle: &SessionHandle, draft: &mut Draft, answers: &mut Answers) {
        draft.seen = entry.seq;
        draft.turn = entry.turn.or(draft.turn);
        if self.began.is_none() {
            self.began = Some(Seq(entry.seq.0.saturating_sub(1)));
        }
        let event = match &entry.event {
            Event::Started => TurnEvent::Started { session: self.conversation.id.to_string() },
            Event::ToolCall(call) => match draft.tools.update(call) {
                Some(known) => TurnEvent::Tool(known),
                None => return,
            },
            Event::Asked(ask) => match self.asked(ask, handle, answers) {
                Some(request) => {
                    if let AskBody::Permission { tool, .. } = &ask.body
                        && let Some(known) = draft.tools.update(tool)
                    {
                        self.emitter.emit(TurnEvent::Tool(known)).await;
                    }
                    draft.asked.push(ask.as_ref().clone());
                    TurnEvent::Permission(request)
                }
                None => return,
            },
            Event::Answered { ask, answer, .. } => match draft.decided(*ask, answer) {
                Some(allowed) => TurnEvent::PermissionDecided { allowed },
                None => return,
            },
            Event::Plan(entries) => {
                draft.plan = entries.iter().map(PlanEntry::from).collect();
                TurnEvent::Plan(draft.plan.clone())
            }
            Event::Usage(usage) => {
                if let Some(turn) = entry.turn {
                    self.used.insert(turn, *usage);
                }
                TurnEvent::Usage(Usage::of(usage))
            }
            Event::Mode(mode) => TurnEvent::Mode(mode.to_string()),
            Event::Model(model) => TurnEvent::Model(model.to_string()),
            Event::AgentReplaced { reason } => {
                TurnEvent::Warning(format!("another process of the agent took the session over: {reason}"))
            }
            Event::Other { kind } => TurnEvent::Other(kind.to_string()),
            Event::Ended(outcome) => {
                draft.outcome = Some(outcome.clone());
                return;
            }
            _ => return,
        };
        self.emitter.emit(event).await;
    }

    /// Has a question answered beside everything else. `None`: it is nothing that this program is asked.
    fn asked(&self, ask: &Ask, handle: &SessionHandle, answers: &Answers) -> Option<PermissionRequest> {
        let is_own = matches!(&ask.body, AskBody::Permission { subject: Subject::ClientTool, .. });
        if is_own {
            return None;
        }
        let permissions: Permissions = self.conversation.terms().permissions.clone();
        let (handle, id, asked) = (handle.clone(), ask.id, ask.clone());
        answers.push(Box::pin(async move {
            let Some(answer) = permissions.answer(asked).await else { return };
            match handle.answer(id, answer, ClientId::fresh()).await {
                // The turn ended first, or a clock did.
                Ok(()) | Err(CoreError::NotAsked | CoreError::Closed) => {}
                Err(error) => tracing::warn!(%error, "a permission could not be answered"),
            }
        }));
        PermissionRequest::of(ask)
    }

    /// Runs the functions that the agent waits for, all at once.
    async fn call_tools(&mut self, calls: Vec<ClientCall>, draft: &mut Draft) -> Result<Vec<Called>, EvaluateError> {
        let terms = self.conversation.terms();
        let run = |call: ClientCall| async move {
            let tool = terms.tools.iter().find(|tool| tool.name() == &*call.tool);
            let result = match tool {
                Some(tool) => tool.call(&call.arguments).await,
                None => Err(ToolError::failed(format!("there is no tool `{}`", call.tool))),
            };
            (call, result)
        };
        let done = tokio::select! {
            done = join_all(calls.into_iter().map(run)) => done,
            () = until(self.deadline) => {
                self.end_turn(draft).await?;
                return Err(expired());
            }
        };
        let mut results = Vec::new();
        for (call, result) in done {
            let mut result = match result {
                Ok(text) => Ok(text),
                Err(error) if error.consequence == Consequence::Abort => {
                    self.end_turn(draft).await?;
                    return Err(EvaluateError::new(Phase::Tool, ErrorKind::Aborted, error.message));
                }
                Err(error) => Err(error.message),
            };
            if let Some(known) = draft.tools.returned(&call, &result) {
                if let (Ok(text), Some(hook)) = (&mut result, &terms.after_tool)
                    && let Some(more) = hook(&known)
                {
                    text.push_str("\n\n");
                    text.push_str(&more);
                }
                self.emitter.emit(TurnEvent::Tool(known)).await;
            }
            results.push((call, result));
        }
        Ok(results)
    }

    async fn end_turn(&self, draft: &Draft) -> Result<(), EvaluateError> {
        let Some(turn) = draft.turn else { return Ok(()) };
        Ok(self.conversation.handle().await?.cancel_turn(turn).await?)
    }
}

/// Whether the deadline has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expiry {
    NotYet,
    Expired,
}

fn expired() -> EvaluateError {
    let message = "the deadline passed before the agent had answered; the turn was cancelled. Give a later deadline";
    EvaluateError::request(ErrorKind::Deadline, message)
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => pending().await,
    }
}

/// Calls and results as the history has them, should the turn that waits for them be gone.
fn as_messages(results: &[Called]) -> [Message; 2] {
    let name = |place: usize, call: &ClientCall| CallName {
        tool: Arc::clone(&call.tool),
        number: (results.len() > 1).then_some(place + 1),
    };
    let called = results.iter().enumerate().map(|(place, (call, _))| Part::Call {
        call: name(place, call),
        arguments: Text::shared(call.arguments.0.clone()),
    });
    let results = results.iter().enumerate().flat_map(|(place, (call, result))| {
        let (Ok(text) | Err(text)) = result;
        [Part::ResultOf(name(place, call)), Part::text(text.as_str())]
    });
    [Message { role: Role::Assistant, parts: called.collect() }, Message { role: Role::Tool, parts: results.collect() }]
}

impl Draft {
    /// Whether the question that this answers was one of the program's, and how it was decided.
    fn decided(&mut self, id: gembridge_core::model::AskId, answer: &AskAnswer) -> Option<bool> {
        use gembridge_core::model::OptionKind;

        let at = self.asked.iter().position(|ask| ask.id == id)?;
        let AskBody::Permission { options, .. } = self.asked.swap_remove(at).body else { return None };
        let AskAnswer::Option(chosen) = answer else { return Some(false) };
        let chosen = options.iter().find(|option| option.id == *chosen)?;
        Some(matches!(chosen.kind, OptionKind::AllowOnce | OptionKind::AllowAlways))
    }
}
