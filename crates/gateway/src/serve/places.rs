//! How many sessions of one agent may be open at once, running and waiting together: whoever opens one more waits
//! until one that only waits is closed for it.

use std::sync::Arc;
use std::time::Duration;

use gembridge_core::BoxFuture;
use gembridge_core::driver::{AgentSession, Change, Changed, Driver, Opened, Parting, SessionSpec};
use gembridge_core::model::{AgentFacts, AgentName, Answer, AskId, Failure, FailureKind, Prompt, SessionFacts};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Longer than any session takes to close.
const PATIENCE: Duration = Duration::from_secs(10);

/// An agent with so many places.
pub struct Placed {
    inner: Arc<dyn Driver>,
    agent: AgentName,
    places: Arc<Semaphore>,
    /// Told when somebody waits for a place.
    wanted: Arc<Notify>,
}

impl Placed {
    pub fn new(inner: Arc<dyn Driver>, agent: AgentName, places: usize, wanted: Arc<Notify>) -> Self {
        let places = Arc::new(Semaphore::new(places.clamp(1, Semaphore::MAX_PERMITS)));
        Self { inner, agent, places, wanted }
    }

    async fn place(&self) -> Result<OwnedSemaphorePermit, Failure> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Ok(place);
        }
        self.wanted.notify_one();
        let waited = tokio::time::timeout(PATIENCE, Arc::clone(&self.places).acquire_owned()).await;
        // The semaphore is never closed, so that only the wait can fail.
        waited.ok().and_then(Result::ok).ok_or_else(|| {
            let problem = format!("every place of agent `{}` is taken; try again in a second", self.agent);
            Failure::new(FailureKind::Unavailable { retry_after: Duration::from_secs(1) }, problem)
        })
    }
}

impl Driver for Placed {
    fn open(&self, spec: SessionSpec) -> BoxFuture<'_, Result<Opened, Failure>> {
        Box::pin(async move {
            let place = self.place().await?;
            let opened = self.inner.open(spec).await?;
            Ok(Opened { agent: Box::new(PlacedSession { inner: opened.agent, place }), ..opened })
        })
    }

    fn facts(&self) -> Option<AgentFacts> {
        self.inner.facts()
    }

    fn offers(&self) -> Option<Arc<SessionFacts>> {
        self.inner.offers()
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        self.inner.shutdown()
    }
}

/// A session that gives its place back when it ends.
struct PlacedSession {
    inner: Box<dyn AgentSession>,
    place: OwnedSemaphorePermit,
}

impl AgentSession for PlacedSession {
    fn process(&self) -> Option<u32> {
        self.inner.process()
    }

    fn prompt(&mut self, prompt: &Prompt) -> Result<(), Failure> {
        self.inner.prompt(prompt)
    }

    fn cancel(&mut self) -> Result<(), Failure> {
        self.inner.cancel()
    }

    fn answer(&mut self, ask: AskId, answer: Answer) -> Result<(), Failure> {
        self.inner.answer(ask, answer)
    }

    fn change(&mut self, change: Change) -> BoxFuture<'static, Result<Changed, Failure>> {
        self.inner.change(change)
    }

    fn close(self: Box<Self>, parting: Parting) -> BoxFuture<'static, ()> {
        let Self { inner, place } = *self;
        let closing = inner.close(parting);
        Box::pin(async move {
            closing.await;
            drop(place);
        })
    }
}
