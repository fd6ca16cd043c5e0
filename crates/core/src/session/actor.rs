//! The task that owns a session: it decides with [`Turn`], acts here, and nobody else touches anything.

mod admission;
mod calls;
mod commands;
mod news;
mod offers;
mod status;
mod turns;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep_until};

use self::admission::Slot;
use self::status::StatusKey;
use super::agent::Agent;
use super::ask_ids::AskIds;
use super::handle::{Command, Presence};
use super::journal::Journal;
use super::overview::Overview;
use super::published::PublishedState;
use super::queue::{PromptQueue, Waiting};
use super::result_receipts::ResultReceipts;
use crate::admission::Admission;
use crate::driver::{Change, Changed, CloseMode, Driver, SessionSpec};
use crate::error::Error;
use crate::limit::Limits;
use crate::log::Draft;
use crate::model::{CallId, Failure, FailureKind, Outcome, Seq, SessionFacts, Timestamp, ToolReturn, TurnId};
use crate::store::{SessionRecord, Store, StoreError};
use crate::tool_host::{Offer, ToolHost};
use crate::turn::{Action, Attendance, PermissionPolicy, Turn};

/// What a session is made of.
pub(super) struct Parts {
    pub record: SessionRecord,
    pub published: Arc<PublishedState>,
    pub spec: SessionSpec,
    pub journal: Journal,
    pub last_turn: Option<TurnId>,
    /// As its log tells them, until its agent does.
    pub facts: SessionFacts,
    pub driver: Arc<dyn Driver>,
    pub store: Arc<dyn Store>,
    pub tool_host: Option<Arc<dyn ToolHost>>,
    pub limits: Limits,
    pub policy: PermissionPolicy,
    pub admission: Admission,
    /// Why the agent that knew this session is gone, if there was one.
    pub lost: Option<String>,
    pub overview: Arc<Overview>,
}

pub(super) struct Actor {
    record: SessionRecord,
    published: Arc<PublishedState>,
    spec: SessionSpec,
    journal: Journal,
    driver: Arc<dyn Driver>,
    store: Arc<dyn Store>,
    tool_host: Option<Arc<dyn ToolHost>>,
    limits: Limits,
    policy: PermissionPolicy,
    admission: Admission,
    agent: Agent,
    facts: SessionFacts,
    /// What the agent shall be offered, whichever agent it is.
    offer: Offer,
    /// Those who wait for the agent to read it.
    offering: Vec<oneshot::Sender<Result<(), Error>>>,
    /// Where the agent waits for the results of its calls.
    replies: HashMap<CallId, oneshot::Sender<ToolReturn>>,
    /// The entry that last told the client what the agent waits for, while it still waits.
    told_at: Option<Seq>,
    receipts: ResultReceipts,
    asks: AskIds,
    stage: Stage,
    idle_since: Instant,
    queue: PromptQueue,
    last_turn: TurnId,
    keeping: RecordWrite,
    /// When the session was used since its record was stored: by then it is stored again, and the log with it.
    store_by: Option<Instant>,
    /// An agent was there and was lost: the next one knows nothing.
    lost: Option<String>,
    waking: Vec<oneshot::Sender<Result<SessionFacts, Error>>>,
    /// Those who wait for the session to be closed.
    closing: Vec<oneshot::Sender<Result<(), Error>>>,
    /// Handed to those who can answer questions.
    presence: Presence,
    overview: Arc<Overview>,
    /// What was last posted there; nothing when the record has changed since.
    shown: Option<StatusKey>,
    /// Work that goes on beside the loop: changes at the agent, records, closing agents.
    beside: JoinSet<BackgroundResult>,
}

/// What the session is busy with.
enum Stage {
    Idle,
    /// A prompt waits for a permit of the agent.
    Admitting(Waiting),
    /// A prompt waits for the agent to be ready.
    Opening(Waiting),
    /// The agent is there, and the prompt waits until it has read what it is offered.
    Offering {
        waiting: Waiting,
        until: Instant,
    },
    Running {
        turn: Box<Turn>,
        slot: Slot,
    },
    /// The turn could not be written and is over for us, but not for the agent yet. No prompt goes out before it is.
    Settling {
        until: Instant,
    },
}

impl Stage {
    /// Takes the prompt that waits for the agent, if one does.
    fn take_unsent(&mut self) -> Option<Waiting> {
        match std::mem::replace(self, Self::Idle) {
            Self::Opening(waiting) | Self::Offering { waiting, .. } => Some(waiting),
            other => {
                *self = other;
                None
            }
        }
    }
}

/// How long the disk may know less of a session's use than we do. Only the power can fail in between: what happened is
/// in the log's file at once.
const STORE_AFTER: Duration = Duration::from_secs(2);

/// Closing agents and writing records is waited for at most this long.
const LONGEST_PARTING: Duration = Duration::from_secs(30);

