//! Conversations: what was said under one name, over several responses. Kept in memory, as responses are.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::Response;
use bytes::Bytes;
use gembridge_core::model::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::Responses;
use super::decode;
use super::error::unknown_conversation;
use super::items::{self, Order, Page};
use super::kept::{Kept, Stage};
use super::stored::Deletion;
use crate::dialect::{self, Source, json as value};
use crate::identity::Identity;
use crate::json::AnyObject;
use crate::path::PathName;
use crate::problem::Problem;

#[derive(Deserialize)]
struct Created<'a> {
    metadata: Option<Map<String, Value>>,
    #[serde(borrow)]
    items: Option<&'a RawValue>,
}

/// Makes a conversation, with items in it if some are sent.
#[utoipa::path(
    post, path = "/v1/conversations", tag = "responses", operation_id = "createConversation",
    request_body(content = AnyObject, description = "`items` and `metadata`, if any"),
    responses((status = 200, description = "The conversation"), (status = 400, description = "It cannot be read"))
)]
pub(super) async fn create(
    State(app): State<Arc<Responses>>,
    Extension(identity): Extension<Identity>,
    body: Bytes,
) -> Result<Response<Body>, Problem> {
    let body = if body.is_empty() { Bytes::from_static(b"{}") } else { body };
    let Created { metadata, items } = parse(&body)?;
    let said = items.map(read).transpose()?.unwrap_or_default();
    let id = format!("conv_{}", Uuid::now_v7().simple());
    let conversation = json!({
        "id": id, "object": "conversation", "created_at": Timestamp::now().0 / 1_000,
        "metadata": metadata.unwrap_or_default(),
    });
    let stage = Stage::Conversation(conversation.to_string().into());
    app.kept.put(&id, Kept { principal: identity.principal, stage, said: Arc::new(said.detached()), input: 0 });
    Ok(value(&conversation))
}

/// Gives a conversation again.
#[utoipa::path(
    get, path = "/v1/conversations/{id}", tag = "responses", operation_id = "getConversation",
    params(("id" = String, Path, description = "The conversation")),
    responses((status = 200, description = "The conversation"), (status = 404, description = "There is none"))
)]
pub(super) async fn get(
    State(app): State<Arc<Responses>>,
    Extension(identity): Extension<Identity>,
    PathName(id): PathName,
) -> Result<Response<Body>, Problem> {
    app.conversation(&id, &identity).map(|(body, _)| super::stored::json(body))
}

/// Forgets a conversation. What was said stays in its sessions.
#[utoipa::path(
    delete, path = "/v1/conversations/{id}", tag = "responses", operation_id = "deleteConversation",
    params(("id" = String, Path, description = "The conversation")),
    responses((status = 200, description = "It is gone"), (status = 404, description = "There is none"))
)]
pub(super) async fn delete(
    State(app): State<Arc<Responses>>,
    Extension(identity): Extension<Identity>,
    PathName(id): PathName,
) -> Result<Response<Body>, Problem> {
    app.conversation(&id, &identity)?;
    app.kept.remove(&id);
    Ok(value(&Deletion { id: &id, object: "conversation.deleted", deleted: true }))
}

/// Lists what was said in a conversation.
#[utoipa::path(
    get, path = "/v1/conversations/{id}/items", tag = "responses", operation_id = "listConversationItems",
    params(
        ("id" = String, Path, description = "The conversation"),
        ("after" = Option<String>, Query, description = "Only items after this one"),
        ("limit" = Option<u64>, Query, description = "At most so many, 1 to 100"),
        ("order" = Option<String>, Query, description = "`asc`, the oldest first, or `desc`"),
    ),
    responses((status = 200, description = "Items"), (status = 404, description = "There is no such conversation"))
)]
pub(super) async fn list_items(
    State(app): State<Arc<Responses>>,
    Extension(identity): Extension<Identity>,
    PathName(id): PathName,
    Query(page): Query<Page>,
) -> Result<Response<Body>, Problem> {
    let (_, kept) = app.conversation(&id, &identity)?;
    Ok(value(&items::list(&kept.said, kept.said.messages.len(), &id, &page, Order::OldestFirst)?))
}

/// Adds items to a conversation, without an answer.
#[utoipa::path(
    post, path = "/v1/conversations/{id}/items", tag = "responses", operation_id = "createConversationItems",
    params(("id" = String, Path, description = "The conversation")),
    request_body(content = AnyObject, description = "`items`"),
    responses((status = 200, description = "All items"), (status = 404, description = "There is no such conversation"))
)]
pub(super) async fn add_items(
    State(app): State<Arc<Responses>>,
    Extension(identity): Extension<Identity>,
    PathName(id): PathName,
    body: Bytes,
) -> Result<Response<Body>, Problem> {
    let Created { items, .. } = parse(&body)?;
    let added = items.map(read).transpose()?.unwrap_or_default();
    let (_, kept) = app.conversation(&id, &identity)?;
    let said = added.after((*kept.said).clone());
    said.check_length("items")?;
    let said = Arc::new(said.detached());
    app.kept.put(&id, Kept { said: Arc::clone(&said), ..kept });
    Ok(value(&items::list(&said, said.messages.len(), &id, &Page::default(), Order::OldestFirst)?))
}

impl Responses {
    fn conversation(&self, id: &str, identity: &Identity) -> Result<(Bytes, Kept), Problem> {
        let kept = self.kept.get(id, &identity.principal).ok_or_else(|| unknown_conversation(id))?;
        match &kept.stage {
            Stage::Conversation(body) => Ok((body.clone(), kept)),
            Stage::Over(_) | Stage::Background(_) => Err(unknown_conversation(id)),
        }
    }
}

fn parse(body: &Bytes) -> Result<Created<'_>, Problem> {
    dialect::parse(body, "a conversation or items of one")
}

/// Items are read as the `input` of a request is.
fn read(items: &RawValue) -> Result<decode::Conversation, Problem> {
    let body = Bytes::from(format!("{{\"input\":{}}}", items.get()));
    decode::conversation(&decode::parse(&body)?, Source(&body))
}
