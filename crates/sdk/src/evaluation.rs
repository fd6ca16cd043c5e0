//! From a prompt to its answer: rounds of a turn and its tool calls, each an exchange of the core, until the answer is complete.

mod answer;
mod emitter;
mod exchange_sink;
mod fallback;
mod round;
mod tool_tracker;

use std::collections::BTreeMap;
use std::sync::Arc;

use gembridge_core::error::Error as CoreError;
use gembridge_core::log::{Backpressure, From};
use gembridge_core::model::{self as core, Content, Seq, TurnId};
use gembridge_core::tool_host::{FormatSpec, Offer};
use gembridge_unified::{Context, Fold, Line, Originals};
use schemars::JsonSchema;
use tokio::sync::mpsc;
use tokio::time::Instant;

use self::answer::Answer;
use self::emitter::Emitter;
use crate::budget::Budget;
use crate::builder::AdapterTerms;
use crate::conversation::Conversation;
use crate::error::{ErrorKind, EvaluateError, Phase};
use crate::event::TurnEvent;
use crate::output;
use crate::prompt::{Completion, Prompt, Terms};
use crate::reply::{Reply, Stop, UnifiedMessage, Usage};

/// A prompt, and the form that its answer shall have.
pub(crate) struct Asked {
    prompt: Prompt,
    form: Option<FormatSpec>,
}

impl Asked {
    pub(crate) fn text(prompt: Prompt) -> Self {
        Self { prompt, form: None }
    }

    pub(crate) fn of_type<T: JsonSchema>(prompt: Prompt) -> Self {
        Self { prompt, form: Some(output::form_of::<T>()) }
    }

    /// Refuses what cannot be answered, before anything is started for it.
    pub(crate) fn check(&self, adapter: &AdapterTerms) -> Result<(), EvaluateError> {
        if self.prompt.content.iter().all(Content::is_empty) {
            return Err(EvaluateError::request(ErrorKind::Invalid, "the prompt is empty; say something"));
        }
        let terms = &self.prompt.terms;
        if let Some(budget) = budget(terms, adapter) {
            budget.check()?;
        }
        if deadline(terms, adapter).is_some_and(|deadline| deadline <= Instant::now()) {
            let message = "the deadline had passed before the agent was asked; give a later one";
            return Err(EvaluateError::request(ErrorKind::Deadline, message));
        }
        Ok(())
    }
}

fn budget<'a>(terms: &'a Terms, adapter: &'a AdapterTerms) -> Option<&'a Budget> {
    terms.budget.as_ref().or(adapter.budget.as_ref())
}

/// The prompt's own, or else that of its budget.
fn deadline(terms: &Terms, adapter: &AdapterTerms) -> Option<Instant> {
    terms.deadline.or_else(|| budget(terms, adapter)?.ends())
}

/// The rounds that a completion check may add.
const MOST_CONTINUATIONS: usize = 10;

/// Asks, and waits for the whole answer. Events go out as they come, to whoever takes them.
pub(crate) async fn run(
    conversation: &Arc<Conversation>,
    asked: Asked,
    events: Option<mpsc::Sender<TurnEvent>>,
) -> Result<Reply, EvaluateError> {
    let Asked { prompt: Prompt { content, terms }, form } = asked;
    let deadline = deadline(&terms, conversation.terms());
    let emitter = Emitter::new(conversation, events, deadline);
    let offer = offer(conversation, form.as_ref())?;
    let budget = budget(&terms, conversation.terms()).cloned();
    let used = BTreeMap::new();
    let mut evaluation = Evaluation { conversation, terms, form, offer, deadline, budget, emitter, used, began: None };
    evaluation.answer(content).await
}

/// One prompt on its way to its answer.
struct Evaluation<'a> {
    conversation: &'a Arc<Conversation>,
    terms: Terms,
    form: Option<FormatSpec>,
    offer: Offer,
    deadline: Option<Instant>,
    budget: Option<Budget>,
    emitter: Emitter<'a>,
    /// What each turn used, as its agent last told.
    used: BTreeMap<TurnId, core::Usage>,
    /// The entry before the first prompt.
    began: Option<Seq>,
}

