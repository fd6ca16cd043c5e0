//! Questions of the agent that somebody must answer: permissions first of all.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{AskId, ClientId, Opaque, ToolCall};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    pub id: AskId,
    pub body: AskBody,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AskBody {
    /// May this tool run?
    Permission {
        tool: Box<ToolCall>,
        options: Vec<AskOption>,
        #[serde(default, skip_serializing_if = "Subject::is_of_the_agent")]
        subject: Subject,
    },
    /// A form or a page that the agent wants filled in; the whole request is in the entry's frame.
    Form { message: Arc<str> },
    /// A request of a method that only the agent and its client know.
    Extension { method: Arc<str> },
}

/// Whose tool a permission is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Subject {
    /// A tool of the agent's own, or of anybody that we do not know.
    #[default]
    AgentTool,
    /// A tool that the client offered and runs itself: it decides when it gets the call, so nobody is asked before.
    ClientTool,
}

impl Subject {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
    fn is_of_the_agent(&self) -> bool {
        *self == Self::AgentTool
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskOption {
    pub id: Arc<str>,
    pub name: Arc<str>,
    pub kind: OptionKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum OptionKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
    /// A kind we do not know: never chosen by us, and no client may choose it unseen.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// One of the offered options.
    Option(Arc<str>),
    /// Nobody decided: the turn was cancelled, or the question has no option that says no.
    Cancelled,
    /// The whole result, for questions that are not permissions.
    Result(Opaque),
}

/// Who decided, for the audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AnsweredBy {
    Client(ClientId),
    Policy,
    Timeout,
    Cancel,
}

impl Ask {
    /// The answer that allows as little as the agent offers to allow, if it offers any.
    pub fn allow_once(&self) -> Option<Answer> {
        self.first_of(&[OptionKind::AllowOnce])
    }

    /// The answer that says no: a rejecting option where there is one, a cancelled question otherwise.
    pub fn reject(&self) -> Answer {
        self.first_of(&[OptionKind::RejectOnce, OptionKind::RejectAlways]).unwrap_or(Answer::Cancelled)
    }

    /// Whether `answer` is one that this question can take.
    pub fn accepts(&self, answer: &Answer) -> bool {
        match (&self.body, answer) {
            (AskBody::Permission { options, .. }, Answer::Option(id)) => {
                options.iter().any(|option| option.id == *id && option.kind != OptionKind::Unknown)
            }
            (AskBody::Form { .. } | AskBody::Extension { .. }, Answer::Result(_)) | (_, Answer::Cancelled) => true,
            (AskBody::Permission { .. }, Answer::Result(_))
            | (AskBody::Form { .. } | AskBody::Extension { .. }, Answer::Option(_)) => false,
        }
    }

    fn first_of(&self, kinds: &[OptionKind]) -> Option<Answer> {
        let AskBody::Permission { options, .. } = &self.body else { return None };
        let option = kinds.iter().find_map(|kind| options.iter().find(|option| option.kind == *kind))?;
        Some(Answer::Option(option.id.clone()))
    }
}
