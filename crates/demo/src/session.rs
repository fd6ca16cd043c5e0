//! The conversations of this process. They live in memory: a closed one can be loaded again until the process ends.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::mcp;
use crate::wire::RpcError;

pub(crate) const MODES: [(&str, &str, &str); 4] = [
    ("default", "Default", "asks before it pretends to run a command"),
    ("autoEdit", "Auto edit", "like default; the demo's edits never ask"),
    ("yolo", "YOLO", "never asks"),
    ("plan", "Plan", "refuses every command"),
];

pub(crate) const MODELS: [(&str, &str, &str); 2] = [
    ("demo-echo", "Demo echo", "answers a plain prompt with an echo of it"),
    ("demo-story", "Demo story", "answers a plain prompt with a short story"),
];

/// How many sessions a process keeps; the oldest closed one makes room for a new one.
const MOST_SESSIONS: usize = 10_000;
/// How many turns a session remembers.
const MOST_TURNS: usize = 1_000;
/// How many standing permission answers a session remembers.
const MOST_STANDING: usize = 100;
/// How many prompts ahead a session can be told what to do.
const MOST_PLANNED: usize = 16;

pub(crate) struct Sessions {
    /// The process id makes ids unique among the processes of one machine.
    prefix: String,
    last: Cell<u64>,
    kept: RefCell<BTreeMap<u64, Rc<Session>>>,
}

pub(crate) struct Session {
    pub id: String,
    number: u64,
    state: RefCell<State>,
}

struct State {
    cwd: String,
    servers: Rc<[Rc<mcp::Server>]>,
    mode: &'static str,
    model: &'static str,
    presence: Presence,
    history: Vec<Exchange>,
    turns: u64,
    tool_calls: u64,
    counted: Counted,
    standing: BTreeMap<String, Verdict>,
    /// What the prompts that come are taken for.
    planned: VecDeque<String>,
}

enum Presence {
    Idle,
    Running { request: String, cancel: Option<oneshot::Sender<Cancel>> },
    Closed,
}

/// Why a turn ends early.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cancel {
    /// `session/cancel`: the prompt is answered with `cancelled`.
    Turn,
    /// `$/cancel_request`: the prompt is answered with an error.
    Request,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    Allowed,
    Rejected,
}

/// One turn as the session remembers it.
#[derive(Clone)]
pub(crate) struct Exchange {
    pub prompt: String,
    pub answer: String,
}

/// Words, which the demo counts as tokens.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counted {
    pub input: u64,
    pub output: u64,
    pub thought: u64,
}

impl Counted {
    pub(crate) fn total(self) -> u64 {
        self.input + self.output + self.thought
    }

    fn plus(self, other: Self) -> Self {
        Self {
            input: self.input + other.input,
            output: self.output + other.output,
            thought: self.thought + other.thought,
        }
    }
}

impl Sessions {
    pub(crate) fn new() -> Self {
        Self { prefix: format!("demo-{}-", std::process::id()), last: Cell::new(0), kept: RefCell::default() }
    }

    pub(crate) fn create(&self, cwd: String, servers: Rc<[Rc<mcp::Server>]>) -> Result<Rc<Session>, RpcError> {
        let mut kept = self.kept.borrow_mut();
        if kept.len() >= MOST_SESSIONS {
            let oldest_closed = kept.values().find(|session| session.is_closed()).map(|session| session.number);
            let Some(number) = oldest_closed else {
                return Err(RpcError::invalid_request(format!(
                    "{MOST_SESSIONS} sessions are open; close one with `session/close`"
                )));
            };
            kept.remove(&number);
        }
        let number = self.last.get() + 1;
        self.last.set(number);
        let session = Rc::new(Session::new(format!("{}{number}", self.prefix), number, cwd, servers));
        kept.insert(number, Rc::clone(&session));
        Ok(session)
    }

    pub(crate) fn find(&self, id: &str) -> Result<Rc<Session>, RpcError> {
        self.number(id).and_then(|number| self.kept.borrow().get(&number).cloned()).ok_or_else(|| {
            RpcError::new(-32002, format!("session `{id}` is not known to this process; start one with `session/new`"))
        })
    }

    pub(crate) fn delete(&self, id: &str) -> Result<(), RpcError> {
        let session = self.find(id)?;
        session.close();
        self.kept.borrow_mut().remove(&session.number);
        Ok(())
    }

