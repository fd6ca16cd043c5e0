//! Reading a request's body: only JSON, only up to its limit, only as slowly as is decent, and only as much at once
//! over all requests as was budgeted.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Method, header};
use bytes::{BufMut, Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

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
    /// How many bytes of bodies up to `small` may be held at once, over all requests.
    pub small_budget: u32,
    /// The same for larger ones. Apart from the other, so that slow large ones never keep small ones waiting.
    pub large_budget: u32,
    /// How long a request waits for room in its budget.
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

/// How much a route may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    Small,
    Large,
}

pub struct Bodies {
    limits: BodyLimits,
    small: Arc<Semaphore>,
    large: Arc<Semaphore>,
}

/// A body together with its share of the budget, which returns when the last slice of it is dropped.
struct Charged {
    bytes: Bytes,
    _share: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Bodies {
    pub fn new(limits: BodyLimits) -> Self {
        // A budget below the largest body would never admit it.
        let small = limits.small_budget.max(limits.small);
        let large = limits.large_budget.max(limits.large);
        Self {
            limits,
            small: Arc::new(Semaphore::new(small as usize)),
            large: Arc::new(Semaphore::new(large as usize)),
        }
    }

    /// Refuses a body that says of itself that it is too large, wherever it is sent.
    pub fn check_length(&self, body: &Body, room: Room) -> Result<(), Problem> {
        let limit = self.limit(room);
        match body.size_hint().exact() {
            Some(length) if length > u64::from(limit) => Err(too_large(limit)),
            Some(_) | None => Ok(()),
        }
    }

    fn limit(&self, room: Room) -> u32 {
        match room {
            Room::Small => self.limits.small,
            Room::Large => self.limits.large,
        }
    }

    /// The whole body. The bytes hold their share of the budget until they are dropped: parse, and let go.
    pub async fn read(&self, body: Body, room: Room) -> Result<Bytes, Problem> {
        let limit = self.limit(room);
        let declared = body.size_hint().exact();
        if declared == Some(0) {
            return Ok(Bytes::new());
        }
        self.check_length(&body, room)?;
        let expected = declared.and_then(|length| u32::try_from(length).ok());
        let share = self.share(expected.unwrap_or(self.limits.small)).await?;
        let (bytes, mut share) = self.collect(body, limit, expected, share).await?;
        // What was set aside for a length that was not known goes back at once.
        let used = share.split(bytes.len()).unwrap_or(share);
        Ok(Bytes::from_owner(Charged { bytes, _share: used }))
    }

    async fn collect(
        &self,
        mut body: Body,
        limit: u32,
        expected: Option<u32>,
        mut share: OwnedSemaphorePermit,
    ) -> Result<(Bytes, OwnedSemaphorePermit), Problem> {
        let start = Instant::now();
        // A body that comes in one piece is passed on without a copy.
        let mut only = Bytes::new();
        let mut whole = BytesMut::new();
        loop {
            let received = only.len() + whole.len();
            let Some(chunk) = self.next(&mut body, start, received).await? else { break };
            let total = u32::try_from(received + chunk.len()).unwrap_or(u32::MAX);
            if total > limit {
                return Err(too_large(limit));
            }
            if total as usize > share.num_permits() {
                // Of unknown length, and no longer small: it may become as large as the route allows.
                share = self.share(limit).await?;
            }
            if received == 0 {
                only = chunk;
            } else {
                if whole.is_empty() {
                    whole.reserve(expected.unwrap_or(2 * total) as usize);
                    whole.put(std::mem::take(&mut only));
                }
                whole.put_slice(&chunk);
            }
        }
        Ok((if whole.is_empty() { only } else { whole.freeze() }, share))
    }

    /// The next piece; an error when it is late.
    async fn next(&self, body: &mut Body, start: Instant, received: usize) -> Result<Option<Bytes>, Problem> {
        let earned = Duration::from_secs_f64(count(received) / f64::from(self.limits.floor.max(1)));
        let deadline = (start + self.limits.idle + earned).min(Instant::now() + self.limits.idle);
        loop {
            let frame = timeout_at(deadline, body.frame())
                .await
                .map_err(|_| Problem::new(Kind::Invalid, "the body came too slowly; send it in one go"))?;
            match frame {
                None => return Ok(None),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if data.is_empty() => {}
                    Ok(data) => return Ok(Some(data)),
                    Err(_trailers) => {}
                },
                Some(Err(failure)) => {
                    return Err(Problem::new(Kind::Invalid, format!("the body broke off: {failure}")));
                }
            }
        }
    }

