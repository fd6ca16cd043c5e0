//! `gembridge chat`: a person, a terminal, and one session.

use std::io::BufRead as _;
use std::time::Duration;

use gembridge_core::log::LogEntry;
use gembridge_core::model::{Ask, ClientId, Event, Prompt, TurnId};
use gembridge_core::session::SessionHandle;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::follow::{Follower, Happening};
use super::house::House;
use crate::command::Context;
use crate::command::run::SessionRequest;
use crate::config::settings::Policy;
use crate::exit::{CommandError, CommandResult, ExitCode};
use crate::render::style::Style;
use crate::render::{Renderer, ask, spinner};
use crate::terminal;

const CLIENT: ClientId = ClientId(1);
/// A second Ctrl-C within this time leaves.
const TWICE: Duration = Duration::from_secs(2);

pub async fn chat(request: &SessionRequest, context: &Context) -> CommandResult {
    let house = House::build(request, context)?;
    let done = match house.session(request).await {
        Ok(session) => Chat::begin(&house, session, request, context).await,
        Err(error) => Err(error),
    };
    let done = match done {
        Ok(mut chat) => chat.talk().await,
        Err(error) => Err(error),
    };
    house.close().await;
    done
}

struct Chat {
    session: SessionHandle,
    follower: Follower,
    renderer: Renderer,
    keyboard: Keyboard,
    policy: Policy,
    style: Style,
    moving: bool,
    agent: String,
}

/// Why a turn's loop came back.
enum After {
    TurnEnded,
    Leave,
}

impl Chat {
    async fn begin(
        house: &House,
        session: SessionHandle,
        request: &SessionRequest,
        context: &Context,
    ) -> Result<Self, CommandError> {
        let style = Style::of(context.terminal.stdout);
        let follower = Follower::attach(&session).await?;
        let mut hello = format!("gembridge chat with `{}`, session {}\n", house.agent, session.id());
        if let Some(notice) = &house.notice {
            hello.push_str(&format!("{notice}\n"));
        }
        hello.push_str("Enter sends, Ctrl-C stops the answer, Ctrl-C twice or Ctrl-D leaves.\n\n");
        terminal::print(&style.dim(&hello))?;
        Ok(Self {
            session,
            follower,
            renderer: Renderer::new(style),
            keyboard: Keyboard::listen(),
            policy: request.policy,
            style,
            moving: context.terminal.stderr.is_terminal,
            agent: house.agent.to_string(),
        })
    }

    async fn talk(&mut self) -> CommandResult {
        loop {
            let Some(line) = self.read_prompt().await? else { return Ok(ExitCode::Success) };
            let sent = self.session.prompt(Prompt::text(line), CLIENT).await;
            let turn = sent.map_err(|error| CommandError::from(error.into_failure()))?.turn;
            if let After::Leave = self.follow(turn).await? {
                return Ok(ExitCode::Cancelled);
            }
        }
    }

    /// The next prompt; `None` when the person leaves.
    async fn read_prompt(&mut self) -> Result<Option<String>, CommandError> {
        let mut interrupted: Option<Instant> = None;
        terminal::print(&self.style.bold("> "))?;
        loop {
            tokio::select! {
                line = self.keyboard.line() => match line {
                    None => {
                        terminal::print("\n")?;
                        return Ok(None);
                    }
                    Some(line) if line.trim().is_empty() => terminal::print(&self.style.bold("> "))?,
                    Some(line) => return Ok(Some(line)),
                },
                signal = self.follower.signal() => match signal {
                    Happening::Interrupted if interrupted.is_none_or(|at| at.elapsed() > TWICE) => {
                        interrupted = Some(Instant::now());
                        let hint = self.style.dim("(Ctrl-C again, or Ctrl-D, leaves)");
                        terminal::print(&format!("\n{hint}\n{}", self.style.bold("> ")))?;
                    }
                    _ => {
                        terminal::print("\n")?;
                        return Ok(None);
                    }
                },
            }
        }
    }

