//! What goes wrong before or instead of an answer, by what the caller can do about it. Each frontend renders it in its
//! own envelope.

use std::borrow::Cow;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use gembridge_core::admission::QueueFull;
use gembridge_core::directory::{DirectoryError, NodeId};
use gembridge_core::error::Error;
use gembridge_core::model::{Failure, FailureKind};
use gembridge_core::store::StoreError;

/// A request that gets no answer. `message` says what happened and the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    pub kind: Kind,
    pub message: String,
    /// The field of the request that it is about.
    pub param: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Invalid,
    Unauthenticated,
    /// A host or an origin that is not allowed, or an agent that this key may not have.
    Forbidden,
    NotFound,
    MethodNotAllowed,
    TooLarge,
    WrongMediaType,
    RateLimited {
        retry_after: Duration,
    },
    QueueFull {
        retry_after: Duration,
    },
    /// The agent failed or broke its protocol.
    Agent,
    /// The agent answered in prose where a call of a tool was required.
    NoToolCall,
    /// The agent's answer does not have the form that was asked for.
    NoOutput,
    /// The turn was cancelled by another client.
    Cancelled,
    /// The agent's provider asks to slow down.
    Provider,
    Unavailable {
        retry_after: Duration,
    },
    TimedOut,
    StoreFull,
    /// Another gateway of the cluster has the session. The request is passed on to it, unless it was passed on already.
    Elsewhere {
        node: NodeId,
    },
    Internal,
}

impl Problem {
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), param: None }
    }

    /// The message with the name of its field, for envelopes that have no other place for it.
    pub fn message_with_field(&self) -> Cow<'_, str> {
        match self.param.as_deref().filter(|param| !self.message.contains(param)) {
            Some(param) => Cow::Owned(format!("{param}: {}", self.message)),
            None => Cow::Borrowed(&self.message),
        }
    }

    /// Leaves in its response where the request is to be passed on to.
    pub(crate) fn mark(&self, response: &mut Response) {
        if let Kind::Elsewhere { node } = self.kind {
            response.extensions_mut().insert(PassOn(node));
        }
    }

    pub fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind: Kind::Invalid, message: message.into(), param: Some(param.into()) }
    }
}

/// 499 is what Google's APIs and proxies answer to a cancelled call. Client libraries raise it as an error, and do not repeat
/// the request as they do after 408, 409 and 5xx: what a person stopped is not to begin again.
fn cancelled() -> StatusCode {
    StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST)
}

impl Kind {
    pub fn status(self) -> StatusCode {
        match self {
            Self::Invalid => StatusCode::BAD_REQUEST,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::WrongMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::RateLimited { .. } | Self::QueueFull { .. } | Self::Provider => StatusCode::TOO_MANY_REQUESTS,
            Self::Agent | Self::NoToolCall | Self::NoOutput => StatusCode::BAD_GATEWAY,
            Self::Cancelled => cancelled(),
            Self::Unavailable { .. } | Self::Elsewhere { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Self::TimedOut => StatusCode::GATEWAY_TIMEOUT,
            Self::StoreFull => StatusCode::INSUFFICIENT_STORAGE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The name that programs know it by, in every protocol that has no name of its own for it.
    pub fn code(self) -> &'static str {
        match self {
            Self::Invalid => "invalid_request",
            Self::Unauthenticated => "invalid_api_key",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::TooLarge => "request_too_large",
            Self::WrongMediaType => "unsupported_media_type",
            Self::RateLimited { .. } => "rate_limit_exceeded",
            Self::QueueFull { .. } => "queue_full",
            Self::Provider => "provider_rate_limit",
            Self::Agent => "agent_error",
            Self::NoToolCall => "tool_call_missing",
            Self::NoOutput => "output_invalid",
            Self::Cancelled => "cancelled",
            Self::Unavailable { .. } | Self::Elsewhere { .. } => "unavailable",
            Self::TimedOut => "timeout",
            Self::StoreFull => "storage_full",
            Self::Internal => "internal_error",
        }
    }

    /// Whether an agent may have done something for the request: to send it again would have that done twice.
    pub fn has_acted(self) -> bool {
        matches!(self, Self::Agent | Self::NoToolCall | Self::NoOutput | Self::Cancelled | Self::TimedOut)
    }

    /// When it may be tried again.
    pub fn retry_after(self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after } | Self::QueueFull { retry_after } | Self::Unavailable { retry_after } => {
                Some(retry_after)
            }
            Self::Provider => Some(Duration::from_secs(10)),
            Self::Elsewhere { .. } => Some(Duration::from_secs(1)),
            _ => None,
        }
    }
}

/// In the extensions of a response, whoever has written it: the request is to be passed on to this gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassOn(pub NodeId);

impl IntoResponse for Problem {
    /// A status and the problem itself, in the response's extensions: the guard renders it there.
    fn into_response(self) -> Response {
        let mut response = self.kind.status().into_response();
        self.mark(&mut response);
        response.extensions_mut().insert(self);
        response
    }
}

impl From<Failure> for Problem {
    /// The agent's standard error stays here: agents dump prompts there.
    fn from(failure: Failure) -> Self {
        let kind = match failure.kind {
            FailureKind::Refused { .. }
            | FailureKind::UnknownModel { .. }
            | FailureKind::ContextFull { .. }
            | FailureKind::LimitReached
            | FailureKind::Crashed
            | FailureKind::Protocol
            | FailureKind::NeedsLogin => Kind::Agent,
            FailureKind::Forbidden => Kind::Forbidden,
            FailureKind::RateLimited => Kind::Provider,
            FailureKind::TimedOut => Kind::TimedOut,
            FailureKind::Unavailable { retry_after } => Kind::Unavailable { retry_after },
            FailureKind::QuotaReached { retry_after } => Kind::QueueFull { retry_after },
            FailureKind::StoreFailed => Kind::StoreFull,
            FailureKind::Unsupported => Kind::Invalid,
            FailureKind::ShuttingDown => Kind::Unavailable { retry_after: Duration::from_secs(5) },
            FailureKind::Internal => Kind::Internal,
        };
        Self::new(kind, failure.message)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Agent(failure) => failure.into(),
            Error::Invalid(_) | Error::NotAsked | Error::NotParked(_) => Self::new(Kind::Invalid, message),
            Error::UnknownSession(_) | Error::Store(StoreError::Unknown(_)) => Self::new(Kind::NotFound, message),
            Error::Busy { retry_after, .. } | Error::QueueFull(QueueFull { retry_after, .. }) => {
                Self::new(Kind::QueueFull { retry_after }, message)
            }
            Error::Closed | Error::MovedOn | Error::Store(StoreError::NoDescriptor) => {
                Self::new(Kind::Unavailable { retry_after: Duration::from_secs(1) }, message)
            }
            Error::Directory(DirectoryError { retry_after, .. }) => {
                Self::new(Kind::Unavailable { retry_after }, message)
            }
            Error::Elsewhere(node) => Self::new(Kind::Elsewhere { node }, message),
            Error::Store(StoreError::Full | StoreError::Io(_)) => Self::new(Kind::StoreFull, message),
            Error::Store(_) => Self::new(Kind::Internal, message),
        }
    }
}
