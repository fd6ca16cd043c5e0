//! What a client sees of its sessions: what was, what happens, and what it is asked.

use gembridge_core::log::{Batch, LogEntry};
use gembridge_core::model::{AgentName, AskId, Event, Outcome, SessionId, Usage};
use gembridge_core::session::{SessionChange, TurnState};
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;

use super::{Connection, Ending};
use crate::acp::encode::{self, View};
use crate::acp::fanout::Part;
use crate::acp::subscription::{Announce, ReplayEnd, Step};
use crate::acp::wire::Extensions;
use crate::admin::metrics::names;
use crate::websocket::CloseCode;

impl Connection {
    pub(super) fn on_step(&mut self, at: usize, step: Step) {
        match step {
            Step::Begins { from, to } => {
                let Some(subscription) = self.subscriptions.get(at) else { return };
                if subscription.is_announced() {
                    let params = json!({ "sessionId": subscription.name.id.to_string(), "from": from.0, "to": to.0 });
                    self.notify("_gembridge/replay_started", &params);
                }
            }
            Step::Again(entries) => {
                for entry in entries.iter() {
                    self.show(at, entry, View::Replay);
                }
            }
            Step::Live(entries) => self.show_live(at, &entries),
            Step::BeforeSuccessor(entries) => self.on_before_successor(at, &entries),
            Step::Replaced => self.on_replaced(at),
            Step::Over(end) => self.on_replayed(at, &end),
            Step::Failed(error) => {
                tracing::error!(%error, "a log could not be read again");
                self.ending = Some(Ending::Told(CloseCode(1011), "the session's log cannot be read now"));
            }
            Step::Gone => self.on_gone(at),
        }
    }

    /// What looks the same to everybody who watches was written once, for all of them.
    fn show_live(&mut self, at: usize, entries: &Batch) {
        let view = View::Live(self.client);
        let Some(subscription) = self.subscriptions.get(at) else { return };
        let Some(shown) = subscription.place.of(entries) else {
            self.socket.reserve(encode::room_for(entries));
            for entry in entries.iter() {
                self.show(at, entry, view);
            }
            return;
        };
        for part in shown.parts() {
            match part {
                Part::Alike(frames) => self.socket.out().extend_from_slice(frames),
                Part::Own(place) => self.show(at, &entries[place], view),
            }
        }
    }

    pub(super) fn show(&mut self, at: usize, entry: &LogEntry, view: View) {
        let (client, Some(subscription)) = (self.client, self.subscriptions.get_mut(at)) else { return };
        let is_understood = self.extensions == Extensions::Understood;
        let out = self.socket.out();
        match &entry.event {
            Event::Prompted { by, .. } => {
                let is_own = matches!(view, View::Live(_)) && *by == client;
                encode::entry(out, &subscription.name, &mut subscription.template, entry, view);
                if is_own {
                    self.claim(at, entry);
                }
            }
            Event::Started => {
                subscription.usage = Usage::default();
                let is_own = subscription.start(entry.turn);
                if is_understood {
                    encode::turn_started(out, &subscription.name, entry, is_own);
                }
            }
            Event::Usage(used) => {
                subscription.usage = *used;
                if is_understood || entry.frame.is_some() {
                    encode::entry(out, &subscription.name, &mut subscription.template, entry, view);
                }
            }
            Event::Ended(outcome) => {
                if is_understood {
                    encode::turn_ended(out, &subscription.name, entry, outcome, &subscription.usage);
                }
                self.answer_prompt(at, entry, outcome);
            }
            Event::Asked(_) => {
                // On a replay it is only known for the answer that follows; which are open is said at its end.
                subscription.open.push(entry.clone());
                if matches!(view, View::Live(_)) {
                    self.put_question(at, entry);
                }
            }
            Event::Answered { ask, .. } => {
                let unanswered = self.asks.settle(subscription.name.id, *ask);
                let asked = subscription
                    .open
                    .iter()
                    .position(|entry| ask_of(entry) == Some(*ask))
                    .map(|at| subscription.open.remove(at));
                if is_understood {
                    encode::resolved(out, &subscription.name, entry, asked.as_ref(), client);
                    if let Some(request) = unanswered {
                        encode::withdrawn(out, request);
                    }
                }
            }
            // Nothing in the protocol says these; the agent's own frame may.
            Event::AgentReplaced { .. } | Event::Model(_) if !is_understood && entry.frame.is_none() => {}
            _ => encode::entry(out, &subscription.name, &mut subscription.template, entry, view),
        }
    }

    /// A prompt of this client is in the log.
    pub(super) fn claim(&mut self, at: usize, entry: &LogEntry) {
        let (Some(subscription), Some(turn)) = (self.subscriptions.get_mut(at), entry.turn) else { return };
        if subscription.claim(turn) {
            let handle = subscription.handle().clone();
            self.calls.aside(async move { handle.cancel_turn(turn).await });
        }
    }

