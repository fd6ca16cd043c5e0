//! Refusing a request whose body may still be on its way.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Version};
use axum::response::Response;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

/// What is to be known of a request's body when the request is refused.
pub struct PendingBody {
    version: Version,
    has_body: bool,
}

impl PendingBody {
    pub fn of(request: &Request) -> Self {
        Self { version: request.version(), has_body: !request.body().is_end_stream() }
    }

    /// The refusal as it goes out, with what is left of the request's body.
    pub fn refuse(&self, mut response: Response, body: Body) -> Response {
        if !self.has_body {
            return response;
        }
        if self.version >= Version::HTTP_2 {
            return response.map(|answer| Body::new(RefusedBody::new(answer, body)));
        }
        // The rest of its body will not be read, so nothing can follow it on this connection.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        response
    }
}

/// As much as the window of a stream lets a client send before it has heard anything.
const MOST: usize = 1 << 20;
/// For the client to notice the answer.
const LINGER: Duration = Duration::from_secs(2);

/// A response over HTTP/2 that is sent at once and ends when the request body that it refuses has ended. A stream whose
/// response ends before the request is reset, and many clients then drop the response that they had received. So what a
/// client may have sent before it could know is discarded first, as on a socket of HTTP/1 that closes.
struct RefusedBody {
    answer: Body,
    refused: Body,
    left: usize,
    limit: Pin<Box<Sleep>>,
}

impl RefusedBody {
    fn new(answer: Body, refused: Body) -> Self {
        Self { answer, refused, left: MOST, limit: Box::pin(sleep(LINGER)) }
    }

    /// Ready when the refused body has ended, or is not worth waiting for.
    fn poll_refused(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.limit.as_mut().poll(cx).is_pending() {
            let Some(Ok(frame)) = ready!(Pin::new(&mut self.refused).poll_frame(cx)) else { break };
            let length = frame.data_ref().map_or(0, Bytes::len);
            let Some(left) = self.left.checked_sub(length) else { break };
            self.left = left;
        }
        Poll::Ready(())
    }
}

impl http_body::Body for RefusedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        if let Some(frame) = ready!(Pin::new(&mut this.answer).poll_frame(cx)) {
            return Poll::Ready(Some(frame));
        }
        this.poll_refused(cx).map(|()| None)
    }

    fn size_hint(&self) -> SizeHint {
        self.answer.size_hint()
    }
}
