//! Calls of the client's tools: from the endpoint where the agent makes them to the client, and back.

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::admission::{DeferredResults, Slot};
use super::{Actor, Stage, answer};
use crate::error::Error;
use crate::log::Draft;
use crate::model::{CallId, ClientCall, Event, Seq, ToolReturn, TurnId};
use crate::session::agent::Agent;
use crate::session::handle::{Resumed, Resumption, SubmitResults};
use crate::session::result_receipts::Digest;
use crate::session::session_tools::ToolsUpdate;
use crate::tool_host::{HostedCall, ToolNews};
use crate::turn::{Action, NewCall};

/// More than an agent does between two words; the rest of a flood waits for its turn.
const MOST_NEWS_AT_ONCE: usize = 256;

impl Actor {
    pub(super) fn on_tools_update(&mut self, news: ToolsUpdate) {
        match news {
            ToolsUpdate::Tool(news) => {
                let mut actions = Vec::new();
                self.on_tool_news(news, Instant::now(), &mut actions);
                self.act(actions);
            }
            ToolsUpdate::Read => self.on_offer_read(),
            ToolsUpdate::Gone => {
                tracing::warn!(session = %self.record.id, "the endpoint of the client's tools was closed");
                if let Agent::Live { tools, .. } = &mut self.agent {
                    *tools = None;
                }
            }
        }
    }

    /// Takes what the agent did at its endpoint before it went on, though it comes by another way.
    pub(super) fn take_tool_news(&mut self, now: Instant, actions: &mut Vec<Action>) {
        for _ in 0..MOST_NEWS_AT_ONCE {
            let Some(news) = self.agent.tool_news_so_far() else { return };
            self.on_tool_news(news, now, actions);
        }
    }

    fn on_tool_news(&mut self, news: ToolNews, now: Instant, actions: &mut Vec<Action>) {
        let Stage::Running { turn, .. } = &mut self.stage else {
            if let ToolNews::Called(call) = news {
                self.refuse(call, ToolReturn::failed("no turn runs in this session, so nobody could answer the call"));
            }
            return;
        };
        match news {
            ToolNews::Called(HostedCall { id, tool, arguments, reply }) => {
                let new = NewCall { hosted: id, tool: tool.clone(), arguments: arguments.clone() };
                match turn.on_call(new, now, actions) {
                    Ok(call) => drop(self.replies.insert(call, reply)),
                    Err(refusal) => self.refuse(HostedCall { id, tool, arguments, reply }, refusal),
                }
            }
            ToolNews::Withdrawn(call) => turn.on_call_withdrawn(call, now, actions),
            ToolNews::Output(output) => turn.on_output(output, now, actions),
        }
    }

    fn refuse(&self, call: HostedCall, refusal: ToolReturn) {
        tracing::debug!(session = %self.record.id, tool = %call.tool, ?refusal, "a call of a client's tool was refused");
        // An agent that has gone does not want its reply any more.
        drop(call.reply.send(refusal));
    }

    /// Hands the result of a call to the endpoint where the agent waits for it.
    pub(super) fn return_call(&mut self, call: CallId, result: ToolReturn) {
        if let Some(reply) = self.replies.remove(&call)
            && reply.send(result).is_err()
        {
            tracing::debug!(session = %self.record.id, %call, "the agent did not wait for the result of a call");
        }
    }

    pub(super) fn on_results_given(&mut self, given: SubmitResults) -> Result<Resumed, Error> {
        let Some(turn) = given.results.first().map(|(call, _)| call.turn()) else {
            return Err(Error::Invalid("no result was given; name at least one call and its result".into()));
        };
        let (after, how) = match self.sort(turn, &given.results)? {
            ResultsKind::Fresh(receipts) => (self.resolve(given, receipts)?, Resumption::Resolved),
            ResultsKind::Repeated { after } => (after, Resumption::Rejoined),
        };
        Ok(Resumed { turn, after, how, waiting: self.waiting_calls(turn) })
    }

    /// Tells results that are waited for from those that were given before. Anything else is refused.
    fn sort(&self, turn: TurnId, results: &[(CallId, ToolReturn)]) -> Result<ResultsKind, Error> {
        let mut fresh: Vec<(CallId, Digest)> = Vec::new();
        let mut after = Seq::START;
        for (call, result) in results {
            let digest = self.receipts.digest(result);
            if let Some((_, same)) = fresh.iter().find(|(known, _)| known == call) {
                if *same != digest {
                    return Err(Error::Invalid(format!("the call `{call}` has two results here; send one of them")));
                }
            } else if self.awaits(*call) {
                fresh.push((*call, digest));
            } else if let Some(before) = self.receipts.after(*call, digest).filter(|_| call.turn() == turn) {
                after = after.max(before);
            } else {
                return Err(Error::NotParked(*call));
            }
        }
        Ok(if fresh.is_empty() { ResultsKind::Repeated { after } } else { ResultsKind::Fresh(fresh) })
    }

