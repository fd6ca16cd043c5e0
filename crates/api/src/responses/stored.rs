//! Responses that are there: to be read again, followed, cancelled and deleted.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{HeaderValue, Response, header};
use gembridge_core::error::Error;
use gembridge_core::exchange::{AnswerPlace, AnswerSink as _};
use gembridge_core::model::{Content, Role, TurnId};
use serde::{Deserialize, Serialize};

use super::Responses;
use super::background::{Events, Run};
use super::encode::{Answer, Head};
use super::error::{self, unknown_response};
use super::items::{self, Order, Page};
use super::kept::{Kept, Stage};
use super::response_id::ResponseId;
use crate::identity::{Identity, RequestId};
use crate::path::PathName;
use crate::problem::{Kind, Problem};
use crate::sse;

/// Who asks, and how a refusal is told.
#[derive(Clone)]
pub(super) struct Asking {
    pub identity: Identity,
    pub request: RequestId,
}

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for Asking {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut axum::http::request::Parts, _: &S) -> Result<Self, Problem> {
        let missing = || Problem::new(Kind::Internal, "the request came without an identity");
        let identity = parts.extensions.get().cloned().ok_or_else(missing)?;
        Ok(Self { identity, request: parts.extensions.get().copied().unwrap_or_else(RequestId::fresh) })
    }
}

impl Asking {
    /// A problem becomes a response in this dialect.
    pub(super) fn answer(&self, answer: Result<Response<Body>, Problem>) -> Response<Body> {
        answer.unwrap_or_else(|problem| error::response(&problem, &self.request))
    }
}

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
    asking: Asking,
    name: Result<PathName, Problem>,
    Query(follow): Query<Follow>,
) -> Response<Body> {
    let answer = async {
        let PathName(id) = name?;
        let found = app.find(&id, &asking).await?;
        match (follow.stream.unwrap_or(false), found.stage) {
            (true, Stage::Background(run)) => Ok(events(run.follow(follow.starting_after))),
            (true, _) => {
                let message = "only a background response has events that can be followed; leave `stream` out";
                Err(Problem::invalid("stream", message))
            }
            (false, Stage::Background(run)) => Ok(json(run.response())),
            (false, Stage::Over(body)) => Ok(json(body)),
            (false, Stage::Conversation(_) | Stage::Deleted) => Err(unknown_response(&id)),
        }
    };
    asking.answer(answer.await)
}

/// Forgets a response. What was said stays in its session.
#[utoipa::path(
    delete, path = "/v1/responses/{id}", tag = "responses", operation_id = "deleteResponse",
    params(("id" = String, Path, description = "The response")),
    responses((status = 200, description = "It is gone"), (status = 404, description = "There is none"))
)]
pub(super) async fn delete(
    State(app): State<Arc<Responses>>,
    asking: Asking,
    name: Result<PathName, Problem>,
) -> Response<Body> {
    let answer = async {
        let PathName(id) = name?;
        if let Stage::Background(run) = app.find(&id, &asking).await?.stage {
            run.cancel().await;
        }
        app.kept.put(&id, Kept::deleted(asking.identity.principal.clone()));
        Ok(value(&Deletion { id: &id, object: "response", deleted: true }))
    };
    asking.answer(answer.await)
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
    asking: Asking,
    name: Result<PathName, Problem>,
) -> Response<Body> {
    let answer = async {
        let PathName(id) = name?;
        let Stage::Background(run) = app.find(&id, &asking).await?.stage else {
            let message = "only a background response can be cancelled; close the connection of any other";
            return Err(Problem::invalid("response_id", message));
        };
        run.cancel().await;
        Ok(json(run.response()))
    };
    asking.answer(answer.await)
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
    asking: Asking,
    name: Result<PathName, Problem>,
    Query(page): Query<Page>,
) -> Response<Body> {
    let answer = async {
        let PathName(id) = name?;
        let found = app.find(&id, &asking).await?;
        Ok(value(&items::list(&found.said, found.input, &id, &page, Order::NewestFirst)?))
    };
    asking.answer(answer.await)
}

impl Responses {
    /// A response that is stored: in memory, or out of the log of its session.
    async fn find(&self, id: &str, asking: &Asking) -> Result<Kept, Problem> {
        let unknown = || unknown_response(id);
        match self.kept.get(id, &asking.identity.principal) {
            Some(Kept { stage: Stage::Deleted | Stage::Conversation(_), .. }) => return Err(unknown()),
            Some(kept) => return Ok(kept),
            None => {}
        }
        let named: ResponseId = id.parse().map_err(|_| unknown())?;
        if !named.is_stored {
            return Err(unknown());
        }
        let viewer = asking.identity.viewer();
        let exchanges = &self.dialects.exchanges;
        let logged = match exchanges.history_of_answer(named.session, named.after, &viewer).await {
            Ok(logged) => logged.ok_or_else(unknown)?,
            Err(Error::UnknownSession(_)) => return Err(unknown()),
            Err(error) => return Err(error.into()),
        };
        let owner = exchanges.named_session(named.session, &viewer).await?.owner;
        let model = owner.model.as_deref().unwrap_or(owner.agent.as_str());
        let mut answer = Answer::whole(Head::of_logged(model, logged.began_at.0 / 1_000));
        answer.begun(0, AnswerPlace { session: named.session, turn: TurnId(0), after: named.after });
        let input = match logged.messages.split_last() {
            Some((last, before)) if last.role == Role::Assistant => {
                for part in last.content() {
                    if let Content::Text(text) = part {
                        answer.text(0, &text.to_escaped());
                    }
                }
                before.len()
            }
            _ => logged.messages.len(),
        };
        logged.calls.iter().enumerate().for_each(|(number, call)| answer.call(0, number, call));
        answer.end_as_logged(logged.ended_at.0 / 1_000);
        let said = Arc::new(super::past::conversation(logged, None));
        let stage = Stage::Over(answer.encode().into());
        Ok(Kept { principal: asking.identity.principal.clone(), stage, said, input })
    }

    /// Lets a response go on without its client.
    pub(super) fn run(self: &Arc<Self>, exchange: gembridge_core::exchange::Exchange, answer: Answer) -> Arc<Run> {
        let run = Run::new(answer);
        run.keep_running();
        self.tasks.spawn(Arc::clone(&run).work(exchange, self.dialects.config.keep_alive));
        run
    }
}

pub(super) fn json(body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(super) fn value(value: &impl Serialize) -> Response<Body> {
    json(serde_json::to_vec(value).expect("texts and numbers always serialise"))
}

pub(super) fn events(events: Events) -> Response<Body> {
    let mut response = Response::new(Body::new(events));
    response.headers_mut().insert(header::CONTENT_TYPE, sse::CONTENT_TYPE);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
