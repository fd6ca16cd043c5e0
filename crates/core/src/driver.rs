//! What a driver gives to sessions: one implementation per agent protocol, never per product.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::BoxFuture;
use crate::model::{
    AgentFacts, Answer, AskId, Event, Failure, Frame, Opaque, Principal, Prompt, SessionFacts, Stop, Timestamp, Usage,
};

/// Opens conversations with one configured agent.
///
/// Called by the session actor, once per session and again when its agent was lost.
pub trait Driver: Send + Sync {
    fn open(&self, spec: SessionSpec) -> BoxFuture<'_, Result<Opened, Failure>>;

    /// What the agent said about itself, once any process of it was seen.
    fn facts(&self) -> Option<AgentFacts>;

    /// What its sessions can be: the models and modes that the newest session reported. `None` before the first one.
    fn offers(&self) -> Option<Arc<SessionFacts>> {
        None
    }

    /// Ends every process, and resolves when all of them are gone.
    fn shutdown(&self) -> BoxFuture<'_, ()>;
}

/// What a session needs of its agent.
#[derive(Clone, Debug)]
pub struct SessionSpec {
    /// A process serves one principal for life.
    pub principal: Principal,
    /// Where the agent works. `None` is an empty private folder that the driver makes.
    pub workspace: Option<PathBuf>,
    pub model: Option<Arc<str>>,
    pub mode: Option<Arc<str>>,
    /// An earlier session of the agent, to be loaded where the agent can do so without harm.
    pub resume: Option<Resume>,
    /// Tool servers that the agent shall connect to, ours first.
    pub tool_servers: Vec<ToolServer>,
    pub slash: SlashCommands,
}

impl SessionSpec {
    /// Nothing asked for: what is opened ahead of time.
    pub fn plain() -> Self {
        Self {
            principal: Principal::new("nobody"),
            workspace: None,
            model: None,
            mode: None,
            resume: None,
            tool_servers: Vec::new(),
            slash: SlashCommands::AsText,
        }
    }
}

/// A session that the agent may still have in its own files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    /// The agent's own name of it.
    pub agent_session: Arc<str>,
    /// When it was last used: some agents destroy a session that is loaded too soon.
    pub last_used: Timestamp,
}

/// What becomes of a prompt that begins like one of the agent's own commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlashCommands {
    /// It reaches the model as text: whoever wrote it may not command the agent.
    #[default]
    AsText,
    /// It runs: the operator's own hand wrote it.
    Run,
}

#[derive(Clone, Debug)]
pub struct ToolServer {
    pub name: Arc<str>,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub origin: ServerOrigin,
}

/// Whose tool server it is. Permissions for the tools of ours are given at once, since whoever offered them decides when it
/// gets the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerOrigin {
    Ours,
    /// Named by a client or a program; nothing is known of its tools.
    Others,
}

/// A conversation that is open.
pub struct Opened {
    pub agent: Box<dyn AgentSession>,
    /// What the agent does, in order, also between turns. Bounded: an actor that does not keep up slows the agent.
    pub signals: mpsc::Receiver<Vec<Signal>>,
    pub facts: SessionFacts,
    /// The agent's own name of the session.
    pub agent_session: Arc<str>,
    /// The earlier session asked for in [`SessionSpec::resume`] is back with its memory.
    pub resumed: bool,
    /// A turn that does not come to its end leaves the agent's memory with all that was said in it.
    pub forgets_cut_turns: bool,
}

/// One live conversation. Nothing here waits for the agent: what becomes of a call arrives as a [`Signal`].
///
/// Dropping it releases the agent; a turn that still runs is cancelled.
pub trait AgentSession: Send {
    /// Sends one prompt. Never called while a turn runs. Ends in exactly one [`Signal::Done`],
    /// [`Signal::Failed`] or [`Signal::Lost`].
    fn prompt(&mut self, prompt: &Prompt) -> Result<(), Failure>;

    /// Asks the agent to end the running turn. The end still comes as a signal.
    fn cancel(&mut self) -> Result<(), Failure>;

    /// Answers a question that came as [`Event::Asked`]. Called at most once for each, by the number that the driver gave
    /// it; the session gives it another, by which the log and the clients know it.
    fn answer(&mut self, ask: AskId, answer: Answer) -> Result<(), Failure>;

    /// Changes something of the session.
    fn change(&mut self, change: Change) -> BoxFuture<'static, Result<Changed, Failure>>;

    /// The number of the process that serves it, for the audit.
    fn process(&self) -> Option<u32> {
        None
    }

    /// Ends the conversation at the agent too, where it knows how; the process stays for others. With
    /// [`CloseMode::Kill`] the process goes as well, since it no longer obeys.
    fn close(self: Box<Self>, close_mode: CloseMode) -> BoxFuture<'static, ()>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseMode {
    Release,
    Kill,
}

/// A change of a session beside its turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Mode(Arc<str>),
    Model(Arc<str>),
    /// A configuration option, its value in the agent's dialect.
    Option {
        id: Arc<str>,
        value: Opaque,
    },
    /// A request of a method that only the agent and its client know.
    Extension {
        method: Arc<str>,
        params: Opaque,
    },
}

/// What a change led to: events for everybody, and the agent's whole answer for whoever asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    pub events: Vec<Event>,
    pub answer: Option<Opaque>,
}

/// What an agent does.
#[derive(Clone, Debug)]
pub enum Signal {
    Update(Update),
    /// The prompt was answered to its end.
    Done {
        stop: AgentStop,
        usage: Option<Usage>,
    },
    /// The prompt failed; the session lives on.
    Failed(Failure),
    /// The agent is gone, and with it the session.
    Lost(Failure),
}

/// How the agent says that a prompt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentStop {
    Stopped(Stop),
    Cancelled,
}

#[derive(Clone, Debug)]
pub struct Update {
    pub event: Event,
    pub frame: Option<Frame>,
}

impl Update {
    /// An update that no frame of the agent stands for.
    pub fn ours(event: Event) -> Self {
        Self { event, frame: None }
    }
}
