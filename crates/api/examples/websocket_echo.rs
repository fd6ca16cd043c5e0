//! Sends every text message back, over the WebSocket layer of `/acp`: what a conformance suite talks to.
//!
//! `cargo run -p gembridge-api --example websocket_echo -- 127.0.0.1:9001`, then `wstest -m fuzzingclient` of
//! `autobahntestsuite` (Python 2.7) with `"exclude-cases": ["1.2.*", "9.2.*", "9.4.*", "9.6.*", "9.8.*", "12.*", "13.*"]`: the
//! layer reads past binary messages and offers no compression, so these cases do not apply.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse as _;
use axum::routing::get;
use gembridge_api::guard::body::BodyLimits;
use gembridge_api::guard::memory_budget::MemoryBudget;
use gembridge_api::identity::{Identity, Rank};
use gembridge_api::websocket::{Arrived, Offer, Received, WebSocket};
use gembridge_core::model::Principal;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

/// The largest message of the suite is 16 MB.
const MESSAGE: usize = 32 << 20;

struct Echo {
    memory: Arc<MemoryBudget>,
    sockets: TaskTracker,
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:9001".to_owned());
    let limits = BodyLimits { large: 32 << 20, large_budget: 512 << 20, ..BodyLimits::default() };
    let echo = Echo { memory: MemoryBudget::new(limits), sockets: TaskTracker::new() };
    let app = Router::new().fallback(get(upgrade)).with_state(Arc::new(echo));
    axum::serve(TcpListener::bind(address).await?, app).await
}

async fn upgrade(State(echo): State<Arc<Echo>>, mut request: Request) -> Response<Body> {
    let offer = match Offer::read(request.method(), request.version(), request.headers()) {
        Ok(offer) => offer,
        Err(refused) => return (StatusCode::BAD_REQUEST, refused.to_string()).into_response(),
    };
    let charge = echo.memory.account(Identity { principal: Principal::new("suite"), rank: Rank::Admin }).charge();
    let upgrading = hyper::upgrade::on(&mut request);
    echo.sockets.spawn(async move {
        match upgrading.await {
            Ok(upgraded) => serve(WebSocket::new(TokioIo::new(upgraded), MESSAGE, charge)).await,
            Err(failure) => eprintln!("no upgrade: {failure}"),
        }
    });
    offer.switching(offer.protocols.first().map(String::as_str))
}

async fn serve<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin>(mut socket: WebSocket<S>) {
    loop {
        let received = poll_fn(|cx| {
            // What is to be written goes out while more is read.
            if let Poll::Ready(Err(_lost)) = socket.poll_write(cx) {
                return Poll::Ready(Received::Ended(Arrived::Lost));
            }
            let received = socket.poll_receive(cx);
            if received.is_pending()
                && let Poll::Ready(Err(_lost)) = socket.poll_write(cx)
            {
                return Poll::Ready(Received::Ended(Arrived::Lost));
            }
            received
        });
        match received.await {
            Received::Text(text) => socket.send(text.as_bytes()),
            Received::Sign | Received::Begun => {}
            Received::Ended(Arrived::Lost) => return,
            Received::Ended(Arrived::Close) => return socket.finish().await,
            Received::Ended(Arrived::Broken(code)) => {
                socket.close(code, "");
                return socket.finish().await;
            }
        }
    }
}
