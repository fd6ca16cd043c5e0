//! `POST /v1/chat/completions`: a whole conversation in, the next answer out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, Response, header};
use bytes::Bytes;
use gembridge_core::model::{SessionId, Timestamp};
use uuid::Uuid;

use super::answer::{Answers, Beginnings, Lane, Out};
use super::begin::{Plan, begin};
use super::decode::{Reply, Wishes};
use super::encode::{Chunks, Head, Reading, ReadingOptions, Wholes};
use super::order::{Order, Pin};
use super::queue_clock::QueueClock;
use super::{OpenAi, ToolResults, error, wire};
use crate::catalog::{Certainty, Resolved};
use crate::guard::memory_budget::BodyCharge;
use crate::guard::record::{Notes, RequestNotes};
use crate::identity::{Identity, RequestId, SESSION_HEADER};
use crate::problem::{Kind, Problem};
use crate::sse;

const QUEUE: HeaderName = HeaderName::from_static("x-queue-ms");
const IGNORED: HeaderName = HeaderName::from_static("x-gembridge-ignored");
const LEFT_OUT: HeaderName = HeaderName::from_static("x-gembridge-left-out");
const FALLBACK: HeaderName = HeaderName::from_static("x-gembridge-model-fallback");
/// How many headers an answer has, about.
const HEADERS: usize = 12;
const PROCESSING: HeaderName = HeaderName::from_static("openai-processing-ms");

/// Answers a conversation, whole or as a stream of server-sent events.
#[utoipa::path(
    post, path = "/v1/chat/completions", tag = "openai", operation_id = "createChatCompletion",
    params(("x-session-id" = Option<String>, Header, description = "Goes on with this session, whatever its history")),
    request_body(content = wire::ChatRequest, example = json!({
        "model": "default", "messages": [{ "role": "user", "content": "hello" }]
    })),
    responses(
        (status = 200, description = "The answer; with `stream` chunks as events, ended by `[DONE]`", content(
            (wire::Completion = "application/json"), (wire::CompletionChunk = "text/event-stream")
        ), headers(
            ("x-session-id" = String, description = "The session that answered; send it to go on with it"),
            ("x-queue-ms" = u64, description = "How long the request waited for its turn"),
            ("openai-processing-ms" = u64, description = "From the request to the head of its answer"),
            ("x-gembridge-ignored" = String, description = "Fields of the request that have no effect"),
            ("x-gembridge-left-out" = u64, description = "How many old messages the agent was not told"),
            ("x-gembridge-model-fallback" = String, description = "Who answered in the place of the `model` asked for"),
        )),
        (status = 400, description = "The request cannot be honoured; `param` names the field"),
        (status = 403, description = "A host or an origin that is not allowed, or an agent that is not for this key"),
        (status = 404, description = "No such model or session"),
        (status = 429, description = "Too many requests, or the line is full"),
        (status = 502, description = "The agent failed"),
        (status = 503, description = "The agent cannot be had now"),
        (status = 504, description = "The agent took too long"),
        (status = 507, description = "There is no room left to keep the conversation"),
    )
)]
pub(super) async fn create(State(app): State<Arc<OpenAi>>, request: Request) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    let id = parts.extensions.get().copied().unwrap_or_else(RequestId::fresh);
    let answer = match Call::new(app, id, &mut parts.extensions) {
        Ok(call) => call.answer(&parts.headers, body).await,
        Err(nobody) => Err(nobody),
    };
    answer.unwrap_or_else(|problem| error::response(&problem, &id))
}

/// To read so many bytes takes less time than to have them read elsewhere is worth.
const LARGE: usize = 256 << 10;

/// As long as a model's name may be; what a client sends instead is not kept whole.
const LONGEST_NAME: usize = 128;

/// One request on its way to an answer.
pub(super) struct Call {
    pub(super) app: Arc<OpenAi>,
    pub(super) identity: Identity,
    request: RequestId,
    notes: Option<RequestNotes>,
    received: Instant,
    /// What the request was charged, until its turn comes: until then its messages are held here.
    memory: Option<BodyCharge>,
}

impl Call {
    /// The guard has said who asks.
    fn new(app: Arc<OpenAi>, request: RequestId, known: &mut Extensions) -> Result<Self, Problem> {
        let nobody = || Problem::new(Kind::Internal, "nobody knows who asks");
        let identity = known.get::<Identity>().cloned().ok_or_else(nobody)?;
        let (notes, memory) = (known.get().cloned(), known.remove());
        Ok(Self { app, identity, request, notes, received: Instant::now(), memory })
    }

    async fn answer(self, headers: &HeaderMap, body: Body) -> Result<Response<Body>, Problem> {
        // Under the guard's limit, which has read it.
        let body = to_bytes(body, usize::MAX).await.map_err(|failure| unreadable(&failure))?;
        let pin = self.pinned(headers).await;
        let (call, order) = self.understood(body, pin).await?;
        call.carry_out(order).await
    }