    /// Shows a turn until it ends. The first Ctrl-C cancels it, the second leaves.
    async fn follow(&mut self, turn: TurnId) -> Result<After, CommandError> {
        let mut waiting = Waiting::new(self.moving, &self.agent);
        let mut cancelled = false;
        loop {
            let happening = tokio::select! {
                happening = self.follower.next() => happening,
                () = waiting.tick() => continue,
            };
            match happening {
                Happening::Entries(batch) => {
                    for entry in batch.iter() {
                        if entry.event.is_visible() {
                            waiting.stop();
                        }
                        self.show(entry).await?;
                        if entry.turn == Some(turn) && matches!(entry.event, Event::Ended(_)) {
                            waiting.stop();
                            return Ok(After::TurnEnded);
                        }
                    }
                }
                Happening::Interrupted | Happening::Terminated if cancelled => return Ok(After::Leave),
                Happening::Terminated => return Ok(After::Leave),
                Happening::Interrupted => {
                    cancelled = true;
                    self.session.cancel().await.map_err(|error| CommandError::from(error.into_failure()))?;
                }
                Happening::Gone => {
                    waiting.stop();
                    let error = self.session.describe().await.err().unwrap_or(gembridge_core::error::Error::Closed);
                    return Err(error.into_failure().into());
                }
            }
        }
    }

    async fn show(&mut self, entry: &LogEntry) -> Result<(), CommandError> {
        terminal::print(&self.renderer.event(&entry.event))?;
        if let Event::Asked(question) = &entry.event {
            self.answer(question).await?;
        }
        Ok(())
    }

    async fn answer(&mut self, question: &Ask) -> Result<(), CommandError> {
        let given = match self.policy {
            Policy::Allow => question.allow_once().unwrap_or_else(|| question.reject()),
            Policy::Deny => question.reject(),
            Policy::Ask => match self.ask(question).await? {
                Some(answer) => answer,
                // Ctrl-C: the question goes with its turn.
                None => return self.session.cancel().await.map_err(|error| CommandError::from(error.into_failure())),
            },
        };
        if let Err(error) = self.session.answer(question.id, given, CLIENT).await {
            let note = self.style.dim(&format!("· {error}\n"));
            terminal::print(&note)?;
        }
        Ok(())
    }

    async fn ask(&mut self, question: &Ask) -> Result<Option<gembridge_core::model::Answer>, CommandError> {
        terminal::print(&self.renderer.fresh_line())?;
        loop {
            terminal::print(&ask::question(question, self.style))?;
            tokio::select! {
                line = self.keyboard.line() => match line {
                    None => return Ok(Some(question.reject())),
                    Some(typed) => if let Some(answer) = ask::answer(question, &typed) {
                        return Ok(Some(answer));
                    },
                },
                _ = self.follower.signal() => return Ok(None),
            }
        }
    }
}

/// Whether a person sees anything of it.
trait Visible {
    fn is_visible(&self) -> bool;
}

impl Visible for Event {
    fn is_visible(&self) -> bool {
        !matches!(
            self,
            Event::Prompted { .. }
                | Event::Started
                | Event::Usage(_)
                | Event::Context { .. }
                | Event::Commands(_)
                | Event::Options(_)
                | Event::Title(_)
                | Event::Other { .. }
        )
    }
}

/// The spinner, until the agent shows something.
struct Waiting {
    since: Instant,
    what: String,
    state: Moving,
}

#[derive(PartialEq, Eq)]
enum Moving {
    Yes,
    No,
}

impl Waiting {
    fn new(moving: bool, agent: &str) -> Self {
        let state = if moving { Moving::Yes } else { Moving::No };
        Self { since: Instant::now(), what: format!("waiting for {agent}"), state }
    }

    async fn tick(&self) {
        if self.state == Moving::No {
            return std::future::pending().await;
        }
        tokio::time::sleep(spinner::PERIOD).await;
        terminal::write_stderr(&spinner::frame(&self.what, self.since.elapsed()));
    }

    fn stop(&mut self) {
        if std::mem::replace(&mut self.state, Moving::No) == Moving::Yes {
            terminal::write_stderr(spinner::CLEAR);
        }
    }
}

/// Lines from standard input, read by a thread of its own since reading cannot be interrupted.
struct Keyboard {
    lines: mpsc::Receiver<String>,
}

impl Keyboard {
    fn listen() -> Self {
        let (sender, lines) = mpsc::channel(16);
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { return };
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Self { lines }
    }

    async fn line(&mut self) -> Option<String> {
        self.lines.recv().await
    }
}
