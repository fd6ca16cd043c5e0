//! A client's places at its sessions: taken, taken anew, and left.

use gembridge_core::log::{Batch, LogEntry};
use gembridge_core::model::{Event, SessionId};
use serde_json::value::RawValue;

use super::Connection;
use super::calls::Done;
use crate::acp::encode::{self, View};
use crate::acp::error::{CANCELLED, Refusal};
use crate::acp::methods::RequestContext;
use crate::acp::subscription::{OwnPrompt, Taken, When};
use crate::acp::{decode, wire};

impl Connection {
    pub(super) fn attach(
        &mut self,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
        context: RequestContext,
    ) -> Result<(), Refusal> {
        let session = decode::session(params)?;
        self.check_subscriptions(Some(session))?;
        let (wish, when) = match method {
            "session/load" => (Some(decode::wishes(params)?.replay), When::AfterReplay),
            "_gembridge/attach" => (Some(decode::params::<wire::ReplayWish>(params)?), When::AtOnce),
            _ => (None, When::AtOnce),
        };
        let from_address = self.wish_of_address(session);
        let wish = wish.map(|wish| if wish == wire::ReplayWish::default() { from_address } else { wish });
        let request = id.to_owned();
        self.calls.spawn(id, async move {
            let taken = context.attach(session, wish, when).await;
            Done::Subscribed { session, request: Some(request), taken }
        });
        Ok(())
    }

    /// What the address asked for holds where a request says nothing; a number only for the session that it is from.
    fn wish_of_address(&self, session: SessionId) -> wire::ReplayWish {
        let wish = self.guest.replay;
        let is_of_another = self.guest.named.is_some_and(|named| named != session);
        wire::ReplayWish { after: wish.after.filter(|_| !is_of_another), ..wish }
    }

    /// Whether there is room for a place at this session, or at a new one.
    pub(super) fn check_subscriptions(&self, session: Option<SessionId>) -> Result<(), Refusal> {
        let most = self.app.parts.config.subscriptions;
        let is_taken = self.subscriptions.iter().any(|subscription| Some(subscription.name.id) == session);
        if is_taken || self.subscriptions.len() + self.waiting.len() < most {
            return Ok(());
        }
        Err(Refusal::busy(format!("a client follows at most {most} sessions; detach from one first")))
    }

    /// The session that the address names, from where the address says.
    pub(super) fn show_named_session(&mut self) {
        // Once, however often a client says who it is.
        let Some(handle) = self.guest.session.take() else { return };
        let (session, wish, context) = (handle.id(), self.guest.replay, self.context());
        self.waiting.entry(session).or_default();
        self.calls.run(async move {
            let taken = context.attach(session, Some(wish), When::AtOnce).await;
            Done::Subscribed { session, request: None, taken }
        });
    }

    pub(super) fn on_subscribed(&mut self, request: Option<Box<RawValue>>, taken: Taken) {
        let Taken { mut subscription, result, when } = taken;
        let session = subscription.name.id;
        let place = self.subscriptions.iter().position(|other| other.name.id == session);
        if place.is_some() && request.is_none() && !subscription.is_announced() {
            // Taken for messages that waited, and another request was faster.
            self.serve_waiting(session);
            return;
        }
        match (request, when) {
            (Some(request), When::AtOnce) => encode::result(self.socket.out(), &request, &result),
            (Some(request), When::AfterReplay) => subscription.after_replay.push((request, result)),
            (None, _) => {}
        }
        match place {
            Some(at) => self.subscriptions[at].hand_over_to(Box::new(subscription)),
            None => self.subscriptions.push(subscription),
        }
    }

    /// What the new subscription of a client neither shows again nor will see happen.
    pub(super) fn on_before_successor(&mut self, at: usize, entries: &Batch) {
        for entry in entries.iter() {
            let Some(subscription) = self.subscriptions.get(at) else { return };
            if subscription.shows_before_successor(entry) {
                self.show(at, entry, View::Live(self.client));
            } else {
                self.keep_account(at, entry);
            }
        }
    }

    /// The client begins anew at the same session: what it waits for stays, and what it was asked is asked again.
    pub(super) fn on_replaced(&mut self, at: usize) {
        let old = self.subscriptions.remove(at);
        self.asks.leave(old.name.id);
        if let Some(successor) = old.into_successor() {
            self.subscriptions.push(successor);
        }
    }

    /// What an entry means for the client's own prompts, without showing it.
    fn keep_account(&mut self, at: usize, entry: &LogEntry) {
        match &entry.event {
            Event::Prompted { by, .. } if *by == self.client => self.claim(at, entry),
            Event::Started => {
                self.subscriptions[at].start(entry.turn);
            }
            Event::Usage(used) => self.subscriptions[at].usage = *used,
            Event::Ended(outcome) => self.answer_prompt(at, entry, outcome),
            _ => {}
        }
    }

    pub(super) fn leave_session(&mut self, session: SessionId) {
        if let Some(at) = self.subscriptions.iter().position(|subscription| subscription.name.id == session) {
            let mut subscription = self.subscriptions.remove(at);
            self.asks.leave(session);
            let refusal = Refusal::new(CANCELLED, "detached", "the client left the session");
            for (request, _) in subscription.take_after_replay() {
                encode::error(self.socket.out(), &request, &refusal);
            }
            self.refuse_prompts(subscription.prompts, &refusal);
        }
    }

    pub(super) fn refuse_prompts(&mut self, prompts: impl IntoIterator<Item = OwnPrompt>, refusal: &Refusal) {
        for own in prompts {
            encode::error(self.socket.out(), &own.request, refusal);
        }
    }
}
