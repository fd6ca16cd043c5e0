//! What others ask of a session.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{Actor, BackgroundResult, Next, Stage, answer, report};
use crate::driver::{Change, Changed, CloseMode, SlashCommands};
use crate::error::Error;
use crate::log::{Attachment, Backpressure, Draft, From};
use crate::model::{Answer, AskId, ClientId, Content, Event, Outcome, Prompt, SessionFacts, TurnId};
use crate::session::agent::Agent;
use crate::session::handle::{Accepted, Command, Description, Durable, Joined, Precondition, Submission, TurnState};
use crate::session::queue::{Attempt, Memory, Pass, Waiting};
use crate::tool_host::Offer;
use crate::turn::Turn;

impl Actor {
    pub(super) fn on_command(&mut self, command: Command) -> Next {
        // Looking at a session is not using it.
        let is_use = !matches!(
            command,
            Command::Describe { .. } | Command::Record { .. } | Command::Retire { .. } | Command::ReleaseAgent { .. }
        );
        if is_use {
            self.idle_since = Instant::now();
        }
        match command {
            Command::Prompt { submission, reply } => {
                let accepted = self.on_prompt(*submission);
                if let Err(Ok(unheard)) = reply.send(accepted) {
                    report(self.on_abandon(unheard.turn), "the end of a turn");
                }
            }
            Command::Converse { submission, backpressure, reply } => {
                let begun = self.on_converse(*submission, backpressure);
                if let Err(Ok((unheard, attachment))) = reply.send(begun) {
                    // It follows no more, and must not count as somebody who does.
                    drop(attachment);
                    report(self.on_abandon(unheard.turn), "the end of a turn");
                }
            }
            Command::SubmitResults { given, reply } => self.on_results(given, reply),
            Command::Offer { turn, offer, reply } => self.on_offer(turn, *offer, reply),
            Command::Abandon { turn, reply } => answer(reply, self.on_abandon(turn)),
            Command::Cancel { turn, reply } => answer(reply, self.on_cancel(turn)),
            Command::Answer { ask, answer: given, by, reply } => {
                let result = self.on_answer(ask, given, by);
                answer(reply, result);
            }
            Command::Attach { from, backpressure, reply } => answer(reply, self.journal.attach(from, backpressure)),
            Command::Join { from, backpressure, reply } => {
                let joined = self.on_join(from, backpressure);
                answer(reply, joined);
            }
            Command::Change { change, reply } => self.on_change(*change, reply),
            Command::Wake { offer, reply } => self.on_wake(offer, reply),
            Command::Describe { reply } => {
                let description = self.describe();
                answer(reply, description);
            }
            Command::Record { reply } => answer(reply, Ok(self.record.clone())),
            Command::Rename { title, reply } => {
                self.record.title = Some(Arc::clone(&title));
                self.keep_record();
                let result = self.journal.append(vec![Draft { turn: None, event: Event::Title(title), frame: None }]);
                answer(reply, result.map(|_| ()));
            }
            Command::DeleteAnswer { after, reply } => {
                let event = Event::AnswerDeleted { after };
                let result = self.journal.append(vec![Draft { turn: None, event, frame: None }]);
                answer(reply, result.map(|_| ()));
            }
            Command::WorkIn { folder, reply } => self.on_work_in(folder, reply),
            Command::ReleaseAgent { reply } => self.on_release_agent(reply),
            Command::Retire { reply } => {
                if !self.is_unused() {
                    let retry_after = self.limits.keep;
                    answer(reply, Err(Error::Busy { what: "the session", retry_after }));
                    return Next::GoOn;
                }
                self.closing.push(reply);
                return Next::Stop;
            }
            Command::Close { reply } => {
                self.closing.push(reply);
                return Next::Stop;
            }
        }
        Next::GoOn
    }

    /// Nothing runs or waits in it, and nobody follows it.
    fn is_unused(&mut self) -> bool {
        self.is_idle() && self.followers() == 0
    }

    /// How many follow the session. One that fell behind reads from the store, and comes back when it has caught up.
    pub(super) fn followers(&mut self) -> usize {
        self.journal.followers().max(self.presence.watchers().count())
    }

    fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle) && self.queue.len() == 0
    }

    fn on_work_in(&mut self, folder: PathBuf, reply: oneshot::Sender<Result<(), Error>>) {
        if self.record.workspace.as_deref() == Some(&folder) {
            return answer(reply, Ok(()));
        }
        if self.last_turn > TurnId(0) || self.record.workspace.is_some() {
            let why = "a session works where its first prompt found it; begin a new one for another folder";
            return answer(reply, Err(Error::Invalid(why.to_owned())));
        }
        self.policy = self.policy.clone().of_session(Some(&folder));
        self.spec.workspace = Some(folder.clone());
        self.spec.resume = None;
        self.record.workspace = Some(folder);
        self.record.agent_session = None;
        self.keep_record();
        self.on_release_agent(reply);
    }

    fn on_release_agent(&mut self, reply: oneshot::Sender<Result<(), Error>>) {
        if !self.is_idle() || !self.waking.is_empty() {
            let retry_after = self.limits.keep;
            return answer(reply, Err(Error::Busy { what: "the session", retry_after }));
        }
        let Agent::Live { session, .. } = std::mem::replace(&mut self.agent, Agent::Absent) else {
            return answer(reply, Ok(()));
        };
        if self.last_turn > TurnId(0) {
            self.agent_lost("the session was idle, and another one needed its agent".into());
        }
        let closing = session.close(CloseMode::Release);
        self.beside.spawn(async move {
            closing.await;
            answer(reply, Ok(()));
            BackgroundResult::AgentClosed
        });
    }

    fn on_converse(
        &mut self,
        submission: Submission,
        backpressure: Backpressure,
    ) -> Result<(Accepted, Attachment), Error> {
        let attachment = self.journal.attach(From::Now, backpressure)?;
        Ok((self.on_prompt(submission)?, attachment))
    }

    fn on_prompt(&mut self, submission: Submission) -> Result<Accepted, Error> {
        let Submission { prompt, by, precondition, offer } = submission;
        let busy = !matches!(self.stage, Stage::Idle);
        let memory = match precondition {
            Precondition::Any => self.memory_for(&prompt),
            Precondition::Anew => Memory::InPrompt,
            Precondition::RightAfter(turn) if turn == self.last_turn && !busy && self.may_remember() => Memory::Needed,
            Precondition::RightAfter(_) => return Err(Error::MovedOn),
        };
        if let Some(offer) = &offer {
            self.check_offer(offer)?;
        }
        if busy {
            self.queue.check(&prompt)?;
        }
        let pass = self.pass(busy)?;
        let turn = TurnId(self.last_turn.0 + 1);
        let ahead = self.queue.len() + usize::from(busy);
        let title = if self.record.title.is_none() { title_of(&prompt) } else { None };
        let is_admitted = matches!(pass, Pass::Granted(_));
        let seq = match pass {
            Pass::Granted(permit) if self.is_free_for(offer.as_ref()) && self.hand_over(&prompt) => {
                self.log_start(turn, Event::Prompted { prompt, by }, offer, permit)?
            }
            pass => {
                let event = Event::Prompted { prompt: prompt.clone(), by };
                let seq = self.journal.append(vec![Draft { turn: Some(turn), event, frame: None }])?;
                let offer = offer.map(Box::new);
                self.queue.push(Waiting { turn, prompt, memory, attempt: Attempt::First, offer, pass });
                seq
            }
        };
        self.last_turn = turn;
        self.note_use();
        if title.is_some() {
            self.record.title = title;
            self.keep_record();
        }
        self.start_next();
        Ok(Accepted { turn, seq, ahead, is_admitted, durable: self.journal.sync() })
    }

    /// How a prompt goes to an agent that has not heard of the turns before.
    pub(super) fn memory_for(&self, prompt: &Prompt) -> Memory {
        let is_command = self.spec.slash == SlashCommands::Run
            && prompt.history.is_empty()
            && matches!(prompt.content.first(), Some(Content::Text(text)) if text.to_str().starts_with('/'));
        if is_command { Memory::Unneeded } else { Memory::Replayed }
    }

    /// Whether the agent knows the turns before, or may find them in its own files.
    fn may_remember(&mut self) -> bool {
        self.agent.live().is_some() || self.spec.resume.is_some()
    }

    fn on_abandon(&mut self, turn: TurnId) -> Result<(), Error> {
        // What runs is left to whoever watches it; of what has not begun nobody has seen anything.
        if !self.has_unsent(turn) && self.followers() > 0 {
            return Ok(());
        }
        self.on_cancel(Some(turn))
    }

    /// Whether the agent has yet to get the prompt of this turn.
    fn has_unsent(&self, turn: TurnId) -> bool {
        self.queue.holds(turn)
            || matches!(
                &self.stage,
                Stage::Admitting(waiting) | Stage::Opening(waiting) | Stage::Offering { waiting, .. }
                    if waiting.turn == turn
            )
    }

    fn on_cancel(&mut self, turn: Option<TurnId>) -> Result<(), Error> {
        if let Some(waiting) = turn.and_then(|turn| self.queue.remove(turn)) {
            return self.end_unstarted(waiting.turn, Outcome::Cancelled);
        }
        match &self.stage {
            Stage::Admitting(waiting) | Stage::Opening(waiting) | Stage::Offering { waiting, .. }
                if turn.is_none_or(|turn| turn == waiting.turn) =>
            {
                let turn = waiting.turn;
                self.stage = Stage::Idle;
                self.end_unstarted(turn, Outcome::Cancelled)?;
                self.start_next();
            }
            Stage::Running { turn: running, .. } if turn.is_none_or(|turn| turn == running.id()) => {
                self.with_turn(Turn::on_cancel);
            }
            Stage::Idle
            | Stage::Admitting(_)
            | Stage::Opening(_)
            | Stage::Offering { .. }
            | Stage::Running { .. }
            | Stage::Settling { .. } => {}
        }
        Ok(())
    }

    fn on_answer(&mut self, ask: AskId, given: Answer, by: ClientId) -> Result<Durable, Error> {
        let Stage::Running { turn, .. } = &mut self.stage else { return Err(Error::NotAsked) };
        let mut actions = Vec::new();
        turn.on_answer(ask, given, by, Instant::now(), &mut actions)?;
        self.act_and_store(actions)?;
        Ok(self.journal.sync())
    }

    fn on_change(&mut self, change: Change, reply: oneshot::Sender<Result<Changed, Error>>) {
        let Some(agent) = self.agent.live() else {
            let error = Error::Invalid("no agent is running for this session yet; send a prompt first".into());
            answer(reply, Err(error));
            return;
        };
        let pending = agent.change(change.clone());
        self.beside.spawn(async move { BackgroundResult::Changed { result: pending.await, change, reply } });
    }

    fn on_wake(&mut self, offer: Option<Box<Offer>>, reply: oneshot::Sender<Result<SessionFacts, Error>>) {
        if let Some(offer) = offer.filter(|_| self.agent.is_absent()) {
            self.offer = *offer;
        }
        if self.agent.live().is_some() {
            answer(reply, Ok(self.facts.clone()));
            return;
        }
        self.waking.push(reply);
        self.open_agent();
    }

    fn on_join(&mut self, from: From, backpressure: Backpressure) -> Result<Joined, Error> {
        let attachment = self.journal.attach(from, backpressure)?;
        self.shown = None;
        Ok(Joined { attachment, description: self.describe()?, presence: self.presence.clone() })
    }

    fn describe(&mut self) -> Result<Description, Error> {
        self.journal.check()?;
        let (turn, open_asks, parked) = match &self.stage {
            Stage::Idle | Stage::Settling { .. } => (TurnState::Idle, Vec::new(), Vec::new()),
            Stage::Admitting(waiting) | Stage::Opening(waiting) | Stage::Offering { waiting, .. } => {
                (TurnState::Opening(waiting.turn), Vec::new(), Vec::new())
            }
            Stage::Running { turn, .. } => {
                let asks = turn.open_asks().cloned().collect();
                (TurnState::Running(turn.id()), asks, turn.parked_calls().cloned().collect())
            }
        };
        Ok(Description {
            record: self.record.clone(),
            facts: self.facts.clone(),
            last: self.journal.last(),
            turn,
            queued: self.queue.len(),
            followers: self.followers(),
            open_asks,
            parked,
        })
    }
}

/// The first words of the first prompt.
fn title_of(prompt: &Prompt) -> Option<Arc<str>> {
    // What the user says now tells more than what was said long ago.
    let text =
        if prompt.content.is_empty() { prompt.plain_text() } else { Prompt::new(prompt.content.clone()).plain_text() };
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(80).collect::<String>().into())
}
