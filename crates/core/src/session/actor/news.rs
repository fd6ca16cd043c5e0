//! What the agent does, and what it changes.

use std::sync::Arc;

use tokio::time::Instant;

use super::{Actor, Stage, answer, attendance, report};
use crate::driver::{Signal, Update};
use crate::error::Error;
use crate::log::Draft;
use crate::model::{Answer, AnsweredBy, Event, Failure, FailureKind, Outcome};
use crate::session::agent::{Agent, AgentNews, Arrival, CutTurns, Untold};
use crate::session::queue::Memory;
use crate::turn::Action;

impl Actor {
    pub(super) fn on_news(&mut self, news: AgentNews) {
        match news {
            AgentNews::Opened(Ok(opened)) => self.on_opened(opened),
            AgentNews::Opened(Err(failure)) => self.on_open_failed(failure),
            AgentNews::Signals(signals) => self.on_signals(signals),
            AgentNews::Tools(news) => self.on_tools_update(news),
            AgentNews::Vanished => {
                let failure = Failure::new(FailureKind::Internal, "the driver let go of the session");
                self.on_signals(vec![Signal::Lost(failure)]);
            }
        }
    }

    fn on_opened(&mut self, Arrival { opened, recap }: Arrival) {
        tracing::info!(
            target: "gembridge::audit",
            principal = self.record.principal.name(),
            session = %self.record.id,
            agent = %self.record.agent,
            agent_pid = opened.agent.process(),
            "agent"
        );
        self.facts = opened.facts;
        let untold =
            recap.map(|recap| Untold { recap, agent_session: Arc::clone(&opened.agent_session), told_in: None });
        if untold.is_none() {
            self.record.agent_session = Some(opened.agent_session);
            self.keep_record();
        }
        let cut_turns = if opened.forgets_cut_turns { CutTurns::Forgets } else { CutTurns::Remembers };
        self.asks.forget_all();
        self.agent.arrive(opened.agent, opened.signals, untold, cut_turns);
        if let Some(reason) = self.lost.take().filter(|_| !opened.resumed) {
            let replaced = Draft { turn: None, event: Event::AgentReplaced { reason }, frame: None };
            let logged = self.journal.append(vec![replaced]);
            report(logged.map(|_| ()), "the loss of an agent");
        }
        for reply in self.waking.drain(..) {
            answer(reply, Ok(self.facts.clone()));
        }
        if !opened.resumed {
            self.end_if_forgotten();
        }
        if let Err(unsent) = self.send_prompt() {
            self.end_unsent(unsent);
        }
        self.start_next();
    }

    /// The new agent knows nothing: a prompt that builds on what was said would be answered wrongly.
    fn end_if_forgotten(&mut self) {
        if let Stage::Opening(waiting) = &self.stage
            && waiting.memory == Memory::Needed
        {
            let turn = waiting.turn;
            self.stage = Stage::Idle;
            let failure = Failure::new(
                FailureKind::Crashed,
                "the agent that knew this conversation is gone; send the whole history again",
            );
            let ended = self.end_unstarted(turn, Outcome::Interrupted(failure));
            report(ended, "the end of a turn");
        }
    }

    fn on_open_failed(&mut self, failure: Failure) {
        self.agent = Agent::Absent;
        for reply in self.waking.drain(..) {
            answer(reply, Err(Error::Agent(failure.clone())));
        }
        self.fail_unsent(failure);
        self.start_next();
    }

    fn on_signals(&mut self, signals: Vec<Signal>) {
        let now = Instant::now();
        let mut actions = Vec::with_capacity(signals.len() + 1);
        for mut signal in signals {
            if let Signal::Update(update) = &mut signal {
                self.asks.number(&mut update.event);
                self.learn(&update.event);
            }
            if !matches!(signal, Signal::Update(_)) {
                // It did that before it came to its end.
                self.take_tool_news(now, &mut actions);
            }
            if let Signal::Lost(failure) = &signal {
                self.agent = Agent::Absent;
                self.agent_lost(failure.message.clone());
                if self.begin_again(failure, &mut actions) {
                    continue;
                }
            }
            match &mut self.stage {
                Stage::Running { turn, .. } if !turn.is_ended() => {
                    if matches!(&signal, Signal::Update(Update { event: Event::Asked(_), .. })) {
                        turn.attend(attendance(&self.presence, &self.overview, &self.record), now);
                    }
                    turn.on_agent(signal, now, &mut actions);
                }
                Stage::Settling { .. } => self.settle(signal, &mut actions),
                // It was lost while it read the list of tools: the next one would fare no better.
                Stage::Offering { .. } if matches!(signal, Signal::Lost(_)) => {
                    if let Signal::Lost(failure) = signal {
                        self.fail_unsent(failure);
                    }
                }
                // Between turns only what the session itself tells is of interest.
                Stage::Idle
                | Stage::Admitting(_)
                | Stage::Opening(_)
                | Stage::Offering { .. }
                | Stage::Running { .. } => {
                    if let Signal::Update(update) = signal {
                        between_turns(update, &mut actions);
                    }
                }
            }
        }
        self.take_tool_news(now, &mut actions);
        self.act(actions);
        self.asks.forget_taken_back();
        self.start_next();
    }

    /// What the agent still does of a turn that is over for us is nobody's; only its end counts.
    fn settle(&mut self, signal: Signal, actions: &mut Vec<Action>) {
        match signal {
            Signal::Update(Update { event: Event::Asked(ask), .. }) => {
                actions.push(Action::AnswerAgent { ask: ask.id, answer: Answer::Cancelled });
            }
            Signal::Update(_) => {}
            Signal::Done { .. } | Signal::Failed(_) | Signal::Lost(_) => self.stage = Stage::Idle,
        }
    }

    /// Keeps the session's facts as the agent changes them.
    pub(super) fn learn(&mut self, event: &Event) {
        self.facts.learn(event);
        if let Event::Title(title) = event {
            self.record.title = Some(Arc::clone(title));
            self.keep_record();
        }
    }
}

/// An update while no turn runs. A question then has nobody whose turn it could hold up.
fn between_turns(update: Update, actions: &mut Vec<Action>) {
    let ask = match &update.event {
        Event::Asked(ask) => Some(ask.id),
        // A question taken back: every one was answered at the latest when its turn ended.
        Event::Answered { .. } => return,
        _ => None,
    };
    actions.push(Action::Log { event: update.event, frame: update.frame });
    if let Some(ask) = ask {
        let event = Event::Answered { ask, answer: Answer::Cancelled, by: AnsweredBy::Policy };
        actions.push(Action::Log { event, frame: None });
        actions.push(Action::AnswerAgent { ask, answer: Answer::Cancelled });
    }
}
