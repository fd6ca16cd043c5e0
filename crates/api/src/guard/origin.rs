//! Which pages may call us. An origin that is not listed is refused on every method, whatever the browser would have
//! done with the answer: a request that was sent has had its effect.

use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;

use crate::guard::host::{is_loopback, split_port};
use crate::problem::{Kind, Problem};

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, DELETE");
/// What a page may read of an answer beyond its body.
pub(crate) const EXPOSED: HeaderValue = HeaderValue::from_static(
    "x-request-id, x-session-id, x-queue-ms, retry-after, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, \
     x-gembridge-ignored, x-gembridge-left-out, x-gembridge-model-fallback, x-gembridge-repeated, x-should-retry, openai-processing-ms",
);
const ASKS_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOWS_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// The origins beyond loopback.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    listed: Vec<String>,
    extensions: Extensions,
}

/// Which browser extensions may call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extensions {
    /// Those whose full id is listed.
    #[default]
    Listed,
    /// Every one that the user has installed, now and later.
    Any,
}

/// An origin that may call, as the page sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedOrigin(HeaderValue);

impl Origins {
    /// Exact origins: `https://app.example`, `chrome-extension://<id>`.
    pub fn new(listed: impl IntoIterator<Item = String>, extensions: Extensions) -> Self {
        Self { listed: listed.into_iter().map(|origin| normal(&origin)).collect(), extensions }
    }

    /// `None` for a request that no page sent.
    pub fn check(&self, headers: &HeaderMap) -> Result<Option<AllowedOrigin>, Problem> {
        let mut origins = headers.get_all(ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (Some(origin), None) => {
                if origin.to_str().is_ok_and(|text| self.allows(text)) {
                    Ok(Some(AllowedOrigin(origin.clone())))
                } else {
                    Err(refused(origin))
                }
            }
            (Some(_), Some(_)) => {
                Err(Problem::new(Kind::Forbidden, "the request has more than one `origin`; send one"))
            }
            // An old form post or an image tag of a foreign page carries no origin, but says where it comes from.
            (None, _) if headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site") => Err(Problem::new(
                Kind::Forbidden,
                "a page of another site sent this without an `origin`; open the address directly instead",
            )),
            (None, _) => Ok(None),
        }
    }

    fn allows(&self, origin: &str) -> bool {
        let Some((scheme, host)) = origin.split_once("://") else { return false };
        let Some((name, _)) = split_port(host) else { return false };
        let web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
        (web && is_loopback(name))
            || (self.extensions == Extensions::Any && is_extension(scheme, host))
            || self.listed.contains(&normal(origin))
    }
}

impl AllowedOrigin {
    /// Lets the page read the answer.
    pub fn show(&self, headers: &mut HeaderMap) {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, self.0.clone());
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }

    /// The answer to a browser that asks before it sends; `None` if this is no such question.
    pub fn preflight(&self, method: &Method, asked: &HeaderMap) -> Option<Response> {
        if method != Method::OPTIONS || !asked.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
            return None;
        }
        let mut response = Response::default();
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        if let Some(wanted) = asked.get(ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
        }
        if asked.contains_key(ASKS_PRIVATE_NETWORK) {
            headers.insert(ALLOWS_PRIVATE_NETWORK, HeaderValue::from_static("true"));
        }
        Some(response)
    }
}

fn refused(origin: &HeaderValue) -> Problem {
    let shown = origin.as_bytes().escape_ascii();
    let message = if origin == "null" {
        "origin `null` is not allowed; serve the page from `http://localhost` instead of a file".to_owned()
    } else {
        format!("origin `{shown}` is not allowed; to allow it run `gembridge origins allow {shown}`")
    };
    Problem::new(Kind::Forbidden, message)
}