    /// A large request is read beside the event loop, one at a time: whoever streams shall not wait for it, and no more
    /// than one is held in its parsed form.
    async fn understood(self, body: Bytes, pin: Result<Option<Pin>, Problem>) -> Result<(Self, Order), Problem> {
        if body.len() <= LARGE {
            let order = self.understand(&body, pin)?;
            return Ok((self, order));
        }
        let reader = Arc::clone(&self.app.large_requests);
        let broken = || Problem::new(Kind::Internal, "the request could not be read");
        let _alone = reader.acquire().await.map_err(|_| broken())?;
        let reading = tokio::task::spawn_blocking(move || {
            let order = self.understand(&body, pin);
            (self, order)
        });
        let (call, order) = reading.await.map_err(|_| broken())?;
        Ok((call, order?))
    }

    async fn carry_out(mut self, order: Order) -> Result<Response<Body>, Problem> {
        if order.is_new() {
            // Before a session is made that nobody would use.
            self.app.sessions.check_queue(&order.resolved.agent, &self.identity.principal)?;
        }
        let Order { wishes, resolved, plans, terms, fingerprint, left_out } = order;
        let head = self.head(&resolved);
        let out = match wishes.reply {
            Reply::Whole => Out::Wholes(Wholes::new(head, plans.len())),
            Reply::Stream { usage } => Out::Chunks(Chunks::new(head, plans.len(), usage)),
        };
        let options = ReadingOptions {
            stop: wishes.stop.clone(),
            limit: wishes.limit,
            show_tools: self.app.config.tool_results == ToolResults::Shown,
            calls: terms.calls,
            demand: terms.demand,
        };
        let lane = |plan: Plan| {
            let reading = Reading::new(options.clone(), fingerprint.clone());
            let clock = QueueClock::default();
            Lane::new(Box::pin(begin(Arc::clone(&self.app), plan, clock.clone())), reading, clock)
        };
        let lanes = plans.into_iter().map(lane).collect();
        let (app, request, notes) = (Arc::clone(&self.app), self.request, self.notes.clone());
        let queue = (resolved.agent.clone(), self.identity.principal.clone());
        let mut answers = Answers::new(app, request, notes, lanes, out, queue, self.memory.take());
        let mut beginnings = Beginnings { left_out, ..Beginnings::default() };
        let mut response = match wishes.reply {
            Reply::Whole => {
                let body = answers.whole(&mut beginnings).await?;
                with_type(Body::from(body), HeaderValue::from_static("application/json"))
            }
            Reply::Stream { .. } => {
                answers.first_sign(&mut beginnings, self.app.config.first_sign).await?;
                let mut response = with_type(Body::new(answers.into_body()), sse::CONTENT_TYPE);
                response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
                response
            }
        };
        self.describe(response.headers_mut(), &wishes, &resolved, &beginnings);
        Ok(response)
    }

    fn head(&self, resolved: &Resolved) -> Head {
        Head {
            id: format!("chatcmpl-{}", Uuid::now_v7().simple()),
            created: Timestamp::now().0 / 1_000,
            model: resolved.shown().to_owned(),
            system_fingerprint: self.app.catalog.fingerprint(&resolved.agent),
        }
    }

    fn note(&self, edit: impl FnOnce(&mut Notes)) {
        if let Some(notes) = &self.notes {
            notes.edit(edit);
        }
    }

    /// What the client asks for, before anything of it is refused.
    pub(super) fn note_asked(&self, request: &wire::ChatRequest<'_>) {
        self.note(|notes| {
            notes.model_asked = request.model.as_deref().map(|model| model.chars().take(LONGEST_NAME).collect());
            notes.stream = Some(request.stream.unwrap_or(false));
        });
    }

    pub(super) fn note_session(&self, session: SessionId) {
        self.note(|notes| notes.session = Some(session.to_string()));
    }

    pub(super) fn note_used(&self, resolved: &Resolved) {
        // A label of metrics must come from a list, never from a client.
        let listed = resolved.certainty == Certainty::Listed;
        let used = if listed { resolved.shown() } else { resolved.agent.as_str() };
        self.note(|notes| notes.model_used = Some(used.to_owned()));
    }

    fn describe(&self, headers: &mut HeaderMap, wishes: &Wishes, resolved: &Resolved, beginnings: &Beginnings) {
        let mut put = |name: HeaderName, value: &str| {
            // Names that a client made up come escaped; whatever else does not fit a header is left out.
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(name, value);
            }
        };
        if let Some(session) = &beginnings.session {
            put(SESSION_HEADER, session);
        }
        if !wishes.ignored.is_empty() {
            put(IGNORED, &wishes.ignored.join(", "));
        }
        if beginnings.left_out > 0 {
            put(LEFT_OUT, &beginnings.left_out.to_string());
            tracing::info!(request = %self.request, messages = beginnings.left_out, "a history did not fit and was cut");
        }
        if resolved.fell_back {
            put(FALLBACK, resolved.shown());
        } else if beginnings.default_model {
            put(FALLBACK, resolved.agent.as_str());
        }
        headers.insert(QUEUE, millis(beginnings.queued));
        headers.insert(PROCESSING, millis(self.received.elapsed()));
    }
}

fn millis(time: Duration) -> HeaderValue {
    HeaderValue::from(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

fn with_type(body: Body, kind: HeaderValue) -> Response<Body> {
    let mut response = Response::new(body);
    // Room for those of the guard too: a map that grows is built anew.
    response.headers_mut().reserve(HEADERS);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn unreadable(failure: &axum::Error) -> Problem {
    Problem::new(Kind::Invalid, format!("the body could not be read: {failure}"))
}
