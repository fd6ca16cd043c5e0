//! Agents without processes: a test takes each request to open one, and then plays the agent itself.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use gembridge_core::BoxFuture;
use gembridge_core::driver::{AgentSession, Change, Changed, CloseMode, Driver, Opened, SessionSpec, Signal};
use gembridge_core::model::{AgentFacts, Answer, AskId, Failure, FailureKind, Prompt, SessionFacts};
use tokio::sync::{mpsc, oneshot};

/// Longer than every limit of a session. Time is paused in these tests, so a wait in vain costs nothing.
const IN_VAIN: Duration = Duration::from_hours(100);

pub struct ScriptedDriver {
    doorbell: mpsc::Sender<OpenRequest>,
    pub shut_down: Mutex<bool>,
}

/// The test's end of the driver.
pub struct AgentDesk {
    requests: mpsc::Receiver<OpenRequest>,
}

pub struct OpenRequest {
    pub spec: SessionSpec,
    reply: oneshot::Sender<Result<Opened, Failure>>,
}

/// What the core told an agent to do.
#[derive(Debug)]
pub enum Order {
    Prompt(String),
    Cancel,
    Answer(AskId, Answer),
    Change(Change, oneshot::Sender<Result<Changed, Failure>>),
    Close(CloseMode),
    /// Let go without being closed.
    Drop,
}

/// An agent that is played by the test.
pub struct FakeAgent {
    signals: mpsc::Sender<Vec<Signal>>,
    orders: mpsc::Receiver<Order>,
}

pub fn scripted_driver() -> (Arc<ScriptedDriver>, AgentDesk) {
    let (doorbell, requests) = mpsc::channel(64);
    (Arc::new(ScriptedDriver { doorbell, shut_down: Mutex::new(false) }), AgentDesk { requests })
}

impl AgentDesk {
    pub async fn next(&mut self) -> OpenRequest {
        let request = tokio::time::timeout(IN_VAIN, self.requests.recv()).await;
        request.expect("the session opens an agent").expect("the driver is there")
    }

    /// Opens the next agent that is asked for, under this name.
    pub async fn open(&mut self, name: &str) -> FakeAgent {
        self.next().await.accept(name)
    }

    /// The request that waits, if one does.
    pub fn waiting(&mut self) -> Option<OpenRequest> {
        self.requests.try_recv().ok()
    }

    pub fn is_idle(&mut self) -> bool {
        self.requests.try_recv().is_err()
    }
}

impl OpenRequest {
    /// The agent's own session that shall be loaded, if one shall.
    pub fn wanted(&self) -> Option<&str> {
        self.spec.resume.as_ref().map(|resume| &*resume.agent_session)
    }

    pub fn accept(self, name: &str) -> FakeAgent {
        self.answer(name, false, false)
    }

    /// The agent that comes forgets turns that are cut.
    pub fn accept_forgetful(self, name: &str) -> FakeAgent {
        self.answer(name, false, true)
    }

    /// Opens it with the memory of the session that was asked for.
    pub fn resume(self, name: &str) -> FakeAgent {
        self.answer(name, true, false)
    }

    pub fn refuse(self, failure: Failure) {
        assert!(self.reply.send(Err(failure)).is_ok(), "somebody waits for the agent");
    }

    /// Whether nobody waits for the agent any more.
    pub fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn answer(self, name: &str, resumed: bool, forgets_cut_turns: bool) -> FakeAgent {
        let (signal, signals) = mpsc::channel(64);
        let (order, orders) = mpsc::channel(1024);
        let agent = Box::new(ScriptedSession { orders: order, parted: false });
        let (facts, agent_session) = (SessionFacts::default(), name.into());
        let opened = Opened { agent, signals, facts, agent_session, resumed, forgets_cut_turns };
        assert!(self.reply.send(Ok(opened)).is_ok(), "somebody waits for the agent");
        FakeAgent { signals: signal, orders }
    }
}

impl FakeAgent {
    pub async fn order(&mut self) -> Order {
        let order = tokio::time::timeout(IN_VAIN, self.orders.recv()).await;
        order.expect("the agent is told something").expect("the session holds the agent")
    }

