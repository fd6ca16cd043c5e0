//! An OpenAI-compatible API on loopback whose answers the prompt decides, so that agents which call one run offline.
//!
//! Serves `POST …/chat/completions` as a stream. A user text that holds `SCRIPT:<json>:END` is obeyed, any other is echoed
//! as `You said: ` and the text. The script is `{"calls": [[STEP, …], …]}`, one list for each call of the model, chosen by
//! what the assistant has said since the prompt; a step is `{"text": T}` or `{"call": {"name": N, "args": {…}}}`, and the
//! calls of one list are made together.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// The running API. Dropping it closes the port and every connection.
pub struct FakeOpenAi {
    address: SocketAddr,
    asked: Arc<Asked>,
    _serving: JoinSet<()>,
}

#[derive(Default)]
struct Asked(Mutex<Vec<Value>>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    calls: Vec<Vec<Step>>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    Text(String),
    Call { name: String, args: Value },
}

impl FakeOpenAi {
    /// Listens on a free port of 127.0.0.1, served by the runtime this is called in.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let asked = Arc::<Asked>::default();
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Arc::clone(&asked)));
        Ok(Self { address, asked, _serving: serving })
    }

    /// What clients take for the base of its addresses.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The body of every request so far.
    pub fn requests(&self) -> Vec<Value> {
        self.asked.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn serve(listener: TcpListener, asked: Arc<Asked>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let asked = Arc::clone(&asked);
                connections.spawn(async move {
                    let service = service_fn(|request| answer(request, &asked));
                    // An error here is a client that went away.
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn answer(request: Request<Incoming>, asked: &Asked) -> Result<Response<Full<Bytes>>, Infallible> {
    let is_completion = request.uri().path().ends_with("/chat/completions");
    let body = match request.into_body().collect().await {
        Ok(body) => serde_json::from_slice::<Value>(&body.to_bytes()).ok(),
        Err(_) => None,
    };
    let Some(body) = body.filter(|_| is_completion) else { return Ok(refused("there is nothing here")) };
    asked.0.lock().unwrap_or_else(PoisonError::into_inner).push(body.clone());
    Ok(match steps(&body) {
        Ok(steps) => streamed(&steps),
        Err(sentence) => refused(&sentence),
    })
}

fn steps(request: &Value) -> Result<Vec<Step>, String> {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(position) = messages.iter().rposition(|message| message["role"] == "user") else {
        return Err("nobody has said anything".to_owned());
    };
    let text = text_of(&messages[position]);
    let Some(json) = text.split_once("SCRIPT:").and_then(|(_, rest)| rest.split_once(":END")).map(|(json, _)| json)
    else {
        return Ok(vec![Step::Text(format!("You said: {text}"))]);
    };
    let script: Script = serde_json::from_str(json).map_err(|error| format!("the script cannot be read: {error}"))?;
    let call = messages[position..].iter().filter(|message| message["role"] == "assistant").count();
    Ok(script.calls.into_iter().nth(call).unwrap_or_else(|| vec![Step::Text("(the script has ended)".to_owned())]))
}

/// The text of a message, whole or in parts.
fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        parts => {
            let parts = parts.as_array().map(Vec::as_slice).unwrap_or_default();
            parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
    }
}

fn streamed(steps: &[Step]) -> Response<Full<Bytes>> {
    let mut events = String::new();
    let mut called = 0;
    for step in steps {
        let delta = match step {
            Step::Text(text) => json!({"role": "assistant", "content": text}),
            Step::Call { name, args } => {
                called += 1;
                let function = json!({"name": name, "arguments": args.to_string()});
                let id = format!("model-call-{called}");
                json!({"tool_calls": [{"index": called - 1, "id": id, "type": "function", "function": function}]})
            }
        };
        events.push_str(&event(&delta, &Value::Null));
    }
    events.push_str(&event(&json!({}), &json!(if called > 0 { "tool_calls" } else { "stop" })));
    events.push_str("data: [DONE]\n\n");
    respond(StatusCode::OK, "text/event-stream", events)
}

fn event(delta: &Value, finish: &Value) -> String {
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    let chunk = json!({"id": "fake", "object": "chat.completion.chunk", "created": 1, "model": "fake",
        "choices": [choice], "usage": usage});
    format!("data: {chunk}\n\n")
}

fn refused(sentence: &str) -> Response<Full<Bytes>> {
    let error = json!({"error": {"message": sentence, "type": "invalid_request_error"}});
    respond(StatusCode::BAD_REQUEST, "application/json", error.to_string())
}

fn respond(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_of_the_last_prompt_is_followed_call_by_call() {
        let user = json!({"role": "user", "content": r#"SCRIPT:{"calls":[[{"text":"one"}],[{"call":{"name":"f","args":{}}}]]}:END"#});
        let assistant = json!({"role": "assistant", "content": ""});
        let at = |messages: Value| steps(&json!({"messages": messages})).map(|steps| steps.len());
        assert!(matches!(&steps(&json!({"messages": [user]})).unwrap()[..], [Step::Text(text)] if text == "one"));
        assert!(
            matches!(&steps(&json!({"messages": [user, assistant]})).unwrap()[..], [Step::Call { name, .. }] if name == "f")
        );
        assert_eq!(at(json!([user, assistant, assistant])), Ok(1));
        assert!(at(json!([])).is_err());
    }
}
