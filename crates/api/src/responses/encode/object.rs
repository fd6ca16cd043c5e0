//! The response object: what the request said comes back in it, beside what came of it.

use gembridge_core::exchange::{Finish, TokenCount};
use serde_json::value::RawValue;

use crate::problem::{Kind, Problem};
use crate::responses::decode::ToolNames;
use crate::responses::wire::{
    ConversationEcho, ErrorBody, IncompleteDetails, InputTokensDetails, OutputItem, OutputTokensDetails,
    ReasoningOptions, ResponseObject, TextEcho, Usage,
};

/// What is the same in a response from its beginning to its end.
#[derive(Clone, Debug)]
pub(in crate::responses) struct Head {
    /// Empty until it is known where the answer begins.
    pub id: String,
    /// UNIX time in seconds.
    pub created_at: u64,
    pub model: String,
    pub previous: Option<String>,
    pub conversation: Option<String>,
    pub echo: Echo,
    pub names: ToolNames,
}

/// What comes back of the request.
#[derive(Clone, Debug)]
pub(in crate::responses) struct Echo {
    pub instructions: Option<String>,
    pub tools: Box<RawValue>,
    pub tool_choice: Box<RawValue>,
    pub parallel_tool_calls: bool,
    pub format: Box<RawValue>,
    pub effort: Option<String>,
    pub summary: Option<String>,
    pub max_output_tokens: Option<u64>,
    pub store: bool,
    pub background: bool,
    pub metadata: Box<RawValue>,
    pub safety_identifier: Option<String>,
    pub prompt_cache_key: Option<String>,
    pub thoughts: Thoughts,
    pub form: AnswerForm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::responses) enum Thoughts {
    Told,
    /// The client wants reasoning items that it can give back.
    Returnable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::responses) enum AnswerForm {
    Prose,
    /// A form that prose would break.
    Data,
}

/// How far a response is.
#[derive(Clone, Debug)]
pub(in crate::responses) enum Status {
    Queued,
    InProgress,
    Ended { finish: Finish, tokens: Option<TokenCount>, at: u64 },
    Failed { problem: Problem },
    Cancelled,
}

impl Status {
    pub(in crate::responses) fn word(&self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::InProgress => "in_progress",
            Self::Ended { finish: Finish::Length, .. } => "incomplete",
            // A refusal is an answer in words: programs repeat a request whose answer was filtered.
            Self::Ended { finish: Finish::Stop | Finish::ToolCalls | Finish::ContentFilter, .. } => "completed",
            Self::Failed { .. } => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    fn completed_at(&self) -> Option<u64> {
        match self {
            Self::Ended { at, .. } if self.word() == "completed" => Some(*at),
            _ => None,
        }
    }
}

impl Head {
    /// That of a response of which nothing but the log of its session is left.
    pub(in crate::responses) fn of_logged(model: &str, began_at: u64) -> Self {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).expect("JSON of our own");
        let echo = Echo {
            instructions: None,
            tools: raw("[]"),
            tool_choice: raw(r#""auto""#),
            parallel_tool_calls: true,
            format: raw(r#"{"type":"text"}"#),
            effort: None,
            summary: None,
            max_output_tokens: None,
            store: true,
            background: false,
            metadata: raw("{}"),
            safety_identifier: None,
            prompt_cache_key: None,
            thoughts: Thoughts::Told,
            form: AnswerForm::Prose,
        };
        let model = model.to_owned();
        let names = ToolNames::default();
        Self { id: String::new(), created_at: began_at, model, previous: None, conversation: None, echo, names }
    }

    pub(super) fn object<'a>(&'a self, status: &'a Status, output: &'a [OutputItem]) -> ResponseObject<'a> {
        let echo = &self.echo;
        let (usage, error, incomplete_details) = match status {
            Status::Ended { finish: Finish::Length, tokens, .. } => {
                (tokens.map(Into::into), None, Some(IncompleteDetails { reason: "max_output_tokens" }))
            }
            Status::Ended { tokens, .. } => (tokens.map(Into::into), None, None),
            Status::Failed { problem } => {
                (None, Some(ErrorBody { code: failure_code(problem.kind), message: &problem.message }), None)
            }
            Status::Queued | Status::InProgress | Status::Cancelled => (None, None, None),
        };
        ResponseObject {
            id: &self.id,
            object: "response",
            created_at: self.created_at,
            completed_at: status.completed_at(),
            status: status.word(),
            incomplete_details,
            model: &self.model,
            previous_response_id: self.previous.as_deref(),
            instructions: echo.instructions.as_deref(),
            output,
            error,
            tools: &echo.tools,
            tool_choice: &echo.tool_choice,
            truncation: "disabled",
            parallel_tool_calls: echo.parallel_tool_calls,
            text: TextEcho { format: &echo.format },
            top_p: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            top_logprobs: 0,
            temperature: 1.0,
            reasoning: ReasoningOptions { effort: echo.effort.as_deref(), summary: echo.summary.as_deref() },
            usage,
            max_output_tokens: echo.max_output_tokens,
            max_tool_calls: None,
            store: echo.store,
            background: echo.background,
            service_tier: "default",
            metadata: &echo.metadata,
            safety_identifier: echo.safety_identifier.as_deref(),
            prompt_cache_key: echo.prompt_cache_key.as_deref(),
            conversation: self.conversation.as_deref().map(|id| ConversationEcho { id }),
        }
    }
}

/// The `code` of a response that failed. Clients send a request again after `server_error`, and an agent that has begun to
/// act would act twice: `invalid_prompt` is the one code that all of them take as final, with our words.
fn failure_code(kind: Kind) -> &'static str {
    match kind {
        Kind::RateLimited { .. } | Kind::QueueFull { .. } | Kind::Provider => "rate_limit_exceeded",
        Kind::Unavailable { .. } | Kind::Elsewhere { .. } | Kind::StoreFull | Kind::Internal => "server_error",
        _ => "invalid_prompt",
    }
}

impl From<TokenCount> for Usage {
    fn from(tokens: TokenCount) -> Self {
        Self {
            input_tokens: tokens.input,
            input_tokens_details: InputTokensDetails { cached_tokens: tokens.cached },
            output_tokens: tokens.output,
            output_tokens_details: OutputTokensDetails { reasoning_tokens: tokens.reasoning },
            total_tokens: tokens.total(),
        }
    }
}