enum BackgroundResult {
    Changed { result: Result<Changed, Failure>, change: Change, reply: oneshot::Sender<Result<Changed, Error>> },
    RecordKept(Result<(), StoreError>),
    Synced(Result<(), StoreError>),
    AgentClosed,
}

/// Whether the record is on its way to the store, and has changed since.
enum RecordWrite {
    Idle,
    Writing { again: bool },
}

enum Next {
    GoOn,
    Stop,
}

impl Actor {
    pub(super) fn new(parts: Parts) -> Self {
        Self {
            record: parts.record,
            published: parts.published,
            spec: parts.spec,
            driver: parts.driver,
            store: parts.store,
            tool_host: parts.tool_host,
            queue: PromptQueue::new(parts.limits.queued_prompts, parts.limits.queued_bytes),
            limits: parts.limits,
            policy: parts.policy,
            admission: parts.admission,
            agent: Agent::Absent,
            facts: parts.facts,
            offer: Offer::default(),
            replies: HashMap::new(),
            told_at: None,
            receipts: ResultReceipts::default(),
            asks: AskIds::after(parts.journal.last()),
            journal: parts.journal,
            offering: Vec::new(),
            stage: Stage::Idle,
            idle_since: Instant::now(),
            last_turn: parts.last_turn.unwrap_or(TurnId(0)),
            keeping: RecordWrite::Idle,
            store_by: None,
            lost: parts.lost,
            waking: Vec::new(),
            closing: Vec::new(),
            presence: Presence::default(),
            overview: parts.overview,
            shown: None,
            beside: JoinSet::new(),
        }
    }

    /// Runs until it is closed or nobody holds its address any more.
    pub(super) async fn run(mut self: Box<Self>, mut mailbox: mpsc::Receiver<Command>) {
        let mut alarm = Alarm::default();
        loop {
            self.show();
            let deadline = match &self.stage {
                Stage::Running { turn, .. } => turn.deadline(),
                Stage::Idle => Some(self.idle_since + self.limits.keep),
                Stage::Settling { until } | Stage::Offering { until, .. } => Some(*until),
                Stage::Admitting(_) | Stage::Opening(_) => None,
            };
            let deadline = [deadline, self.store_by].into_iter().flatten().min();
            let held = self.journal.is_held();
            let next = tokio::select! {
                command = mailbox.recv() => match command {
                    Some(command) => self.on_command(command),
                    None => Next::Stop,
                },
                news = self.agent.news(), if !held => {
                    self.on_news(news);
                    Next::GoOn
                }
                () = self.journal.release(), if held => Next::GoOn,
                permit = self.stage.permit() => {
                    self.on_admitted(permit);
                    Next::GoOn
                }
                () = alarm.ring(deadline) => match self.on_deadline() {
                    // Somebody came at the last moment.
                    Next::Stop if !mailbox.is_empty() => Next::GoOn,
                    next => next,
                },
                Some(done) = self.beside.join_next(), if !self.beside.is_empty() => {
                    self.on_beside(done);
                    Next::GoOn
                }
            };
            if let Next::Stop = next {
                break;
            }
        }
        // From here on the handles say that it is closed; whoever wants it back waits until this task is gone.
        mailbox.close();
        self.shut_down().await;
    }

    fn on_deadline(&mut self) -> Next {
        if self.store_by.is_some_and(|by| by <= Instant::now()) {
            self.store_use();
            return Next::GoOn;
        }
        let followers = self.followers();
        match &self.stage {
            Stage::Running { .. } => {
                let attendance = attendance(&self.presence, &self.overview, &self.record);
                self.with_turn(|turn, now, actions| {
                    turn.attend(attendance, now);
                    turn.on_deadline(now, actions);
                });
            }
            Stage::Offering { .. } => self.on_offer_unread(),
            Stage::Settling { .. } => {
                self.order(Action::GiveUpAgent);
                self.stage = Stage::Idle;
                self.start_next();
            }
            Stage::Idle if followers == 0 => return Next::Stop,
            // Somebody watches: it may stay for another while.
            Stage::Idle | Stage::Admitting(_) | Stage::Opening(_) => self.idle_since = Instant::now(),
        }
        Next::GoOn
    }

    fn on_beside(&mut self, done: Result<BackgroundResult, tokio::task::JoinError>) {
        match done {
            Ok(BackgroundResult::Changed { result, change, reply }) => {
                if let Ok(changed) = &result {
                    self.on_changed(change, changed);
                }
                answer(reply, result.map_err(Error::Agent));
            }
            Ok(BackgroundResult::RecordKept(result)) => self.on_record_kept(result),
            Ok(BackgroundResult::Synced(result)) => report(result.map_err(Error::Store), "the session's log"),
            Ok(BackgroundResult::AgentClosed) => {}
            Err(error) => {
                tracing::error!(session = %self.record.id, %error, "a task of the session panicked");
            }
        }
    }

