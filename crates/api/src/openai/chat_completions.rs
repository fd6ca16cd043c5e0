//! `POST /v1/chat/completions`: a whole conversation in, the next answer out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, header};
use bytes::Bytes;
use gembridge_core::fair::Permit;
use gembridge_core::model::{SessionId, Timestamp};
use gembridge_core::session::conversation::{Fingerprint, Owner, Role, Said, fold, spoken};
use uuid::Uuid;

use super::answer::{Answers, Beginnings, Lane, Out};
use super::begin::{Plan, Route, begin};
use super::decode::{Reply, Wishes};
use super::encode::{Chunks, Head, Reading, ReadingOptions, Wholes};
use super::{OpenAi, ToolResults, decode, error, wire};
use crate::catalog::{Certainty, Resolved};
use crate::guard::record::RequestNotes;
use crate::identity::{Identity, RequestId};
use crate::problem::{Kind, Problem};
use crate::sse;

const SESSION: HeaderName = HeaderName::from_static("x-session-id");
const QUEUE: HeaderName = HeaderName::from_static("x-queue-ms");
const IGNORED: HeaderName = HeaderName::from_static("x-gembridge-ignored");
const LEFT_OUT: HeaderName = HeaderName::from_static("x-gembridge-left-out");
const FALLBACK: HeaderName = HeaderName::from_static("x-gembridge-model-fallback");
const PROCESSING: HeaderName = HeaderName::from_static("openai-processing-ms");

