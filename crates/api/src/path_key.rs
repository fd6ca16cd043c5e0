//! A key in the path, for programs that can send no header: `/k/<key>/api/tags` is `/api/tags` with that key.
//!
//! It is taken out before anything looks at the path, so that no route, no log and no error has it.

use axum::extract::Request;
use axum::http::Uri;
use axum::http::uri::PathAndQuery;

use crate::keys::Digest;

const PREFIX: &str = "/k/";

/// The key that stood in a request's path. In its extensions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathKey(pub Digest);

/// Takes the key out of the path, where one stands there.
pub(crate) fn take<B>(request: &mut Request<B>) {
    let Some((key, uri)) = split(request.uri()) else { return };
    *request.uri_mut() = uri;
    request.extensions_mut().insert(PathKey(key));
}

/// The key, and the address without it.
fn split(uri: &Uri) -> Option<(Digest, Uri)> {
    let rest = uri.path().strip_prefix(PREFIX)?;
    let (key, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if key.is_empty() {
        return None;
    }
    // Clients put paths behind addresses that end in a slash.
    let path = path.trim_start_matches('/');
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(format!("/{path}{query}")).ok()?);
    Some((Digest::of(key.as_bytes()), Uri::from_parts(parts).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s7_a_key_in_the_path_is_taken_out_and_nothing_else() {
        for (given, path, has_key) in [
            ("/k/one/api/tags", "/api/tags", true),
            ("/k/one//api/tags?x=1", "/api/tags?x=1", true),
            ("/k/one", "/", true),
            ("/k/one/", "/", true),
            ("http://localhost:1/k/one/v1/models", "/v1/models", true),
            ("/k/", "/k/", false),
            ("/k", "/k", false),
            ("/api/k/one", "/api/k/one", false),
        ] {
            let mut request = Request::builder().uri(given).body(()).unwrap();
            take(&mut request);
            assert_eq!(request.uri().path_and_query().unwrap().as_str(), path, "{given}");
            let key = request.extensions().get::<PathKey>();
            assert_eq!(key.is_some_and(|key| key.0.matches(&Digest::of(b"one"))), has_key, "{given}");
        }
    }
}
