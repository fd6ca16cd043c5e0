//! `/openapi.json`, made from the code, and `/docs`, a page that draws it without anything from elsewhere.

mod guarded;

use axum::Router;
use axum::http::header;
use axum::routing::get;
use utoipa::OpenApi;
use utoipa::openapi::RefOr;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};

use crate::static_response::{FRESH, static_response};

const PAGE: &str = include_str!("docs/page.html");
const STYLE: &str = include_str!("docs/page.css");
const SCRIPT: &str = include_str!("docs/page.js");

/// The page without its content: open, since a browser cannot send a key before it has drawn one.
pub fn shell() -> Router {
    Router::new()
        .route("/docs", get(|| async { static_response("text/html; charset=utf-8", FRESH, PAGE.as_bytes()) }))
        .route("/docs/page.css", get(|| async { static_response("text/css; charset=utf-8", FRESH, STYLE.as_bytes()) }))
        .route(
            "/docs/page.js",
            get(|| async { static_response("text/javascript; charset=utf-8", FRESH, SCRIPT.as_bytes()) }),
        )
}

/// The description itself. Belongs behind a key.
pub fn routes() -> Router {
    let json = description().to_json().unwrap_or_else(|failure| {
        // Made of our own types, which always serialise; a test reads it back.
        tracing::error!(%failure, "the description of the API could not be written");
        String::new()
    });
    Router::new().route("/openapi.json", get(|| async { ([(header::CONTENT_TYPE, "application/json")], json) }))
}

/// Everything that the server serves, by the frontends that serve it.
pub fn description() -> utoipa::openapi::OpenApi {
    let mut whole = Own::openapi();
    whole.merge(crate::openai::Description::openapi());
    whole.merge(crate::responses::Description::openapi());
    whole.merge(crate::messages::Description::openapi());
    whole.merge(crate::ollama::Description::openapi());
    whole.merge(crate::acp::Description::openapi());
    whole.merge(crate::a2a::Description::openapi());
    whole.merge(crate::admin::operator::Description::openapi());
    whole.merge(crate::admin::agent_sessions::Description::openapi());
    whole.merge(crate::admin::workspace_files::Description::openapi());
    whole.merge(crate::ui::Description::openapi());
    let schemes = &mut whole.components.get_or_insert_default().security_schemes;
    let bearer = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
    let named = |header: &str| RefOr::T(SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new(header))));
    schemes.insert("key".to_owned(), RefOr::T(bearer));
    schemes.insert("api_key".to_owned(), named("x-api-key"));
    schemes.insert("goog_api_key".to_owned(), named("x-goog-api-key"));
    guarded::complete(&mut whole);
    whole
}

/// What belongs to no frontend.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "gembridge",
        description = "Coding agents behind an OpenAI-compatible API. Every route needs a key unless it says otherwise: \
                       `Authorization: Bearer <key>`, `x-api-key: <key>` or `x-goog-api-key: <key>`."
    ),
    paths(health, healthz, readyz, metrics, openapi, docs, docs_style, docs_script),
    security(("key" = []), ("api_key" = []), ("goog_api_key" = []))
)]
struct Own;

/// Whether the gateway lives.
#[utoipa::path(get, path = "/health", tag = "operations", security(()), responses((status = 200, description = "It lives.")))]
#[expect(dead_code, reason = "read by the macro alone")]
fn health() {}

/// Whether the gateway lives.
#[utoipa::path(get, path = "/healthz", tag = "operations", security(()), responses((status = 200, description = "It lives.")))]
#[expect(dead_code, reason = "read by the macro alone")]
fn healthz() {}

/// Whether the gateway takes new work.
#[utoipa::path(
    get, path = "/readyz", tag = "operations", security(()),
    responses(
        (status = 200, description = "New requests are welcome."),
        (status = 503, description = "It is shutting down, or no agent can run."),
    )
)]
#[expect(dead_code, reason = "read by the macro alone")]
fn readyz() {}

/// What was counted, as Prometheus reads it.
#[utoipa::path(
    get, path = "/metrics", tag = "operations",
    responses((status = 200, description = "Counters, gauges and histograms.", content_type = "text/plain"))
)]
#[expect(dead_code, reason = "read by the macro alone")]
fn metrics() {}

/// This description.
#[utoipa::path(
    get, path = "/openapi.json", tag = "operations",
    responses((status = 200, description = "OpenAPI 3.1.", content_type = "application/json"))
)]
#[expect(dead_code, reason = "read by the macro alone")]
fn openapi() {}

