//! One session: a conversation of the server, begun by the first message of it.

use std::sync::{Arc, Mutex, PoisonError};

use gembridge_core::BoxFuture;
use gembridge_core::driver::{AgentSession, Change, Changed, CloseMode, Signal, SlashCommands};
use gembridge_core::model::{Answer, AskId, Event, Failure, FailureKind, Prompt};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::driver::Lease;
use super::encode::{self, Place};
use super::turn::{self, Plan};
use crate::acp::prompt_filter::{self, Files};
use crate::profile::CancelBy;
use crate::workspace::{Jail, PrivateDir};

/// Decisions that wait for the turn to take them; one turn asks less at once.
const ANSWERS: usize = 256;

pub(super) struct A2aSession {
    agent: Arc<str>,
    lease: Arc<Lease>,
    terms: Terms,
    place: Arc<Mutex<Place>>,
    signals: mpsc::Sender<Vec<Signal>>,
    answers: Option<mpsc::Sender<(AskId, Answer)>>,
    /// The turn that runs; one at most.
    turns: JoinSet<()>,
    cancel: CancellationToken,
}

/// How a session was asked for.
pub(super) struct Terms {
    pub model: Option<Arc<str>>,
    pub slash: SlashCommands,
    /// What the first message of a task says beside the prompt.
    pub of_task: Value,
    pub cancel_by: CancelBy,
    /// The folder that links of prompts may lead into.
    pub jail: Option<Jail>,
    /// With the client's tools in it; goes with the session.
    pub _folder: Option<PrivateDir>,
}

impl A2aSession {
    pub fn new(agent: Arc<str>, lease: Arc<Lease>, terms: Terms, signals: mpsc::Sender<Vec<Signal>>) -> Self {
        Self {
            agent,
            lease,
            terms,
            place: Arc::default(),
            signals,
            answers: None,
            turns: JoinSet::new(),
            cancel: CancellationToken::new(),
        }
    }

    fn parts(&self, prompt: &Prompt) -> Result<Vec<Value>, Failure> {
        let files = self.terms.jail.as_ref().map_or(Files::None, Files::Workspace);
        let blocks = prompt_filter::filtered(prompt, &files, self.terms.slash)?;
        let takes = self.lease.card.facts.prompt;
        if blocks.iter().any(|block| !takes.takes(block)) {
            let why = format!("agent `{}` says in its card that it takes no such media; send text", self.agent);
            return Err(Failure::new(FailureKind::Unsupported, why));
        }
        encode::parts(&self.agent, self.lease.card.protocol, &blocks)
    }
}

impl AgentSession for A2aSession {
    fn prompt(&mut self, prompt: &Prompt) -> Result<(), Failure> {
        let parts = self.parts(prompt)?;
        let place = lock(&self.place).clone();
        let mut metadata = json!({});
        if place.task.is_none()
            && let Some(fields) = self.terms.of_task.as_object()
        {
            metadata = Value::Object(fields.clone());
        }
        if let Some(model) = self.terms.model.as_ref().filter(|_| self.lease.takes_models()) {
            metadata["_model"] = json!(model);
        }
        self.cancel = CancellationToken::new();
        let (sender, answers) = mpsc::channel(ANSWERS);
        self.answers = Some(sender);
        let (lease, signals) = (Arc::clone(&self.lease), self.signals.clone());
        let plan = Plan {
            agent: Arc::clone(&self.agent),
            server: Arc::clone(&lease.server),
            card: Arc::clone(&lease.card),
            place,
            parts,
            metadata,
            cancel_by: self.terms.cancel_by,
            cancel: self.cancel.clone(),
            answers,
            signals: signals.clone(),
        };
        let next = Arc::clone(&self.place);
        while self.turns.try_join_next().is_some() {}
        self.turns.spawn(async move {
            let running = lease.begin(&plan.cancel);
            let ended = turn::run(plan).await;
            *lock(&next) = ended.place;
            drop(running);
            // Nobody hears it where the session is gone.
            drop(signals.send(vec![lease.judged(ended.signal)]).await);
        });
        Ok(())
    }

    fn cancel(&mut self) -> Result<(), Failure> {
        self.cancel.cancel();
        Ok(())
    }

    fn answer(&mut self, ask: AskId, answer: Answer) -> Result<(), Failure> {
        let gone = || Failure::new(FailureKind::Internal, "the turn that asked is over");
        let answers = self.answers.as_ref().ok_or_else(gone)?;
        answers.try_send((ask, answer)).map_err(|_| gone())
    }

    fn change(&mut self, change: Change) -> BoxFuture<'static, Result<Changed, Failure>> {
        let changed = match change {
            Change::Model(model) if self.lease.takes_models() => {
                self.terms.model = Some(Arc::clone(&model));
                Ok(Changed { events: vec![Event::Model(model)], answer: None })
            }
            Change::Model(_) | Change::Mode(_) | Change::Option { .. } | Change::Extension { .. } => {
                let why = format!("agent `{}` is an A2A server, which has nothing of this kind to set", self.agent);
                Err(Failure::new(FailureKind::Unsupported, why))
            }
        };
        Box::pin(std::future::ready(changed))
    }

    fn process(&self) -> Option<u32> {
        self.lease.pid()
    }

    fn close(mut self: Box<Self>, _: CloseMode) -> BoxFuture<'static, ()> {
        self.cancel.cancel();
        Box::pin(async move {
            // Nobody reads what comes now.
            let (unread, _) = mpsc::channel(1);
            self.signals = unread;
            while self.turns.join_next().await.is_some() {}
        })
    }
}

/// Never held across an await; a panic while it was held left nothing half-done.
fn lock(place: &Mutex<Place>) -> std::sync::MutexGuard<'_, Place> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}
