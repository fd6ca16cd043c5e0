//! The key of a request. One extractor for every spelling, so that no header skips what another must pass.

use axum::http::{HeaderMap, HeaderValue, header};

use crate::keys::Digest;
use crate::problem::{Kind, Problem};

/// `None` if the request carries no key; an error if it carries two that differ. `in_path` is the one that stood in its path.
pub fn digest(headers: &HeaderMap, in_path: Option<Digest>) -> Result<Option<Digest>, Problem> {
    let bearers = headers.get_all(header::AUTHORIZATION).iter().filter_map(|value| bearer(value.as_bytes()));
    let named =
        ["x-api-key", "x-goog-api-key"].into_iter().flat_map(|name| headers.get_all(name)).map(HeaderValue::as_bytes);
    // Browsers can send no other header with a WebSocket.
    let offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().flat_map(|value| {
        value.as_bytes().split(|byte| *byte == b',').filter_map(|name| name.trim_ascii().strip_prefix(b"bearer."))
    });
    let mut found: Option<Digest> = None;
    let in_headers = bearers.chain(named).chain(offered).filter(|key| !key.is_empty()).map(Digest::of);
    for digest in in_path.into_iter().chain(in_headers) {
        if found.is_some_and(|first| !first.matches(&digest)) {
            return Err(Problem::new(
                Kind::Invalid,
                "the request has two different keys; send one, in `authorization`, in `x-api-key` or in its path",
            ));
        }
        found = Some(digest);
    }
    Ok(found)
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, key) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| key.trim_ascii())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    fn found(pairs: &[(&'static str, &str)]) -> Result<bool, Kind> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        let expected = Digest::of(b"one");
        digest(&headers, None).map(|digest| digest.is_some_and(|digest| digest.matches(&expected))).map_err(|p| p.kind)
    }

    #[test]
    fn s7_every_spelling_finds_the_key_and_two_different_ones_are_refused() {
        for (pairs, expected) in [
            (&[][..], Ok(false)),
            (&[("authorization", "Bearer one")], Ok(true)),
            (&[("authorization", "bearer   one ")], Ok(true)),
            (&[("x-api-key", "one")], Ok(true)),
            (&[("x-goog-api-key", "one")], Ok(true)),
            (&[("authorization", "Bearer one"), ("x-api-key", "one")], Ok(true)),
            (&[("authorization", "Bearer one"), ("x-api-key", "two")], Err(Kind::Invalid)),
            (&[("x-goog-api-key", "one"), ("x-api-key", "two")], Err(Kind::Invalid)),
            (&[("x-api-key", "one"), ("x-api-key", "two")], Err(Kind::Invalid)),
            (&[("authorization", "Bearer one"), ("authorization", "Bearer two")], Err(Kind::Invalid)),
            (&[("sec-websocket-protocol", "acp.v1, bearer.one")], Ok(true)),
            (&[("sec-websocket-protocol", "bearer.one"), ("x-api-key", "two")], Err(Kind::Invalid)),
            (&[("sec-websocket-protocol", "ticket.one")], Ok(false)),
            (&[("authorization", "Basic one")], Ok(false)),
            (&[("authorization", "Bearer")], Ok(false)),
            (&[("authorization", "Bearer ")], Ok(false)),
            (&[("authorization", "' OR 1=1--")], Ok(false)),
        ] {
            assert_eq!(found(pairs), expected, "{pairs:?}");
        }
    }

    #[test]
    fn s7_a_key_in_the_path_counts_like_any_other() {
        let (one, two) = (Digest::of(b"one"), Digest::of(b"two"));
        let headers = HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_static("Bearer one"))]);
        assert!(digest(&HeaderMap::new(), Some(one)).unwrap().unwrap().matches(&one));
        assert!(digest(&headers, Some(one)).unwrap().unwrap().matches(&one));
        assert_eq!(digest(&headers, Some(two)).unwrap_err().kind, Kind::Invalid);
    }
}
