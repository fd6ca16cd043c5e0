//! The checks before every route, in this order: request id and record, host, origin, key, rate, media type and body. The
//! first that fails decides the answer; nothing behind it runs, and no body is read before the key is known.

pub mod address;
pub mod body;
pub mod host;
pub mod memory_budget;
pub mod origin;
pub mod rate;
pub mod record;
pub mod socket_requests;

mod credential;
mod layer;
mod meters;
mod refusals;
mod refused_body;
mod response_watch;
mod ticket;

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{UPGRADE, VARY};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::response::Response;
use gembridge_core::model::Principal;
use http_body::Body as _;
use tower_service::Service;

use self::address::Proxies;
use self::body::{Bodies, BodyLimits, BodySize, check_media};
use self::host::{Hosts, Via};
pub use self::layer::{GuardLayer, Renderer};
use self::meters::Meters;
use self::origin::{AllowedOrigin, Origins};
use self::rate::{Allowance, Counted, Exceeded, Purpose, Rate, RateLimiter};
use self::record::Record;
use self::refusals::Refusals;
use self::refused_body::PendingBody;
use self::response_watch::Revocation;
use self::socket_requests::SocketRequests;
pub use self::ticket::SharedTickets;
use self::ticket::{Ticket, Tickets};
use crate::admin::operator::RefusedOrigin;
use crate::forward::{ClientAddress, Forwarded, Forwarding, Hop};
use crate::frontend::{Media, Render, rendered};
use crate::identity::{Identity, RequestId};
use crate::keys::{Digest, KeyLease, KeyRing};
use crate::path_key::PathKey;
use crate::problem::{Kind, Problem};
use crate::server::{Declined, Peer, log_refused};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

pub struct GuardConfig {
    pub reach: Reach,
    pub proxies: Proxies,
    /// Requests of one key; `None` for no limit.
    pub rate: Option<Rate>,
    /// Whose requests that limits.
    pub counted: Counted,
    /// Requests of one client address without a good key.
    pub failure_rate: Rate,
    pub bodies: BodyLimits,
    /// Where this gateway is one of several.
    pub forwarding: Option<Arc<Forwarding>>,
    /// The same for its tickets.
    pub tickets: Option<Arc<dyn SharedTickets>>,
}

impl Default for GuardConfig {
    fn default() -> Self {
        let minute = Duration::from_mins(1);
        Self {
            reach: Reach::default(),
            proxies: Proxies::default(),
            rate: Some(Rate { requests: 100, window: minute }),
            counted: Counted::Everybody,
            failure_rate: Rate { requests: 20, window: minute },
            bodies: BodyLimits::default(),
            forwarding: None,
            tickets: None,
        }
    }
}

/// From where the server may be reached, beyond loopback.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    pub hosts: Hosts,
    pub origins: Origins,
}

/// What a route asks of its callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// No key, no limit: health, and the shells of pages. Reads no body.
    Open,
    /// A key, and bodies as it says.
    Keyed(KeyedEntry),
    /// A key, or a ticket in its place: where a WebSocket begins, and nowhere else.
    WebSocket,
}

/// What a route asks of callers that have a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyedEntry {
    pub size: BodySize,
    pub media: Media,
    pub purpose: Purpose,
}

impl KeyedEntry {
    /// JSON that asks for work.
    pub fn json(size: BodySize) -> Self {
        Self { size, media: Media::Json, purpose: Purpose::Work }
    }
}

/// One for the whole server: its state is what all requests share.
pub struct Guard {
    reach: RwLock<Reach>,
    proxies: Proxies,
    rates: Arc<RateLimiter>,
    keys: Arc<dyn KeyRing>,
    tickets: Tickets,
    refusals: Refusals,
    bodies: Bodies,
    meters: Arc<Meters>,
    forwarding: Option<Arc<Forwarding>>,
}

/// Passed every check; `Preflight` is answered here.
enum Admitted {
    Preflight(Response),
    Open,
    Keyed(KeyLease, Principal),
}

/// What the checks on the way leave in the response, whoever answers.
#[derive(Default)]
struct Marks {
    origin: Option<AllowedOrigin>,
    /// Of the limit that the request was counted against.
    allowance: Option<Allowance>,
}

enum Ran {
    Answered(Response),
    Panicked,
    Revoked,
}

