//! Which requests are let in, and which endpoint their token opens.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

use crate::endpoint::ToolEndpoint;

pub type Body = BoxBody<Bytes, std::convert::Infallible>;

/// What an agent shows to be let in. Never printed.
pub struct Token(String);

impl Token {
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0_u8; 32];
        getrandom::fill(&mut bytes)?;
        let digits = bytes.iter().fold(String::with_capacity(64), |mut digits, byte| {
            write!(digits, "{byte:02x}").expect("writing to a String cannot fail");
            digits
        });
        Ok(Self(digits))
    }

    pub fn as_header(&self) -> String {
        format!("Bearer {}", self.0)
    }

    fn digest(&self) -> Digest {
        Digest::of(self.0.as_bytes())
    }
}

/// All that is kept of a token.
#[derive(Clone, Copy, Eq)]
struct Digest([u8; 32]);

impl Digest {
    fn of(secret: &[u8]) -> Self {
        Self(Sha256::digest(secret).into())
    }
}

impl PartialEq for Digest {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Hash for Digest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// The open endpoints, by the token that opens each.
#[derive(Default)]
pub struct ToolAuth {
    endpoints: Mutex<HashMap<Digest, Arc<ToolEndpoint>>>,
}

impl ToolAuth {
    pub fn add(&self, token: &Token, endpoint: Arc<ToolEndpoint>) {
        self.lock().insert(token.digest(), endpoint);
    }

    pub fn remove(&self, token: &Token) -> Option<Arc<ToolEndpoint>> {
        self.lock().remove(&token.digest())
    }

    /// Withdraws every token.
    pub fn clear(&self) -> Vec<Arc<ToolEndpoint>> {
        self.lock().drain().map(|(_, endpoint)| endpoint).collect()
    }

    pub fn endpoints(&self) -> Vec<Arc<ToolEndpoint>> {
        self.lock().values().cloned().collect()
    }

    /// Answers one request: the address that it was sent to, the page that it comes from, the path, the token.
    pub async fn answer(&self, mut request: Request<Incoming>) -> Response<Body> {
        if let Err(refusal) = admit(&request) {
            return refuse(refusal);
        }
        let Some(endpoint) = bearer(request.headers()).and_then(|token| self.lock().get(&Digest::of(token)).cloned())
        else {
            return refuse(Refusal::NoToken);
        };
        // Nothing behind this check needs the token, and what is not there is not logged.
        request.headers_mut().remove(AUTHORIZATION);
        endpoint.serve(request).await
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Digest, Arc<ToolEndpoint>>> {
        self.endpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    Host,
    Origin,
    Path,
    NoToken,
}

fn admit<B>(request: &Request<B>) -> Result<(), Refusal> {
    if !is_for_this_machine(request.uri(), request.headers()) {
        return Err(Refusal::Host);
    }
    if !request.headers().get_all(ORIGIN).iter().all(is_local_page) {
        return Err(Refusal::Origin);
    }
    if request.uri().path() != "/mcp" {
        return Err(Refusal::Path);
    }
    Ok(())
}

fn is_for_this_machine(uri: &Uri, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    uri.authority().is_none() && is_local(host.as_bytes())
}

fn is_local_page(origin: &HeaderValue) -> bool {
    let origin = origin.as_bytes();
    origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://")).is_some_and(is_local)
}

fn is_local(authority: &[u8]) -> bool {
    let Ok(authority) = Authority::try_from(authority) else { return false };
    let (host, rest) = (authority.host(), authority.as_str().strip_prefix(authority.host()));
    let port_is_sound = rest.is_some_and(|rest| rest.is_empty() || authority.port_u16().is_some());
    port_is_sound && matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(token)
}

fn refuse(refusal: Refusal) -> Response<Body> {
    let (status, message) = match refusal {
        Refusal::Host => (StatusCode::FORBIDDEN, "this address is for programs of this machine only"),
        Refusal::Origin => (StatusCode::FORBIDDEN, "pages of other sites may not come here"),
        Refusal::Path => (StatusCode::NOT_FOUND, "there is nothing but `/mcp` here"),
        Refusal::NoToken => (StatusCode::UNAUTHORIZED, "the token is missing or does not open anything (any more)"),
    };
    let mut response = said(status, message);
    if refusal == Refusal::NoToken {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// An answer that is one sentence.
pub fn said(status: StatusCode, message: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from_static(message.as_bytes())).boxed());
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(headers: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::builder().uri("/mcp");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap()
    }

    #[test]
    fn only_this_machine_under_its_own_name_comes_in() {
        for host in ["127.0.0.1", "127.0.0.1:9", "localhost:80", "[::1]:7"] {
            assert_eq!(admit(&request(&[("host", host)])), Ok(()), "{host}");
        }
        for host in ["", "evil.com", "127.0.0.1.evil.com", "localhost@evil.com", "10.0.0.1", "127.0.0.1:x", "[::2]"] {
            assert_eq!(admit(&request(&[("host", host)])), Err(Refusal::Host), "{host}");
        }
        assert_eq!(admit(&request(&[])), Err(Refusal::Host));
        assert_eq!(admit(&request(&[("host", "localhost"), ("host", "localhost")])), Err(Refusal::Host));
        let absolute = Request::builder().uri("http://evil.com/mcp").header("host", "localhost").body(()).unwrap();
        assert_eq!(admit(&absolute), Err(Refusal::Host));
    }

    #[test]
    fn pages_of_other_sites_do_not_come_in() {
        for origin in ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:1"] {
            assert_eq!(admit(&request(&[("host", "localhost"), ("origin", origin)])), Ok(()), "{origin}");
        }
        for origin in ["null", "http://localhost.evil.com", "https://evil.com", "file://localhost", "localhost", ""] {
            let asked = admit(&request(&[("host", "localhost"), ("origin", origin)]));
            assert_eq!(asked, Err(Refusal::Origin), "{origin}");
        }
    }

    #[test]
    fn one_token_opens_one_place() {
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert_eq!(one.0.len(), 64);
        assert!(one.digest() != other.digest() && one.digest() == one.digest());
        let shown = one.as_header();
        let headers = request(&[("authorization", &shown)]).headers().clone();
        assert_eq!(bearer(&headers), Some(one.0.as_bytes()));
        for shown in [vec!["Basic abc"], vec!["Bearer"], vec!["Bearer a", "Bearer a"], vec![]] {
            let headers: Vec<_> = shown.iter().map(|value| ("authorization", *value)).collect();
            assert_eq!(bearer(request(&headers).headers()), None, "{shown:?}");
        }
    }
}
