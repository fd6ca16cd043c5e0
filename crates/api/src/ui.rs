//! The chat page at `/`: its shell and its parts, from the binary alone. What it shows needs a key; the page itself does
//! not, since a browser cannot send one before it has drawn the field for it. Programs that want no page get the line by which
//! they know that something is there.

use axum::Router;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::path::PathName;
use crate::static_response::{FRESH, static_response};

/// Name and bytes of every file; with `.gz` behind the name the same file compressed.
type Files = &'static [(&'static str, &'static [u8])];

const FILES: Files = include!(concat!(env!("OUT_DIR"), "/page_files.rs"));

/// What stands in for a page that was not built.
const ABSENT: &str = include_str!("ui/absent.html");

/// The routes of the page. They need no key.
pub fn shell() -> Router {
    Router::new().route("/", get(|headers: HeaderMap| async move { page(FILES, &headers) })).route(
        "/assets/{*name}",
        get(|PathName(name): PathName, headers: HeaderMap| async move { part(FILES, &name, &headers) }),
    )
}

/// The description of the page, for `/openapi.json`; its parts are nobody's interface.
#[derive(utoipa::OpenApi)]
#[openapi(paths(described::page))]
pub struct Description;

#[expect(dead_code, reason = "read by the macro alone")]
mod described {
    /// The chat page. It works without a network.
    #[utoipa::path(
        get, path = "/", tag = "page", security(()),
        responses((status = 200, description = "The page.", content_type = "text/html"))
    )]
    pub(super) fn page() {}
}

/// What programs look for at this address that talk to Ollama. Browsers say that they want a page.
const RUNNING: &str = "Ollama is running";

fn page(files: Files, headers: &HeaderMap) -> Response {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    if !accepted.into_iter().any(|value| value.contains("text/html")) {
        return static_response("text/plain; charset=utf-8", FRESH, RUNNING.as_bytes());
    }
    match find(files, "index.html") {
        // The shell names its parts by their content, so it alone must be asked for each time.
        Some(_) => file(files, "index.html", FRESH, headers),
        None => static_response("text/html; charset=utf-8", FRESH, ABSENT.as_bytes()),
    }
}

fn part(files: Files, name: &str, headers: &HeaderMap) -> Response {
    let name = format!("assets/{name}");
    if find(files, &name).is_none() || name.ends_with(COMPRESSED) {
        return StatusCode::NOT_FOUND.into_response();
    }
    file(files, &name, "public, max-age=31536000, immutable", headers)
}

const COMPRESSED: &str = ".gz";

fn file(files: Files, name: &str, caching: &'static str, headers: &HeaderMap) -> Response {
    let compressed = find(files, &format!("{name}{COMPRESSED}")).filter(|_| takes_gzip(headers));
    let bytes = compressed.or_else(|| find(files, name)).unwrap_or_default();
    let mut response = static_response(content_type(name), caching, bytes);
    let headers = response.headers_mut();
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if compressed.is_some() {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

fn find(files: Files, name: &str) -> Option<&'static [u8]> {
    files.iter().find(|(known, _)| *known == name).map(|(_, bytes)| *bytes)
}

/// Whether the client lists gzip and does not say that it must not be used.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let offers = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    offers.flat_map(|offer| offer.split(',')).any(|offer| {
        let (coding, weight) = offer.split_once(';').unwrap_or((offer, ""));
        let refused = weight.trim().strip_prefix("q=").is_some_and(|weight| weight.parse() == Ok(0.0_f32));
        coding.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::static_response::POLICY;

    const BUILT: Files = &[
        ("index.html", b"<html>"),
        ("assets/a.js", b"let a"),
        ("assets/a.js.gz", b"\x1f\x8b"),
        ("assets/b.css", b"b{}"),
    ];

    fn accepting(encoding: &'static str) -> HeaderMap {
        [(header::ACCEPT_ENCODING, HeaderValue::from_static(encoding))].into_iter().collect()
    }

    fn encoding(response: &Response) -> Option<&str> {
        response.headers().get(header::CONTENT_ENCODING).map(|value| value.to_str().unwrap())
    }

    #[test]
    fn a_part_goes_out_compressed_only_to_those_who_take_it() {
        for (accepted, sent) in [
            ("gzip, br", Some("gzip")),
            ("br;q=1, GZIP;q=0.5", Some("gzip")),
            ("gzip;q=0", None),
            ("identity", None),
            ("", None),
        ] {
            assert_eq!(encoding(&part(BUILT, "a.js", &accepting(accepted))), sent, "{accepted}");
        }
        assert_eq!(encoding(&part(BUILT, "b.css", &accepting("gzip"))), None);
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        for name in ["", "c.js", "a.js.gz", "../index.html", "../../Cargo.toml"] {
            assert_eq!(part(BUILT, name, &HeaderMap::new()).status(), StatusCode::NOT_FOUND, "{name}");
        }
    }

    #[test]
    fn parts_are_kept_and_the_shell_is_asked_for_again() {
        let caching = |response: Response| response.headers()[header::CACHE_CONTROL].to_str().unwrap().to_owned();
        assert!(caching(part(BUILT, "a.js", &HeaderMap::new())).contains("immutable"));
        assert_eq!(caching(page(BUILT, &browser())), "no-cache");
    }

    fn browser() -> HeaderMap {
        [(header::ACCEPT, HeaderValue::from_static("text/html,*/*;q=0.8"))].into_iter().collect()
    }

    #[test]
    fn browsers_get_the_page_and_programs_a_line() {
        let kind =
            |headers: &HeaderMap| page(BUILT, headers).headers()[header::CONTENT_TYPE].to_str().unwrap().to_owned();
        assert!(kind(&browser()).starts_with("text/html"));
        for accepted in ["*/*", "application/json"] {
            let headers = [(header::ACCEPT, HeaderValue::from_static(accepted))].into_iter().collect();
            assert!(kind(&headers).starts_with("text/plain"), "{accepted}");
        }
        assert!(kind(&HeaderMap::new()).starts_with("text/plain"));
    }

    #[test]
    fn a_page_that_was_not_built_says_how_to_build_it() {
        let response = page(&[], &browser());
        assert_eq!(response.status(), StatusCode::OK);
        assert!(ABSENT.contains("make run"));
        assert_eq!(response.headers()[header::CONTENT_SECURITY_POLICY], POLICY);
    }
}