    pub async fn expect_prompt(&mut self, text: &str) {
        match self.order().await {
            Order::Prompt(prompt) => assert_eq!(prompt, text),
            other => panic!("expected the prompt `{text}`, got {other:?}"),
        }
    }

    pub async fn expect_cancel(&mut self) {
        match self.order().await {
            Order::Cancel => {}
            other => panic!("expected a cancel, got {other:?}"),
        }
    }

    pub async fn expect_answer(&mut self, ask: u64, expected: Answer) {
        match self.order().await {
            Order::Answer(id, answer) => assert_eq!((id, answer), (AskId(ask), expected)),
            other => panic!("expected an answer to {ask}, got {other:?}"),
        }
    }

    pub async fn expect_close(&mut self, expected: CloseMode) {
        match self.order().await {
            Order::Close(close_mode) => assert_eq!(close_mode, expected),
            other => panic!("expected a close_mode, got {other:?}"),
        }
    }

    /// What was ordered so far and not looked at.
    pub fn orders_so_far(&mut self) -> Vec<Order> {
        std::iter::from_fn(|| self.orders.try_recv().ok()).collect()
    }

    /// Does something that the session may not care for any more.
    pub fn tries(&self, signal: Signal) {
        drop(self.signals.try_send(vec![signal]));
    }

    /// Whether nothing more was ordered so far.
    pub fn is_left_alone(&mut self) -> bool {
        self.orders.is_empty()
    }

    /// Does these things at once.
    pub async fn does(&self, signals: impl IntoIterator<Item = Signal>) {
        let signals = signals.into_iter().collect();
        self.signals.send(signals).await.expect("the session listens to its agent");
    }
}

impl Driver for ScriptedDriver {
    fn open(&self, spec: SessionSpec) -> BoxFuture<'_, Result<Opened, Failure>> {
        Box::pin(async move {
            let (reply, opened) = oneshot::channel();
            let gone = || Failure::new(FailureKind::Internal, "the test does not play agents any more");
            self.doorbell.send(OpenRequest { spec, reply }).await.map_err(|_| gone())?;
            opened.await.unwrap_or_else(|_| Err(gone()))
        })
    }

    fn facts(&self) -> Option<AgentFacts> {
        None
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        *self.shut_down.lock().expect("nothing panics with it") = true;
        Box::pin(std::future::ready(()))
    }
}

struct ScriptedSession {
    orders: mpsc::Sender<Order>,
    parted: bool,
}

impl ScriptedSession {
    fn tell(&self, order: Order) -> Result<(), Failure> {
        self.orders.try_send(order).map_err(|_| Failure::new(FailureKind::Crashed, "the agent is gone"))
    }
}

impl AgentSession for ScriptedSession {
    fn prompt(&mut self, prompt: &Prompt) -> Result<(), Failure> {
        self.tell(Order::Prompt(prompt.plain_text()))
    }

    fn cancel(&mut self) -> Result<(), Failure> {
        self.tell(Order::Cancel)
    }

    fn answer(&mut self, ask: AskId, answer: Answer) -> Result<(), Failure> {
        self.tell(Order::Answer(ask, answer))
    }

    fn change(&mut self, change: Change) -> BoxFuture<'static, Result<Changed, Failure>> {
        let (reply, changed) = oneshot::channel();
        let told = self.tell(Order::Change(change, reply));
        Box::pin(async move {
            told?;
            changed.await.unwrap_or_else(|_| Err(Failure::new(FailureKind::Crashed, "the agent is gone")))
        })
    }

    fn close(mut self: Box<Self>, close_mode: CloseMode) -> BoxFuture<'static, ()> {
        self.parted = true;
        drop(self.tell(Order::Close(close_mode)));
        Box::pin(std::future::ready(()))
    }
}

impl Drop for ScriptedSession {
    fn drop(&mut self) {
        if !self.parted {
            drop(self.tell(Order::Drop));
        }
    }
}
