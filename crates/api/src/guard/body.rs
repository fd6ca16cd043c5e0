//! Reading a request's body: only JSON, only up to its limit, not too slowly, and only as much at once as the memory
//! budget has for its key.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Method, header};
use bytes::{BufMut, Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout, timeout_at};

use super::memory_budget::{BodyCharge, Charge, MemoryAccount, MemoryBudget};
use crate::frontend::Media;
use crate::identity::Identity;
use crate::problem::{Kind, Problem};

#[derive(Clone, Copy, Debug)]
pub struct BodyLimits {
    /// The largest body on most routes.
    pub small: u32,
    /// The largest body where conversations are sent.
    pub large: u32,
    /// How long a sender may pause.
    pub idle: Duration,
    /// Bytes a second that a sender must reach over the whole body, `idle` aside: who sends a byte now and then to
    /// look alive is slower.
    pub floor: u32,
    /// How many bytes of bodies and WebSocket messages up to `small` may be held at once, over all keys; at least three
    /// times `small`.
    pub small_budget: u32,
    /// The same for larger ones. Apart from the other, so that slow large ones never keep small ones waiting.
    pub large_budget: u32,
    /// How long a body or a message waits for room in its budget.
    pub wait: Duration,
}

impl Default for BodyLimits {
    fn default() -> Self {
        Self {
            small: 64 << 10,
            large: 10 << 20,
            idle: Duration::from_secs(30),
            floor: 128 << 10,
            small_budget: 16 << 20,
            large_budget: 32 << 20,
            wait: Duration::from_secs(10),
        }
    }
}

impl BodyLimits {
    /// When a sender is too slow that began at `start`, sent `received` bytes, and the last of them at `latest`.
    pub fn deadline(&self, start: Instant, latest: Instant, received: usize) -> Instant {
        let earned = Duration::from_secs_f64(count(received) / f64::from(self.floor.max(1)));
        (start + self.idle + earned).min(latest + self.idle)
    }
}

/// How large the body of a request to a route may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodySize {
    Small,
    Large,
}

pub struct Bodies {
    budget: Arc<MemoryBudget>,
}

/// A body together with its charge, which ends when the last slice of it is dropped.
struct Charged {
    bytes: Bytes,
    _charge: BodyCharge,
}

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Bodies {
    pub fn new(limits: BodyLimits) -> Self {
        Self { budget: MemoryBudget::new(limits) }
    }

    /// What the messages of this key are charged to.
    pub fn account(&self, owner: Identity) -> MemoryAccount {
        self.budget.account(owner)
    }

    /// Refuses a body that says of itself that it is too large, wherever it is sent.
    pub fn check_length(&self, body: &Body, size: BodySize) -> Result<(), Problem> {
        let limit = self.limit(size);
        match body.size_hint().exact() {
            Some(length) if length > u64::from(limit) => Err(too_large(limit)),
            Some(_) | None => Ok(()),
        }
    }

    fn limit(&self, size: BodySize) -> u32 {
        let limits = self.budget.limits();
        match size {
            BodySize::Small => limits.small,
            BodySize::Large => limits.large,
        }
    }

    /// The whole body, and what it is charged. It stays charged until both are dropped.
    pub async fn read(
        &self,
        body: Body,
        size: BodySize,
        account: &MemoryAccount,
    ) -> Result<(Bytes, BodyCharge), Problem> {
        self.check_length(&body, size)?;
        let mut charge = account.charge();
        let bytes = self.collect(body, self.limit(size), &mut charge).await?;
        charge.finish();
        let charge = BodyCharge(Arc::new(charge));
        Ok((Bytes::from_owner(Charged { bytes, _charge: charge.clone() }), charge))
    }

    async fn collect(&self, mut body: Body, limit: u32, charge: &mut Charge) -> Result<Bytes, Problem> {
        let start = Instant::now();
        let most = body.size_hint().exact().and_then(|length| usize::try_from(length).ok()).unwrap_or(limit as usize);
        // A body that comes in one piece is passed on without a copy.
        let mut only = Bytes::new();
        let mut whole = BytesMut::new();
        loop {
            let received = only.len() + whole.len();
            let Some(chunk) = self.next(&mut body, start, received).await? else { break };
            let total = received + chunk.len();
            if total > limit as usize {
                return Err(too_large(limit));
            }
            self.hold(charge, total).await?;
            if received == 0 {
                only = chunk;
                continue;
            }
            if whole.capacity() < total {
                // By doubling: a length that was only announced takes no memory.
                whole.reserve((2 * total).min(most.max(total)) - whole.len());
            }
            if whole.is_empty() {
                whole.put(std::mem::take(&mut only));
            }
            whole.put_slice(&chunk);
        }
        Ok(if whole.is_empty() { only } else { whole.freeze() })
    }

    /// The next piece; an error when it is late.
    async fn next(&self, body: &mut Body, start: Instant, received: usize) -> Result<Option<Bytes>, Problem> {
        let deadline = self.budget.limits().deadline(start, Instant::now(), received);
        loop {
            let frame = timeout_at(deadline, body.frame())
                .await
                .map_err(|_| Problem::new(Kind::Invalid, "the request body came too slowly; send it in one go"))?;
            match frame {
                None => return Ok(None),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if data.is_empty() => {}
                    Ok(data) => return Ok(Some(data)),
                    Err(_trailers) => {}
                },
                Some(Err(failure)) => {
                    return Err(Problem::new(Kind::Invalid, format!("the request body broke off: {failure}")));
                }
            }
        }
    }

    async fn hold(&self, charge: &mut Charge, bytes: usize) -> Result<(), Problem> {
        let held = timeout(self.budget.limits().wait, poll_fn(|cx| charge.poll_hold(bytes, cx))).await;
        held.map_err(|_| charge.obstacle(bytes).problem())
    }

    #[cfg(test)]
    fn used(&self) -> (usize, usize) {
        self.budget.used()
    }
}

