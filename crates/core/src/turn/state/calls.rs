//! Calls of the client's tools in a turn. Each waits here until its result comes or something else ends the wait, and
//! gets exactly one reply.

use std::sync::Arc;

use tokio::time::Instant;

use super::{Action, State, Turn};
use crate::model::{CallId, ClientCall, ClientId, Event, Opaque, ReturnedBy, SessionId, ToolReturn};
use crate::session::Unanswered;
use crate::tool_host::HostedCallId;

pub(super) struct Calls {
    session: SessionId,
    /// How many there were in the turn.
    count: u64,
    /// All wait equally long, so the first is also the first to run out of time.
    waiting: Vec<ParkedCall>,
    telling: Announcement,
}

struct ParkedCall {
    call: ClientCall,
    hosted: HostedCallId,
    until: Instant,
}

/// What the client knows of the calls that wait.
enum Announcement {
    /// All of it, or nothing waits.
    Told,
    /// More may follow within the moment.
    Gathering { until: Instant, at_most: Instant },
}

/// Text that trails a call holds the client's news of it up for at most this many times the usual moment.
const LONGEST_GATHERING: u32 = 20;

/// A call as it comes from the place where the agent made it.
#[derive(Clone, Debug)]
pub struct NewCall {
    pub hosted: HostedCallId,
    pub tool: Arc<str>,
    pub arguments: Opaque,
}

impl Calls {
    pub(super) fn none(session: SessionId) -> Self {
        Self { session, count: 0, waiting: Vec::new(), telling: Announcement::Told }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let gathered = match self.telling {
            Announcement::Told => None,
            Announcement::Gathering { until, .. } => Some(until),
        };
        self.waiting.first().map(|parked| parked.until).into_iter().chain(gathered).min()
    }

    fn ids(&self) -> Vec<CallId> {
        self.waiting.iter().map(|parked| parked.call.id).collect()
    }
}

impl Turn {
    /// The calls that wait for the client, oldest first.
    pub fn parked_calls(&self) -> impl Iterator<Item = &ClientCall> {
        self.calls.waiting.iter().map(|parked| &parked.call)
    }

    pub fn awaits(&self, call: CallId) -> bool {
        self.parked_calls().any(|parked| parked.id == call)
    }

    /// Whether the client was told of all that the agent waits for: until its results come the turn stands still.
    pub fn is_parked(&self) -> bool {
        !self.calls.waiting.is_empty() && matches!(self.calls.telling, Announcement::Told)
    }

    /// Whether the agent ever called a tool of the client in this turn.
    pub fn has_called(&self) -> bool {
        self.calls.count > 0
    }

    /// The agent calls a tool of the client. A call that cannot wait is in no log: nobody could answer it.
    pub fn on_call(&mut self, new: NewCall, now: Instant, actions: &mut Vec<Action>) -> Result<CallId, ToolReturn> {
        if !matches!(self.state, State::Running) {
            return Err(ToolReturn::failed("the turn of this call is over; nobody will answer it"));
        }
        self.clock.sign_of_life(now);
        let most = self.limits.parked_calls;
        if self.calls.waiting.len() >= most {
            let message = format!("{most} calls wait for the client already; call again when they have returned");
            return Err(ToolReturn::failed(message.as_str()));
        }
        if !self.takes(new.arguments.0.len(), now, actions) {
            return Err(ToolReturn::failed("the turn ended, since the agent sent too much in it"));
        }
        self.calls.count += 1;
        let id = CallId::new(self.calls.session, self.id, self.calls.count);
        let call = ClientCall { id, tool: new.tool, arguments: new.arguments };
        actions.push(Action::Log { event: Event::Called(Box::new(call.clone())), frame: None });
        self.calls.waiting.push(ParkedCall { call, hosted: new.hosted, until: now + self.limits.tool_result });
        self.clock.wait_begins(now);
        let gather = self.limits.gather;
        self.calls.telling =
            Announcement::Gathering { until: now + gather, at_most: now + gather.saturating_mul(LONGEST_GATHERING) };
        Ok(id)
    }