    /// Gives the results to the agent. The number is where whoever gave them reads on.
    fn resolve(&mut self, given: SubmitResults, receipts: Vec<(CallId, Digest)>) -> Result<Seq, Error> {
        let mut actions = Vec::new();
        if let Stage::Running { turn, .. } = &mut self.stage {
            turn.on_results_given(given.results, given.unanswered, given.by, Instant::now(), &mut actions);
        }
        let told_at = self.told_at.take();
        let is_returned = |event: &&Event| matches!(event, Event::Returned { .. });
        let behind = logged(&actions).rev().take_while(|event| !is_returned(event)).count();
        self.act_and_store(actions)?;
        // What trailed the agent's wait belongs to the answer that goes on now.
        let after = told_at.unwrap_or(Seq(self.journal.last().0.saturating_sub(behind as u64)));
        for (call, digest) in receipts {
            self.receipts.note(call, digest, after);
        }
        self.note_use();
        Ok(after)
    }

    fn awaits(&self, call: CallId) -> bool {
        matches!(&self.stage, Stage::Running { turn, .. } if turn.awaits(call))
    }

    fn waiting_calls(&self, turn: TurnId) -> Vec<ClientCall> {
        match &self.stage {
            Stage::Running { turn: running, .. } if running.id() == turn => running.parked_calls().cloned().collect(),
            _ => Vec::new(),
        }
    }

    /// Results of calls. They go to the agent once the turn has a permit again.
    pub(super) fn on_results(&mut self, given: SubmitResults, reply: oneshot::Sender<Result<Resumed, Error>>) {
        let admission = &self.admission;
        if let Stage::Running { turn, slot } = &mut self.stage
            && given.results.iter().any(|(call, _)| turn.awaits(*call))
        {
            match slot {
                Slot::Held(_) => {}
                Slot::Requested { results, .. } if results.len() >= self.limits.parked_calls => {
                    let retry_after = std::time::Duration::from_secs(1);
                    return answer(reply, Err(Error::Busy { what: "the queue of results", retry_after }));
                }
                Slot::Requested { results, .. } => return results.push(DeferredResults { given, reply }),
                Slot::Released => match admission.try_admit(&self.record.principal) {
                    Some(permit) => *slot = Slot::Held(permit),
                    None => match admission.wait(&self.record.principal) {
                        Ok(mut waiter) => {
                            waiter.enter();
                            *slot = Slot::Requested { waiter, results: vec![DeferredResults { given, reply }] };
                            return;
                        }
                        Err(full) => return answer(reply, Err(full.into())),
                    },
                },
            }
        }
        let resumed = self.on_results_given(given);
        answer(reply, resumed);
    }

    pub(super) fn submit_all(&mut self, results: Vec<DeferredResults>) {
        for DeferredResults { given, reply } in results {
            self.on_results(given, reply);
        }
    }

    /// How many of these come after the client is told what the agent waits for, if it is.
    pub(super) fn told_before(&self, drafts: &[Draft]) -> Option<usize> {
        let Stage::Running { turn, .. } = &self.stage else { return None };
        let is_told = |draft: &Draft| matches!(draft.event, Event::Parked(_));
        turn.has_called().then(|| drafts.iter().rev().position(is_told)).flatten()
    }

    /// Notes where the client was told, for as long as something waits.
    pub(super) fn note_told(&mut self, told_before: Option<usize>, last: Seq) {
        if let Some(behind) = told_before {
            self.told_at = Some(Seq(last.0.saturating_sub(behind as u64)));
        }
        if self.told_at.is_some()
            && !matches!(&self.stage, Stage::Running { turn, .. } if turn.parked_calls().next().is_some())
        {
            self.told_at = None;
        }
    }
}

/// Results that came together.
enum ResultsKind {
    /// Some of them are waited for: these.
    Fresh(Vec<(CallId, Digest)>),
    /// All of them were given before.
    Repeated { after: Seq },
}

fn logged(actions: &[Action]) -> impl DoubleEndedIterator<Item = &Event> {
    actions.iter().filter_map(|action| match action {
        Action::Log { event, .. } => Some(event),
        _ => None,
    })
}
