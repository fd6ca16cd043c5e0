//! Responses that are there: to be read again, followed, cancelled and deleted.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{HeaderValue, Response, header};
use gembridge_core::error::Error;
use gembridge_core::model::Role;
use serde::{Deserialize, Serialize};

use super::Responses;
use super::background::Events;
use super::encode::Answer;
use super::error::unknown_response;
use super::items::{self, Order, Page};
use super::kept::{Kept, Stage};
use super::response_id::ResponseId;
use crate::dialect::{JSON, json as value};
use crate::identity::Identity;
use crate::path::PathName;
use crate::problem::Problem;
use crate::sse;

#[derive(Debug, Default, Deserialize)]
pub(super) struct Follow {
    stream: Option<bool>,
    starting_after: Option<u64>,
}

/// Gives a response again.
#[utoipa::path(
    get, path = "/v1/responses/{id}", tag = "responses", operation_id = "getResponse",
    params(
        ("id" = String, Path, description = "The response"),
        ("stream" = Option<bool>, Query, description = "The events of a background response"),
        ("starting_after" = Option<u64>, Query, description = "Only events after the one with this number"),
    ),
    responses((status = 200, description = "The response"), (status = 404, description = "There is none"))
)]
pub(super) async fn get(
    State(app): State<Arc<Responses>>,
    Extension(identity): Extension<Identity>,
    PathName(id): PathName,
    Query(follow): Query<Follow>,
) -> Result<Response<Body>, Problem> {
    let found = app.find(&id, &identity).await?;
    match (follow.stream.unwrap_or(false), found.stage) {
        (true, Stage::Background(run)) => Ok(events(run.follow(follow.starting_after))),
        (true, _) => {
            let message = "only a background response has events that can be followed; leave `stream` out";
            Err(Problem::invalid("stream", message))
        }
        (false, Stage::Background(run)) => Ok(json(run.response())),
        (false, Stage::Over(body) | Stage::Conversation(body)) => Ok(json(body)),
    }
}

/// Forgets a response. What was said stays in its session.
#[utoipa::path(
    delete, path = "/v1/responses/{id}", tag = "responses", operation_id = "deleteResponse",
    params(("id" = String, Path, description = "The response")),
    responses((status = 200, description = "It is gone"), (status = 404, description = "There is none"))
)]
pub(super) async fn delete(
    State(app): State<Arc<Responses>>,
    Extension(identity): Extension<Identity>,
    PathName(id): PathName,
) -> Result<Response<Body>, Problem> {
    if let Stage::Background(run) = app.find(&id, &identity).await?.stage {
        run.cancel().await;
    }
    if let Ok(ResponseId { session, after, .. }) = id.parse() {
        match app.dialects.exchanges.delete_answer(session, after, &identity.viewer()).await {
            // Then nothing of it can be read there either.
            Ok(()) | Err(Error::UnknownSession(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    app.kept.remove(&id);
    Ok(value(&Deletion { id: &id, object: "response", deleted: true }))
}

#[derive(Serialize)]
pub(super) struct Deletion<'a> {
    pub id: &'a str,
    pub object: &'static str,
    pub deleted: bool,
}

/// Cancels a background response.
#[utoipa::path(
    post, path = "/v1/responses/{id}/cancel", tag = "responses", operation_id = "cancelResponse",
    params(("id" = String, Path, description = "The response")),
    responses(
        (status = 200, description = "The response as it stands then"),
        (status = 400, description = "It is no background response"),
        (status = 404, description = "There is none"),
    )
)]
pub(super) async fn cancel(
    State(app): State<Arc<Responses>>,
    Extension(identity): Extension<Identity>,
    PathName(id): PathName,
) -> Result<Response<Body>, Problem> {
    let Stage::Background(run) = app.find(&id, &identity).await?.stage else {
        let message = "only a background response can be cancelled; close the connection of any other";
        return Err(Problem::invalid("response_id", message));
    };
    run.cancel().await;
    Ok(json(run.response()))
}

/// Lists what a response was an answer to.
#[utoipa::path(
    get, path = "/v1/responses/{id}/input_items", tag = "responses", operation_id = "listInputItems",
    params(
        ("id" = String, Path, description = "The response"),
        ("after" = Option<String>, Query, description = "Only items after this one"),
        ("limit" = Option<u64>, Query, description = "At most so many, 1 to 100"),
        ("order" = Option<String>, Query, description = "`desc`, the newest first, or `asc`"),
    ),
    responses((status = 200, description = "Items"), (status = 404, description = "There is no such response"))
)]
pub(super) async fn input_items(
    State(app): State<Arc<Responses>>,
    Extension(identity): Extension<Identity>,
    PathName(id): PathName,
    Query(page): Query<Page>,
) -> Result<Response<Body>, Problem> {
    let found = app.find(&id, &identity).await?;
    Ok(value(&items::list(&found.said, found.input, &id, &page, Order::NewestFirst)?))
}

impl Responses {
    /// A response that is stored: in memory, or out of the log of its session.
    async fn find(&self, id: &str, identity: &Identity) -> Result<Kept, Problem> {
        let unknown = || unknown_response(id);
        let named: ResponseId = id.parse().map_err(|_| unknown())?;
        if let Some(kept) = self.kept.get(id, &identity.principal) {
            return Ok(kept);
        }
        if !named.is_stored {
            return Err(unknown());
        }
        let viewer = identity.viewer();
        let exchanges = &self.dialects.exchanges;
        let logged = match exchanges.history_of_answer(named.session, named.after, &viewer).await {
            Ok(logged) => logged.ok_or_else(unknown)?,
            Err(Error::UnknownSession(_)) => return Err(unknown()),
            Err(error) => return Err(error.into()),
        };
        let owner = exchanges.named_session(named.session, &viewer).await?.owner;
        let model = owner.model.as_deref().unwrap_or(owner.agent.as_str());
        let answer = Answer::of_log(named, model, &logged);
        let is_answer = logged.messages.last().is_some_and(|last| last.role == Role::Assistant);
        let input = logged.messages.len() - usize::from(is_answer);
        let said = Arc::new(super::past::conversation(logged, None));
        Ok(Kept { principal: identity.principal.clone(), stage: Stage::Over(answer.to_json().into()), said, input })
    }
}

pub(super) fn json(body: impl Into<Body>) -> Response<Body> {
    typed(body.into(), JSON)
}

pub(super) fn events(events: Events) -> Response<Body> {
    let mut response = typed(Body::new(events), sse::CONTENT_TYPE);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

pub(super) fn typed(body: Body, kind: HeaderValue) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
