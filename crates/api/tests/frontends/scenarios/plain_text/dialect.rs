//! A dialect that exists for these tests alone: plain text in, plain text out. It shows how little a dialect is.
//!
//! A request has one line for each message: `user: …`, `image <type>: …`, `assistant: …`, `called <id> <tool>: …`, `result <id>: …`. The
//! header `x-tools` names tools, `x-json: 1` asks for a JSON object. The response has one line for each piece.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response};
use axum::routing::post;
use gembridge_api::problem::Problem;
use gembridge_core::error::Error;
use gembridge_core::exchange::{
    AtOnce, CallIds, CallRef, CallResult, Exchange, ExchangeError, Exchanges, Finish, FollowUp, OfferedTool, Piece,
    Request, ToolChoice, Tools,
};
use gembridge_core::model::{
    CallName, ClientTool, Content, Message, Part, Principal, ReturnOutcome, Role, ToolReturn, blocks_with_names,
};
use gembridge_core::session::Viewer;
use gembridge_core::tool_host::FormatSpec;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub async fn serve(exchanges: Arc<Exchanges>) -> (SocketAddr, JoinSet<()>) {
    let routes = Router::new().route("/plain", post(answer)).with_state(exchanges);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { axum::serve(listener, routes).await.expect("the server runs") });
    (address, tasks)
}

async fn answer(State(exchanges): State<Arc<Exchanges>>, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let started = decode(&exchanges, &headers, &body)
        .and_then(|request| exchanges.plan(request))
        .and_then(|plan| exchanges.start(plan, None, None));
    match started {
        Ok(mut exchange) => match exchange.next().await {
            Some((_, Piece::Failed(error))) => refusal(error),
            first => Response::new(Body::from_stream(lines(first, exchange))),
        },
        Err(error) => refusal(error),
    }
}

fn decode(exchanges: &Exchanges, headers: &HeaderMap, body: &Bytes) -> Result<Request, ExchangeError> {
    let text = std::str::from_utf8(body).map_err(|error| Error::Invalid(error.to_string()))?;
    let messages: Vec<Message> = text.lines().map(message).collect::<Result<_, _>>()?;
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let tool = |name: &str| ClientTool { name: name.into(), description: None, schema: None };
    let names = header("x-tools").split(',').filter(|name| !name.is_empty());
    let offered = names.map(|name| OfferedTool { tool: tool(name), strict: false }).collect();
    let principal = Principal::new("ann");
    Ok(Request {
        viewer: Viewer::Principal(principal.clone()),
        principal,
        resolved: exchanges.resolve("played", None, 1)?,
        session: None,
        follow_up: follow_up(text, &messages),
        history: messages.into(),
        tools: Tools { offered, choice: ToolChoice::Auto, call_ids: CallIds::Told, at_once: AtOnce::Many },
        output: (!header("x-json").is_empty()).then_some(FormatSpec { name: None, description: None, schema: None }),
        stop: Vec::new(),
        limit: None,
        answers: 1,
    })
}

fn message(line: &str) -> Result<Message, ExchangeError> {
    let (head, said) = line.split_once(": ").ok_or_else(|| Error::Invalid(format!("`{line}` has no speaker")))?;
    let words: Vec<&str> = head.split(' ').collect();
    match words.as_slice() {
        ["user"] => Ok(Message::text(Role::User, said)),
        ["image", mime] => {
            let image = Content::Image { mime: (*mime).into(), data: said.into(), uri: None };
            Ok(Message { role: Role::User, parts: vec![Part::Content(image)] })
        }
        ["assistant"] => Ok(Message::text(Role::Assistant, said)),
        ["called", _, tool] => {
            let call = CallName { tool: (*tool).into(), number: None };
            Ok(Message { role: Role::Assistant, parts: vec![Part::Call { call, arguments: said.into() }] })
        }
        ["result", _] => Ok(Message::text(Role::Tool, said)),
        _ => Err(Error::Invalid(format!("`{head}` is not a speaker")).into()),
    }
}

/// Results stand at the end, behind the calls that they are of.
fn follow_up(text: &str, messages: &[Message]) -> Option<FollowUp> {
    let last = messages.iter().rposition(|message| message.role == Role::Assistant)?;
    let (mut results, mut more) = (Vec::new(), Vec::new());
    for (line, message) in text.lines().zip(messages).skip(last + 1) {
        match line.strip_prefix("result ").and_then(|rest| rest.split_once(": ")) {
            Some((id, said)) => {
                let result = ToolReturn { outcome: ReturnOutcome::Done, content: vec![Content::text(said)] };
                results.push(CallResult { call: CallRef::Id(id.to_owned()), result });
            }
            None => more.push(Cow::Borrowed(message)),
        }
    }
    (!results.is_empty()).then(|| FollowUp { results, unanswered: Vec::new(), more: blocks_with_names(more) })
}

fn lines(
    first: Option<(usize, Piece)>,
    exchange: Exchange,
) -> impl futures_util::Stream<Item = Result<Bytes, std::convert::Infallible>> {
    let first = first.into_iter().filter_map(|(_, piece)| line(piece)).map(|line| Ok(Bytes::from(line)));
    let rest = futures_util::stream::unfold(exchange, |mut exchange| async {
        loop {
            let (_, piece) = exchange.next().await?;
            if let Some(line) = line(piece) {
                return Some((Ok(Bytes::from(line)), exchange));
            }
        }
    });
    futures_util::StreamExt::chain(futures_util::stream::iter(first.collect::<Vec<_>>()), rest)
}

fn line(piece: Piece) -> Option<String> {
    Some(match piece {
        Piece::Begun { .. } | Piece::Done(_) => return None,
        Piece::Text(text) => format!("text {}\n", text.to_str()),
        Piece::Thought(text) => format!("thought {}\n", text.to_str()),
        Piece::Refusal(text) => format!("refusal {}\n", text.to_str()),
        Piece::Call(call) => {
            format!("call {} {} {}\n", call.id, call.tool, String::from_utf8_lossy(&call.arguments.0))
        }
        Piece::Ended(Finish::Stop) => "end stop\n".to_owned(),
        Piece::Ended(Finish::Length) => "end length\n".to_owned(),
        Piece::Ended(Finish::ContentFilter) => "end content_filter\n".to_owned(),
        Piece::Ended(Finish::ToolCalls) => "end tool_calls\n".to_owned(),
        Piece::Failed(error) => format!("error {error}\n"),
    })
}

fn refusal(error: ExchangeError) -> Response<Body> {
    let message = error.to_string();
    let status = match error {
        ExchangeError::Core(error) => Problem::from(error).kind.status().as_u16(),
        ExchangeError::Invalid { .. } => 400,
        ExchangeError::UnknownModel(_) => 404,
        ExchangeError::Cancelled => 499,
        ExchangeError::NoToolCall(_) | ExchangeError::NoOutput(_) => 502,
    };
    Response::builder().status(status).body(Body::from(message)).expect("a response")
}