    /// The client gives results. Those of calls that do not wait are passed over.
    pub fn on_results_given(
        &mut self,
        results: Vec<(CallId, ToolReturn)>,
        unanswered: Unanswered,
        by: ClientId,
        now: Instant,
        actions: &mut Vec<Action>,
    ) {
        let by = ReturnedBy::Client(by);
        if results.iter().any(|(call, _)| self.awaits(*call)) {
            self.clock.restart(now);
        }
        for (call, result) in results {
            self.return_call(call, result, by, now, actions);
        }
        match unanswered {
            Unanswered::Close => {
                self.close_calls("the client went on without a result for this call", by, now, actions);
            }
            Unanswered::Wait if self.calls.waiting.is_empty() => {}
            Unanswered::Wait => self.tell(actions),
        }
    }

    /// The agent does not wait for this call any more.
    pub fn on_call_withdrawn(&mut self, hosted: HostedCallId, now: Instant, actions: &mut Vec<Action>) {
        let call = self.calls.waiting.iter().find(|parked| parked.hosted == hosted).map(|parked| parked.call.id);
        if let Some(call) = call {
            self.clock.sign_of_life(now);
            let result = ToolReturn::failed("the agent took the call back");
            self.return_call(call, result, ReturnedBy::Agent, now, actions);
        }
    }

    /// The agent delivered an answer in the form that was asked for.
    pub fn on_output(&mut self, output: Opaque, now: Instant, actions: &mut Vec<Action>) {
        if !self.is_ended() {
            self.clock.sign_of_life(now);
            if self.takes(output.0.len(), now, actions) {
                actions.push(Action::Log { event: Event::Output(output), frame: None });
            }
        }
    }

    /// The agent still says something of what came before its calls: the client shall have it with them.
    pub(super) fn extend_gathering(&mut self, now: Instant) {
        if let Announcement::Gathering { until, at_most } = &mut self.calls.telling {
            *until = (now + self.limits.gather).min(*at_most);
        }
    }

    pub(super) fn close_calls(&mut self, why: &str, by: ReturnedBy, now: Instant, actions: &mut Vec<Action>) {
        while let Some(parked) = self.calls.waiting.first() {
            self.return_call(parked.call.id, ToolReturn::failed(why), by, now, actions);
        }
    }

    /// Ends the waits that took too long, and tells the client of what has gathered.
    pub(super) fn expire_calls(&mut self, now: Instant, actions: &mut Vec<Action>) {
        while let Some(parked) = self.calls.waiting.first().filter(|parked| parked.until <= now) {
            let seconds = self.limits.tool_result.as_secs();
            let message = format!("the client gave no result within {seconds} s; go on without it");
            let call = parked.call.id;
            self.return_call(call, ToolReturn::failed(message.as_str()), ReturnedBy::Timeout, now, actions);
        }
        if matches!(self.calls.telling, Announcement::Gathering { until, .. } if until <= now) {
            self.tell(actions);
        }
    }

    fn tell(&mut self, actions: &mut Vec<Action>) {
        self.calls.telling = Announcement::Told;
        actions.push(Action::Log { event: Event::Parked(self.calls.ids()), frame: None });
    }

    fn return_call(
        &mut self,
        call: CallId,
        result: ToolReturn,
        by: ReturnedBy,
        now: Instant,
        actions: &mut Vec<Action>,
    ) {
        let Some(at) = self.calls.waiting.iter().position(|parked| parked.call.id == call) else { return };
        self.calls.waiting.remove(at);
        self.clock.wait_ends(now);
        if self.calls.waiting.is_empty() {
            self.calls.telling = Announcement::Told;
        }
        let event = Event::Returned { call, result: Box::new(result.clone()), by };
        actions.push(Action::Log { event, frame: None });
        actions.push(Action::ReturnCall { call, result });
    }
}
