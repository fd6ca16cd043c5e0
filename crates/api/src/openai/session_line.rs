//! Requests that name the same session go one after the other. Whoever waits for the session has no place at its agent
//! meanwhile: others shall not wait for a turn that cannot begin.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gembridge_core::fair::{FairQueue, LineFull, Permit};
use gembridge_core::model::{AgentName, Principal, SessionId};

/// The sessions that somebody uses or waits for.
#[derive(Default)]
pub(super) struct SessionLines {
    of: Mutex<HashMap<SessionId, Line>>,
}

struct Line {
    agent: AgentName,
    queue: FairQueue,
}

/// The right to prompt a session. Dropping it lets the next one in.
pub(super) struct SessionPlace {
    lines: Arc<SessionLines>,
    session: SessionId,
    permit: Option<Permit>,
}

impl SessionLines {
    /// Waits for the session, in a line on the terms of the one before its agent.
    pub(super) async fn wait(
        self: &Arc<Self>,
        session: SessionId,
        (agent, queue): (&AgentName, &FairQueue),
        principal: &Principal,
    ) -> Result<SessionPlace, LineFull> {
        // There before the waiter, so that it is dropped after it: nobody who leaves forgets to clear up.
        let mut place = SessionPlace { lines: Arc::clone(self), session, permit: None };
        let line = || Line { agent: agent.clone(), queue: queue.with_one_place() };
        let waiter = self.lock().entry(session).or_insert_with(line).queue.enter(principal, 1)?;
        place.permit = Some(waiter.await);
        Ok(place)
    }

    /// How many wait for sessions of this agent.
    pub(super) fn waiting(&self, agent: &AgentName) -> usize {
        let of = self.lock();
        of.values().filter(|line| line.agent == *agent).map(|line| line.queue.status().waiting).sum()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Line>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SessionPlace {
    fn drop(&mut self) {
        drop(self.permit.take());
        let mut of = self.lines.lock();
        if of.get(&self.session).is_some_and(|line| line.queue.status().is_empty()) {
            of.remove(&self.session);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use gembridge_core::fair::FairLimits;

    use super::*;

    #[test]
    fn one_after_the_other_and_nothing_is_left_of_a_session_that_nobody_wants() {
        let (lines, ann, name) = (Arc::new(SessionLines::default()), Principal::new("ann"), AgentName::new("demo"));
        let queue = FairQueue::new(FairLimits { waiting: 1, ..FairLimits::default() });
        let agent = (&name, &queue);
        let (session, other) = (SessionId::new(), SessionId::new());
        let mut cx = Context::from_waker(Waker::noop());
        let Poll::Ready(Ok(first)) = pin!(lines.wait(session, agent, &ann)).poll(&mut cx) else { panic!("it is free") };
        assert!(pin!(lines.wait(other, agent, &ann)).poll(&mut cx).is_ready(), "another session is not busy");
        let mut second = Box::pin(lines.wait(session, agent, &ann));
        assert!(second.as_mut().poll(&mut cx).is_pending());
        assert_eq!((lines.waiting(&name), lines.waiting(&AgentName::new("other"))), (1, 0));
        let refused = pin!(lines.wait(session, agent, &ann)).poll(&mut cx);
        assert!(matches!(refused, Poll::Ready(Err(LineFull { waiting: 1, .. }))), "the line is full");
        drop(first);
        assert_eq!(lines.lock().len(), 1);
        // It was let in, and leaves before it knows.
        drop(second);
        assert!(lines.lock().is_empty());
    }
}
