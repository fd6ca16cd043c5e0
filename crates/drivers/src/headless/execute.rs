//! One turn for a program that wants nothing else: what was said, how it ended, and the data in it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gembridge_core::BoxFuture;
use gembridge_core::driver::{AgentStop, Update};
use gembridge_core::log::LogEntry;
use gembridge_core::model::{
    ClientId, Content, Event, Failure, FailureKind, Outcome, Prompt, Seq, SessionId, Stop, Timestamp, TurnId,
};
use gembridge_process::Exit;
use gembridge_unified::{Context, Fold, Line, Originals, UnifiedMessage};
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::encode::{self, Continuity};
use super::error::Trouble;
use super::extract::extract_json;
use super::turn::{self, Listener, Plan};
use crate::acp::launch::no_folder;
use crate::setup::DriverSetup;
use crate::workspace::PrivateDir;

/// What is asked.
#[derive(Clone, Debug)]
pub struct ExecuteRequest {
    /// Goes to the program's standard input, and nowhere else.
    pub prompt: String,
    pub session: SessionChoice,
    /// `default`, `acceptEdits`, `bypassPermissions`, `plan`, or the agent's own word for one of them.
    pub permission_mode: Option<String>,
    /// The program and all that it started are ended after this.
    pub timeout: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionChoice {
    New,
    /// Goes on with the session of this id.
    Resume(String),
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Executed {
    pub success: bool,
    /// `None` where the program did not start, or a signal ended it.
    pub exit_code: Option<i32>,
    pub session_id: Option<String>,
    pub duration: Duration,
    /// The prompt, what was said, and the tools with their results.
    pub messages: Vec<UnifiedMessage>,
    /// The JSON in the answer, where there is some.
    pub data: Option<Value>,
    pub error: Option<Failure>,
}

/// Hears of a turn while it runs. Each does nothing unless it is written.
pub trait Observer: Send {
    fn started(&mut self, _pid: Option<u32>) {}

    fn event(&mut self, _event: &Event) {}

    /// A line as the program wrote it.
    fn stdout(&mut self, _line: &[u8]) {}

    /// The end of what the program wrote to its standard error, once it has ended.
    fn stderr(&mut self, _tail: &str) {}

    fn closed(&mut self, _exit: Exit) {}
}

/// Nobody listens.
impl Observer for () {}

/// Runs one turn. `setup` says which agent, where, and with which model; its profile must run headless.
pub async fn execute(setup: &DriverSetup, request: ExecuteRequest, observer: &mut dyn Observer) -> Executed {
    let began = Instant::now();
    let mut recorder = Recorder::new(setup, &request.prompt, observer);
    let done = run(setup, &request, &mut recorder).await;
    let Recorder { messages, answer, .. } = recorder.finish(&done.outcome());
    Executed {
        success: done.error.is_none(),
        exit_code: done.exit_code,
        session_id: done.session,
        duration: began.elapsed(),
        messages,
        data: extract_json(&answer),
        error: done.error,
    }
}

/// How the run went.
struct Done {
    exit_code: Option<i32>,
    session: Option<String>,
    error: Option<Failure>,
}

impl Done {
    fn failed(failure: Failure) -> Self {
        Self { exit_code: None, session: None, error: Some(failure) }
    }

    fn outcome(&self) -> Outcome {
        self.error.clone().map_or(Outcome::Finished(Stop::EndTurn), Outcome::Interrupted)
    }
}

async fn run(setup: &DriverSetup, request: &ExecuteRequest, recorder: &mut Recorder<'_>) -> Done {
    let agent = &setup.profile.name;
    let Some(headless) = &setup.profile.headless else {
        let text = format!("agent `{agent}` does not run headless; use the driver `acp`");
        return Done::failed(Failure::new(FailureKind::Unsupported, text));
    };
    let mode = request.permission_mode.as_deref().map(|word| encode::mode(&setup.profile, word)).transpose();
    let mode = match mode {
        Ok(mode) => mode.unwrap_or(setup.approval),
        Err(failure) => return Done::failed(failure),
    };
    let (name, continuity): (Arc<str>, _) = match &request.session {
        SessionChoice::New => (SessionId::new().to_string().into(), Continuity::Begins),
        SessionChoice::Resume(id) => (id.as_str().into(), Continuity::GoesOn),
    };
    let prepared = encode::checked_session(&name).and_then(|()| {
        let private = PrivateDir::create(&setup.private, agent).map_err(|error| no_folder(setup, &error))?;
        Ok((private, encode::prompt(agent, &[Content::text(request.prompt.as_str())])?))
    });
    let (private, prompt) = match prepared {
        Ok(prepared) => prepared,
        Err(failure) => return Done::failed(failure),
    };
    let cancel = CancellationToken::new();
    let args = encode::args(headless, mode, &name, continuity);
    let plan = Plan { setup, headless, private: &private, args, prompt, cancel: cancel.clone() };
    let running = turn::run(plan, recorder);
    tokio::pin!(running);
    let ended = tokio::select! {
        ended = &mut running => ended,
        () = tokio::time::sleep(request.timeout) => {
            cancel.cancel();
            running.await
        }
    };
    let error = match ended.end {
        Ok(AgentStop::Stopped(_)) => None,
        Ok(AgentStop::Cancelled) => {
            let text = format!("agent `{agent}` did not come to an end within {} s", request.timeout.as_secs_f32());
            Some(Failure::new(FailureKind::TimedOut, text))
        }
        Err(Trouble::UnknownSession(failure) | Trouble::Failed(failure)) => Some(failure),
    };
    let exit_code = match ended.exit {
        Some(Exit::Code(code)) => Some(code),
        Some(Exit::Signal(_)) | None => None,
    };
    Done { exit_code, session: ended.session.or(Some(name.to_string())), error }
}

/// Folds what happens into messages.
struct Recorder<'a> {
    fold: Fold,
    seq: u64,
    messages: Vec<UnifiedMessage>,
    answer: String,
    observer: &'a mut dyn Observer,
}

impl<'a> Recorder<'a> {
    fn new(setup: &DriverSetup, prompt: &str, observer: &'a mut dyn Observer) -> Self {
        let context = Context {
            session_id: String::new(),
            agent: setup.profile.name.clone(),
            model: setup.model.clone(),
            originals: Originals::Leave,
        };
        let mut recorder =
            Self { fold: Fold::new(context), seq: 0, messages: Vec::new(), answer: String::new(), observer };
        recorder.push(Event::Prompted { prompt: Prompt::text(prompt), by: ClientId::fresh() });
        recorder.push(Event::Started);
        recorder
    }

    fn push(&mut self, event: Event) {
        self.seq += 1;
        let (seq, turn) = (Seq(self.seq), Some(TurnId(1)));
        let entry = LogEntry { seq, at: Timestamp::now(), turn, event, frame: None };
        for line in self.fold.push(&entry) {
            match line {
                Line::Assistant { message, .. } | Line::User { message, .. } => self.messages.push(message),
                Line::Result(result) => self.answer = result.result,
                Line::System(_) | Line::Delta(_) => {}
            }
        }
    }

    fn finish(mut self, outcome: &Outcome) -> Self {
        self.push(Event::Ended(outcome.clone()));
        self
    }
}

impl Listener for Recorder<'_> {
    fn started(&mut self, pid: Option<u32>) {
        self.observer.started(pid);
    }

    fn stdout(&mut self, line: &[u8]) {
        self.observer.stdout(line);
    }

    fn updates(&mut self, updates: Vec<Update>) -> BoxFuture<'_, ()> {
        for update in updates {
            self.observer.event(&update.event);
            self.push(update.event);
        }
        Box::pin(std::future::ready(()))
    }

    fn closed(&mut self, exit: Exit, stderr: &str) {
        self.observer.stderr(stderr);
        self.observer.closed(exit);
    }
}
