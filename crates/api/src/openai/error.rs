//! Problems in this dialect's envelope: as a response, or as an event of a stream that has begun.

use axum::body::Body;
use axum::http::Response;
use bytes::BytesMut;

use crate::guard::envelope;
use crate::identity::RequestId;
use crate::problem::Problem;
use crate::sse;

pub(super) fn response(problem: &Problem, id: &RequestId) -> Response<Body> {
    envelope::response(problem, id)
}

/// The last event of a stream that cannot go on.
pub(super) fn event(out: &mut BytesMut, problem: &Problem, id: &RequestId) {
    sse::data(out, &envelope::json(problem, id));
}
