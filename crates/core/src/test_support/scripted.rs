//! A driver whose agents answer each prompt by a script, at once, or leave it to the test.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::{mpsc, watch};

use super::PATIENCE;
use super::played::{Order, PlayedSession, Player};
use crate::BoxFuture;
use crate::driver::{Change, Changed, Driver, Opened, SessionSpec, Signal};
use crate::model::{
    AgentFacts, Answer, AskId, Content, Event, Failure, FailureKind, Model, Opaque, Prompt, PromptAbilities,
    SessionFacts,
};

/// What an agent does with a prompt: batches of signals, sent at once.
type Script = Box<dyn Fn(&Prompted) -> Vec<Vec<Signal>> + Send + Sync>;

/// A prompt, and which agent got it, counted from 0 in the order in which they were opened.
pub struct Prompted {
    pub agent: usize,
    pub prompt: String,
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
    agent_facts: AgentFacts,
    /// What each session says of itself.
    session_facts: SessionFacts,
    is_known: bool,
    change: ChangeTo,
    /// A session that was lost comes back with its memory.
    resumes: bool,
}

/// What a session can be changed to.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum ChangeTo {
    /// Another of its models, and nothing else.
    #[default]
    OwnModels,
    Anything,
}

struct Played {
    spec: SessionSpec,
    signals: mpsc::Sender<Vec<Signal>>,
    orders: Vec<Order>,
    is_dead: bool,
}

impl ScriptedAgents {
    pub fn new(script: impl Fn(&Prompted) -> Vec<Vec<Signal>> + Send + Sync + 'static) -> Arc<Self> {
        let shared = Shared { script: Box::new(script), inner: Mutex::default(), changed: watch::channel(()).0 };
        Arc::new(Self { shared: Arc::new(shared) })
    }

    pub fn with_models(self: Arc<Self>, models: &[&'static str]) -> Arc<Self> {
        let model = |id: &&'static str| Model { id: (*id).into(), name: (*id).into(), description: None };
        self.shared.lock().session_facts.models = models.iter().map(model).collect();
        self
    }

    pub fn with_abilities(self: Arc<Self>, abilities: PromptAbilities) -> Arc<Self> {
        self.shared.lock().agent_facts.prompt = abilities;
        self
    }

    /// Agents that say this of themselves from the start, and do whatever change they are asked for.
    pub fn with_facts(self: Arc<Self>, agent: AgentFacts, session: SessionFacts) -> Arc<Self> {
        let mut inner = self.shared.lock();
        (inner.agent_facts, inner.session_facts, inner.is_known) = (agent, session, true);
        inner.change = ChangeTo::Anything;
        drop(inner);
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

    fn prompted(&self, agent: usize) -> impl Iterator<Item = Prompt> {
        self.orders(agent).into_iter().filter_map(|order| match order {
            Order::Prompt(prompt) => Some(prompt),
            _ => None,
        })
    }

    /// The prompts that an agent got, as text.
    pub fn prompts(&self, agent: usize) -> Vec<String> {
        self.prompted(agent).map(|prompt| prompt.plain_text()).collect()
    }

    /// The blocks of the last prompt that an agent got.
    pub fn last_blocks(&self, agent: usize) -> Vec<Content> {
        self.prompted(agent).last().expect("the agent was prompted").blocks().into_owned()
    }

    /// The answers that an agent got to its questions.
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

    /// The agent is gone, and nobody has heard of it yet.
    pub fn kill(&self, agent: usize) {
        self.shared.lock().agents[agent].is_dead = true;
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
                changed.changed().await.expect("the agents are there");
            }
        };
        assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "waited in vain: {what}");
    }

    pub async fn until_prompted(&self, agent: usize) {
        self.until_prompts(agent, 1).await;
    }

    pub async fn until_prompts(&self, agent: usize, times: usize) {
        self.until("prompts", |agents| agents.prompts(agent).len() >= times).await;
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
            && inner.change == ChangeTo::OwnModels
            && !inner.has_model(model)
        {
            return Err(Failure::new(FailureKind::Unsupported, format!("no model `{model}` here")));
        }
        let number = inner.agents.len();
        let (sender, signals) = mpsc::channel(4096);
        let resumed = inner.resumes && spec.resume.is_some();
        let facts = inner.session_facts.clone();
        inner.is_known = true;
        inner.agents.push(Played { spec, signals: sender, orders: Vec::new(), is_dead: false });
        drop(inner);
        self.changed.send_replace(());
        let agent = Box::new(PlayedSession::new(Arc::new(One { shared: Arc::clone(self), number })));
        let agent_session = format!("agent-{number}").into();
        Ok(Opened { agent, signals, facts, agent_session, resumed, forgets_cut_turns: false })
    }

    fn order(&self, number: usize, order: Order) -> Result<(), Failure> {
        let mut inner = self.lock();
        let played = &mut inner.agents[number];
        if played.is_dead {
            return Err(super::crashed("the agent is gone"));
        }
        let batches = match &order {
            Order::Prompt(prompt) => (self.script)(&Prompted { agent: number, prompt: prompt.plain_text() }),
            Order::Cancel => vec![vec![super::done_cancelled()]],
            Order::Answer(..) | Order::Change(_) | Order::Close(_) | Order::Drop => Vec::new(),
        };
        played.orders.push(order);
        for batch in batches {
            // A session that has ended hears nothing more.
            played.signals.try_send(batch).ok();
        }
        drop(inner);
        self.changed.send_replace(());
        Ok(())
    }

    fn change(&self, number: usize, change: Change) -> Result<Changed, Failure> {
        let inner = self.lock();
        let events = match (&change, inner.change) {
            (Change::Model(model), ChangeTo::OwnModels) if inner.has_model(model) => Vec::new(),
            (_, ChangeTo::OwnModels) => {
                return Err(Failure::new(FailureKind::Unsupported, "played agents do not change"));
            }
            (Change::Mode(mode), ChangeTo::Anything) => vec![Event::Mode(Arc::clone(mode))],
            (Change::Model(model), ChangeTo::Anything) => vec![Event::Model(Arc::clone(model))],
            (Change::Option { .. } | Change::Extension { .. }, ChangeTo::Anything) => Vec::new(),
        };
        drop(inner);
        self.order(number, Order::Change(change))?;
        Ok(Changed { events, answer: Some(Opaque(Bytes::from_static(br#"{"done":true}"#))) })
    }
}

impl Inner {
    fn has_model(&self, id: &str) -> bool {
        self.session_facts.models.iter().any(|model| &*model.id == id)
    }
}

/// One of the agents.
struct One {
    shared: Arc<Shared>,
    number: usize,
}

impl Player for One {
    fn order(&self, order: Order) -> Result<(), Failure> {
        self.shared.order(self.number, order)
    }

    fn change(&self, change: Change) -> BoxFuture<'static, Result<Changed, Failure>> {
        Box::pin(std::future::ready(self.shared.change(self.number, change)))
    }
}

impl Driver for ScriptedAgents {
    fn open(&self, spec: SessionSpec) -> BoxFuture<'_, Result<Opened, Failure>> {
        Box::pin(async move { self.shared.open(spec) })
    }

    fn facts(&self) -> Option<AgentFacts> {
        Some(self.shared.lock().agent_facts.clone())
    }

    fn offers(&self) -> Option<Arc<SessionFacts>> {
        let inner = self.shared.lock();
        inner.is_known.then(|| Arc::new(inner.session_facts.clone()))
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
