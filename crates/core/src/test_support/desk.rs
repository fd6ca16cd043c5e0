//! A driver that asks the test for each agent: the test takes each request to open one, and then plays the agent itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::played::{Order, PlayedSession, Player};
use crate::BoxFuture;
use crate::driver::{Change, Changed, CloseMode, Driver, Opened, SessionSpec, Signal};
use crate::model::{AgentFacts, Answer, AskId, Failure, FailureKind, SessionFacts};

/// Longer than every limit of a session. Time is paused in tests with this driver, so a wait in vain costs nothing.
const IN_VAIN: Duration = Duration::from_hours(100);

pub struct DeskDriver {
    requests: mpsc::Sender<OpenRequest>,
    is_shut_down: AtomicBool,
}

/// The test's end of the driver.
pub struct AgentDesk {
    requests: mpsc::Receiver<OpenRequest>,
}

pub struct OpenRequest {
    pub spec: SessionSpec,
    reply: oneshot::Sender<Result<Opened, Failure>>,
}

/// An agent that is played by the test.
pub struct FakeAgent {
    signals: mpsc::Sender<Vec<Signal>>,
    orders: mpsc::Receiver<Order>,
    told: Arc<Told>,
}

/// What is sent to the test that plays an agent.
struct Told {
    orders: mpsc::Sender<Order>,
    /// The changes that wait for their result, oldest first.
    changes: Mutex<Vec<oneshot::Sender<Result<Changed, Failure>>>>,
}

pub fn desk_driver() -> (Arc<DeskDriver>, AgentDesk) {
    let (sender, requests) = mpsc::channel(64);
    (Arc::new(DeskDriver { requests: sender, is_shut_down: AtomicBool::new(false) }), AgentDesk { requests })
}

impl DeskDriver {
    pub fn is_shut_down(&self) -> bool {
        self.is_shut_down.load(Ordering::Acquire)
    }
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
        self.answer(name, Recall::Nothing)
    }

    /// The agent that comes forgets turns that are cut.
    pub fn accept_forgetful(self, name: &str) -> FakeAgent {
        self.answer(name, Recall::WholeTurns)
    }

    /// Opens it with the memory of the session that was asked for.
    pub fn resume(self, name: &str) -> FakeAgent {
        self.answer(name, Recall::Everything)
    }

    pub fn refuse(self, failure: Failure) {
        assert!(self.reply.send(Err(failure)).is_ok(), "somebody waits for the agent");
    }

    /// Whether nobody waits for the agent any more.
    pub fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn answer(self, name: &str, recall: Recall) -> FakeAgent {
        let (sender, signals) = mpsc::channel(64);
        let (order, orders) = mpsc::channel(1024);
        let told = Arc::new(Told { orders: order, changes: Mutex::default() });
        let opened = Opened {
            agent: Box::new(PlayedSession::new(Arc::<Told>::clone(&told))),
            signals,
            facts: SessionFacts::default(),
            agent_session: name.into(),
            resumed: recall == Recall::Everything,
            forgets_cut_turns: recall == Recall::WholeTurns,
        };
        assert!(self.reply.send(Ok(opened)).is_ok(), "somebody waits for the agent");
        FakeAgent { signals: sender, orders, told }
    }
}

/// What an agent that is opened knows of earlier turns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Recall {
    Nothing,
    /// Nothing yet, and later no turn that was cut.
    WholeTurns,
    Everything,
}

impl FakeAgent {
    pub async fn order(&mut self) -> Order {
        let order = tokio::time::timeout(IN_VAIN, self.orders.recv()).await;
        order.expect("the agent is told something").expect("the session holds the agent")
    }

    pub async fn expect_prompt(&mut self, text: &str) {
        match self.order().await {
            Order::Prompt(prompt) => assert_eq!(prompt.plain_text(), text),
            other => panic!("expected the prompt `{text}`, got {other:?}"),
        }
    }

    pub async fn expect_cancel(&mut self) {
        let order = self.order().await;
        assert_eq!(order, Order::Cancel);
    }

    pub async fn expect_answer(&mut self, ask: u64, expected: Answer) {
        let order = self.order().await;
        assert_eq!(order, Order::Answer(AskId(ask), expected));
    }

    pub async fn expect_close(&mut self, expected: CloseMode) {
        let order = self.order().await;
        assert_eq!(order, Order::Close(expected));
    }

    /// The change that is ordered next, and where its result goes.
    pub async fn expect_change(&mut self) -> (Change, oneshot::Sender<Result<Changed, Failure>>) {
        let Order::Change(change) = self.order().await else { panic!("expected a change") };
        let reply = self.told.changes.lock().unwrap_or_else(PoisonError::into_inner).remove(0);
        (change, reply)
    }

    /// What was ordered so far and not looked at.
    pub fn orders_so_far(&mut self) -> Vec<Order> {
        std::iter::from_fn(|| self.orders.try_recv().ok()).collect()
    }

    /// Does something that the session may not care for any more.
    pub fn tries(&self, signal: Signal) {
        self.signals.try_send(vec![signal]).ok();
    }

    /// Whether nothing more was ordered so far.
    pub fn is_left_alone(&self) -> bool {
        self.orders.is_empty()
    }

    /// Does these things at once.
    pub async fn does(&self, signals: impl IntoIterator<Item = Signal>) {
        let signals = signals.into_iter().collect();
        self.signals.send(signals).await.expect("the session listens to its agent");
    }
}

fn gone() -> Failure {
    super::crashed("the agent is gone")
}

impl Player for Told {
    fn order(&self, order: Order) -> Result<(), Failure> {
        self.orders.try_send(order).map_err(|_| gone())
    }

    fn change(&self, change: Change) -> BoxFuture<'static, Result<Changed, Failure>> {
        let (reply, changed) = oneshot::channel();
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).push(reply);
        let told = self.order(Order::Change(change));
        Box::pin(async move {
            told?;
            changed.await.unwrap_or_else(|_| Err(gone()))
        })
    }
}

impl Driver for DeskDriver {
    fn open(&self, spec: SessionSpec) -> BoxFuture<'_, Result<Opened, Failure>> {
        Box::pin(async move {
            let (reply, opened) = oneshot::channel();
            let gone = || Failure::new(FailureKind::Internal, "the test does not play agents any more");
            self.requests.send(OpenRequest { spec, reply }).await.map_err(|_| gone())?;
            opened.await.unwrap_or_else(|_| Err(gone()))
        })
    }

    fn facts(&self) -> Option<AgentFacts> {
        None
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        self.is_shut_down.store(true, Ordering::Release);
        Box::pin(std::future::ready(()))
    }
}
