//! What can be had of a request without an answer: how large it is, and a compaction of it.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;
use gembridge_core::exchange::{Exchanges, TokenCount, fit};
use gembridge_core::model::{ClientTool, Message, Role, Timestamp};
use serde_json::json;
use uuid::Uuid;

use super::create::Asked;
use super::stored::value;
use super::{Responses, compaction, error, wire};
use crate::dialect::Caller;
use crate::identity::RequestId;
use crate::problem::Problem;

/// A compaction is a message of the client's next request.
const COMPACTED: usize = 400_000;

/// Counts the tokens of a request, by our own measure: agents have no tokenizer for us.
#[utoipa::path(
    post, path = "/v1/responses/input_tokens", tag = "responses", operation_id = "countInputTokens",
    request_body(content = wire::CreateRequest),
    responses((status = 200, description = "`input_tokens`"), (status = 400, description = "It cannot be read"))
)]
pub(super) async fn input_tokens(State(app): State<Arc<Responses>>, request: Request) -> Response<Body> {
    let counted = read(&app, request).await;
    counted.map_or_else(
        |(problem, id)| error::response(&problem, &id),
        |said| value(&json!({ "object": "response.input_tokens", "input_tokens": said.tokens() })),
    )
}

/// Makes one item of a conversation, which stands for all of it in later requests.
#[utoipa::path(
    post, path = "/v1/responses/compact", tag = "responses", operation_id = "compactResponse",
    request_body(content = wire::CreateRequest),
    responses((status = 200, description = "The item"), (status = 400, description = "It cannot be read"))
)]
pub(super) async fn compact(State(app): State<Arc<Responses>>, request: Request) -> Response<Body> {
    let said = match read(&app, request).await {
        Ok(said) => said,
        Err((problem, id)) => return error::response(&problem, &id),
    };
    let kept: Vec<Message> = fit(&said.messages, COMPACTED).prompt.messages().map(Cow::into_owned).collect();
    let id = Uuid::now_v7().simple();
    let item = json!({ "id": format!("cmp_{id}"), "type": "compaction", "encrypted_content": compaction::seal(&kept) });
    let tokens = TokenCount { input: said.tokens(), ..TokenCount::default() };
    value(&json!({
        "id": format!("resp_{id}"), "object": "response.compaction", "created_at": Timestamp::now().0 / 1_000,
        "output": [item], "usage": wire::Usage::from(tokens),
    }))
}

/// What a request says in all.
struct Said {
    messages: Vec<Message>,
    tools: Vec<ClientTool>,
}

impl Said {
    fn tokens(&self) -> u64 {
        Exchanges::tokens_of_request(&self.messages, &self.tools)
    }
}

async fn read(app: &Arc<Responses>, request: Request) -> Result<Said, (Problem, RequestId)> {
    let (mut parts, body) = request.into_parts();
    let id = parts.extensions.get().copied().unwrap_or_else(RequestId::fresh);
    let said = async {
        let caller = Caller::new(Arc::clone(&app.dialects), id, &mut parts.extensions)?;
        let (caller, Asked { options, said }) = caller.read(body, Asked::read).await?;
        let past = app.past(&caller, &options, &said, None).await?.unwrap_or_default();
        let instructions = options.echo.instructions.as_deref().map(|text| Message::text(Role::System, text));
        let messages = instructions.into_iter().chain(said.after(past).messages).collect();
        Ok(Said { messages, tools: options.tools.offered.into_iter().map(|offered| offered.tool).collect() })
    };
    said.await.map_err(|problem| (problem, id))
}