impl Guard {
    pub fn new(config: GuardConfig, keys: Arc<dyn KeyRing>) -> Arc<Self> {
        Arc::new(Self {
            reach: RwLock::new(config.reach),
            proxies: config.proxies,
            rates: Arc::new(RateLimiter::new(config.rate, config.counted, config.failure_rate)),
            keys,
            tickets: Tickets::new(config.tickets),
            refusals: Refusals::default(),
            bodies: Bodies::new(config.bodies),
            meters: Arc::default(),
            forwarding: config.forwarding,
        })
    }

    pub(crate) fn forwarding(&self) -> Option<&Arc<Forwarding>> {
        self.forwarding.as_ref()
    }

    /// What the operator allows from now on.
    pub fn set_reach(&self, reach: Reach) {
        *self.reach.write().unwrap_or_else(PoisonError::into_inner) = reach;
    }

    /// How often a client may ask from now on. A guard that was made without a limit stays without.
    pub fn set_rates(&self, requests: Rate, counted: Counted, failures: Rate) {
        self.rates.set_rates(requests, counted, failures);
    }

    /// A ticket in the place of the key that came with a request.
    pub async fn ticket(&self, lease: &KeyLease) -> Result<Ticket, Problem> {
        self.tickets.issue(lease).await
    }

    /// Origins whose pages were refused of late.
    pub fn refused_origins(&self) -> Vec<RefusedOrigin> {
        self.refusals.list()
    }

    /// The origin may call now.
    pub fn forget_refusals(&self, origin: &str) {
        self.refusals.forget(origin);
    }

    /// Puts the guard before the routes of a router, whose frontend renders what is refused.
    pub fn before(self: &Arc<Self>, entry: Entry, render: Render) -> GuardLayer {
        GuardLayer { guard: Arc::clone(self), entry, renderer: Renderer::Fixed(render) }
    }

    /// The same where the path of a request decides who renders.
    pub fn before_each(
        self: &Arc<Self>,
        entry: Entry,
        choose: impl Fn(&str) -> Render + Send + Sync + 'static,
    ) -> GuardLayer {
        GuardLayer { guard: Arc::clone(self), entry, renderer: Renderer::ByPath(Arc::new(choose)) }
    }

