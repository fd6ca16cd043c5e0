//! One prompt from its request to its response: faults first, then the script.

use std::{sync::Arc, thread, time::Duration};

use serde_json::{Map, Value, json};

use super::{
    agent::{Agent, Refusal},
    faults,
    mode::{Mode, Quirk},
    script::{self, Step},
    steps,
    turn::{Cancel, Turn},
    wire::{chunk, update},
};

/// What a step needs: the agent, and the prompt it works for.
pub struct PromptRun<'a> {
    pub agent: &'a Agent,
    pub session: &'a str,
    pub turn: &'a Arc<Turn>,
    pub prompt: &'a Value,
    pub response: Response,
    delay: Option<Duration>,
}

/// The prompt's response as the steps have shaped it so far.
#[derive(Default)]
pub struct Response {
    pub stop_reason: Option<String>,
    pub extra: Map<String, Value>,
    pub trail: usize,
}

/// Why no further step is taken.
pub enum Ended {
    Cancelled(Cancel),
    Failed(Refusal),
}

impl From<Cancel> for Ended {
    fn from(cancel: Cancel) -> Self {
        Self::Cancelled(cancel)
    }
}

pub fn run(agent: &Agent, id: &Value, session: &str, prompt: &Value, turn: &Arc<Turn>) {
    let delay = agent.options.modes.iter().find_map(|mode| match mode {
        Mode::Slow(delay) => Some(*delay),
        _ => None,
    });
    let mut run = PromptRun { agent, session, turn, prompt, response: Response::default(), delay };
    let text = script::prompt_text(prompt);
    remember(&run, &json!({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": text}}));
    let outcome = faults::before_script(&mut run).and_then(|()| follow_script(&mut run, &text));
    if let Some(Mode::LateReply(delay)) = agent.options.modes.iter().find(|mode| matches!(mode, Mode::LateReply(_))) {
        thread::sleep(*delay);
    }
    leave_session(agent, session, turn);
    respond(&run, id, outcome);
    for number in 0..run.response.trail {
        agent.wire.send(&update(session, &chunk(&format!("trail-{number} "))));
    }
}

fn follow_script(run: &mut PromptRun, text: &str) -> Result<(), Ended> {
    let steps = script::parse(text);
    if steps.is_empty() && !faults::answers_by_itself(&run.agent.options) {
        run.say("You said: ")?;
        return run.say(text);
    }
    steps.iter().try_for_each(|step: &Step| steps::perform(run, step))
}

/// The session is free before the response leaves, since the next prompt may follow it at once.
fn leave_session(agent: &Agent, session: &str, turn: &Arc<Turn>) {
    let mut sessions = agent.sessions();
    if let Some(session) = sessions.get(session)
        && session.running.as_ref().is_some_and(|running| Arc::ptr_eq(&running.turn, turn))
    {
        session.running = None;
    }
    sessions.save(session);
}

fn respond(run: &PromptRun, id: &Value, outcome: Result<(), Ended>) {
    let agent = run.agent;
    match outcome {
        Err(Ended::Cancelled(Cancel::Request)) => {
            agent.refuse(id, &Refusal { code: -32800, message: "Request cancelled".into() });
        }
        Err(Ended::Cancelled(Cancel::Session)) if agent.options.quirk(Quirk::ErrorOnCancel) => {
            agent.refuse(id, &Refusal { code: -32603, message: "This operation was aborted".into() });
        }
        Err(Ended::Cancelled(Cancel::Session)) => {
            agent.respond(id, &json!({"stopReason": "cancelled"}));
        }
        Err(Ended::Failed(refusal)) => agent.refuse(id, &refusal),
        Ok(()) => {
            let mut result = run.response.extra.clone();
            let reason = run.response.stop_reason.as_deref().unwrap_or("end_turn");
            result.insert("stopReason".into(), json!(reason));
            agent.respond(id, &Value::Object(result));
        }
    }
}

impl PromptRun<'_> {
    pub fn say(&self, text: &str) -> Result<(), Ended> {
        self.update(&chunk(text))
    }

    /// Sends one update and keeps it for a later load.
    pub fn update(&self, content: &Value) -> Result<(), Ended> {
        self.pass_on(content)?;
        remember(self, content);
        Ok(())
    }

    /// Sends one update that no load will repeat.
    pub fn pass_on(&self, content: &Value) -> Result<(), Ended> {
        if let Some(delay) = self.delay {
            self.turn.pause(delay)?;
        } else if let Some(cancel) = self.turn.cancelled() {
            return Err(cancel.into());
        }
        self.agent.wire.send(&update(self.session, content));
        Ok(())
    }
}

fn remember(run: &PromptRun, content: &Value) {
    if let Some(session) = run.agent.sessions().get(run.session) {
        session.history.push(content.clone());
    }
}