fn is_extension(scheme: &str, id: &str) -> bool {
    let known = ["chrome-extension", "moz-extension", "safari-web-extension"];
    known.iter().any(|known| scheme.eq_ignore_ascii_case(known))
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Lower case, without the port that the scheme implies.
fn normal(origin: &str) -> String {
    let origin = origin.trim_end_matches('/').to_ascii_lowercase();
    let implied = match origin.split_once("://") {
        Some(("http", _)) => ":80",
        Some(("https", _)) => ":443",
        _ => return origin,
    };
    origin.strip_suffix(implied).map_or_else(|| origin.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EXTENSION: &str = "chrome-extension://abcdefghijklmnopabcdefghijklmnop";

    fn ours(extensions: Extensions) -> Origins {
        Origins::new(["https://app.example".to_owned(), EXTENSION.to_owned()], extensions)
    }

    fn with(name: &'static str, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_str(value).unwrap());
        headers
    }

    #[test]
    fn s3_loopback_and_listed_origins_pass_and_look_alikes_do_not() {
        for (origin, passes) in [
            ("http://localhost", true),
            ("https://localhost:3000", true),
            ("http://127.0.0.1:8080", true),
            ("http://[::1]:1", true),
            ("https://app.example", true),
            ("HTTPS://App.example:443", true),
            ("http://app.example", false),
            ("https://app.example:8443", false),
            ("https://app.example.evil", false),
            ("https://sub.app.example", false),
            ("null", false),
            ("", false),
            ("localhost", false),
            ("ftp://localhost", false),
            ("http://localhost.evil.com", false),
            ("http://127.0.0.1.evil", false),
            ("http://evil.com#localhost", false),
            ("http://localhost@evil.com", false),
            ("http://user@localhost", false),
            ("http://localhost:80:80", false),
            ("file://", false),
        ] {
            assert_eq!(ours(Extensions::Listed).check(&with("origin", origin)).is_ok(), passes, "{origin}");
        }
    }

    #[test]
    fn s3b_an_extension_passes_by_its_full_id_or_by_the_explicit_wildcard() {
        let other = "chrome-extension://ponmlkjihgfedcbaponmlkjihgfedcba";
        for (origin, listed, any) in [
            (EXTENSION, true, true),
            (other, false, true),
            ("moz-extension://0a1b2c3d-0000-4000-8000-000000000000", false, true),
            ("chrome-extension://abc", false, true),
            ("chrome-extension://a.evil.com", false, false),
            ("evil-extension://abc", false, false),
        ] {
            assert_eq!(ours(Extensions::Listed).check(&with("origin", origin)).is_ok(), listed, "{origin}");
            assert_eq!(ours(Extensions::Any).check(&with("origin", origin)).is_ok(), any, "{origin}");
        }
        let problem = Origins::default().check(&with("origin", other)).unwrap_err();
        assert!(problem.message.contains(&format!("gembridge origins allow {other}")), "{problem}");
    }

    #[test]
    fn s3_a_cross_site_request_needs_a_listed_origin() {
        assert!(ours(Extensions::Listed).check(&with("sec-fetch-site", "cross-site")).is_err());
        assert!(ours(Extensions::Listed).check(&with("sec-fetch-site", "same-origin")).is_ok());
        let mut both = with("sec-fetch-site", "cross-site");
        both.insert(ORIGIN, HeaderValue::from_static("https://app.example"));
        assert!(ours(Extensions::Listed).check(&both).is_ok());
    }

    #[test]
    fn a_page_may_read_every_header_that_our_code_names() {
        let exposed = EXPOSED;
        let exposed: Vec<_> = exposed.to_str().unwrap().split(", ").collect();
        for source in
            [include_str!("../guard.rs"), include_str!("../identity.rs"), include_str!("../dialect/caller.rs")]
        {
            let named = source.split("HeaderName::from_static(\"").skip(1).map(|rest| rest.split('"').next().unwrap());
            let named: Vec<_> = named.collect();
            assert!(!named.is_empty(), "the names stand elsewhere now");
            for name in named {
                assert!(exposed.contains(&name), "`{name}` cannot be read by a page");
            }
        }
    }

    proptest! {
        #[test]
        fn s31_no_origin_panics_and_none_but_loopback_passes(origin in "(http|https|x)?(://)?[\\[\\]:@.a-z0-9%/#-]{0,24}") {
            if Origins::default().allows(&origin) {
                let host = origin.split_once("://").map_or("", |(_, host)| host);
                let ours = ["localhost", "127.0.0.1", "[::1]"].iter().any(|name| {
                    host.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
                });
                prop_assert!(ours);
            }
        }
    }
}
