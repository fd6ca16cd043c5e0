//! What the tool bridge gives to sessions: where an agent finds the tools that a client runs, and where answers in a given form
//! are checked.

use std::fmt;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use crate::BoxFuture;
use crate::driver::ToolServer;
use crate::model::{ClientTool, Failure, Opaque, ToolReturn};

/// Opens places where agents find tools. One for the whole gateway, however many sessions there are.
pub trait ToolHost: Send + Sync {
    /// Opens a place for one session. Called by the session actor before it opens the agent, once for each agent.
    fn open(&self) -> Result<HostedTools, Failure>;

    /// Makes ready to check answers against a form. The message says what is wrong with the schema.
    fn format(&self, wanted: &FormatSpec) -> Result<Arc<dyn Format>, String>;
}

/// A place where one agent finds tools.
pub struct HostedTools {
    /// What the agent is told in order to find it.
    pub server: ToolServer,
    /// Dropping it closes the place; whoever still waits there is told that the tool failed.
    pub list: Box<dyn ToolList>,
    /// What the agent does there. Bounded: a call that finds no room is refused at once.
    pub news: mpsc::Receiver<ToolNews>,
}

/// What is offered at a place.
pub trait ToolList: Send {
    /// Offers these from now on, instead of what was offered before. Resolves when the agent has read the list; never
    /// if it does not come.
    fn offer(&mut self, offer: Offer) -> BoxFuture<'static, ()>;
}

/// What an agent is offered beside its own tools.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    pub tools: Arc<[ClientTool]>,
    /// The agent shall deliver its answer in this form, by a tool that the host answers itself.
    pub format: Option<Arc<dyn Format>>,
}

impl Offer {
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.format.is_none()
    }

    /// Whether everything that the other offers is offered here too.
    pub fn covers(&self, other: &Self) -> bool {
        let same_form = other.format.is_none() || Self::is_same_form(self.format.as_ref(), other.format.as_ref());
        same_form && other.tools.iter().all(|tool| self.tools.contains(tool))
    }

    fn is_same_form(one: Option<&Arc<dyn Format>>, another: Option<&Arc<dyn Format>>) -> bool {
        match (one, another) {
            (None, None) => true,
            (Some(one), Some(another)) => {
                Arc::ptr_eq(one, another) || one.spec().is_some_and(|spec| another.spec() == Some(spec))
            }
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

impl PartialEq for Offer {
    fn eq(&self, other: &Self) -> bool {
        Self::is_same_form(self.format.as_ref(), other.format.as_ref()) && self.tools == other.tools
    }
}

/// What an agent does at a place.
#[derive(Debug)]
pub enum ToolNews {
    /// It called a tool of the client and waits for the reply. A reply that is dropped is a failure of the tool.
    Called(HostedCall),
    /// It does not wait any more.
    Withdrawn(HostedCallId),
    /// It delivered an answer in the form asked for, and the form is right. A later one replaces it.
    Output(Opaque),
}

#[derive(Debug)]
pub struct HostedCall {
    pub id: HostedCallId,
    /// The name as the client wrote it.
    pub tool: Arc<str>,
    /// A JSON object, without what the agent itself added.
    pub arguments: Opaque,
    pub reply: oneshot::Sender<ToolReturn>,
}

/// A call as the host counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HostedCallId(pub u64);

/// The form of an answer, as a client asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatSpec {
    /// What the client calls it.
    pub name: Option<Arc<str>>,
    pub description: Option<Arc<str>>,
    /// The JSON schema of the answer. `None`: any JSON object.
    pub schema: Option<Opaque>,
}

/// A form that answers are checked against.
pub trait Format: Send + Sync + fmt::Debug {
    /// What it was made from: two that were made from the same are the same. Without it, each is only like itself, and
    /// an agent that was offered one reads its list again for the next.
    fn spec(&self) -> Option<&FormatSpec> {
        None
    }

    /// Finds the answer in a text (all of it, a fenced block, or the first object) and checks it. The message says what
    /// is wrong, in words that help whoever writes the answer again.
    fn find_in(&self, text: &str) -> Result<Opaque, String>;

    /// What the agent is told to do in order to deliver the answer.
    fn instruction(&self) -> String;
}
