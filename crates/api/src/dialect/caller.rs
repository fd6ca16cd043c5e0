//! One request on its way to an answer: who asks, which session it names, what is noted of it, and the headers of its
//! response.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, header};
use bytes::Bytes;
use gembridge_core::exchange::{
    Certainty, Exchange, ExchangeError, ExchangeObserver, Mark, NamedSession, Plan, Resolved, SentRequest, TokenCount,
};
use gembridge_core::model::SessionId;

use super::{AnswerBody, Dialects, StreamEncoder};
use crate::forward::CopyRelease;
use crate::guard::memory_budget::BodyCharge;
use crate::guard::record::{Notes, RequestNotes};
use crate::identity::{Identity, RequestId, SESSION_HEADER};
use crate::problem::{Kind, Problem};

const QUEUE: HeaderName = HeaderName::from_static("x-queue-ms");
const IGNORED: HeaderName = HeaderName::from_static("x-gembridge-ignored");
const LEFT_OUT: HeaderName = HeaderName::from_static("x-gembridge-left-out");
const FALLBACK: HeaderName = HeaderName::from_static("x-gembridge-model-fallback");
const REPEATED: HeaderName = HeaderName::from_static("x-gembridge-repeated");
const PROCESSING: HeaderName = HeaderName::from_static("openai-processing-ms");
/// In which the libraries of two vendors say how often they have tried before.
const RETRIES: &str = "x-stainless-retry-count";
/// How many headers an answer has, about.
const HEADERS: usize = 12;

/// To read so many bytes takes less time than to have them read elsewhere is worth.
const LARGE: usize = 256 << 10;

/// As long as a model's name may be; what a client sends instead is not kept whole.
const LONGEST_NAME: usize = 128;

/// One request on its way to an answer.
pub(crate) struct Caller {
    pub dialects: Arc<Dialects>,
    pub identity: Identity,
    pub request: RequestId,
    notes: Option<RequestNotes>,
    received: Instant,
    /// What the request is known by, should it be sent again.
    mark: Option<Mark>,
    /// The client says that it sends it again.
    is_retry: bool,
    /// What the request was charged, until its turn comes: until then its messages are held here.
    memory: Option<BodyCharge>,
    /// The copy of the request that may be passed on to another gateway, until it is known that it is not.
    copy: Option<CopyRelease>,
}

impl Caller {
    /// A request, with its headers and its body. The guard has said who asks.
    pub(crate) fn of(dialects: &Arc<Dialects>, request: Request) -> Result<(Self, HeaderMap, Body), Problem> {
        let (Parts { headers, mut extensions, .. }, body) = request.into_parts();
        let unknown = || Problem::new(Kind::Internal, "the request came without an identity");
        let tries = headers.get(RETRIES).and_then(|count| count.to_str().ok()?.parse::<u32>().ok());
        let caller = Self {
            dialects: Arc::clone(dialects),
            identity: extensions.get::<Identity>().cloned().ok_or_else(unknown)?,
            request: extensions.get().copied().unwrap_or_else(RequestId::fresh),
            notes: extensions.get().cloned(),
            received: Instant::now(),
            mark: None,
            is_retry: tries.is_some_and(|tries| tries > 0),
            memory: extensions.remove(),
            copy: extensions.remove(),
        };
        Ok((caller, headers, body))
    }

    /// The session of ours that the request names, if it names one.
    pub(crate) async fn named_session(&self, headers: &HeaderMap) -> Result<Option<NamedSession>, Problem> {
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
        Ok(Some(self.dialects.exchanges.named_session(id, &self.identity.viewer()).await?))
    }