    /// One page of `session/list`; the cursor is the number of the last session shown.
    pub(crate) fn list(&self, cwd: Option<&str>, cursor: Option<&str>) -> Result<Value, RpcError> {
        const PAGE: usize = 100;
        let after: u64 = match cursor {
            None => 0,
            Some(cursor) => cursor.parse().map_err(|_| {
                RpcError::invalid_params(format!("`{cursor}` is not a cursor; send the `nextCursor` of an answer"))
            })?,
        };
        let kept = self.kept.borrow();
        let mut matching = kept
            .range(after + 1..)
            .map(|(_, session)| session)
            .filter(|session| cwd.is_none_or(|cwd| session.state.borrow().cwd == cwd));
        let page: Vec<_> = matching.by_ref().take(PAGE).collect();
        let mut answer = json!({"sessions": page.iter().map(|session| session.info()).collect::<Vec<_>>()});
        if let (Some(last), Some(_)) = (page.last(), matching.next()) {
            answer["nextCursor"] = last.number.to_string().into();
        }
        Ok(answer)
    }

    /// Ends the turn that answers the request with this id, if one runs.
    pub(crate) fn cancel_request(&self, request: &str) {
        for session in self.kept.borrow().values() {
            let hit = matches!(&session.state.borrow().presence,
                Presence::Running { request: running, .. } if running == request);
            if hit {
                session.cancel(Cancel::Request);
            }
        }
    }

    fn number(&self, id: &str) -> Option<u64> {
        id.strip_prefix(&self.prefix)?.parse().ok()
    }
}

impl Session {
    fn new(id: String, number: u64, cwd: String, servers: Rc<[Rc<mcp::Server>]>) -> Self {
        let state = State {
            cwd,
            servers,
            mode: MODES[0].0,
            model: MODELS[0].0,
            presence: Presence::Idle,
            history: Vec::new(),
            turns: 0,
            tool_calls: 0,
            counted: Counted::default(),
            standing: BTreeMap::new(),
            planned: VecDeque::new(),
        };
        Self { id, number, state: RefCell::new(state) }
    }

    /// Marks a turn as running. The receiver hears of a cancel.
    pub(crate) fn begin(&self, request: &str) -> Result<oneshot::Receiver<Cancel>, RpcError> {
        let mut state = self.state.borrow_mut();
        match state.presence {
            Presence::Idle => {}
            Presence::Running { .. } => {
                return Err(RpcError::invalid_request(format!(
                    "session `{}` is busy with a prompt; wait for its answer or send `session/cancel`",
                    self.id
                )));
            }
            Presence::Closed => {
                return Err(RpcError::invalid_request(format!(
                    "session `{}` is closed; open it with `session/resume` or `session/load`",
                    self.id
                )));
            }
        }
        let (cancel, cancelled) = oneshot::channel();
        state.presence = Presence::Running { request: request.to_owned(), cancel: Some(cancel) };
        Ok(cancelled)
    }

    /// Remembers a turn that has ended.
    pub(crate) fn finish(&self, exchange: Exchange, counted: Counted) {
        let mut state = self.state.borrow_mut();
        if matches!(state.presence, Presence::Running { .. }) {
            state.presence = Presence::Idle;
        }
        if state.history.len() == MOST_TURNS {
            state.history.remove(0);
        }
        state.history.push(exchange);
        state.turns += 1;
        state.counted = state.counted.plus(counted);
    }

    pub(crate) fn cancel(&self, why: Cancel) {
        if let Presence::Running { cancel, .. } = &mut self.state.borrow_mut().presence
            && let Some(cancel) = cancel.take()
        {
            // The turn may have ended in this very moment: then there is nothing left to cancel.
            cancel.send(why).ok();
        }
    }

    /// Ends a running turn and refuses prompts until the session is opened again.
    pub(crate) fn close(&self) {
        self.cancel(Cancel::Turn);
        self.state.borrow_mut().presence = Presence::Closed;
    }

