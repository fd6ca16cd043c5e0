//! Agents without processes. A script answers each prompt at once, or leaves it to the test.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use gembridge_core::BoxFuture;
use gembridge_core::driver::{
    AgentSession, AgentStop, Change, Changed, CloseMode, Driver, Opened, SessionSpec, Signal,
};
use gembridge_core::model::{
    AgentFacts, Answer, AskId, Event, Failure, Mode, Model, Opaque, Prompt, PromptAbilities, SessionFacts,
};
use tokio::sync::{mpsc, watch};

/// Long enough for a machine that has other things to do.
pub const PATIENCE: Duration = Duration::from_mins(1);

pub type Script = Box<dyn Fn(&str) -> Vec<Signal> + Send + Sync>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    Prompt(Prompt),
    Cancel,
    Answer(AskId, Answer),
    Change(Change),
    Close,
}

pub struct ScriptedAgents {
    shared: Arc<Shared>,
}

struct Shared {
    script: Script,
    inner: Mutex<Inner>,
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct Inner {
    agents: Vec<Played>,
    refusals: Vec<Failure>,
}

struct Played {
    spec: SessionSpec,
    signals: mpsc::Sender<Vec<Signal>>,
    orders: Vec<Order>,
}

impl ScriptedAgents {
    pub fn new(script: impl Fn(&str) -> Vec<Signal> + Send + Sync + 'static) -> Arc<Self> {
        let shared = Shared { script: Box::new(script), inner: Mutex::default(), changed: watch::channel(()).0 };
        Arc::new(Self { shared: Arc::new(shared) })
    }

    /// Does nothing by itself.
    pub fn silent() -> Arc<Self> {
        Self::new(|_| Vec::new())
    }

    /// Says the prompt back.
    pub fn echo() -> Arc<Self> {
        Self::new(|prompt| vec![super::text(&format!("you said {prompt}")), super::done()])
    }

    pub fn refuse_next(&self, failure: Failure) {
        self.shared.lock().refusals.push(failure);
    }

    pub fn spec(&self, agent: usize) -> SessionSpec {
        self.shared.lock().agents[agent].spec.clone()
    }

    pub fn opened(&self) -> usize {
        self.shared.lock().agents.len()
    }

    pub fn orders(&self, agent: usize) -> Vec<Order> {
        self.shared.lock().agents.get(agent).map(|played| played.orders.clone()).unwrap_or_default()
    }

    pub fn prompts(&self, agent: usize) -> Vec<String> {
        let prompts = self.orders(agent).into_iter().filter_map(|order| match order {
            Order::Prompt(prompt) => Some(prompt.plain_text()),
            _ => None,
        });
        prompts.collect()
    }

    pub fn answers(&self, agent: usize) -> Vec<(AskId, Answer)> {
        let answers = self.orders(agent).into_iter().filter_map(|order| match order {
            Order::Answer(ask, answer) => Some((ask, answer)),
            _ => None,
        });
        answers.collect()
    }

    /// Does these things as the agent.
    pub async fn does(&self, agent: usize, signals: impl IntoIterator<Item = Signal>) {
        let sender = self.shared.lock().agents[agent].signals.clone();
        sender.send(signals.into_iter().collect()).await.expect("the session listens to its agent");
    }

    /// Waits until the agents were told what is asked for.
    pub async fn until(&self, what: &str, mut fits: impl FnMut(&Self) -> bool) {
        let mut changed = self.shared.changed.subscribe();
        let waiting = async {
            while !fits(self) {
                changed.changed().await.expect("the agents is there");
            }
        };
        assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "waited in vain: {what}");
    }

    pub async fn until_prompted(&self, times: usize) {
        self.until("prompts", |agents| agents.prompts(0).len() >= times).await;
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(self: &Arc<Self>, spec: SessionSpec) -> Result<Opened, Failure> {
        let mut inner = self.lock();
        if !inner.refusals.is_empty() {
            return Err(inner.refusals.remove(0));
        }
        let number = inner.agents.len();
        let (sender, signals) = mpsc::channel(4096);
        inner.agents.push(Played { spec, signals: sender, orders: Vec::new() });
        drop(inner);
        self.changed.send_replace(());
        let agent = Box::new(PlayedSession { shared: Arc::clone(self), number });
        Ok(Opened {
            agent,
            signals,
            facts: facts(),
            agent_session: format!("agent-{number}").into(),
            resumed: false,
            forgets_cut_turns: false,
        })
    }

    fn order(&self, number: usize, order: Order) {
        let mut inner = self.lock();
        let played = &mut inner.agents[number];
        let batch = match &order {
            Order::Prompt(prompt) => (self.script)(&prompt.plain_text()),
            Order::Cancel => vec![Signal::Done { stop: AgentStop::Cancelled, usage: None }],
            Order::Answer(..) | Order::Change(_) | Order::Close => Vec::new(),
        };
        played.orders.push(order);
        if !batch.is_empty() {
            drop(played.signals.try_send(batch));
        }
        drop(inner);
        self.changed.send_replace(());
    }
}

fn facts() -> SessionFacts {
    let mode = |id: &str| Mode { id: id.into(), name: id.into(), description: None };
    SessionFacts {
        modes: vec![mode("default"), mode("plan")],
        mode: Some("default".into()),
        models: vec![Model { id: "m1".into(), name: "One".into(), description: Some("the first".into()) }],
        model: Some("m1".into()),
        ..SessionFacts::default()
    }
}

impl Driver for ScriptedAgents {
    fn open(&self, spec: SessionSpec) -> BoxFuture<'_, Result<Opened, Failure>> {
        Box::pin(async move { self.shared.open(spec) })
    }

    fn facts(&self) -> Option<AgentFacts> {
        let prompt = PromptAbilities { image: true, audio: false, embedded: true };
        Some(AgentFacts { name: Some("played".into()), version: Some("1.2".into()), prompt, ..AgentFacts::default() })
    }

    fn offers(&self) -> Option<Arc<SessionFacts>> {
        Some(Arc::new(facts()))
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

struct PlayedSession {
    shared: Arc<Shared>,
    number: usize,
}

impl AgentSession for PlayedSession {
    fn prompt(&mut self, prompt: &Prompt) -> Result<(), Failure> {
        self.shared.order(self.number, Order::Prompt(prompt.clone()));
        Ok(())
    }

    fn cancel(&mut self) -> Result<(), Failure> {
        self.shared.order(self.number, Order::Cancel);
        Ok(())
    }

    fn answer(&mut self, ask: AskId, answer: Answer) -> Result<(), Failure> {
        self.shared.order(self.number, Order::Answer(ask, answer));
        Ok(())
    }

    fn change(&mut self, change: Change) -> BoxFuture<'static, Result<Changed, Failure>> {
        let events = match &change {
            Change::Mode(mode) => vec![Event::Mode(Arc::clone(mode))],
            Change::Model(model) => vec![Event::Model(Arc::clone(model))],
            Change::Option { .. } | Change::Extension { .. } => Vec::new(),
        };
        self.shared.order(self.number, Order::Change(change));
        let answer = Some(Opaque(Bytes::from_static(br#"{"done":true}"#)));
        Box::pin(std::future::ready(Ok(Changed { events, answer })))
    }

    fn close(self: Box<Self>, _: CloseMode) -> BoxFuture<'static, ()> {
        self.shared.order(self.number, Order::Close);
        Box::pin(std::future::ready(()))
    }
}