    fn on_changed(&mut self, change: Change, changed: &Changed) {
        match change {
            Change::Mode(mode) => {
                self.spec.mode = Some(Arc::clone(&mode));
                self.record.mode = Some(mode);
            }
            Change::Model(model) => {
                self.spec.model = Some(Arc::clone(&model));
                self.published.set_model(Arc::clone(&model));
                self.record.model = Some(model);
            }
            Change::Option { .. } | Change::Extension { .. } => {}
        }
        let mut drafts = Vec::new();
        for event in &changed.events {
            self.learn(event);
            drafts.push(Draft { turn: None, event: event.clone(), frame: None });
        }
        self.keep_record();
        report(self.journal.append(drafts).map(|_| ()), "a change of the session");
    }

    /// Notes that the session was used. A disk that is told each time has nothing else to do.
    fn note_use(&mut self) {
        self.record.updated = Timestamp::now();
        self.store_by.get_or_insert_with(|| Instant::now() + STORE_AFTER);
    }

    fn store_use(&mut self) {
        self.store_by = None;
        self.keep_record();
        let synced = self.journal.sync();
        self.beside.spawn(async move { BackgroundResult::Synced(synced.await) });
    }

    /// Stores the record. One write at a time, so that an older one never overtakes a newer one.
    fn keep_record(&mut self) {
        self.shown = None;
        if let RecordWrite::Writing { .. } = self.keeping {
            self.keeping = RecordWrite::Writing { again: true };
            return;
        }
        self.keeping = RecordWrite::Writing { again: false };
        let (store, record) = (Arc::clone(&self.store), self.record.clone());
        let mut kept = Box::pin(async move { store.update(record).await });
        // A store that only notes it is done at once; a task for that would wake another thread.
        match kept.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => self.on_record_kept(result),
            Poll::Pending => drop(self.beside.spawn(async move { BackgroundResult::RecordKept(kept.await) })),
        }
    }

    fn on_record_kept(&mut self, result: Result<(), StoreError>) {
        report(result.map_err(Error::Store), "the session's record");
        let again = matches!(self.keeping, RecordWrite::Writing { again: true });
        self.keeping = RecordWrite::Idle;
        if again {
            self.keep_record();
        }
    }

    fn close_agent(&mut self, close_mode: CloseMode) {
        if let Agent::Live { session, .. } = std::mem::replace(&mut self.agent, Agent::Absent) {
            let closing = session.close(close_mode);
            self.beside.spawn(async move {
                closing.await;
                BackgroundResult::AgentClosed
            });
        }
    }

    async fn shut_down(mut self: Box<Self>) {
        let failure = Failure::new(FailureKind::ShuttingDown, "the session was closed while the turn ran");
        while let Some(waiting) = self.queue.pop() {
            let ended = self.end_unstarted(waiting.turn, Outcome::Interrupted(failure.clone()));
            report(ended, "the end of a turn");
        }
        self.fail_unadmitted(failure.clone());
        self.fail_unsent(failure.clone());
        self.with_turn(|turn, now, actions| turn.abort(failure, now, actions));
        // The disk may have space again since the last attempt.
        report(self.journal.check(), "the end of a turn");
        self.close_agent(CloseMode::Release);
        if self.store_by.take().is_some() {
            self.keep_record();
        }
        report(self.journal.sync().await.map_err(Error::Store), "the session's log");
        self.show_departure();
        for reply in std::mem::take(&mut self.closing) {
            answer(reply, Ok(()));
        }
        let rest = async {
            while let Some(done) = self.beside.join_next().await {
                self.on_beside(done);
            }
        };
        if tokio::time::timeout(LONGEST_PARTING, rest).await.is_err() {
            tracing::warn!("a session left its agent before it had answered everything");
        }
    }
}

/// The one timer of a session. It is moved only to ring earlier: deadlines that move on with every word of an agent do
/// not touch it, and when it rings too early it is set again.
#[derive(Default)]
struct Alarm {
    timer: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    /// Resolves at the deadline; never without one. May be dropped and called again.
    async fn ring(&mut self, deadline: Option<Instant>) {
        let Some(deadline) = deadline else { return std::future::pending().await };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if deadline < timer.deadline() {
            timer.as_mut().reset(deadline);
        }
        loop {
            timer.as_mut().await;
            if deadline <= Instant::now() {
                break;
            }
            timer.as_mut().reset(deadline);
        }
        self.timer = None;
    }
}

/// Whether a client is there that can answer the agent's questions: one of the session, or one that watches the list in
/// which they show.
fn attendance(presence: &Presence, overview: &Overview, record: &SessionRecord) -> Attendance {
    match presence.attendance() {
        Attendance::Nobody if overview.is_watched_for(&record.principal) => Attendance::Somebody,
        attendance => attendance,
    }
}

/// A caller that has gone does not want its answer any more.
fn answer<T>(reply: oneshot::Sender<Result<T, Error>>, result: Result<T, Error>) {
    drop(reply.send(result));
}

fn report(result: Result<(), Error>, what: &str) {
    if let Err(error) = result {
        tracing::error!(%error, "{what} could not be written");
    }
}