    /// Opens the session again for `session/load` and `session/resume`.
    pub(crate) fn reopen(&self, cwd: String, servers: Rc<[Rc<mcp::Server>]>) -> Result<(), RpcError> {
        let mut state = self.state.borrow_mut();
        if matches!(state.presence, Presence::Running { .. }) {
            return Err(RpcError::invalid_request(format!(
                "session `{}` is busy with a prompt; load it when the prompt is answered",
                self.id
            )));
        }
        state.presence = Presence::Idle;
        state.cwd = cwd;
        state.servers = servers;
        Ok(())
    }

    pub(crate) fn history(&self) -> Vec<Exchange> {
        self.state.borrow().history.clone()
    }

    pub(crate) fn turns(&self) -> u64 {
        self.state.borrow().turns
    }

    pub(crate) fn counted(&self) -> Counted {
        self.state.borrow().counted
    }

    pub(crate) fn next_tool_call(&self) -> String {
        let mut state = self.state.borrow_mut();
        state.tool_calls += 1;
        format!("call-{}", state.tool_calls)
    }

    pub(crate) fn servers(&self) -> Rc<[Rc<mcp::Server>]> {
        Rc::clone(&self.state.borrow().servers)
    }

    pub(crate) fn cwd(&self) -> String {
        self.state.borrow().cwd.clone()
    }

    pub(crate) fn mode(&self) -> &'static str {
        self.state.borrow().mode
    }

    pub(crate) fn model(&self) -> &'static str {
        self.state.borrow().model
    }

    pub(crate) fn set_mode(&self, id: &str) -> Result<(), RpcError> {
        self.state.borrow_mut().mode = choose("mode", &MODES, id)?;
        Ok(())
    }

    pub(crate) fn set_model(&self, id: &str) -> Result<(), RpcError> {
        self.state.borrow_mut().model = choose("model", &MODELS, id)?;
        Ok(())
    }

    /// The answer that an `allow_always` or `reject_always` gave for this command.
    pub(crate) fn standing(&self, command: &str) -> Option<Verdict> {
        self.state.borrow().standing.get(command).copied()
    }

    pub(crate) fn remember(&self, command: &str, verdict: Verdict) {
        let mut state = self.state.borrow_mut();
        if state.standing.len() < MOST_STANDING {
            state.standing.insert(command.to_owned(), verdict);
        }
    }

    /// What this prompt is taken for, if an earlier one said so.
    pub(crate) fn planned(&self) -> Option<String> {
        self.state.borrow_mut().planned.pop_front()
    }

    pub(crate) fn plan(&self, line: String) {
        let mut state = self.state.borrow_mut();
        if state.planned.len() < MOST_PLANNED {
            state.planned.push_back(line);
        }
    }

    /// What `session/new`, `load` and `resume` answer beside the id.
    pub(crate) fn choices(&self) -> Value {
        let entry = |key: &str, (id, name, description): &(&str, &str, &str)| json!({key: id, "name": name, "description": description});
        json!({
            "modes": {
                "currentModeId": self.mode(),
                "availableModes": MODES.iter().map(|mode| entry("id", mode)).collect::<Vec<_>>(),
            },
            "models": {
                "currentModelId": self.model(),
                "availableModels": MODELS.iter().map(|model| entry("modelId", model)).collect::<Vec<_>>(),
            },
            "configOptions": self.config_options(),
        })
    }

    pub(crate) fn config_options(&self) -> Value {
        let options: Vec<_> = MODELS
            .iter()
            .map(|(id, name, description)| json!({"value": id, "name": name, "description": description}))
            .collect();
        json!([{
            "id": "model", "name": "Model", "category": "model", "type": "select",
            "currentValue": self.model(), "options": options,
        }])
    }

    fn is_closed(&self) -> bool {
        matches!(self.state.borrow().presence, Presence::Closed)
    }

    fn info(&self) -> Value {
        let state = self.state.borrow();
        let title = state.history.first().map(|first| first.prompt.chars().take(60).collect::<String>());
        json!({"sessionId": self.id, "cwd": state.cwd, "title": title})
    }
}

fn choose(what: &str, known: &[(&'static str, &str, &str)], id: &str) -> Result<&'static str, RpcError> {
    known.iter().map(|(known, ..)| *known).find(|known| *known == id).ok_or_else(|| {
        let names: Vec<_> = known.iter().map(|(known, ..)| format!("`{known}`")).collect();
        RpcError::invalid_params(format!("{what} `{id}` is not known; choose one of {}", names.join(", ")))
    })
}