    /// A turn has ended; whoever asked for it hears how.
    pub(super) fn answer_prompt(&mut self, at: usize, entry: &LogEntry, outcome: &Outcome) {
        let Some(subscription) = self.subscriptions.get_mut(at) else { return };
        let used = std::mem::take(&mut subscription.usage);
        if let Some(own) = subscription.finish(entry.turn) {
            count_tokens(&subscription.agent, &used);
            match encode::prompt_result(outcome, &used, entry) {
                Ok(result) => encode::result(self.socket.out(), &own.request, &result),
                Err(refusal) => encode::error(self.socket.out(), &own.request, &refusal),
            }
        }
    }

    /// Asks this client what the agent asks.
    fn put_question(&mut self, at: usize, entry: &LogEntry) {
        let Event::Asked(ask) = &entry.event else { return };
        let Some(subscription) = self.subscriptions.get(at) else { return };
        let is_form = matches!(ask.body, gembridge_core::model::AskBody::Form { .. });
        if is_form && !self.fills_forms {
            return;
        }
        let Some(id) = self.asks.add(subscription.name.id, ask.id, &ask.body) else { return };
        let patience = u64::try_from(subscription.patience.as_millis()).unwrap_or(u64::MAX);
        encode::asked(self.socket.out(), &subscription.name, entry, ask, id, entry.at.0.saturating_add(patience));
    }

    /// What was is shown; what is still open follows.
    fn on_replayed(&mut self, at: usize, end: &ReplayEnd) {
        let Some(subscription) = self.subscriptions.get_mut(at) else { return };
        subscription.open.clone_from(&end.open);
        let after_replay = std::mem::take(&mut subscription.after_replay);
        if end.is_partial {
            encode::present(self.socket.out(), &subscription.name, &end.description.facts);
        }
        if end.announce == Announce::Yes {
            let found = &end.description;
            let turn = match found.turn {
                TurnState::Idle => json!({ "state": "idle" }),
                TurnState::Opening(id) => json!({ "state": "opening", "id": id.0 }),
                TurnState::Running(id) => json!({ "state": "running", "id": id.0 }),
            };
            let open: Vec<u64> = end.open.iter().filter_map(ask_of).map(|ask| ask.0).collect();
            let mut params = json!({
                "sessionId": subscription.name.id.to_string(),
                "last": found.last.0,
                "turn": turn,
                "queued": found.queued,
                "openRequests": open,
                "truncated": end.is_cut,
            });
            encode::new_session(&mut params, &found.facts);
            self.notify("_gembridge/replay_ended", &params);
        }
        for (request, result) in after_replay {
            encode::result(self.socket.out(), &request, &result);
        }
        for entry in &end.open {
            self.put_question(at, entry);
        }
        self.serve_waiting(end.description.record.id);
    }

    /// Puts a question again whose answer was no good.
    pub(super) fn ask_again(&mut self, session: SessionId, ask: AskId) {
        let Some(at) = self.subscriptions.iter().position(|subscription| subscription.name.id == session) else {
            return;
        };
        let entry = self.subscriptions[at].open.iter().find(|entry| ask_of(entry) == Some(ask)).cloned();
        if let Some(entry) = entry {
            self.put_question(at, &entry);
        }
    }

    fn on_gone(&mut self, at: usize) {
        let mut subscription = self.subscriptions.remove(at);
        self.asks.leave(subscription.name.id);
        let refusal = gembridge_core::error::Error::Closed.into();
        for (request, _) in subscription.take_after_replay() {
            encode::error(self.socket.out(), &request, &refusal);
        }
        // Prompts that came too late for the session to take them.
        self.refuse_prompts(subscription.prompts, &refusal);
        let params = json!({ "sessionId": subscription.name.id.to_string() });
        self.notify("_gembridge/session_closed", &params);
    }

    /// Something changed somewhere; a client that missed some of it is shown everything.
    pub(super) fn on_changed(&mut self, changed: Result<SessionChange, RecvError>) {
        match changed {
            Ok(SessionChange::Shown(view)) => {
                if self.viewer.may_see(&view.record.principal) && crate::acp::methods::is_shown(&view) {
                    let params = json!({ "session": encode::session_entry(&view) });
                    encode::notification(self.socket.out(), "_gembridge/session_changed", &params);
                }
            }
            Ok(SessionChange::Removed { id, principal }) => {
                if self.viewer.may_see(&principal) {
                    let params = json!({ "sessionId": id.to_string() });
                    encode::notification(self.socket.out(), "_gembridge/session_removed", &params);
                }
            }
            Err(RecvError::Lagged(_)) => self.show_all_sessions(),
            Err(RecvError::Closed) => {}
        }
    }
}

/// What the agent reports of a turn that this client asked for, as the requests of the other APIs are counted.
fn count_tokens(agent: &AgentName, used: &Usage) {
    let output = used.output.unwrap_or(0) + used.thought.unwrap_or(0);
    for (kind, tokens) in [("input", used.input.unwrap_or(0)), ("output", output)] {
        metrics::counter!(names::TOKENS, "model" => agent.as_str().to_owned(), "kind" => kind).increment(tokens);
    }
}

fn ask_of(entry: &LogEntry) -> Option<AskId> {
    match &entry.event {
        Event::Asked(ask) => Some(ask.id),
        _ => None,
    }
}
