//! Agents without processes. A script answers each prompt at once, or leaves it to the test.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gembridge_core::BoxFuture;
use gembridge_core::driver::{
    AgentSession, AgentStop, Change, Changed, CloseMode, Driver, Opened, SessionSpec, Signal,
};
use gembridge_core::model::{
    AgentFacts, Answer, AskId, Content, Failure, FailureKind, Model, Prompt, PromptAbilities, SessionFacts,
};
use tokio::sync::{mpsc, watch};

/// Long enough for a machine that has other things to do.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// What an agent does with a prompt: batches of signals, sent at once.
pub type Script = Box<dyn Fn(&Prompted) -> Vec<Vec<Signal>> + Send + Sync>;

/// A prompt, and which one of which agent it is, counted from 0.
pub struct Prompted {
    pub agent: usize,
    pub prompt: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    Prompt(Prompt),
    Cancel,
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
    /// What the next openings end in.
    refusals: Vec<Failure>,
    models: Vec<&'static str>,
    offers: Option<Arc<SessionFacts>>,
    abilities: PromptAbilities,
    /// A session that was lost comes back with its memory.
    resumes: bool,
}

struct Played {
    spec: SessionSpec,
    signals: mpsc::Sender<Vec<Signal>>,
    orders: Vec<Order>,
    dead: bool,
}

impl ScriptedAgents {
    pub fn new(script: impl Fn(&Prompted) -> Vec<Vec<Signal>> + Send + Sync + 'static) -> Arc<Self> {
        let shared = Shared { script: Box::new(script), inner: Mutex::default(), changed: watch::channel(()).0 };
        Arc::new(Self { shared: Arc::new(shared) })
    }

    pub fn with_models(self: Arc<Self>, models: &[&'static str]) -> Arc<Self> {
        self.shared.lock().models = models.to_vec();
        self
    }

    pub fn with_abilities(self: Arc<Self>, abilities: PromptAbilities) -> Arc<Self> {
        self.shared.lock().abilities = abilities;
        self
    }

    /// The next session cannot be opened.
    pub fn refuse_next(&self, failure: Failure) {
        self.shared.lock().refusals.push(failure);
    }

    /// How many sessions were opened.
    pub fn opened(&self) -> usize {
        self.shared.lock().agents.len()
    }

    pub fn spec(&self, agent: usize) -> SessionSpec {
        self.shared.lock().agents[agent].spec.clone()
    }

    pub fn orders(&self, agent: usize) -> Vec<Order> {
        self.shared.lock().agents.get(agent).map(|played| played.orders.clone()).unwrap_or_default()
    }

    /// The prompts that an agent got, as text.
    pub fn prompts(&self, agent: usize) -> Vec<String> {
        let prompts = self.orders(agent).into_iter().filter_map(|order| match order {
            Order::Prompt(prompt) => Some(prompt.plain_text()),
            Order::Cancel | Order::Close => None,
        });
        prompts.collect()
    }

    /// The blocks of the last prompt that an agent got.
    pub fn last_blocks(&self, agent: usize) -> Vec<Content> {
        let prompts = self.orders(agent).into_iter().filter_map(|order| match order {
            Order::Prompt(prompt) => Some(prompt.blocks().into_owned()),
            Order::Cancel | Order::Close => None,
        });
        prompts.last().expect("the agent was prompted")
    }

    /// Does these things as the agent.
    pub async fn does(&self, agent: usize, signals: impl IntoIterator<Item = Signal>) {
        let sender = self.shared.lock().agents[agent].signals.clone();
        sender.send(signals.into_iter().collect()).await.expect("the session listens to its agent");
    }

    /// The agent is gone, and nobody has heard of it yet.
    pub fn kill(&self, agent: usize) {
        self.shared.lock().agents[agent].dead = true;
    }

    /// Sessions that were lost come back with their memory.
    pub fn resume(&self) {
        self.shared.lock().resumes = true;
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

    pub async fn until_prompted(&self, agent: usize) {
        self.until("a prompt", |agents| !agents.prompts(agent).is_empty()).await;
    }

    pub async fn until_cancelled(&self, agent: usize) {
        self.until("a cancel", |agents| agents.orders(agent).contains(&Order::Cancel)).await;
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
        if let Some(model) = &spec.model
            && !inner.models.contains(&&**model)
        {
            return Err(Failure::new(FailureKind::Unsupported, format!("no model `{model}` here")));
        }
        let number = inner.agents.len();
        let (sender, signals) = mpsc::channel(4096);
        let resumed = inner.resumes && spec.resume.is_some();
        let model = |id: &&'static str| Model { id: (*id).into(), name: (*id).into(), description: None };
        let facts = SessionFacts { models: inner.models.iter().map(model).collect(), ..SessionFacts::default() };
        inner.offers = Some(Arc::new(facts.clone()));
        inner.agents.push(Played { spec, signals: sender, orders: Vec::new(), dead: false });
        drop(inner);
        self.changed.send_replace(());
        let agent = Box::new(PlayedSession { shared: Arc::clone(self), number });
        let agent_session = format!("agent-{number}").into();
        Ok(Opened { agent, signals, facts, agent_session, resumed, forgets_cut_turns: false })
    }

    fn order(&self, number: usize, order: Order) -> Result<(), Failure> {
        let mut inner = self.lock();
        let played = &mut inner.agents[number];
        if played.dead {
            return Err(Failure::new(FailureKind::Crashed, "the agent is gone"));
        }
        let batches = match &order {
            Order::Prompt(prompt) => (self.script)(&Prompted { agent: number, prompt: prompt.plain_text() }),
            Order::Cancel => vec![vec![Signal::Done { stop: AgentStop::Cancelled, usage: None }]],
            Order::Close => Vec::new(),
        };
        played.orders.push(order);
        for batch in batches {
            drop(played.signals.try_send(batch));
        }
        drop(inner);
        self.changed.send_replace(());
        Ok(())
    }
}

impl Driver for ScriptedAgents {
    fn open(&self, spec: SessionSpec) -> BoxFuture<'_, Result<Opened, Failure>> {
        Box::pin(async move { self.shared.open(spec) })
    }

    fn facts(&self) -> Option<AgentFacts> {
        Some(AgentFacts { prompt: self.shared.lock().abilities, ..AgentFacts::default() })
    }

    fn offers(&self) -> Option<Arc<SessionFacts>> {
        self.shared.lock().offers.clone()
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
        self.shared.order(self.number, Order::Prompt(prompt.clone()))
    }

    fn cancel(&mut self) -> Result<(), Failure> {
        self.shared.order(self.number, Order::Cancel)
    }

    fn answer(&mut self, _: AskId, _: Answer) -> Result<(), Failure> {
        Ok(())
    }

    /// It can have another of its models, and nothing else.
    fn change(&mut self, change: Change) -> BoxFuture<'static, Result<Changed, Failure>> {
        let changed = match change {
            Change::Model(model) if self.shared.lock().models.contains(&&*model) => {
                Ok(Changed { events: Vec::new(), answer: None })
            }
            _ => Err(Failure::new(FailureKind::Unsupported, "played agents do not change")),
        };
        Box::pin(std::future::ready(changed))
    }

    fn close(self: Box<Self>, _: CloseMode) -> BoxFuture<'static, ()> {
        drop(self.shared.order(self.number, Order::Close));
        Box::pin(std::future::ready(()))
    }
}
