//! HTTP in front of the scripts: which path is which call, and what was asked so far.

use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{Method, Request, Response, body::Incoming, header, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

use super::{
    Recorded,
    body::PacedBody,
    reply::{self, Reply},
    script::{self, Attempts, Wanted},
};

/// Enough for any test; a benchmark must not fill the memory.
const KEPT_REQUESTS: usize = 2000;

pub struct State {
    log: Mutex<Log>,
    pub count: watch::Sender<usize>,
}

#[derive(Default)]
struct Log {
    requests: VecDeque<Raw>,
    attempts: HashMap<(String, usize), usize>,
}

struct Raw {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Bytes,
}

impl State {
    pub fn new() -> Self {
        Self { log: Mutex::default(), count: watch::Sender::new(0) }
    }

    pub fn requests(&self) -> Vec<Recorded> {
        let log = self.log();
        log.requests
            .iter()
            .map(|raw| Recorded {
                method: raw.method.clone(),
                path: raw.path.clone(),
                headers: raw.headers.clone(),
                body: serde_json::from_slice(&raw.body).unwrap_or(Value::Null),
                body_bytes: raw.body.len(),
            })
            .collect()
    }

    pub fn forget(&self) {
        self.log().requests.clear();
        self.count.send_replace(0);
    }

    fn record(&self, raw: Raw) {
        let mut log = self.log();
        log.requests.push_back(raw);
        if log.requests.len() > KEPT_REQUESTS {
            log.requests.pop_front();
        }
        drop(log);
        self.count.send_modify(|count| *count += 1);
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attempts for Log {
    fn next(&mut self, script: &str, call: usize) -> usize {
        let count = self.attempts.entry((script.to_owned(), call)).or_default();
        *count += 1;
        *count - 1
    }
}

/// Accepts until the task is dropped; the connections end with it.
pub async fn serve(listener: TcpListener, state: Arc<State>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(serve_connection(stream, state.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve_connection(stream: TcpStream, state: Arc<State>) {
    if let Err(error) = stream.set_nodelay(true) {
        eprintln!("fake-gemini-api: no `TCP_NODELAY`: {error}");
    }
    let service = service_fn(|request| answer(request, &state));
    // An error here is a client that went away, or a script that cut the connection.
    http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
}

async fn answer(request: Request<Incoming>, state: &State) -> Result<Response<PacedBody>, Infallible> {
    let (head, body) = request.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return Ok(respond(Reply::error(400, &format!("the body cannot be read: {error}")))),
    };
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    if path == "/__requests" {
        return Ok(respond(own_endpoint(&head.method, state)));
    }
    let headers = head
        .headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
    let raw =
        Raw { method: head.method.to_string(), path: path.clone(), headers: headers.collect(), body: body.clone() };
    state.record(raw);
    let reply = match (&head.method, head.uri.path().rsplit_once(':')) {
        (&Method::POST, Some((model, method))) => {
            let model = model.rsplit('/').next().unwrap_or_default();
            match serde_json::from_slice(&body) {
                Ok(request) => call(state, method, model, &request, body.len()),
                Err(error) => Reply::error(400, &format!("the body is no JSON: {error}")),
            }
        }
        _ => Reply::error(404, &format!("there is nothing at {path}")),
    };
    Ok(respond(reply))
}

fn call(state: &State, method: &str, model: &str, request: &Value, body_bytes: usize) -> Reply {
    if method == "countTokens" {
        return Reply::json(200, &json!({"totalTokens": body_bytes / 4}));
    }
    let config = &request["generationConfig"];
    let schema = config.get("responseJsonSchema").or_else(|| config.get("responseSchema"));
    if let (Some(schema), "generateContent") = (schema, method) {
        let example = reply::example_of(schema).to_string();
        return reply::whole(&[script::Step::Text(example)], model);
    }
    let steps = match script::wanted(request, &mut *state.log()) {
        Wanted::Steps(steps) => steps,
        Wanted::Echo(text) if text.ends_with(WEATHER) && declares(request, WEATHER_TOOL) => {
            let args = json!({"location": "San Francisco, CA"});
            vec![script::Step::Call(json!({"name": WEATHER_TOOL, "args": args}))]
        }
        Wanted::Echo(text) => vec![script::Step::Text("You said: ".into()), script::Step::Text(text)],
        Wanted::Broken(sentence) => return Reply::error(400, &sentence),
    };
    match method {
        "streamGenerateContent" => reply::stream(&steps, model),
        "generateContent" => reply::whole(&steps, model),
        _ => Reply::error(404, &format!("there is no method `{method}`")),
    }
}

/// The question of the Open Responses suite that a model answers with a call.
const WEATHER: &str = "What's the weather like in San Francisco?";
const WEATHER_TOOL: &str = "mcp_host-tools_get_weather";

fn declares(request: &Value, function: &str) -> bool {
    let declared =
        request["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["functionDeclarations"].as_array());
    declared.flatten().any(|declared| declared["name"] == function)
}

fn own_endpoint(method: &Method, state: &State) -> Reply {
    if method == Method::DELETE {
        state.forget();
        return Reply::json(200, &json!({}));
    }
    let requests: Vec<Value> = state.requests().iter().map(Recorded::to_json).collect();
    Reply::json(200, &json!(requests))
}

fn respond(reply: Reply) -> Response<PacedBody> {
    let mut response = Response::new(PacedBody::new(reply.pieces));
    *response.status_mut() =
        hyper::StatusCode::from_u16(reply.status).unwrap_or(hyper::StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(reply.content_type));
    response
}
