//! One session: a name that the program knows, and a process for each of its turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use gembridge_core::BoxFuture;
use gembridge_core::driver::{AgentSession, AgentStop, Change, Changed, CloseMode, Signal, SlashCommands, Update};
use gembridge_core::model::{Answer, AskId, Event, Failure, FailureKind, Prompt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::driver::Shared;
use super::encode::{self, Continuity};
use super::error::Trouble;
use super::turn::{self, Ended, Listener, Plan};
use crate::acp::prompt_filter::{self, Files};
use crate::profile::ApprovalMode;
use crate::setup::DriverSetup;
use crate::workspace::{Jail, JailLimits, PrivateDir};

pub(super) struct HeadlessSession {
    shared: Arc<Shared>,
    state: Arc<State>,
    setup: DriverSetup,
    mode: ApprovalMode,
    slash: SlashCommands,
    continuity: Continuity,
    signals: mpsc::Sender<Vec<Signal>>,
    /// The turn that runs; one at most.
    turns: JoinSet<()>,
    cancel: CancellationToken,
}

/// What a turn needs of its session.
pub(super) struct State {
    pub name: Arc<str>,
    pub private: PrivateDir,
    /// Of the present turn; 0 between turns.
    pid: AtomicU32,
}

impl State {
    pub fn new(name: Arc<str>, private: PrivateDir) -> Self {
        Self { name, private, pid: AtomicU32::new(0) }
    }
}

impl HeadlessSession {
    pub(super) fn new(
        shared: Arc<Shared>,
        state: State,
        setup: DriverSetup,
        (mode, slash): (ApprovalMode, SlashCommands),
        continuity: Continuity,
        signals: mpsc::Sender<Vec<Signal>>,
    ) -> Self {
        let cancel = CancellationToken::new();
        Self { shared, state: Arc::new(state), setup, mode, slash, continuity, signals, turns: JoinSet::new(), cancel }
    }

    /// What the program may have of a prompt, as text.
    fn text(&self, prompt: &Prompt) -> Result<bytes::Bytes, Failure> {
        let jail = self.setup.workspace.as_ref().map(|folder| Jail::open(folder, JailLimits::default()));
        let jail = jail.transpose().map_err(|error| {
            Failure::new(FailureKind::Unsupported, format!("the workspace cannot be opened: {error}"))
        })?;
        let files = jail.as_ref().map_or(Files::None, Files::Workspace);
        let blocks = prompt_filter::filtered(prompt, &files, self.slash)?;
        encode::prompt(&self.setup.profile.name, &blocks)
    }
}

impl AgentSession for HeadlessSession {
    fn prompt(&mut self, prompt: &Prompt) -> Result<(), Failure> {
        let text = self.text(prompt)?;
        let headless = self.shared.headless().clone();
        let args = encode::args(&headless, self.mode, &self.state.name, self.continuity);
        // From the first turn on the program has the session, however that turn ends.
        self.continuity = Continuity::GoesOn;
        self.cancel = CancellationToken::new();
        let (shared, state, setup) = (Arc::clone(&self.shared), Arc::clone(&self.state), self.setup.clone());
        let (cancel, signals) = (self.cancel.clone(), self.signals.clone());
        while self.turns.try_join_next().is_some() {}
        self.turns.spawn(async move {
            let running = shared.begin(&cancel);
            let mut listener = ToSession { state: &state, signals: &signals };
            let plan = Plan { setup: &setup, headless: &headless, private: &state.private, args, prompt: text, cancel };
            let ended = turn::run(plan, &mut listener).await;
            state.pid.store(0, Ordering::Relaxed);
            drop(running);
            // Nobody hears it where the session is gone.
            drop(signals.send(vec![last_signal(&shared, &state.name, ended)]).await);
        });
        Ok(())
    }

    fn cancel(&mut self) -> Result<(), Failure> {
        self.cancel.cancel();
        Ok(())
    }

    fn answer(&mut self, _: AskId, _: Answer) -> Result<(), Failure> {
        Err(Failure::new(FailureKind::Internal, "an agent that runs headless asks nothing"))
    }

    fn change(&mut self, change: Change) -> BoxFuture<'static, Result<Changed, Failure>> {
        let changed = match change {
            Change::Mode(word) => self.shared.allowed_mode(&word).map(|mode| {
                self.mode = mode;
                Event::Mode(word)
            }),
            Change::Model(model) => {
                self.setup.model = Some(model.to_string());
                Ok(Event::Model(model))
            }
            Change::Option { .. } | Change::Extension { .. } => Err(Failure::new(
                FailureKind::Unsupported,
                "an agent that runs headless has no options and no extension methods; use the driver `acp`",
            )),
        };
        let changed = changed.map(|event| Changed { events: vec![event], answer: None });
        Box::pin(std::future::ready(changed))
    }

    fn process(&self) -> Option<u32> {
        Some(self.state.pid.load(Ordering::Relaxed)).filter(|pid| *pid != 0)
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

/// The end of a turn, as the core hears of it.
fn last_signal(shared: &Shared, session: &Arc<str>, ended: Ended) -> Signal {
    match ended.end {
        Ok(stop @ AgentStop::Cancelled) => Signal::Done { stop, usage: None },
        Ok(stop) => Signal::Done { stop, usage: ended.usage },
        // It is opened again under a new name, and told what was said.
        Err(Trouble::UnknownSession(failure)) => {
            shared.forget(Arc::clone(session));
            Signal::Lost(failure)
        }
        Err(Trouble::Failed(failure)) => Signal::Failed(failure),
    }
}

struct ToSession<'a> {
    state: &'a State,
    signals: &'a mpsc::Sender<Vec<Signal>>,
}

impl Listener for ToSession<'_> {
    fn started(&mut self, pid: Option<u32>) {
        self.state.pid.store(pid.unwrap_or(0), Ordering::Relaxed);
    }

    fn updates(&mut self, updates: Vec<Update>) -> BoxFuture<'_, ()> {
        let signals = updates.into_iter().map(Signal::Update).collect();
        Box::pin(async move { drop(self.signals.send(signals).await) })
    }
}
