//! The same over a WebSocket.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use gembridge_api::dialect::{DialectConfig, Dialects};
use gembridge_api::guard::rate::Rate;
use gembridge_api::guard::{Guard, GuardConfig};
use gembridge_api::identity::{Identity, Rank};
use gembridge_api::keys::{Key, KeyTable};
use gembridge_api::responses::{self, Responses};
use gembridge_api::routes;
use gembridge_api::server::{Drained, Server, ServerConfig, Stop};
use gembridge_core::model::Principal;
use gembridge_core::test_support::{ScriptedAgents, done, text};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::support::{asking, text_of};
use crate::scenarios::gateway::Gateway;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// The API behind the real guard, which charges messages to the memory of their sender.
struct Guarded {
    address: SocketAddr,
    _running: JoinSet<Drained>,
}

const KEY: &str = "gb-ann";

impl Guarded {
    fn new(agents: &Arc<ScriptedAgents>) -> Self {
        Self::of(agents, Rank::Admin, None)
    }

    fn of(agents: &Arc<ScriptedAgents>, rank: Rank, rate: Option<Rate>) -> Self {
        let gateway = Gateway::new(agents);
        let dialects = Dialects::new(gateway.exchanges, DialectConfig::default());
        let identity = Identity { principal: Principal::new("ann"), rank };
        let keys = Arc::new(KeyTable::new(vec![(Key::given(KEY).digest(), identity)]));
        let guard = Guard::new(GuardConfig { rate, ..GuardConfig::default() }, keys);
        let app = routes::app(&guard, [responses::frontend(Responses::new(dialects))]);
        let server = Server::bind(ServerConfig::new(vec![SocketAddr::from(([127, 0, 0, 1], 0))])).unwrap();
        let address = server.local_addrs().unwrap()[0];
        let mut running = JoinSet::new();
        running.spawn(server.serve(app, Stop::default()));
        Self { address, _running: running }
    }
}

async fn connect(server: &Guarded) -> Socket {
    let mut request = format!("ws://{}/v1/responses", server.address).into_client_request().expect("an address");
    request.headers_mut().insert("authorization", format!("Bearer {KEY}").parse().expect("a header"));
    connect_async(request).await.map(|(socket, _)| socket).expect("a socket")
}

#[tokio::test]
async fn a_guests_requests_are_counted_as_over_http() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a"), done()]]);
    let rate = Rate { requests: 3, window: Duration::from_mins(1) };
    let server = Guarded::of(&agents, Rank::User, Some(rate));
    // The request for the socket is the first.
    let mut socket = connect(&server).await;
    for _ in 0..2 {
        assert_eq!(text_of(&ask(&mut socket, asking("hi", json!({}))).await["response"]), "a");
    }
    let refused = ask(&mut socket, asking("hi", json!({}))).await;
    assert_eq!((&refused["type"], &refused["status"]), (&json!("error"), &json!(429)), "{refused}");
    assert_eq!(refused["error"]["code"], "rate_limit_exceeded");
}

async fn send(socket: &mut Socket, mut request: Value) {
    request["type"] = json!("response.create");
    socket.send(Message::text(request.to_string())).await.expect("the gateway listens");
}

/// Everything up to the end of an answer.
async fn answer(socket: &mut Socket) -> Vec<Value> {
    let mut events: Vec<Value> = Vec::new();
    loop {
        let message = socket.next().await.expect("the socket is open").expect("a sound frame");
        let Message::Text(message) = message else { continue };
        let event: Value = serde_json::from_str(&message).expect("JSON");
        let is_last = ["response.completed", "response.failed", "error"].iter().any(|last| event["type"] == *last);
        events.push(event);
        if is_last {
            return events;
        }
    }
}

async fn ask(socket: &mut Socket, request: Value) -> Value {
    send(socket, request).await;
    answer(socket).await.pop().expect("an event")
}

#[tokio::test]
async fn one_request_after_the_other_is_answered_with_the_events_of_a_stream() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("hel"), text("lo"), done()]]);
    let server = Guarded::new(&agents);
    let mut socket = connect(&server).await;
    send(&mut socket, asking("one", json!({ "stream": true }))).await;
    send(&mut socket, asking("two", json!({}))).await;
    for _ in 0..2 {
        let events = answer(&mut socket).await;
        let numbers: Vec<u64> = events.iter().filter_map(|event| event["sequence_number"].as_u64()).collect();
        assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
        assert_eq!(text_of(&events.last().unwrap()["response"]), "hello");
    }
}

#[tokio::test]
async fn what_is_not_stored_goes_on_as_long_as_the_connection_and_until_it_fails() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a"), done()]]);
    let server = Guarded::new(&agents);
    let mut socket = connect(&server).await;
    let first = ask(&mut socket, asking("one", json!({ "store": false }))).await["response"].clone();
    let after = |previous: &Value, input: Value| {
        asking(input, json!({ "store": false, "previous_response_id": previous["id"] }))
    };
    let second = ask(&mut socket, after(&first, json!("two"))).await["response"].clone();
    assert_eq!((&second["status"], agents.prompts(0)), (&json!("completed"), vec!["one".to_owned(), "two".to_owned()]));

    let unknown = |event: &Value| event["error"]["code"] == "previous_response_not_found" && event["status"] == 400;
    let elsewhere = ask(&mut connect(&server).await, after(&second, json!("three"))).await;
    assert!(unknown(&elsewhere), "{elsewhere}");
    let stray = json!([{ "type": "function_call_output", "call_id": "call_stray", "output": "x" }]);
    assert_eq!(ask(&mut socket, after(&second, stray)).await["error"]["param"], "input[0].call_id");
    let evicted = ask(&mut socket, after(&second, json!("three"))).await;
    assert!(unknown(&evicted), "{evicted}");
    assert_eq!(ask(&mut socket, asking("anew", json!({ "store": false }))).await["type"], "response.completed");
}

#[tokio::test]
async fn a_request_that_generates_nothing_is_gone_on_with() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a"), done()]]);
    let server = Guarded::new(&agents);
    let mut socket = connect(&server).await;
    let input = json!([{ "role": "developer", "content": "be brief" }]);
    let warm = ask(&mut socket, asking(input, json!({ "store": false, "generate": false }))).await;
    assert_eq!((&warm["type"], &warm["response"]["output"]), (&json!("response.completed"), &json!([])));
    assert_eq!(agents.opened(), 0);
    let fields = json!({ "store": false, "previous_response_id": warm["response"]["id"] });
    assert_eq!(text_of(&ask(&mut socket, asking("hi", fields)).await["response"]), "a");
    assert_eq!(agents.prompts(0), ["[System]\nbe brief\n\n[User]\nhi"]);
}

#[tokio::test]
async fn nonsense_is_answered_and_a_client_that_leaves_ends_its_turn() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a")]]);
    let server = Guarded::new(&agents);
    let mut socket = connect(&server).await;
    for (message, status) in
        [("nonsense", 400), (r#"{"type":"response.steer"}"#, 400), (r#"{"type":"response.create"}"#, 400)]
    {
        socket.send(Message::text(message)).await.unwrap();
        let refused = answer(&mut socket).await;
        assert_eq!((&refused[0]["type"], &refused[0]["status"]), (&json!("error"), &json!(status)));
    }
    send(&mut socket, asking("hi", json!({}))).await;
    agents.until_prompted(0).await;
    drop(socket);
    agents.until_cancelled(0).await;
}