/// Answers a conversation, whole or as a stream of server-sent events.
#[utoipa::path(
    post, path = "/v1/chat/completions", tag = "openai", operation_id = "createChatCompletion",
    params(("x-session-id" = Option<String>, Header, description = "Goes on with this session, whatever its history")),
    request_body = wire::ChatRequest,
    responses(
        (status = 200, description = "The answer; with `stream` chunks as events, ended by `[DONE]`", content(
            (wire::Completion = "application/json"), (wire::CompletionChunk = "text/event-stream")
        )),
        (status = 400, description = "The request cannot be honoured; `param` names the field"),
        (status = 401, description = "No key, or none that is known"),
        (status = 404, description = "No such model or session"),
        (status = 429, description = "Too many requests, or the line is full"),
        (status = 502, description = "The agent failed"),
        (status = 503, description = "The agent cannot be had now"),
        (status = 504, description = "The agent took too long"),
    )
)]
pub(super) async fn create(
    State(app): State<Arc<OpenAi>>,
    Extension(identity): Extension<Identity>,
    request_id: Option<Extension<RequestId>>,
    notes: Option<Extension<RequestNotes>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response<Body> {
    let request = request_id.map_or_else(|| RequestId(Uuid::now_v7().to_string()), |Extension(id)| id);
    let notes = notes.map(|Extension(notes)| notes);
    let call = Call { app, identity, request: request.clone(), notes, received: Instant::now() };
    match call.answer(&headers, body).await {
        Ok(response) => response,
        Err(problem) => error::response(&problem, &request),
    }
}

/// The same under the address that some clients build.
#[utoipa::path(
    post, path = "/chat/completions", tag = "openai", operation_id = "createChatCompletionUnversioned",
    params(("x-session-id" = Option<String>, Header, description = "Goes on with this session, whatever its history")),
    request_body = wire::ChatRequest,
    responses((status = 200, description = "As `/v1/chat/completions`", body = wire::Completion))
)]
pub(super) async fn create_unversioned(
    state: State<Arc<OpenAi>>,
    identity: Extension<Identity>,
    request_id: Option<Extension<RequestId>>,
    notes: Option<Extension<RequestNotes>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response<Body> {
    create(state, identity, request_id, notes, headers, body).await
}

/// One request on its way to an answer.
struct Call {
    app: Arc<OpenAi>,
    identity: Identity,
    request: RequestId,
    notes: Option<RequestNotes>,
    received: Instant,
}

/// What is to be done, once the request is understood.
struct Order {
    wishes: Wishes,
    resolved: Resolved,
    plans: Vec<Plan>,
    /// Everything said so far, where the answer shall be found again.
    fingerprint: Option<Fingerprint>,
    left_out: usize,
}

/// A session that the client named.
struct Pin {
    handle: gembridge_core::session::SessionHandle,
    owner: Owner,
}

impl Call {
    async fn answer(self, headers: &HeaderMap, body: Result<Bytes, BytesRejection>) -> Result<Response<Body>, Problem> {
        let body = body.map_err(|rejection| unreadable(&rejection))?;
        let pin = self.pinned(headers).await?;
        let order = self.understand(&body, pin)?;
        let (permit, queued) = self.wait_in_line(&order).await?;
        let Order { wishes, resolved, plans, fingerprint, left_out } = order;
        self.note(&wishes, &resolved, queued);
        let head = self.head(&resolved);
        let out = match wishes.reply {
            Reply::Whole => Out::Wholes(Wholes::new(head, plans.len())),
            Reply::Stream { usage } => Out::Chunks(Chunks::new(head, plans.len(), usage)),
        };
        let options = ReadingOptions {
            stop: wishes.stop.clone(),
            limit: wishes.limit,
            show_tools: self.app.config.tool_results == ToolResults::Shown,
        };
        let lane = |plan: Plan| {
            let reading = Reading::new(options.clone(), fingerprint.clone());
            Lane::new(Box::pin(begin(Arc::clone(&self.app), plan)), reading)
        };
        let lanes = plans.into_iter().map(lane).collect();
        let (app, request, notes) = (Arc::clone(&self.app), self.request.clone(), self.notes.clone());
        let mut answers = Answers::new(app, request, notes, lanes, out, permit);
        let mut beginnings = Beginnings { left_out, ..Beginnings::default() };
        let mut response = match wishes.reply {
            Reply::Whole => {
                let body = answers.whole(&mut beginnings).await?;
                with_type(Body::from(body), HeaderValue::from_static("application/json"))
            }
            Reply::Stream { .. } => {
                let first = answers.first_sign(&mut beginnings);
                if let Ok(first) = tokio::time::timeout(self.app.config.first_sign, first).await {
                    first?;
                }
                let mut response = with_type(Body::new(answers.into_body()), sse::CONTENT_TYPE);
                response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
                response
            }
        };
        self.describe(response.headers_mut(), &wishes, &resolved, &beginnings, queued);
        Ok(response)
    }

    async fn pinned(&self, headers: &HeaderMap) -> Result<Option<Pin>, Problem> {
        let Some(value) = headers.get(&SESSION) else { return Ok(None) };
        let name = String::from_utf8_lossy(value.as_bytes());
        let unknown = || gembridge_core::error::Error::UnknownSession(name.chars().take(64).collect());
        let id: SessionId = name.trim().parse().map_err(|_| unknown())?;
        let handle = self.app.sessions.get(id, &self.identity.viewer()).await?;
        let record = handle.record().await?;
        let owner = Owner { principal: record.principal, agent: record.agent, model: record.model };
        Ok(Some(Pin { handle, owner }))
    }

    /// Reads the request, once: what it wants, who answers, and what the agent is told. Nothing waits here, so that
    /// only as many requests are held in their parsed form as there are threads.
    fn understand(&self, body: &Bytes, pin: Option<Pin>) -> Result<Order, Problem> {
        let request = decode::parse(body)?;
        let wishes = decode::wishes(&request)?;
        let conversation = decode::conversation(&request)?;
        let mut resolved = self.app.catalog.resolve(&wishes.model)?;
        if let Some(pin) = &pin {
            if pin.owner.agent != resolved.agent && !resolved.fell_back {
                let message = format!(
                    "the session belongs to agent `{}`, but `model` names agent `{}`; leave `x-session-id` out",
                    pin.owner.agent, resolved.agent
                );
                return Err(Problem::invalid("model", message));
            }
            resolved = Resolved { model: pin.owner.model.clone(), agent: pin.owner.agent.clone(), ..resolved };
        }
        if resolved.fell_back {
            tracing::warn!(asked = ?wishes.model, agent = %resolved.agent, "unknown model; the default agent answers");
        }
        if let Some(abilities) = self.app.catalog.abilities(&resolved.agent) {
            decode::check_abilities(&conversation, abilities, resolved.agent.as_str())?;
        }
        Ok(self.plan(wishes, resolved, &conversation, pin, body))
    }

    /// Finds the session that holds the history, or folds it for a new one.
    fn plan(
        &self,
        wishes: Wishes,
        resolved: Resolved,
        conversation: &[Said<'_>],
        pin: Option<Pin>,
        body: &Bytes,
    ) -> Order {
        let app = &self.app;
        let owner = pin.as_ref().map_or_else(
            || Owner {
                principal: self.identity.principal.clone(),
                agent: resolved.agent.clone(),
                model: resolved.model.clone(),
            },
            |pin| pin.owner.clone(),
        );
        let known = conversation.iter().rposition(|said| said.role == Role::Assistant).map_or(0, |at| at + 1);
        let (history, news) = conversation.split_at(known);
        let mut fingerprint = app.conversations.fingerprint();
        for said in history {
            fingerprint.add(said);
        }
        let may_go_on = !history.is_empty() && !news.is_empty();
        let claim = if may_go_on { app.conversations.claim(&owner, fingerprint.mark()) } else { None };
        for said in news {
            fingerprint.add(said);
        }
        let mut fingerprint = Some(fingerprint);

        let mut left_out = 0;
        let mut folded = || {
            let folded = fold(conversation, app.config.fold_budget);
            left_out = folded.left_out;
            folded.prompt
        };
        let first = match (pin, claim) {
            (Some(pin), claim) => {
                let stands = claim.and_then(|claim| claim.spend_if(pin.handle.id()));
                if stands.is_none() {
                    // What the client knows of the session and what it holds are not the same.
                    app.conversations.forget(&owner, pin.handle.id());
                    fingerprint = None;
                }
                let prompt = if news.is_empty() { folded() } else { spoken(news) };
                Route::Pinned { handle: pin.handle, after: stands.map(|held| held.turn), prompt }
            }
            (None, Some(claim)) => Route::Continue { claim, prompt: spoken(news) },
            (None, None) => Route::New { prompt: folded() },
        };
        let mut routes = vec![first];
        while routes.len() < wishes.choices {
            routes.push(Route::New { prompt: folded() });
        }
        let plan = |route| Plan {
            owner: owner.clone(),
            route,
            by: app.next_client(),
            certainty: resolved.certainty,
            body: body.clone(),
        };
        let plans = routes.into_iter().map(plan).collect();
        Order { wishes, resolved, plans, fingerprint, left_out }
    }

    async fn wait_in_line(&self, order: &Order) -> Result<(Permit, Duration), Problem> {
        let agent = &order.resolved.agent;
        let queue = self.app.queues.get(agent).ok_or_else(|| {
            Problem::new(
                Kind::NotFound,
                format!("agent `{agent}` is not served here; `GET /v1/models` lists those that are"),
            )
        })?;
        let began = Instant::now();
        let waiter = queue.enter(&self.identity.principal, order.plans.len()).map_err(|full| {
            let message = format!("the line for agent `{agent}` is full: {full}");
            Problem::new(Kind::QueueFull { retry_after: full.retry_after }, message)
        })?;
        let permit = waiter.await;
        Ok((permit, began.elapsed()))
    }

    fn head(&self, resolved: &Resolved) -> Head {
        Head {
            id: format!("chatcmpl-{}", Uuid::now_v7().simple()),
            created: Timestamp::now().0 / 1_000,
            model: resolved.shown().to_owned(),
            system_fingerprint: self.app.catalog.fingerprint(&resolved.agent),
        }
    }

    fn note(&self, wishes: &Wishes, resolved: &Resolved, queued: Duration) {
        let Some(notes) = &self.notes else { return };
        notes.edit(|notes| {
            notes.model_asked = Some(wishes.model.clone());
            // A label of metrics must come from a list, never from a client.
            let listed = resolved.certainty == Certainty::Listed;
            notes.model_used =
                Some(if listed { resolved.shown().to_owned() } else { resolved.agent.as_str().to_owned() });
            notes.stream = Some(wishes.reply != Reply::Whole);
            notes.queued = Some(queued);
        });
    }

    fn describe(
        &self,
        headers: &mut HeaderMap,
        wishes: &Wishes,
        resolved: &Resolved,
        beginnings: &Beginnings,
        queued: Duration,
    ) {
        let mut put = |name: HeaderName, value: &str| {
            // Names that a client made up come escaped; whatever else does not fit a header is left out.
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(name, value);
            }
        };
        if !beginnings.sessions.is_empty() {
            put(SESSION, &beginnings.sessions.join(", "));
        }
        if !wishes.ignored.is_empty() {
            put(IGNORED, &wishes.ignored.join(", "));
        }
        if beginnings.left_out > 0 {
            put(LEFT_OUT, &beginnings.left_out.to_string());
            tracing::info!(request = %self.request.0, messages = beginnings.left_out, "a history did not fit and was cut");
        }
        if resolved.fell_back {
            put(FALLBACK, resolved.shown());
        } else if beginnings.default_model {
            put(FALLBACK, resolved.agent.as_str());
        }
        put(QUEUE, &queued.as_millis().to_string());
        put(PROCESSING, &self.received.elapsed().as_millis().to_string());
    }
}

fn with_type(body: Body, kind: HeaderValue) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn unreadable(rejection: &BytesRejection) -> Problem {
    let kind = match rejection.status().as_u16() {
        413 => Kind::TooLarge,
        _ => Kind::Invalid,
    };
    Problem::new(kind, format!("the body could not be read: {}", rejection.body_text()))
}