impl Evaluation<'_> {
    async fn answer(&mut self, content: Vec<Content>) -> Result<Reply, EvaluateError> {
        let mut warnings = self.conversation.prepare(&self.offer, self.deadline).await?;
        let mut content = fallback::for_agent(content, self.conversation.engine.abilities(), &mut warnings);
        for warning in &warnings {
            tracing::warn!(adapter = %self.conversation.engine.config.adapter, "{warning}");
            self.emitter.emit(TurnEvent::Warning(warning.clone())).await;
        }
        let handle = self.conversation.handle().await?;
        // Held as long as somebody is here who answers the agent's questions.
        let _presence = handle.join(From::Now, Backpressure::Own).await?.presence;
        let mut rounds = 0;
        loop {
            rounds += 1;
            let answer = self.round(content).await?;
            if rounds == 1 {
                self.check_empty(&answer)?;
            }
            let mut reply = self.reply(answer, rounds, &warnings);
            let Some(check) = &self.terms.check else { return self.with_transcript(reply).await };
            let feedback = match check(&reply) {
                Completion::Done => return self.with_transcript(reply).await,
                Completion::GoOn(feedback) if self.may_go_on(rounds) => feedback,
                Completion::GoOn(_) | Completion::Incomplete => {
                    reply.complete = false;
                    return self.with_transcript(reply).await;
                }
            };
            self.emitter.emit(TurnEvent::Continued { round: rounds + 1, feedback: feedback.clone() }).await;
            content = vec![Content::text(feedback)];
        }
    }

    fn may_go_on(&self, rounds: usize) -> bool {
        let is_late = self.deadline.is_some_and(|deadline| deadline <= Instant::now());
        let is_spent = |budget: &Budget| budget.is_exhausted() || budget.would_exhaust(self.usage());
        let spent = self.budget.as_ref().is_some_and(is_spent);
        rounds <= MOST_CONTINUATIONS && !is_late && !spent
    }

    /// An agent that ends its turn without a word is often one without a login, a model or a quota, and does not say so.
    fn check_empty(&self, answer: &Answer) -> Result<(), EvaluateError> {
        let is_empty = answer.text.is_empty() && answer.tools.is_empty() && answer.stop == Stop::EndTurn;
        if !is_empty || self.form.is_some() || self.conversation.terms().takes_empty_answers {
            return Ok(());
        }
        let agent = &self.conversation.engine.agent;
        let message = format!(
            "agent `{agent}` ended its turn and said nothing; check its login, its model and its quota, or allow it with \
             `allow_empty_answers`"
        );
        Err(EvaluateError::new(Phase::Response, ErrorKind::EmptyResponse, message))
    }

    fn usage(&self) -> Usage {
        self.used.values().map(Usage::of).fold(Usage::default(), Usage::plus)
    }

    fn reply(&self, answer: Answer, rounds: usize, warnings: &[String]) -> Reply {
        let Answer { text, thoughts, tools, stop, plan, .. } = answer;
        Reply {
            text,
            thoughts,
            usage: self.usage().told(),
            tools,
            stop,
            plan,
            rounds,
            complete: true,
            transcript: Vec::new(),
            warnings: warnings.to_vec(),
            session: self.conversation.id.to_string(),
        }
    }

    /// Everything that was said since the prompt, as the session's log has it.
    async fn with_transcript(&self, mut reply: Reply) -> Result<Reply, EvaluateError> {
        let Some(began) = self.began else { return Ok(reply) };
        let engine = &self.conversation.engine;
        let read = engine.store.read(self.conversation.id, began, Seq(u64::MAX), usize::MAX);
        let entries = read.await.map_err(CoreError::from)?;
        let mut fold = Fold::new(Context {
            session_id: self.conversation.id.to_string(),
            agent: engine.agent.to_string(),
            model: engine.config.terms.model.clone(),
            originals: Originals::Leave,
        });
        let lines = entries.iter().flat_map(|entry| fold.push(entry));
        reply.transcript = lines.filter_map(message).collect();
        Ok(reply)
    }
}

impl Drop for Evaluation<'_> {
    /// What was used was used, however the evaluation ended.
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            budget.spend(self.usage());
        }
    }
}

fn message(line: Line) -> Option<UnifiedMessage> {
    match line {
        Line::Assistant { message, .. } | Line::User { message, .. } => Some(message),
        Line::System(_) | Line::Delta(_) | Line::Result(_) => None,
    }
}

/// What the agent is offered: the functions of this program, and the form.
fn offer(conversation: &Conversation, form: Option<&FormatSpec>) -> Result<Offer, EvaluateError> {
    let tools = conversation.terms().tools.iter().map(|tool| tool.declared.clone()).collect();
    let invalid = |wrong: String| EvaluateError::request(ErrorKind::Invalid, format!("the type's schema: {wrong}"));
    let format = match (form, conversation.engine.sessions.tool_host()) {
        (Some(form), Some(host)) => Some(host.format(form).map_err(invalid)?),
        _ => None,
    };
    Ok(Offer { tools, format })
}