/// Refuses what is not plain JSON, before anything is read. `text/plain` and forms need no preflight in a browser.
pub fn check_media(media: Media, method: &Method, headers: &HeaderMap, body: &Body) -> Result<(), Problem> {
    let carries = *method == Method::POST || *method == Method::PUT || *method == Method::PATCH;
    if !carries && body.is_end_stream() {
        return Ok(());
    }
    if let Some(encoding) = headers.get(header::CONTENT_ENCODING)
        && !encoding.as_bytes().eq_ignore_ascii_case(b"identity")
    {
        let shown = encoding.as_bytes().escape_ascii();
        return Err(wrong_media(format!("`content-encoding: {shown}` is not supported; send the body as it is")));
    }
    if media == Media::Any {
        return Ok(());
    }
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    match (types.next(), types.next()) {
        (Some(value), None) if is_json(value.as_bytes()) => Ok(()),
        (Some(value), None) => {
            let shown = value.as_bytes().escape_ascii();
            Err(wrong_media(format!("`content-type: {shown}` is not supported; send `application/json`")))
        }
        // Nothing is not of a wrong type. Whether the route takes it, or the method at all, is for the route to say.
        (None, None) if body.is_end_stream() => Ok(()),
        _ => Err(wrong_media("the request has no single `content-type`; send `application/json`")),
    }
}

