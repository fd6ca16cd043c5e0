//! What the gateway says of itself to other agents: a card that both versions read, one for each alone, and one with more
//! for those who have a key.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, Uri, header};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::A2a;
use super::wire::Version;

/// The extension by which a client offers tools of its own.
const TOOLS: &str = "urn:gembridge:a2a:client-tools:1";
/// The extension by which status updates say what they are about.
const CODER: &str = "urn:gembridge:a2a:coder-agent:1";

const INPUT: [&str; 6] = ["text/plain", "application/json", "image/png", "image/jpeg", "image/webp", "application/pdf"];
const OUTPUT: [&str; 2] = ["text/plain", "application/json"];

/// Where the gateway is reached, as the client that asks wrote it.
pub struct Base(String);

impl Base {
    /// The guard has checked the name.
    pub fn of(app: &A2a, headers: &HeaderMap, uri: &Uri) -> Self {
        let host = uri.authority().map(ToString::to_string);
        let host = host.or_else(|| Some(headers.get(header::HOST)?.to_str().ok()?.to_owned()));
        Self(format!("{}://{}", app.parts.config.scheme, host.unwrap_or_else(|| "localhost".to_owned())))
    }
}

/// The card for clients of both versions.
#[utoipa::path(
    get, path = "/.well-known/agent-card.json", tag = "a2a", operation_id = "getAgentCard", security(()),
    responses((status = 200, description = "The agent card, for clients of A2A 0.3 and 1.0"))
)]
pub(super) async fn both(State(app): State<Arc<A2a>>, request: Request) -> Response<Body> {
    let base = Base::of(&app, request.headers(), request.uri());
    let mut card = v10(&app, &base);
    let older = v03(&app, &base);
    for field in ["url", "preferredTransport", "protocolVersion", "additionalInterfaces", "security"] {
        card[field] = older[field].clone();
    }
    card["supportsAuthenticatedExtendedCard"] = json!(true);
    // Clients of both versions find the schemes in the form of theirs.
    for (name, scheme) in older["securitySchemes"].as_object().into_iter().flatten() {
        for (field, value) in scheme.as_object().into_iter().flatten() {
            card["securitySchemes"][name][field] = value.clone();
        }
    }
    served(&app, &card, request.headers())
}

/// The card in the words of 0.3 alone.
#[utoipa::path(
    get, path = "/a2a/v0.3/.well-known/agent-card.json", tag = "a2a", operation_id = "getAgentCardOf03", security(()),
    responses((status = 200, description = "The agent card of A2A 0.3"))
)]
pub(super) async fn of_v03(State(app): State<Arc<A2a>>, request: Request) -> Response<Body> {
    let base = Base::of(&app, request.headers(), request.uri());
    served(&app, &v03(&app, &base), request.headers())
}

/// The card in the words of 1.0 alone.
#[utoipa::path(
    get, path = "/a2a/v1/.well-known/agent-card.json", tag = "a2a", operation_id = "getAgentCardOf10", security(()),
    responses((status = 200, description = "The agent card of A2A 1.0"))
)]
pub(super) async fn of_v10(State(app): State<Arc<A2a>>, request: Request) -> Response<Body> {
    let base = Base::of(&app, request.headers(), request.uri());
    served(&app, &v10(&app, &base), request.headers())
}

/// The card for those who have a key: every agent is a skill.
pub fn extended(app: &A2a, version: Version, base: &Base) -> Value {
    let mut card = match version {
        Version::V03 => v03(app, base),
        Version::V10 => v10(app, base),
    };
    let agents = app.parts.agents.iter().map(|agent| {
        json!({
            "id": format!("agent-{}", agent.name),
            "name": agent.title,
            "description": format!("Begin a task with `metadata._model` `{}` to have {} do it.", agent.name, agent.title),
            "tags": ["agent"],
        })
    });
    if let Some(skills) = card["skills"].as_array_mut() {
        skills.extend(agents);
    }
    card
}

fn v03(app: &A2a, base: &Base) -> Value {
    let url = format!("{}/a2a", base.0);
    let mut card = common(app);
    card["protocolVersion"] = json!("0.3.0");
    card["url"] = json!(url);
    card["preferredTransport"] = json!("JSONRPC");
    card["additionalInterfaces"] = json!([{ "url": url, "transport": "JSONRPC" }]);
    card["supportsAuthenticatedExtendedCard"] = json!(true);
    card["capabilities"]["stateTransitionHistory"] = json!(false);
    card["securitySchemes"] = json!({
        "bearer": { "type": "http", "scheme": "bearer" },
        "apiKey": { "type": "apiKey", "in": "header", "name": "x-api-key" },
    });
    card["security"] = json!([{ "bearer": [] }, { "apiKey": [] }]);
    card
}

fn v10(app: &A2a, base: &Base) -> Value {
    let mut card = common(app);
    let at = |path: &str, binding: &str, version: &str| json!({ "url": format!("{}{path}", base.0), "protocolBinding": binding, "protocolVersion": version });
    card["supportedInterfaces"] =
        json!([at("/a2a", "JSONRPC", "1.0"), at("/a2a/v1", "HTTP+JSON", "1.0"), at("/a2a", "JSONRPC", "0.3")]);
    card["capabilities"]["extendedAgentCard"] = json!(true);
    card["securitySchemes"] = json!({
        "bearer": { "httpAuthSecurityScheme": { "scheme": "Bearer" } },
        "apiKey": { "apiKeySecurityScheme": { "location": "header", "name": "x-api-key" } },
    });
    card["securityRequirements"] =
        json!([{ "schemes": { "bearer": { "list": [] } } }, { "schemes": { "apiKey": { "list": [] } } }]);
    card
}

fn common(app: &A2a) -> Value {
    json!({
        "name": "gembridge",
        "description": "Coding agents behind one address: ask, go on by task or context, run tools of your own.",
        "version": app.parts.version,
        "capabilities": {
            "streaming": true,
            "pushNotifications": false,
            "extensions": [
                {
                    "uri": TOOLS,
                    "description": "Tools that the client runs: `metadata.tools` of a message offers them, and a data \
                                    part with the outcome `inject_result` gives back what one came to.",
                    "required": false,
                },
                {
                    "uri": CODER,
                    "description": "`metadata.coderAgent.kind` says what a status update is about.",
                    "required": false,
                },
            ],
        },
        "defaultInputModes": INPUT,
        "defaultOutputModes": OUTPUT,
        "skills": [{
            "id": "chat",
            "name": "Chat",
            "description": "Answers questions and does work as the agent behind it can.",
            "tags": ["chat", "coding"],
            "examples": ["Explain what this function does."],
        }],
    })
}

/// A card that may be kept for a while, and asked for again by its tag.
fn served(app: &A2a, card: &Value, headers: &HeaderMap) -> Response<Body> {
    let body = card.to_string();
    let digest = Sha256::digest(body.as_bytes());
    let tag = digest[..8].iter().fold(String::from("\""), |tag, byte| tag + &format!("{byte:02x}")) + "\"";
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut response = Response::new(if is_known { Body::empty() } else { Body::from(body) });
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let put = response.headers_mut();
    put.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    put.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        put.insert(header::ETAG, tag);
    }
    if let Ok(since) = HeaderValue::from_str(&app.started) {
        put.insert(header::LAST_MODIFIED, since);
    }
    response
}
