//! `POST /v1/chat/completions`: a whole conversation in, the next answer out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, Response, header};
use bytes::Bytes;
use gembridge_core::exchange::{self, Certainty, Exchange, ExchangeObserver, NamedSession, Plan, Resolved, TokenCount};
use gembridge_core::model::{SessionId, Timestamp};
use uuid::Uuid;

use super::body::AnswerBody;
use super::decode::{self, Reply, RequestOptions};
use super::encode::{Chunks, Head, WholeBody};
use super::{OpenAi, error, wire};
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

/// What a request wants, and what is to be done about it.
type Read = (RequestOptions, Plan);

/// One request on its way to an answer.
struct Call {
    app: Arc<OpenAi>,
    identity: Identity,
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
        let session = self.named_session(headers).await;
        let (call, (options, plan)) = self.read(body, session).await?;
        call.carry_out(&options, plan).await
    }

    async fn named_session(&self, headers: &HeaderMap) -> Result<Option<NamedSession>, Problem> {
        // Other programs send ids of their own under this name. Those are labels, and name no session of ours.
        let mut named = headers
            .get_all(SESSION_HEADER)
            .iter()
            .filter_map(|value| SessionId::of_our_form(value.to_str().ok()?.trim()));
        let Some(id) = named.next() else { return Ok(None) };
        if named.any(|other| other != id) {
            let message = "the request names two sessions; send `x-session-id` once";
            return Err(Problem::invalid(SESSION_HEADER.as_str(), message));
        }
        self.note(|notes| notes.session = Some(id.to_string()));
        Ok(Some(self.app.exchanges.named_session(id, &self.identity.viewer()).await?))
    }

    /// A large request is read beside the event loop, one at a time: whoever streams shall not wait for it, and no more
    /// than one is held in its parsed form.
    async fn read(self, body: Bytes, session: Result<Option<NamedSession>, Problem>) -> Result<(Self, Read), Problem> {
        if body.len() <= LARGE {
            let read = self.understand(&body, session)?;
            return Ok((self, read));
        }
        let reader = Arc::clone(&self.app.large_requests);
        let broken = || Problem::new(Kind::Internal, "the request could not be read");
        let _alone = reader.acquire().await.map_err(|_| broken())?;
        let reading = tokio::task::spawn_blocking(move || {
            let read = self.understand(&body, session);
            (self, read)
        });
        let (call, read) = reading.await.map_err(|_| broken())?;
        Ok((call, read?))
    }

    /// Reads the request, once: what it wants, who answers, and what the agent is told. Nothing waits here.
    fn understand(&self, body: &Bytes, session: Result<Option<NamedSession>, Problem>) -> Result<Read, Problem> {
        let request = decode::parse(body)?;
        self.note_asked(&request);
        let session = session?;
        let options = decode::options(&request)?;
        let conversation = decode::conversation(&request, decode::Source(body))?;
        let follow_up = decode::follow_up(&request, &conversation)?;
        let exchanges = &self.app.exchanges;
        let resolved = exchanges.resolve(&options.model, session.as_ref(), options.choices).map_err(error::problem)?;
        self.note_used(&resolved);
        if let Some(abilities) = exchanges.catalog().abilities(&resolved.agent) {
            decode::check_abilities(&conversation, abilities, resolved.agent.as_str())?;
        }
        let plan = exchanges.plan(exchange::Request {
            principal: self.identity.principal.clone(),
            viewer: self.identity.viewer(),
            resolved,
            session,
            history: conversation.into(),
            follow_up,
            tools: options.tools.clone(),
            output: options.format.clone(),
            stop: options.stop.clone(),
            limit: options.limit,
            answers: options.choices,
        });
        Ok((options, plan.map_err(error::problem)?))
    }

    async fn carry_out(mut self, options: &RequestOptions, plan: Plan) -> Result<Response<Body>, Problem> {
        let resolved = plan.resolved.clone();
        let head = self.head(&resolved, options);
        let observer = self.notes.clone().map(|notes| Box::new(Observer(notes)) as Box<dyn ExchangeObserver>);
        let memory = self.memory.take().map(|charge| Box::new(charge) as Box<dyn Send>);
        let mut exchange = self.app.exchanges.start(plan, observer, memory).map_err(error::problem)?;
        match options.reply {
            Reply::Whole => {
                let mut body = WholeBody::new(head, options.choices);
                exchange.finish(&mut body).await.map_err(error::problem)?;
                let body = body.encode(exchange.tokens()).map_err(|error| {
                    Problem::new(Kind::Agent, format!("the agent's text is not sound JSON: {error}"))
                })?;
                let mut response = with_type(Body::from(body), HeaderValue::from_static("application/json"));
                self.describe(response.headers_mut(), options, &resolved, &exchange);
                Ok(response)
            }
            Reply::Stream { usage } => {
                let mut chunks = Chunks::new(head, options.choices, usage);
                let config = &self.app.config;
                exchange.first_sign(&mut chunks, config.first_sign).await.map_err(error::problem)?;
                let mut response = with_type(Body::empty(), sse::CONTENT_TYPE);
                response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
                self.describe(response.headers_mut(), options, &resolved, &exchange);
                *response.body_mut() = Body::new(AnswerBody::new(exchange, chunks, self.request, config.keep_alive));
                Ok(response)
            }
        }
    }

    fn head(&self, resolved: &Resolved, options: &RequestOptions) -> Head {
        Head {
            id: format!("chatcmpl-{}", Uuid::now_v7().simple()),
            created: Timestamp::now().0 / 1_000,
            model: resolved.shown().to_owned(),
            system_fingerprint: self.app.exchanges.catalog().fingerprint(&resolved.agent),
            wording: options.wording,
        }
    }

    fn note(&self, edit: impl FnOnce(&mut Notes)) {
        if let Some(notes) = &self.notes {
            notes.edit(edit);
        }
    }

    /// What the client asks for, before anything of it is refused.
    fn note_asked(&self, request: &wire::ChatRequest<'_>) {
        self.note(|notes| {
            notes.model_asked = request.model.as_deref().map(|model| model.chars().take(LONGEST_NAME).collect());
            notes.stream = Some(request.stream.unwrap_or(false));
        });
    }

    fn note_used(&self, resolved: &Resolved) {
        // A label of metrics must come from a list, never from a client.
        let listed = resolved.certainty == Certainty::Listed;
        let used = if listed { resolved.shown() } else { resolved.agent.as_str() };
        self.note(|notes| notes.model_used = Some(used.to_owned()));
    }

    fn describe(&self, headers: &mut HeaderMap, options: &RequestOptions, resolved: &Resolved, exchange: &Exchange) {
        let meta = exchange.meta();
        let mut put = |name: HeaderName, value: &str| {
            // Names that a client made up come escaped; whatever else does not fit a header is left out.
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(name, value);
            }
        };
        if let Some(session) = &meta.session {
            put(SESSION_HEADER, &session.to_string());
        }
        if !options.ignored.is_empty() {
            put(IGNORED, &options.ignored.join(", "));
        }
        if meta.left_out > 0 {
            put(LEFT_OUT, &meta.left_out.to_string());
            tracing::info!(request = %self.request, messages = meta.left_out, "a history did not fit and was cut");
        }
        if resolved.fell_back {
            put(FALLBACK, resolved.shown());
        } else if meta.default_model {
            put(FALLBACK, resolved.agent.as_str());
        }
        headers.insert(QUEUE, millis(exchange.queued()));
        headers.insert(PROCESSING, millis(self.received.elapsed()));
    }
}

/// Notes what becomes of the request for the access log and the metrics.
struct Observer(RequestNotes);

impl ExchangeObserver for Observer {
    fn session(&self, session: SessionId) {
        self.0.edit(|notes| notes.session = Some(session.to_string()));
    }

    fn first_piece(&self) {
        self.0.first_token();
    }

    fn failed(&self, why: &str) {
        self.0.edit(|notes| {
            notes.failure.get_or_insert_with(|| why.to_owned());
        });
    }

    fn ended(&self, tokens: Option<TokenCount>) {
        self.0.edit(|notes| {
            notes.input_tokens = tokens.map(|tokens| tokens.input);
            notes.output_tokens = tokens.map(|tokens| tokens.output);
        });
    }

    fn queued(&self, waited: Duration) {
        self.0.edit(|notes| notes.queued = Some(waited));
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