/// A page that shows this description. It works without a network.
#[utoipa::path(
    get, path = "/docs", tag = "operations", security(()),
    responses((status = 200, description = "The page.", content_type = "text/html"))
)]
#[expect(dead_code, reason = "read by the macro alone")]
fn docs() {}

/// The looks of the page.
#[utoipa::path(
    get, path = "/docs/page.css", tag = "operations", security(()),
    responses((status = 200, description = "A style sheet.", content_type = "text/css"))
)]
#[expect(dead_code, reason = "read by the macro alone")]
fn docs_style() {}

/// The script of the page.
#[utoipa::path(
    get, path = "/docs/page.js", tag = "operations", security(()),
    responses((status = 200, description = "A script.", content_type = "text/javascript"))
)]
#[expect(dead_code, reason = "read by the macro alone")]
fn docs_script() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_names_every_frontend_and_says_what_is_open() {
        let json = serde_json::to_value(description()).unwrap();
        for path in [
            "/v1/chat/completions",
            "/chat/completions",
            "/v1/models",
            "/v1/responses",
            "/v1/messages",
            "/api/chat",
            "/metrics",
            "/openapi.json",
            "/docs",
        ] {
            assert!(json["paths"][path].is_object(), "{path} is missing");
        }
        let is_open = |path: &str| json["paths"][path]["get"]["security"][0] == serde_json::json!({});
        for path in ["/health", "/healthz", "/readyz", "/docs"] {
            assert!(is_open(path), "{path} is open and does not say so");
        }
        for path in ["/metrics", "/openapi.json", "/v1/models"] {
            assert!(!is_open(path), "{path} says that it is open");
        }
        assert_eq!(json["security"][0], serde_json::json!({ "key": [] }));
    }

    #[test]
    fn every_route_lists_what_may_be_said_in_its_place() {
        let json = serde_json::to_value(description()).unwrap();
        let resolved = |value: &serde_json::Value| match value["$ref"].as_str() {
            Some(place) => json.pointer(place.trim_start_matches('#')).cloned().unwrap_or_default(),
            None => value.clone(),
        };
        for (path, methods) in json["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                let mut expected = vec!["403"];
                if operation["security"].is_null() {
                    expected.extend(["400", "401", "429", "500", "503"]);
                }
                if operation["requestBody"].is_object() {
                    expected.extend(["413", "415"]);
                }
                if path.ends_with("/chat/completions") {
                    expected.extend(["404", "502", "504", "507"]);
                }
                for status in expected {
                    assert!(operation["responses"][status].is_object(), "{method} {path} can answer {status}");
                }
                for (status, response) in operation["responses"].as_object().unwrap() {
                    let response = resolved(response);
                    assert!(response["headers"]["x-request-id"].is_object(), "{method} {path} {status}");
                    if status.as_str() >= "400" {
                        let schema = resolved(&response["content"]["application/json"]["schema"]);
                        assert!(schema["properties"]["error"].is_object(), "{method} {path} {status}: {response}");
                    }
                }
            }
        }
    }

    #[test]
    fn both_addresses_of_chat_are_described_alike_with_every_header_that_a_page_may_read() {
        let json = serde_json::to_value(description()).unwrap();
        let [one, other] = ["/v1/chat/completions", "/chat/completions"].map(|path| &json["paths"][path]["post"]);
        for part in ["parameters", "requestBody", "responses"] {
            assert!(one[part] == other[part] && !one[part].is_null(), "{part} differ");
        }
        assert_ne!(one["operationId"], other["operationId"]);
        let headers = &one["responses"]["200"]["headers"];
        let exposed = crate::guard::origin::EXPOSED;
        let of_failures = ["retry-after", "x-should-retry"];
        for name in exposed.to_str().unwrap().split(", ").filter(|name| !of_failures.contains(name)) {
            assert!(headers[name].is_object(), "{name} is missing");
        }
    }

    #[test]
    fn s27_the_page_takes_nothing_from_elsewhere_and_puts_nothing_in_as_markup() {
        for (name, text) in [("html", PAGE), ("css", STYLE), ("js", SCRIPT)] {
            for stranger in ["http://", "https://", "//cdn", "@import", "url("] {
                assert!(!text.contains(stranger), "the {name} names `{stranger}`");
            }
        }
        for markup in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("] {
            assert!(!SCRIPT.contains(markup), "the script uses `{markup}`");
        }
        assert!(
            !PAGE.contains("<script>") && !PAGE.contains("style=") && !PAGE.contains("onload="),
            "nothing is inline"
        );
    }
}
