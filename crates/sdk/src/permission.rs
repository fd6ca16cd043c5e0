//! What becomes of the agent's questions whether it may use a tool.

use std::fmt;
use std::sync::Arc;

use futures_util::FutureExt as _;
use gembridge_core::BoxFuture;
use gembridge_core::model::{Answer, Ask, AskBody, ToolKind};

/// Who decides when the agent asks for a permission.
#[derive(Clone, Default)]
pub enum Permissions {
    /// Everything is allowed once, each time: by the kind of the option, never by its place, and never for good.
    #[default]
    Auto,
    /// Everything is refused.
    Deny,
    /// A function of the program decides.
    Ask(PermissionCallback),
}

impl Permissions {
    /// Asks this function each time. The agent waits for it.
    pub fn ask<F, D>(decide: F) -> Self
    where
        F: Fn(PermissionRequest) -> D + Send + Sync + 'static,
        D: Future<Output = Decision> + Send + 'static,
    {
        Self::Ask(PermissionCallback(Arc::new(move |request| decide(request).boxed())))
    }

    /// The answer to a question. `None`: the session's own policy has answered it.
    pub(crate) async fn answer(&self, ask: Ask) -> Option<Answer> {
        let decision = match self {
            Self::Deny => return None,
            Self::Auto => Decision::AllowOnce,
            Self::Ask(callback) => match PermissionRequest::of(&ask) {
                Some(request) => (callback.0)(request).await,
                // What is no permission has nobody who could fill it in.
                None => Decision::Reject,
            },
        };
        Some(match decision {
            Decision::AllowOnce => ask.allow_once().unwrap_or_else(|| ask.reject()),
            Decision::Reject => ask.reject(),
            Decision::Option(id) => {
                let answer = Answer::Option(id.into());
                if ask.accepts(&answer) { answer } else { ask.reject() }
            }
        })
    }
}

impl fmt::Debug for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "Auto",
            Self::Deny => "Deny",
            Self::Ask(_) => "Ask",
        })
    }
}

/// A function that decides, made by [`Permissions::ask`].
#[derive(Clone)]
pub struct PermissionCallback(Arc<dyn Fn(PermissionRequest) -> BoxFuture<'static, Decision> + Send + Sync>);

/// What the program says to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Yes, this time. Where the agent offers no such thing, no.
    AllowOnce,
    Reject,
    /// One of the options that the agent offers, by its id. One that is not offered is a no.
    Option(String),
}

/// The agent wants to use a tool of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PermissionRequest {
    /// What people are shown of it, often the command itself.
    pub title: String,
    /// The tool's own name, where the agent tells it.
    pub name: Option<String>,
    /// `read`, `edit`, `delete`, `move`, `search`, `execute`, `think`, `fetch` or `other`.
    pub kind: &'static str,
    /// The arguments as JSON, where the agent tells them.
    pub input: Option<String>,
    pub options: Vec<PermissionOption>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionOption {
    pub id: String,
    pub name: String,
}

impl PermissionRequest {
    pub(crate) fn of(ask: &Ask) -> Option<Self> {
        let AskBody::Permission { tool, options, .. } = &ask.body else { return None };
        let option = |option: &gembridge_core::model::AskOption| PermissionOption {
            id: option.id.to_string(),
            name: option.name.to_string(),
        };
        Some(Self {
            title: tool.title.as_deref().unwrap_or_default().to_owned(),
            name: tool.name.as_deref().map(str::to_owned),
            kind: kind_name(tool.kind),
            input: tool.input.as_ref().map(|input| String::from_utf8_lossy(&input.0).into_owned()),
            options: options.iter().map(option).collect(),
        })
    }
}

pub(crate) fn kind_name(kind: Option<ToolKind>) -> &'static str {
    match kind {
        Some(ToolKind::Read) => "read",
        Some(ToolKind::Edit) => "edit",
        Some(ToolKind::Delete) => "delete",
        Some(ToolKind::Move) => "move",
        Some(ToolKind::Search) => "search",
        Some(ToolKind::Execute) => "execute",
        Some(ToolKind::Think) => "think",
        Some(ToolKind::Fetch) => "fetch",
        Some(ToolKind::SwitchMode | ToolKind::Other) | None => "other",
    }
}
