//! Conversations: what was said under one name, over several responses. Kept in memory, as responses are.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Query, State};
use axum::http::Response;
use bytes::Bytes;
use gembridge_core::model::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::Responses;
use super::decode;
use super::error::unknown_conversation;
use super::items::{self, Order, Page};
use super::kept::{Kept, Stage};
use super::stored::{Asking, Deletion, json, value};
use crate::dialect::Source;
use crate::path::PathName;
use crate::problem::{Kind, Problem};

#[derive(Deserialize)]
struct Create {
    metadata: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct Conversation<'a> {
    id: &'a str,
    object: &'static str,
    created_at: u64,
    metadata: &'a RawValue,
}

/// Makes a conversation, with items in it if some are sent.
#[utoipa::path(
    post, path = "/v1/conversations", tag = "responses", operation_id = "createConversation",
    responses((status = 200, description = "The conversation"), (status = 400, description = "It cannot be read"))
)]
pub(super) async fn create(State(app): State<Arc<Responses>>, asking: Asking, body: Body) -> Response<Body> {
    let answer = async {
        let body = read(body).await?;
        let body = if body.is_empty() { Bytes::from_static(b"{}") } else { body };
        let asked: Create = serde_json::from_slice(&body).map_err(|error| unreadable(&error))?;
        let said = items_of(&body)?;
        let id = format!("conv_{}", Uuid::now_v7().simple());
        let metadata = asked.metadata.unwrap_or_else(|| RawValue::from_string("{}".to_owned()).expect("JSON"));
        let created_at = Timestamp::now().0 / 1_000;
        let conversation = Conversation { id: &id, object: "conversation", created_at, metadata: &metadata };
        let conversation = Bytes::from(serde_json::to_vec(&conversation).expect("texts always serialise"));
        let principal = asking.identity.principal.clone();
        let stage = Stage::Conversation(conversation.clone());
        app.kept.put(&id, Kept { principal, stage, said: Arc::new(said), input: 0 });
        Ok(json(conversation))
    };
    asking.answer(answer.await)
}

/// Gives a conversation again.
#[utoipa::path(
    get, path = "/v1/conversations/{id}", tag = "responses", operation_id = "getConversation",
    params(("id" = String, Path, description = "The conversation")),
    responses((status = 200, description = "The conversation"), (status = 404, description = "There is none"))
)]
pub(super) async fn get(
    State(app): State<Arc<Responses>>,
    asking: Asking,
    name: Result<PathName, Problem>,
) -> Response<Body> {
    let found = name.and_then(|PathName(id)| app.conversation(&id, &asking));
    asking.answer(found.map(|(body, _)| json(body)))
}

/// Forgets a conversation. What was said stays in its sessions.
#[utoipa::path(
    delete, path = "/v1/conversations/{id}", tag = "responses", operation_id = "deleteConversation",
    params(("id" = String, Path, description = "The conversation")),
    responses((status = 200, description = "It is gone"), (status = 404, description = "There is none"))
)]
pub(super) async fn delete(
    State(app): State<Arc<Responses>>,
    asking: Asking,
    name: Result<PathName, Problem>,
) -> Response<Body> {
    let deleted = name.and_then(|PathName(id)| {
        app.conversation(&id, &asking)?;
        app.kept.remove(&id);
        Ok(value(&Deletion { id: &id, object: "conversation.deleted", deleted: true }))
    });
    asking.answer(deleted)
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
    asking: Asking,
    name: Result<PathName, Problem>,
    Query(page): Query<Page>,
) -> Response<Body> {
    let listed = name.and_then(|PathName(id)| {
        let (_, kept) = app.conversation(&id, &asking)?;
        let list = items::list(&kept.said, kept.said.messages.len(), &id, &page, Order::OldestFirst)?;
        Ok(value(&list))
    });
    asking.answer(listed)
}

/// Adds items to a conversation, without an answer.
#[utoipa::path(
    post, path = "/v1/conversations/{id}/items", tag = "responses", operation_id = "createConversationItems",
    params(("id" = String, Path, description = "The conversation")),
    responses((status = 200, description = "All items"), (status = 404, description = "There is no such conversation"))
)]
pub(super) async fn add_items(
    State(app): State<Arc<Responses>>,
    asking: Asking,
    name: Result<PathName, Problem>,
    body: Body,
) -> Response<Body> {
    let answer = async {
        let PathName(id) = name?;
        let body = read(body).await?;
        let added = items_of(&body)?;
        let (_, kept) = app.conversation(&id, &asking)?;
        let said = Arc::new(added.after((*kept.said).clone()));
        app.kept.put(&id, Kept { said: Arc::clone(&said), ..kept });
        Ok(value(&items::list(&said, said.messages.len(), &id, &Page::default(), Order::OldestFirst)?))
    };
    asking.answer(answer.await)
}

impl Responses {
    fn conversation(&self, id: &str, asking: &Asking) -> Result<(Bytes, Kept), Problem> {
        match self.kept.get(id, &asking.identity.principal) {
            Some(kept) => match &kept.stage {
                Stage::Conversation(body) => Ok((body.clone(), kept)),
                Stage::Over(_) | Stage::Background(_) | Stage::Deleted => Err(unknown_conversation(id)),
            },
            None => Err(unknown_conversation(id)),
        }
    }
}

async fn read(body: Body) -> Result<Bytes, Problem> {
    // Under the guard's limit, which has read it.
    let unreadable = |error| Problem::new(Kind::Invalid, format!("the body could not be read: {error}"));
    to_bytes(body, usize::MAX).await.map_err(unreadable)
}

fn unreadable(error: &serde_json::Error) -> Problem {
    Problem::new(Kind::Invalid, format!("the body cannot be read: {error}"))
}

/// The `items` of a body, read as the `input` of a request is.
fn items_of(body: &Bytes) -> Result<decode::Conversation, Problem> {
    #[derive(Deserialize)]
    struct Items<'a> {
        #[serde(borrow)]
        items: Option<&'a RawValue>,
    }
    let Items { items } = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
    let Some(items) = items else { return Ok(decode::Conversation::default()) };
    let body = Bytes::from(format!("{{\"input\":{}}}", items.get()));
    decode::conversation(&decode::parse(&body)?, Source(&body))
}
