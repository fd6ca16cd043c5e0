//! JSON that is passed on as it came, and responses that hold JSON.

use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use gembridge_core::model::ClientCall;
use serde::Serialize;
use serde_json::value::RawValue;

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The string whose body this is, checked once more as JSON.
pub(crate) fn quoted(escaped: &[u8]) -> serde_json::Result<Box<RawValue>> {
    let mut text = String::with_capacity(escaped.len() + 2);
    text.push('"');
    text.push_str(&String::from_utf8_lossy(escaped));
    text.push('"');
    RawValue::from_string(text)
}

/// The arguments of a call as an object. What is no JSON is no call that a client could run.
pub(crate) fn arguments(call: &ClientCall) -> Box<RawValue> {
    let json = String::from_utf8_lossy(&call.arguments.0).into_owned();
    RawValue::from_string(json).or_else(|_| RawValue::from_string("{}".to_owned())).unwrap_or_default()
}

/// A response that is a value of our own.
pub(crate) fn json(value: &impl Serialize) -> Response<Body> {
    let body = serde_json::to_vec(value).expect("names and numbers always serialise");
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}
