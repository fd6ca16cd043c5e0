//! One step of a session. Everything that anybody can see of a session is a sequence of these.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{
    Answer, AnsweredBy, Ask, AskId, CallId, ClientCall, ClientId, Command, Content, Opaque, Outcome, Prompt,
    ReturnedBy, Seq, Text, ToolCall, ToolReturn, Usage,
};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// A client's prompt was accepted; the entry's turn is the one it will be.
    Prompted {
        prompt: Prompt,
        by: ClientId,
    },
    /// The prompt went to the agent.
    Started,
    /// A piece of the answer.
    Text(Text),
    /// A piece of the agent's thinking.
    Thought(Text),
    /// A piece of the answer that is not text.
    Content(Content),
    ToolCall(Box<ToolCall>),
    Plan(Vec<PlanEntry>),
    Asked(Box<Ask>),
    Answered {
        ask: AskId,
        answer: Answer,
        by: AnsweredBy,
    },
    /// Tokens of the turn so far.
    Usage(Usage),
    /// How full the agent's context is.
    Context {
        used: u64,
        size: u64,
    },
    Mode(Arc<str>),
    Model(Arc<str>),
    /// Shared: an agent tells each of its sessions the same.
    Commands(Arc<[Command]>),
    Options(Opaque),
    Title(Arc<str>),
    /// An update of a kind that we do not know; the frame has it whole.
    Other {
        kind: Arc<str>,
    },
    /// The agent behind the session is another process now, which knows nothing of the turns before.
    AgentReplaced {
        reason: String,
    },
    /// The turn is over: the last entry of every turn.
    Ended(Outcome),
    /// The agent called a tool of the client; the call is parked until its result comes.
    Called(Box<ClientCall>),
    /// The agent can do no more without its client: all that it waits for, oldest first.
    Parked(Vec<CallId>),
    /// A call is over: the agent has its result.
    Returned {
        call: CallId,
        result: Box<ToolReturn>,
        by: ReturnedBy,
    },
    /// The agent delivered an answer in the form that was asked for. The last one of a turn counts.
    Output(Opaque),
    /// With the prompt of this turn the agent is told what was said before it came; so many messages did not fit.
    // Named as logs of before have it.
    #[serde(rename = "Retold")]
    HistoryReplayed {
        left_out: usize,
    },
    /// A client deleted the answer that begins after this entry: it is not to be had by its name any more. What was said stays.
    AnswerDeleted {
        after: Seq,
    },
    /// The turn waited since its prompt, for its session or for a permit of its agent, and goes to the agent now.
    Admitted,
}

impl Event {
    /// Commands, titles and the like are news of the session: agents send them whatever becomes of the prompt.
    pub fn is_done_for_the_prompt(&self) -> bool {
        match self {
            Self::Text(_)
            | Self::Thought(_)
            | Self::Content(_)
            | Self::ToolCall(_)
            | Self::Plan(_)
            | Self::Asked(_)
            | Self::Answered { .. }
            | Self::Called(_)
            | Self::Parked(_)
            | Self::Output(_)
            | Self::Ended(_) => true,
            Self::Prompted { .. }
            | Self::Started
            | Self::HistoryReplayed { .. }
            | Self::Admitted
            | Self::AnswerDeleted { .. }
            | Self::Usage(_)
            | Self::Context { .. }
            | Self::Mode(_)
            | Self::Model(_)
            | Self::Commands(_)
            | Self::Options(_)
            | Self::Title(_)
            | Self::Other { .. }
            | Self::AgentReplaced { .. }
            | Self::Returned { .. } => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanEntry {
    pub content: Arc<str>,
    pub priority: PlanPriority,
    pub status: PlanStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlanPriority {
    High,
    Medium,
    Low,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlanStatus {
    Pending,
    InProgress,
    Completed,
}

/// The language that a [`Frame`] is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Dialect {
    Acp,
    Headless,
    A2a,
}

/// What the agent sent, byte for byte: opaque here, spliced by a front end of the same dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub dialect: Dialect,
    pub bytes: Bytes,
}
