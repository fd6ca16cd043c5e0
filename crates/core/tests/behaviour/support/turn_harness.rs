//! A turn on a bench: time moves only by [`TurnHarness::wait`], which keeps the turn's deadlines as the actor would.

use std::time::Duration;

use gembridge_core::driver::Signal;
use gembridge_core::error::Error;
use gembridge_core::limit::Limits;
use gembridge_core::model::{
    Answer, AnsweredBy, AskId, CallId, ClientId, Event, Failure, Outcome, ReturnedBy, SessionId, ToolReturn, TurnId,
};
use gembridge_core::session::Unanswered;
use gembridge_core::tool_host::HostedCallId;
use gembridge_core::turn::{Action, Attendance, NewCall, PermissionPolicy, Turn};
use tokio::time::Instant;

use super::tools::{opaque, result};

pub struct TurnHarness {
    pub turn: Turn,
    /// Whether a client is there that can answer; somebody is unless a test says otherwise.
    attendance: Attendance,
    start: Instant,
    now: Instant,
    pub log: Vec<Event>,
    pub orders: Vec<Order>,
}

/// What the turn wanted done at the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    Cancel,
    Answer(AskId, Answer),
    GiveUp,
    Return(CallId, ToolReturn),
}

impl TurnHarness {
    pub fn new(limits: Limits) -> Self {
        Self::with_policy(limits, PermissionPolicy::ask())
    }

    pub fn with_policy(limits: Limits, policy: PermissionPolicy) -> Self {
        let start = Instant::now();
        let turn = Turn::start(SessionId::new(), TurnId(1), limits, policy, start);
        let attendance = Attendance::Somebody;
        let mut harness = Self { turn, attendance, start, now: start, log: Vec::new(), orders: Vec::new() };
        harness.attend(attendance);
        harness
    }

    pub fn attend(&mut self, attendance: Attendance) {
        self.attendance = attendance;
        self.turn.attend(attendance, self.now);
    }

    pub fn agent(&mut self, signal: Signal) {
        self.step(|turn, now, actions| turn.on_agent(signal, now, actions));
    }

    pub fn cancel(&mut self) {
        self.step(Turn::on_cancel);
    }

    pub fn abort(&mut self, failure: Failure) {
        self.step(|turn, now, actions| turn.abort(failure, now, actions));
    }

    pub fn answer(&mut self, ask: u64, answer: Answer) -> Result<(), Error> {
        self.step(|turn, now, actions| turn.on_answer(AskId(ask), answer, ClientId(7), now, actions))
    }

    /// The agent calls a tool of the client.
    pub fn call(&mut self, hosted: u64) -> Result<CallId, ToolReturn> {
        let new = NewCall { hosted: HostedCallId(hosted), tool: "tool".into(), arguments: opaque("{}") };
        self.step(|turn, now, actions| turn.on_call(new, now, actions))
    }

    pub fn withdraw(&mut self, hosted: u64) {
        self.step(|turn, now, actions| turn.on_call_withdrawn(HostedCallId(hosted), now, actions));
    }

    pub fn give(&mut self, call: CallId, unanswered: Unanswered) {
        let results = vec![(call, result("given"))];
        self.step(|turn, now, actions| turn.on_results_given(results, unanswered, ClientId(7), now, actions));
    }

    /// The calls that returned to the agent, and who ended them by the log, in order.
    pub fn returned(&self) -> Vec<(CallId, ReturnedBy)> {
        let returned = self.log.iter().filter_map(|event| match event {
            Event::Returned { call, by, .. } => Some((*call, *by)),
            _ => None,
        });
        let returned: Vec<_> = returned.collect();
        let told = self.orders.iter().filter_map(|order| match order {
            Order::Return(call, _) => Some(*call),
            _ => None,
        });
        assert!(told.eq(returned.iter().map(|(call, _)| *call)), "the log tells what the agent was told");
        returned
    }

    /// Each time the client was told what the agent waits for.
    pub fn parked(&self) -> Vec<Vec<CallId>> {
        let parked = self.log.iter().filter_map(|event| match event {
            Event::Parked(calls) => Some(calls.clone()),
            _ => None,
        });
        parked.collect()
    }

    /// Lets time pass, stopping at each deadline on the way.
    pub fn wait(&mut self, duration: Duration) {
        let end = self.now + duration;
        let mut stops = 0;
        while let Some(deadline) = self.turn.deadline().filter(|deadline| *deadline <= end) {
            self.now = self.now.max(deadline);
            self.turn.attend(self.attendance, self.now);
            self.step(Turn::on_deadline);
            stops += 1;
            assert!(stops < 100_000, "the turn asks to be called again and again without moving on");
        }
        self.now = end;
    }

    pub fn elapsed(&self) -> Duration {
        self.now - self.start
    }

    /// How the turn ended, and that it ended once, at the end of its log.
    pub fn outcome(&self) -> Option<&Outcome> {
        let ends = self.log.iter().filter(|event| matches!(event, Event::Ended(_))).count();
        let outcome = match self.log.last() {
            Some(Event::Ended(outcome)) => Some(outcome),
            Some(_) | None => None,
        };
        assert_eq!(ends, usize::from(outcome.is_some()), "a turn ends once, and last: {:?}", self.log);
        assert_eq!(self.turn.is_ended(), outcome.is_some());
        outcome
    }

    /// The answers that the agent was given, in order.
    pub fn answers(&self) -> Vec<(u64, Answer)> {
        let answers = self.orders.iter().filter_map(|order| match order {
            Order::Answer(ask, answer) => Some((ask.0, answer.clone())),
            Order::Cancel | Order::GiveUp | Order::Return(..) => None,
        });
        answers.collect()
    }

    /// Who decided, by the log, in order.
    pub fn deciders(&self) -> Vec<AnsweredBy> {
        let deciders = self.log.iter().filter_map(|event| match event {
            Event::Answered { by, .. } => Some(*by),
            _ => None,
        });
        deciders.collect()
    }

    fn step<T>(&mut self, step: impl FnOnce(&mut Turn, Instant, &mut Vec<Action>) -> T) -> T {
        let mut actions = Vec::new();
        let result = step(&mut self.turn, self.now, &mut actions);
        for action in actions {
            match action {
                Action::Log { event, .. } => self.log.push(event),
                Action::CancelAgent => self.orders.push(Order::Cancel),
                Action::AnswerAgent { ask, answer } => self.orders.push(Order::Answer(ask, answer)),
                Action::GiveUpAgent => self.orders.push(Order::GiveUp),
                Action::ReturnCall { call, result } => self.orders.push(Order::Return(call, result)),
            }
        }
        result
    }
}