    /// Reads the body with `understand`, in which nothing waits. A large one is read beside the event loop, one at a time:
    /// streams of others do not wait for it, and no more than one is held in its parsed form.
    pub(crate) async fn read<T: Send + 'static>(
        mut self,
        body: Body,
        understand: impl FnOnce(&Self, &Bytes) -> Result<T, Problem> + Send + 'static,
    ) -> Result<(Self, T), Problem> {
        // Under the guard's limit, which has read it.
        let body = to_bytes(body, usize::MAX).await.map_err(|failure| unreadable(&failure))?;
        self.mark = Some(self.dialects.exchanges.mark_of(&body));
        if body.len() <= LARGE {
            let read = understand(&self, &body)?;
            return Ok((self, read));
        }
        let reader = Arc::clone(&self.dialects.large_requests);
        let broken = || Problem::new(Kind::Internal, "the request could not be read");
        let _alone = reader.acquire().await.map_err(|_| broken())?;
        let reading = tokio::task::spawn_blocking(move || {
            let read = understand(&self, &body);
            (self, read)
        });
        let (caller, read) = reading.await.map_err(|_| broken())?;
        Ok((caller, read?))
    }

    /// What the client asks for, before anything of it is refused.
    pub(crate) fn note_asked(&self, model: Option<&str>, stream: bool) {
        self.note(|notes| {
            notes.model_asked = model.map(|model| model.chars().take(LONGEST_NAME).collect());
            notes.stream = Some(stream);
        });
    }

    /// Who answers a request for this model.
    pub(crate) fn resolve(
        &self,
        model: &str,
        session: Option<&NamedSession>,
        answers: usize,
    ) -> Result<Resolved, ExchangeError> {
        let resolved = self.dialects.exchanges.resolve(model, session, answers)?;
        // A label of metrics must come from a list, never from a client.
        let listed = resolved.certainty == Certainty::Listed;
        let used = if listed { resolved.shown() } else { resolved.agent.as_str() };
        self.note(|notes| notes.model_used = Some(used.to_owned()));
        Ok(resolved)
    }

    /// Begins what was planned.
    pub(crate) fn start(&mut self, mut plan: Plan) -> Result<Exchange, ExchangeError> {
        if let Some(mark) = self.mark {
            plan.sent_as(SentRequest { mark, is_retry: self.is_retry });
        }
        let copy = self.copy.take();
        let observer = self.notes.clone().map(|notes| Box::new(Observer { notes, copy }) as Box<dyn ExchangeObserver>);
        let memory = self.memory.take().map(|charge| Box::new(charge) as Box<dyn Send>);
        self.dialects.exchanges.start(plan, observer, memory)
    }

    /// The response of an answer that is whole.
    pub(crate) fn whole(
        &self,
        body: Vec<u8>,
        ignored: &[String],
        resolved: &Resolved,
        exchange: &Exchange,
    ) -> Response<Body> {
        exchange.delivered();
        let mut response = with_type(Body::from(body), HeaderValue::from_static("application/json"));
        self.describe(response.headers_mut(), ignored, resolved, exchange);
        response
    }

    /// The response of an answer that streams. Its status waits for the agent's first sign, so that a failure before it is an
    /// error with a status of its own.
    pub(crate) async fn stream<E: StreamEncoder>(
        &self,
        mut exchange: Exchange,
        mut encoder: E,
        kind: HeaderValue,
        ignored: &[String],
        resolved: &Resolved,
    ) -> Result<Response<Body>, ExchangeError> {
        let config = &self.dialects.config;
        exchange.first_sign(&mut encoder, config.first_sign).await?;
        let mut response = with_type(Body::empty(), kind);
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        self.describe(response.headers_mut(), ignored, resolved, &exchange);
        *response.body_mut() = Body::new(AnswerBody::new(exchange, encoder, self.request, config.keep_alive));
        Ok(response)
    }

    fn note(&self, edit: impl FnOnce(&mut Notes)) {
        if let Some(notes) = &self.notes {
            notes.edit(edit);
        }
    }

    fn describe(&self, headers: &mut HeaderMap, ignored: &[String], resolved: &Resolved, exchange: &Exchange) {
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
        if !ignored.is_empty() {
            put(IGNORED, &ignored.join(", "));
        }
        if meta.left_out > 0 {
            put(LEFT_OUT, &meta.left_out.to_string());
            tracing::info!(request = %self.request, messages = meta.left_out, "a history did not fit and was cut");
        }
        if meta.repeated {
            put(REPEATED, "true");
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
struct Observer {
    notes: RequestNotes,
    copy: Option<CopyRelease>,
}

impl ExchangeObserver for Observer {
    fn session(&self, session: SessionId) {
        if let Some(copy) = &self.copy {
            copy.release();
        }
        self.notes.edit(|notes| notes.session = Some(session.to_string()));
    }

    fn first_piece(&self) {
        self.notes.first_token();
    }

    fn failed(&self, why: &str) {
        self.notes.edit(|notes| {
            notes.failure.get_or_insert_with(|| why.to_owned());
        });
    }

    fn ended(&self, tokens: Option<TokenCount>) {
        self.notes.edit(|notes| {
            notes.input_tokens = tokens.map(|tokens| tokens.input);
            notes.output_tokens = tokens.map(|tokens| tokens.output);
        });
    }

    fn queued(&self, waited: Duration) {
        self.notes.edit(|notes| notes.queued = Some(waited));
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
