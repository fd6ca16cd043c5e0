//! Prompts of a client: each becomes a turn and ends, or is cancelled wherever it is.

use gembridge_core::model::{SessionId, TurnId};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::Connection;
use super::calls::{Done, Started};
use crate::acp::error::{CANCELLED, Refusal};
use crate::acp::subscription::{OwnPrompt, When};
use crate::acp::{decode, encode};
use crate::guard::memory_budget::Full;
use crate::jsonrpc::{self, Incoming};

impl Connection {
    pub(super) fn prompt(&mut self, id: &RawValue, params: Option<&RawValue>, text: &str) -> Result<(), Refusal> {
        let session = decode::session(params)?;
        let Some(at) = self.subscriptions.iter().position(|subscription| subscription.name.id == session) else {
            return self.wait_for_subscription(session, text);
        };
        let prompt = decode::prompt(params)?;
        let work_in = decode::work_in(params).map(|folder| (self.context(), folder));
        let mut charge = self.guest.memory.charge();
        charge.try_hold(text.len()).map_err(|full| Refusal::busy(no_memory(full)))?;
        let (subscription, client, request) = (&mut self.subscriptions[at], self.client, id.to_owned());
        let (taken, next) = oneshot::channel::<()>();
        let before = subscription.order.replace(next);
        let cancel = CancellationToken::new();
        subscription.prompts.push_back(OwnPrompt {
            request: request.clone(),
            turn: None,
            memory: Some(charge),
            has_started: false,
            cancel: cancel.clone(),
        });
        let handle = subscription.handle().clone();
        self.calls.spawn(id, async move {
            if let Some(before) = before {
                // It ends when the prompt before was taken or refused.
                drop(before.await);
            }
            if cancel.is_cancelled() {
                return Done::Prompted { session, request, accepted: Err(Refusal::cancelled()) };
            }
            if let Some((context, folder)) = work_in
                && let Err(refusal) = context.work_in(&handle, &folder).await
            {
                return Done::Prompted { session, request, accepted: Err(refusal) };
            }
            let accepted = handle.prompt(prompt, client).await;
            drop(taken);
            let accepted = match accepted {
                // It is in the log and will be answered; what is said of it survives a power cut.
                Ok(accepted) => match accepted.durable.await {
                    Ok(()) => Ok(Started { turn: accepted.turn, ahead: accepted.ahead }),
                    Err(error) => {
                        tracing::error!(%error, "a prompt could not be made safe");
                        Ok(Started { turn: accepted.turn, ahead: accepted.ahead })
                    }
                },
                Err(error) => Err(Refusal::from(error)),
            };
            Done::Prompted { session, request, accepted }
        });
        Ok(())
    }

    /// A client may name a session that it knows from before: it takes its place there first.
    fn wait_for_subscription(&mut self, session: SessionId, text: &str) -> Result<(), Refusal> {
        if let Some(waiting) = self.waiting.get_mut(&session) {
            if waiting.len() >= self.app.parts.config.calls {
                return Err(Refusal::busy("too many requests wait for this session"));
            }
            waiting.push(text.to_owned());
            return Ok(());
        }
        self.check_subscriptions(Some(session))?;
        self.waiting.insert(session, vec![text.to_owned()]);
        let context = self.context();
        self.calls.run(async move {
            let taken = context.attach(session, None, When::AtOnce).await;
            Done::Subscribed { session, request: None, taken }
        });
        Ok(())
    }

    /// Serves what waited for the place that is taken now.
    pub(super) fn serve_waiting(&mut self, session: SessionId) {
        for text in self.waiting.remove(&session).unwrap_or_default() {
            self.on_message(&text);
        }
    }

    pub(super) fn refuse_waiting(&mut self, session: SessionId, refusal: &Refusal) {
        for text in self.waiting.remove(&session).unwrap_or_default() {
            if let Ok(Incoming::Request { id, .. }) = jsonrpc::read(&text) {
                encode::error(self.socket.out(), id, refusal);
            }
        }
    }

    /// Ends the turn that runs, and every prompt of this client that waits.
    pub(super) fn cancel(&mut self, session: SessionId, text: &str) {
        // Prompts that wait for their place are cancelled when they have it, not overtaken.
        if let Some(waiting) = self.waiting.get_mut(&session).filter(|waiting| !waiting.is_empty()) {
            if waiting.len() < 2 * self.app.parts.config.calls {
                waiting.push(text.to_owned());
            }
            return;
        }
        let Some(subscription) = self.subscriptions.iter().find(|subscription| subscription.name.id == session) else {
            let (context, viewer) = (self.context(), self.viewer.clone());
            self.calls.aside(async move { context.app.sessions().get(session, &viewer).await?.cancel().await });
            return;
        };
        for own in &subscription.prompts {
            own.cancel.cancel();
        }
        let turns: Vec<TurnId> = subscription.prompts.iter().filter_map(|own| own.turn).collect();
        let handle = subscription.handle().clone();
        self.calls.aside(async move {
            for turn in turns {
                handle.cancel_turn(turn).await?;
            }
            handle.cancel().await
        });
    }

    pub(super) fn cancel_request(&mut self, request: &RawValue) {
        for subscription in &mut self.subscriptions {
            let handle = subscription.handle().clone();
            if let Some(own) = subscription.own(request) {
                own.cancel.cancel();
                if let Some(turn) = own.turn {
                    self.calls.aside(async move { handle.cancel_turn(turn).await });
                }
                return;
            }
        }
        if self.forget_waiting(request) {
            encode::result(self.socket.out(), request, &json!({ "stopReason": "cancelled" }));
            return;
        }
        if self.calls.abort(request) {
            encode::error(self.socket.out(), request, &Refusal::cancelled());
        }
    }

    /// Takes out the prompt of this request, if it still waits for its place.
    fn forget_waiting(&mut self, request: &RawValue) -> bool {
        let is_it = |text: &String| matches!(jsonrpc::read(text), Ok(Incoming::Request { id, .. }) if id.get() == request.get());
        self.waiting.values_mut().any(|waiting| {
            let found = waiting.iter().position(is_it);
            found.is_some_and(|at| {
                waiting.remove(at);
                true
            })
        })
    }

    pub(super) fn on_prompted(&mut self, session: SessionId, request: &RawValue, accepted: Result<Started, Refusal>) {
        let Some(subscription) = self.subscriptions.iter_mut().find(|subscription| subscription.name.id == session)
        else {
            return;
        };
        match accepted {
            Ok(Started { turn, ahead }) => {
                let Some(own) = subscription.own(request) else { return };
                if ahead > 0 && !own.has_started {
                    let params = json!({ "sessionId": session.to_string(), "turn": turn.0, "ahead": ahead });
                    self.notify("_gembridge/queued", &params);
                }
            }
            Err(refusal) => {
                if subscription.refuse(request).is_none() {
                    return;
                }
                if refusal.code == CANCELLED {
                    encode::result(self.socket.out(), request, &json!({ "stopReason": "cancelled" }));
                } else {
                    encode::error(self.socket.out(), request, &refusal);
                }
            }
        }
    }
}

fn no_memory(full: Full) -> &'static str {
    match full {
        Full::Share => {
            "prompts and requests of this key that wait take up its share of the memory; wait for some to end"
        }
        Full::Budget => "too many large prompts and requests wait at once; try again in a second",
    }
}