    async fn pass<S>(&self, entry: Entry, render: Render, inner: S, mut request: Request) -> Response
    where
        S: Service<Request, Response = Response, Error = Infallible>,
    {
        let peer =
            request.extensions().get::<Peer>().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.remote.ip());
        if let Some(Declined(problem)) = request.extensions_mut().remove() {
            return declined(&problem, render, request, peer);
        }
        let hop = self.forwarding.as_ref().and_then(|forwarding| forwarding.hop(&request));
        let client = match &hop {
            Some(Ok(hop)) => hop.client,
            Some(Err(_)) | None => self.proxies.client(peer, request.headers()),
        };
        let record = Record::begin(&request, client, &self.meters);
        request.extensions_mut().insert(record.id);
        request.extensions_mut().insert(record.notes.clone());
        let body = PendingBody::of(&request);
        let mut marks = Marks::default();
        let admitted = match hop {
            Some(Ok(hop)) => self.admit_forwarded(entry, &mut request, hop).await,
            Some(Err(problem)) => Err(problem),
            None => self.admit(entry, &mut request, peer, client, &mut marks).await,
        };
        let (mut response, lease) = match admitted {
            Ok(Admitted::Preflight(response)) => (response, None),
            Ok(Admitted::Open) => (run(inner, render, request, None, &record).await, None),
            Ok(Admitted::Keyed(lease, principal)) => {
                let response = run(inner, render, request, Some(&lease), &record).await;
                record.audit(&principal, &response);
                (response, Some(lease))
            }
            Err(problem) => (body.refuse(render(&problem, &record.id), request.into_body()), None),
        };
        marks.leave(&record, response.headers_mut());
        response_watch::watch(response, record, lease)
    }

    async fn admit(
        &self,
        entry: Entry,
        request: &mut Request,
        peer: IpAddr,
        client: IpAddr,
        marks: &mut Marks,
    ) -> Result<Admitted, Problem> {
        let via = if self.proxies.trusts(peer) { Via::Proxy } else { Via::Direct };
        marks.origin = self.check_reach(request, via).inspect_err(|problem| {
            tracing::warn!(target: "gembridge::audit", address = %client, refused = problem.message, "refused");
        })?;
        if let Some(preflight) =
            marks.origin.as_ref().and_then(|origin| origin.preflight(request.method(), request.headers()))
        {
            return Ok(Admitted::Preflight(preflight));
        }
        let (keyed, ticket) = match entry {
            Entry::Open => {
                self.bodies.check_length(request.body(), BodySize::Small)?;
                drop(std::mem::take(request.body_mut()));
                return Ok(Admitted::Open);
            }
            Entry::Keyed(keyed) => (keyed, None),
            Entry::WebSocket => (KeyedEntry::json(BodySize::Small), self.redeem_ticket(request).await),
        };
        let (lease, identity) = self.check_key(client, request, ticket, marks)?;
        let principal = identity.principal.clone();
        marks.allowance = self.count(&identity, client, keyed.purpose, marks)?;
        request.extensions_mut().insert(identity);
        request.extensions_mut().insert(lease.clone());
        if self.forwarding.is_some() {
            request.extensions_mut().insert(ClientAddress(client));
        }
        self.read_body(request, keyed, client).await?;
        Ok(Admitted::Keyed(lease, principal))
    }

    /// A request that another gateway has admitted: its name, origin and rate were checked there. The key is looked up
    /// here as well, so that its end ends what runs here.
    async fn admit_forwarded(&self, entry: Entry, request: &mut Request, hop: Hop) -> Result<Admitted, Problem> {
        let keyed = match entry {
            Entry::Open => return Ok(Admitted::Open),
            Entry::Keyed(keyed) => keyed,
            Entry::WebSocket => KeyedEntry::json(BodySize::Small),
        };
        let unknown =
            "the key is not known to the gateway that has this session; `gembridge keys` must list it there too";
        let (lease, identity) =
            KeyLease::take(hop.digest, &self.keys).ok_or_else(|| Problem::new(Kind::Unauthenticated, unknown))?;
        let principal = identity.principal.clone();
        request.extensions_mut().insert(identity);
        request.extensions_mut().insert(lease.clone());
        request.extensions_mut().insert(Forwarded);
        self.read_body(request, keyed, hop.client).await?;
        Ok(Admitted::Keyed(lease, principal))
    }

    fn check_reach(&self, request: &Request, via: Via) -> Result<Option<AllowedOrigin>, Problem> {
        let reach = self.reach.read().unwrap_or_else(PoisonError::into_inner);
        reach.hosts.check(request.uri(), request.headers(), via)?;
        reach.origins.check(request.headers()).inspect_err(|_| self.refusals.note(request.headers()))
    }

    fn count(
        &self,
        owner: &Identity,
        client: IpAddr,
        purpose: Purpose,
        marks: &mut Marks,
    ) -> Result<Option<Allowance>, Problem> {
        self.rates.count_key(owner, client, purpose).map_err(|exceeded| {
            marks.allowance = Some(exceeded.0);
            exceeded.problem()
        })
    }

    /// A good key always passes, whatever else comes from its address. A key has 256 random bits, so that no rate of
    /// guessing finds one. Requests without a good key are counted by address and against no key.
    fn check_key(
        &self,
        client: IpAddr,
        request: &Request,
        ticket: Option<Digest>,
        marks: &mut Marks,
    ) -> Result<(KeyLease, Identity), Problem> {
        let refusal = match self.find_key(request, ticket) {
            Ok(leased) => return Ok(leased),
            Err(refusal) => refusal,
        };
        match self.rates.count_failure(client) {
            Ok(allowance) => {
                marks.allowance = Some(allowance);
                Err(refusal)
            }
            Err(Exceeded(allowance)) => {
                marks.allowance = Some(allowance);
                Err(Problem::new(
                    Kind::RateLimited { retry_after: allowance.reset },
                    "too many requests without a valid API key from this address; wait, then send a valid one",
                ))
            }
        }
    }

    /// The key that the ticket of a request stands for. A request that has a key as well does not use it up.
    async fn redeem_ticket(&self, request: &mut Request) -> Option<Digest> {
        let in_path = request.extensions().get().map(|PathKey(digest)| *digest);
        if !matches!(credential::digest(request.headers(), in_path), Ok(None)) {
            return None;
        }
        let ticket = ticket::of_request(request)?.to_owned();
        self.tickets.redeem(&ticket).await
    }

    fn find_key(&self, request: &Request, ticket: Option<Digest>) -> Result<(KeyLease, Identity), Problem> {
        let in_path = request.extensions().get().map(|PathKey(digest)| *digest);
        let digest = credential::digest(request.headers(), in_path)?.or(ticket);
        let message = match digest.map(|digest| KeyLease::take(digest, &self.keys)) {
            Some(Some(leased)) => return Ok(leased),
            Some(None) => "invalid API key: it is unknown or was revoked; `gembridge keys list` shows the valid ones",
            None => "missing API key; send `authorization: Bearer <key>`, or make one with `gembridge keys create`",
        };
        Err(Problem::new(Kind::Unauthenticated, message))
    }

    /// Reads the body, and gives a request for a WebSocket what its messages are charged to and counted by.
    async fn read_body(
        &self,
        request: &mut Request,
        KeyedEntry { size, media, .. }: KeyedEntry,
        client: IpAddr,
    ) -> Result<(), Problem> {
        check_media(media, request.method(), request.headers(), request.body())?;
        let unknown =
            || Problem::new(Kind::Internal, "missing identity: the key must be checked before the body is read");
        let owner = request.extensions().get::<Identity>().cloned().ok_or_else(unknown)?;
        let account = self.bodies.account(owner.clone());
        if request.headers().contains_key(UPGRADE) {
            let rates = Arc::clone(&self.rates);
            request.extensions_mut().insert(SocketRequests::new(rates, owner, client, account.clone()));
            request.extensions_mut().insert(account.clone());
        }
        if request.body().is_end_stream() {
            return Ok(());
        }
        let body = std::mem::take(request.body_mut());
        if matches!(*request.method(), Method::GET | Method::HEAD) {
            // It means nothing there, and nobody reads it.
            return self.bodies.check_length(&body, BodySize::Small);
        }
        let (bytes, charge) = self.bodies.read(body, size, &account).await?;
        *request.body_mut() = Body::from(bytes);
        request.extensions_mut().insert(charge);
        Ok(())
    }
}

