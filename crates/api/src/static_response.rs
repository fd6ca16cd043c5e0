//! The files of our pages: from the binary, under one content security policy.

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};

/// Nothing from other origins, nothing inline, never in a frame.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                                 connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// Revalidated each time.
pub(crate) const FRESH: &str = "no-cache";

pub(crate) fn static_response(content_type: &'static str, caching: &'static str, bytes: &'static [u8]) -> Response {
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, caching),
    ];
    let headers = headers.map(|(name, value): (HeaderName, _)| (name, HeaderValue::from_static(value)));
    (headers, bytes).into_response()
}
