//! Requests for a session that another gateway of the cluster has: passed on to it, and its answer passed back as it comes.
//!
//! ```text
//! client        gateway A: guard, forward, route          gateway B: guard, route
//!   │  POST ──────▶ key, rate, body ─▶ route: `Elsewhere(B)`      │
//!   │                   signed, with the digest of the key ─────▶ signature, key, body ─▶ route
//!   │◀───────────────── as it comes ◀─────────────────────────────│
//! ```
//!
//! The route decides, since only it knows what names a session; its body is kept until a turn has begun. A request that
//! was passed on is not passed on again.

mod copy;
mod peer;
mod relay;
mod signature;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use gembridge_core::BoxFuture;
use gembridge_core::directory::NodeId;
use hyper::upgrade::OnUpgrade;
use tokio_util::task::TaskTracker;

pub(crate) use self::copy::CopyRelease;
use self::copy::KeptCopy;
use self::peer::Peer;
use self::signature::Seal;
pub(crate) use self::signature::{HEADER, Hop};
use crate::keys::KeyLease;
use crate::problem::{Kind, PassOn, Problem};

/// Where the other gateways are reached.
pub trait Peers: Send + Sync {
    /// `host:port` of a gateway that lives.
    fn address(&self, node: NodeId) -> BoxFuture<'_, Option<String>>;
}

/// How this gateway passes requests on, and knows those that others pass on to it.
pub struct Forwarding {
    seal: Seal,
    peer: Peer,
    peers: Arc<dyn Peers>,
    /// Each relays one WebSocket.
    tasks: TaskTracker,
}

/// A request that another gateway has passed on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Forwarded;

/// The client's address, as the guard found it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientAddress(pub IpAddr);

/// What is kept of a request until its route has answered.
struct Kept {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    lease: KeyLease,
    client: IpAddr,
    upgrade: Option<OnUpgrade>,
}

const RETRY: Duration = Duration::from_secs(1);

impl Forwarding {
    /// `key` is the same on all gateways of a cluster, and known to nobody else.
    pub fn new(node: NodeId, key: [u8; 32], peers: Arc<dyn Peers>) -> Arc<Self> {
        Arc::new(Self { seal: Seal::new(node, key), peer: Peer::new(), peers, tasks: TaskTracker::new() })
    }

    /// Whose request another gateway has passed on. `None`: it comes from a client.
    pub(crate) fn hop(&self, request: &Request) -> Option<Result<Hop, Problem>> {
        let signed = request.headers().get(HEADER)?;
        let hop = self.seal.open(request.method(), request.uri(), signed);
        Some(hop.map_err(|broken| Problem::new(Kind::Forbidden, broken.to_string())))
    }

    /// Resolves when no WebSocket is relayed any more.
    pub async fn settle(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    async fn pass(&self, node: NodeId, kept: Kept, body: Bytes) -> Result<Response, Problem> {
        let gone = |what: String| Problem::new(Kind::Unavailable { retry_after: RETRY }, what);
        let address = self.peers.address(node).await.ok_or_else(|| {
            gone("the gateway that has this session does not answer now; try again, or begin a new session".to_owned())
        })?;
        let signed = self.seal.close(node, &kept.method, &kept.uri, &kept.lease.digest(), kept.client);
        let request = peer::request(&address, &kept, signed, body).map_err(|error| {
            Problem::new(Kind::Internal, format!("a request could not be passed on to `{address}`: {error}"))
        })?;
        match (kept.upgrade, self.peer.send(request).await) {
            (Some(upgrade), Ok(answer)) => Ok(relay::switch(&self.tasks, upgrade, answer)),
            (None, Ok(answer)) => Ok(answer),
            (_, Err(peer::Failed::BeforeItWasSent(why))) => {
                tracing::warn!(%node, why, "a gateway of the cluster cannot be reached");
                Err(gone("the gateway that has this session cannot be reached now; try again".to_owned()))
            }
            // It may have begun to act.
            (_, Err(peer::Failed::Afterwards(why))) => {
                tracing::warn!(%node, why, "a gateway of the cluster was lost with a request");
                Err(Problem::new(Kind::Agent, "the gateway that has this session was lost while it answered"))
            }
        }
    }
}

/// The layer between the guard and the routes.
pub(crate) async fn pass_on(State(forwarding): State<Arc<Forwarding>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let Some(kept) = keep(&parts) else { return next.run(Request::from_parts(parts, body)).await };
    // The guard has read it under its own limit.
    let body = match to_bytes(body, usize::MAX).await {
        Ok(body) => body,
        Err(failure) => {
            let message = format!("the body could not be read: {failure}");
            return Problem::new(Kind::Invalid, message).into_response();
        }
    };
    let copy = KeptCopy::of(&body);
    parts.extensions.insert(copy.release());
    let response = next.run(Request::from_parts(parts, Body::from(body))).await;
    let Some(PassOn(node)) = response.extensions().get().copied() else { return response };
    // Nothing has begun where the session is elsewhere, so that the body is still there.
    let Some(body) = copy.take() else { return response };
    forwarding.pass(node, kept, body).await.unwrap_or_else(IntoResponse::into_response)
}

/// `None` for what is answered here, whatever it is.
fn keep(parts: &Parts) -> Option<Kept> {
    if parts.extensions.get::<Forwarded>().is_some() {
        return None;
    }
    let lease = parts.extensions.get::<KeyLease>()?.clone();
    let ClientAddress(client) = *parts.extensions.get()?;
    Some(Kept {
        method: parts.method.clone(),
        uri: parts.uri.clone(),
        headers: parts.headers.clone(),
        lease,
        client,
        upgrade: parts.extensions.get::<OnUpgrade>().filter(|_| relay::is_upgrade(&parts.headers)).cloned(),
    })
}