/// Refuses a request that the accept loop has no capacity for, without any check.
fn declined(problem: &Problem, render: Render, request: Request, peer: IpAddr) -> Response {
    let (id, body) = (RequestId::fresh(), PendingBody::of(&request));
    let mut response = body.refuse(render(problem, &id), request.into_body());
    log_refused(&id, peer, response.status(), problem);
    name(&id, response.headers_mut());
    response
}

/// Runs the route. A [`Problem`] that it answers with is rendered by its frontend; a panic in it becomes an answer
/// without its text, and so does the end of its key.
async fn run<S>(mut inner: S, render: Render, request: Request, lease: Option<&KeyLease>, record: &Record) -> Response
where
    S: Service<Request, Response = Response, Error = Infallible>,
{
    let mut route = pin!(async move { inner.call(request).await });
    let mut revocation: Option<Revocation> = None;
    let ran = poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| route.as_mut().poll(cx))) {
        Err(_panic) => Poll::Ready(Ran::Panicked),
        Ok(Poll::Ready(Ok(response))) => Poll::Ready(Ran::Answered(response)),
        Ok(Poll::Ready(Err(never))) => match never {},
        Ok(Poll::Pending) => {
            let Some(lease) = lease else { return Poll::Pending };
            revocation.get_or_insert_with(|| Revocation::of(lease)).poll(cx).map(|()| Ran::Revoked)
        }
    });
    let problem = match ran.await {
        Ran::Answered(response) => return rendered(response, render, &record.id),
        Ran::Panicked => {
            tracing::error!(request = %record.id, "a route panicked");
            Problem::new(Kind::Internal, "internal error; the log has more under this request id")
        }
        Ran::Revoked => Problem::new(Kind::Unauthenticated, "the API key was revoked or changed while the request ran"),
    };
    render(&problem, &record.id)
}

/// Leaves the number of the request in its response.
fn name(id: &RequestId, headers: &mut HeaderMap) {
    if let Ok(id) = HeaderValue::from_str(id.text(&mut [0; RequestId::LENGTH])) {
        headers.insert(REQUEST_ID, id);
    }
}

impl Marks {
    fn leave(&self, record: &Record, headers: &mut HeaderMap) {
        name(&record.id, headers);
        headers.append(VARY, HeaderValue::from_static("Origin"));
        if let Some(origin) = &self.origin {
            origin.show(headers);
        }
        if let Some(allowance) = self.allowance {
            let reset = allowance.reset.as_secs() + u64::from(allowance.reset.subsec_nanos() > 0);
            headers.insert(LIMIT, HeaderValue::from(allowance.limit));
            headers.insert(REMAINING, HeaderValue::from(allowance.remaining));
            headers.insert(RESET, HeaderValue::from(reset));
        }
    }
}
