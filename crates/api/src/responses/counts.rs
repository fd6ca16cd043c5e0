//! What can be had of a request without an answer: how large it is, and a compaction of it.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;
use gembridge_core::exchange::{Exchanges, TokenCount, fit};
use gembridge_core::model::{ClientTool, Message, Timestamp};
use serde_json::json;
use uuid::Uuid;

use super::create::Asked;
use super::{Responses, compaction, wire};
use crate::dialect::{Caller, json as value};
use crate::problem::Problem;

/// A compaction is a message of the client's next request.
const COMPACTED: usize = 400_000;

/// Counts the tokens of a request, by our own measure: agents have no tokenizer for us.
#[utoipa::path(
    post, path = "/v1/responses/input_tokens", tag = "responses", operation_id = "countInputTokens",
    request_body(content = wire::CreateRequest),
    responses((status = 200, description = "`input_tokens`"), (status = 400, description = "It cannot be read"))
)]
pub(super) async fn input_tokens(
    State(app): State<Arc<Responses>>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    let said = Said::of(&app, request).await?;
    Ok(value(&json!({ "object": "response.input_tokens", "input_tokens": said.tokens() })))
}

/// Makes one item of a conversation, which stands for all of it in later requests. Nothing is summarised: the item holds what was
/// said, without the oldest of it where that is more than 400 000 bytes.
#[utoipa::path(
    post, path = "/v1/responses/compact", tag = "responses", operation_id = "compactResponse",
    request_body(content = wire::CreateRequest),
    responses((status = 200, description = "The item"), (status = 400, description = "It cannot be read"))
)]
pub(super) async fn compact(State(app): State<Arc<Responses>>, request: Request) -> Result<Response<Body>, Problem> {
    let said = Said::of(&app, request).await?;
    let kept: Vec<Message> = fit(&said.messages, COMPACTED).prompt.messages().map(Cow::into_owned).collect();
    let id = Uuid::now_v7().simple();
    let item = json!({ "id": format!("cmp_{id}"), "type": "compaction", "encrypted_content": compaction::seal(&kept) });
    let tokens = TokenCount { input: said.tokens(), ..TokenCount::default() };
    Ok(value(&json!({
        "id": format!("resp_{id}"), "object": "response.compaction", "created_at": Timestamp::now().0 / 1_000,
        "output": [item], "usage": wire::Usage::from(tokens),
    })))
}

/// What a request says in all.
struct Said {
    messages: Vec<Message>,
    tools: Vec<ClientTool>,
}

impl Said {
    async fn of(app: &Arc<Responses>, request: Request) -> Result<Self, Problem> {
        let (caller, _, body) = Caller::of(&app.dialects, request)?;
        let (caller, asked) = caller.read(body, Asked::read).await?;
        let asked = asked.with_past(app, &caller, None).await?;
        let messages = asked.history();
        let tools = asked.options.tools.offered.into_iter().map(|offered| offered.tool).collect();
        Ok(Self { messages, tools })
    }

    fn tokens(&self) -> u64 {
        Exchanges::tokens_of_request(&self.messages, &self.tools)
    }
}