fn is_json(content_type: &[u8]) -> bool {
    let essence = content_type.split(|byte| *byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(b"application/json")
}

fn wrong_media(message: impl Into<String>) -> Problem {
    Problem::new(Kind::WrongMediaType, message)
}

fn too_large(limit: u32) -> Problem {
    Problem::new(Kind::TooLarge, format!("request body too large: more than {limit} bytes; shorten the conversation"))
}

fn count(bytes: usize) -> f64 {
    f64::from(u32::try_from(bytes).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use axum::http::HeaderValue;
    use http_body::{Frame, SizeHint};

    use super::*;

    use crate::identity::Rank;

    const SMALL: u32 = 100;
    const LARGE: u32 = 1_000;

    fn bodies() -> Bodies {
        Bodies::new(BodyLimits {
            small: SMALL,
            large: LARGE,
            small_budget: 300,
            large_budget: 3_000,
            wait: Duration::from_secs(10),
            ..BodyLimits::default()
        })
    }

    fn account(bodies: &Bodies, rank: Rank) -> MemoryAccount {
        bodies.account(Identity { principal: gembridge_core::model::Principal::new("ann"), rank })
    }

    /// A body of so many pieces, each after a pause; of declared length if `declared`.
    struct Pieces {
        left: u32,
        size: usize,
        pause: Duration,
        waiting: Option<Pin<Box<tokio::time::Sleep>>>,
        declared: Option<u64>,
    }

    impl Pieces {
        fn body(left: u32, size: usize, pause: Duration, declared: Option<u64>) -> Body {
            Body::new(Self { left, size, pause, waiting: None, declared })
        }
    }

    impl http_body::Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            if self.left == 0 {
                return Poll::Ready(None);
            }
            let pause = self.pause;
            let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(pause)));
            std::task::ready!(waiting.as_mut().poll(cx));
            self.waiting = None;
            self.left -= 1;
            Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![b'x'; self.size])))))
        }

        fn size_hint(&self) -> SizeHint {
            self.declared.map_or_else(SizeHint::default, SizeHint::with_exact)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn s25_a_body_passes_up_to_its_limit_and_not_beyond() {
        for (route, pieces, size, declared, passes) in [
            (BodySize::Small, 1, 100, Some(100), true),
            (BodySize::Small, 10, 10, None, true),
            (BodySize::Small, 1, 101, Some(101), false),
            (BodySize::Small, 11, 10, None, false),
            (BodySize::Large, 10, 100, None, true),
            (BodySize::Large, 10, 100, Some(1000), true),
            (BodySize::Large, 11, 100, None, false),
            (BodySize::Large, 0, 0, Some(1_001), false),
            (BodySize::Large, 0, 0, Some(0), true),
            (BodySize::Large, 0, 0, None, true),
        ] {
            let bodies = bodies();
            let body = Pieces::body(pieces, size, Duration::ZERO, declared);
            let read = bodies.read(body, route, &account(&bodies, Rank::User)).await;
            match read {
                Ok((bytes, charge)) => {
                    drop(charge);
                    assert!(passes);
                    assert_eq!(bytes.len(), pieces as usize * size);
                }
                Err(problem) => {
                    assert!(!passes, "{problem}");
                    assert_eq!(problem.kind, Kind::TooLarge);
                }
            }
            assert_eq!(bodies.used(), (0, 0), "the budget came back");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn s24_a_sender_that_pauses_or_dribbles_is_cut_off_and_a_steady_one_is_not() {
        let second = Duration::from_secs(1);
        for (pieces, size, pause, passes) in
            [(2, 10, 31 * second, false), (90, 1, second, false), (2, 10, 14 * second, true), (20, 40, second, true)]
        {
            let bodies = bodies();
            let body = Pieces::body(pieces, size, pause, None);
            let read = bodies.read(body, BodySize::Large, &account(&bodies, Rank::User)).await;
            assert_eq!(read.is_ok(), passes, "{pieces} pieces of {size} every {pause:?}");
            drop(read);
            assert_eq!(bodies.used(), (0, 0));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn s26_large_bodies_wait_for_room_and_leave_small_ones_alone() {
        let bodies = bodies();
        let account = account(&bodies, Rank::Admin);
        let large = || Pieces::body(10, 100, Duration::ZERO, Some(1000));
        let (one, _) = bodies.read(large(), BodySize::Large, &account).await.unwrap();
        let two = bodies.read(large(), BodySize::Large, &account).await.unwrap();
        let three = bodies.read(large(), BodySize::Large, &account).await.unwrap();
        assert_eq!(bodies.used(), (0, 3_000));
        assert!(bodies.read(Body::from("small"), BodySize::Large, &account).await.is_ok());
        let fourth = bodies.read(large(), BodySize::Large, &account).await.map(|_| ()).unwrap_err();
        assert!(matches!(fourth.kind, Kind::Unavailable { .. }), "{fourth}");
        let slice = one.slice(3..5);
        drop(one);
        assert_eq!(bodies.used(), (0, 3_000), "a slice still holds the whole");
        drop(slice);
        assert_eq!(bodies.used(), (0, 2_000));
        assert!(bodies.read(large(), BodySize::Large, &account).await.is_ok());
        drop((two, three));
        assert_eq!(bodies.used(), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn f8_a_guest_is_refused_for_its_own_share_and_only_for_what_it_sent() {
        let bodies = bodies();
        let guest = account(&bodies, Rank::User);
        let slow = bodies.read(Pieces::body(10, 100, Duration::from_secs(1), Some(1000)), BodySize::Large, &guest);
        let mut slow = std::pin::pin!(slow);
        // It has sent 300 bytes when the others come.
        assert!(timeout(Duration::from_millis(3_500), &mut slow).await.is_err());
        assert_eq!(bodies.used(), (0, 300));
        let refused = bodies.read(Pieces::body(10, 100, Duration::ZERO, Some(1000)), BodySize::Large, &guest).await;
        assert!(matches!(refused.map(|_| ()).unwrap_err().kind, Kind::QueueFull { .. }));
        assert!(slow.await.is_ok(), "the first one goes on");
    }

    #[test]
    fn s3_only_json_without_encoding_is_read() {
        for (content_type, encoding, passes) in [
            (Some("application/json"), None, true),
            (Some("Application/JSON; charset=utf-8"), None, true),
            (Some("application/json"), Some("identity"), true),
            (Some("application/json"), Some("gzip"), false),
            (Some("application/jsonp"), None, false),
            (Some("text/plain"), None, false),
            (Some("text/plain; application/json"), None, false),
            (Some("multipart/form-data; boundary=x"), None, false),
            (Some("application/x-www-form-urlencoded"), None, false),
            (None, None, false),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in [(header::CONTENT_TYPE, content_type), (header::CONTENT_ENCODING, encoding)] {
                if let Some(value) = value {
                    headers.insert(name, HeaderValue::from_static(value));
                }
            }
            let verdict = check_media(Media::Json, &Method::POST, &headers, &Body::from("{}"));
            assert_eq!(verdict.is_ok(), passes, "{content_type:?} {encoding:?}");
        }
        for method in [Method::GET, Method::POST, Method::PUT] {
            assert!(check_media(Media::Json, &method, &HeaderMap::new(), &Body::empty()).is_ok());
        }
    }
}