    async fn share(&self, bytes: u32) -> Result<OwnedSemaphorePermit, Problem> {
        let budget = if bytes <= self.limits.small { &self.small } else { &self.large };
        let acquired = timeout(self.limits.wait, Arc::clone(budget).acquire_many_owned(bytes)).await;
        match acquired {
            Ok(Ok(share)) => Ok(share),
            // The semaphores are never closed, so it was the wait.
            Ok(Err(_)) | Err(_) => Err(Problem::new(
                Kind::Unavailable { retry_after: Duration::from_secs(1) },
                "too many large requests are being read at once; try again in a second",
            )),
        }
    }

    #[cfg(test)]
    pub fn free(&self) -> (usize, usize) {
        (self.small.available_permits(), self.large.available_permits())
    }
}

/// Refuses what is not plain JSON, before anything is read. `text/plain` and forms need no preflight in a browser.
pub fn check_media(method: &Method, headers: &HeaderMap, body: &Body) -> Result<(), Problem> {
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
    Problem::new(Kind::TooLarge, format!("the body is larger than {limit} bytes; shorten the conversation"))
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

    const SMALL: u32 = 100;
    const LARGE: u32 = 1_000;

    fn bodies() -> Bodies {
        Bodies::new(BodyLimits {
            small: SMALL,
            large: LARGE,
            small_budget: 300,
            large_budget: 2_500,
            wait: Duration::from_secs(10),
            ..BodyLimits::default()
        })
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
        for (room, pieces, size, declared, passes) in [
            (Room::Small, 1, 100, Some(100), true),
            (Room::Small, 10, 10, None, true),
            (Room::Small, 1, 101, Some(101), false),
            (Room::Small, 11, 10, None, false),
            (Room::Large, 10, 100, None, true),
            (Room::Large, 10, 100, Some(1000), true),
            (Room::Large, 11, 100, None, false),
            (Room::Large, 0, 0, Some(1_001), false),
            (Room::Large, 0, 0, Some(0), true),
            (Room::Large, 0, 0, None, true),
        ] {
            let bodies = bodies();
            let read = bodies.read(Pieces::body(pieces, size, Duration::ZERO, declared), room).await;
            match read {
                Ok(bytes) => {
                    assert!(passes);
                    assert_eq!(bytes.len(), pieces as usize * size);
                }
                Err(problem) => {
                    assert!(!passes, "{problem}");
                    assert_eq!(problem.kind, Kind::TooLarge);
                }
            }
            assert_eq!(bodies.free(), (300, 2_500), "the budget came back");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn s24_a_sender_that_pauses_or_dribbles_is_cut_off_and_a_steady_one_is_not() {
        let second = Duration::from_secs(1);
        for (pieces, size, pause, passes) in
            [(2, 10, 31 * second, false), (90, 1, second, false), (2, 10, 14 * second, true), (20, 40, second, true)]
        {
            let bodies = bodies();
            let read = bodies.read(Pieces::body(pieces, size, pause, None), Room::Large).await;
            assert_eq!(read.is_ok(), passes, "{pieces} pieces of {size} every {pause:?}");
            drop(read);
            assert_eq!(bodies.free(), (300, 2_500));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn s26_large_bodies_wait_for_room_and_leave_small_ones_alone() {
        let bodies = Arc::new(bodies());
        let large = || Pieces::body(10, 100, Duration::ZERO, Some(1000));
        let one = bodies.read(large(), Room::Large).await.unwrap();
        let two = bodies.read(large(), Room::Large).await.unwrap();
        assert_eq!(bodies.free(), (300, 500));
        assert!(bodies.read(Body::from("small"), Room::Large).await.is_ok());
        let third = bodies.read(large(), Room::Large).await.unwrap_err();
        assert!(matches!(third.kind, Kind::Unavailable { .. }), "{third}");
        let slice = one.slice(3..5);
        drop(one);
        assert_eq!(bodies.free(), (300, 500), "a slice still holds the whole");
        drop(slice);
        assert_eq!(bodies.free(), (300, 1_500));
        assert!(bodies.read(large(), Room::Large).await.is_ok());
        drop(two);
        assert_eq!(bodies.free(), (300, 2_500));
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
            let verdict = check_media(&Method::POST, &headers, &Body::from("{}"));
            assert_eq!(verdict.is_ok(), passes, "{content_type:?} {encoding:?}");
        }
        for method in [Method::GET, Method::POST, Method::PUT] {
            assert!(check_media(&method, &HeaderMap::new(), &Body::empty()).is_ok());
        }
    }
}
