//! Clients that there is no room for: told to come back, instead of left alone.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use tokio::net::TcpStream;

use crate::guard::envelope;
use crate::identity::RequestId;
use crate::problem::{Kind, Problem};
use crate::server::rejection;

/// The answer to a request for which there is no room.
pub fn no_room(peer: SocketAddr) -> Response<Body> {
    whole(&refusal(), peer)
}

/// The answer to new work on a connection that was there before the drain began.
pub fn no_more(peer: SocketAddr) -> Response<Body> {
    let kind = Kind::Unavailable { retry_after: Duration::from_secs(5) };
    let mut response = whole(&Problem::new(kind, "the gateway is shutting down; try again in a few seconds"), peer);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

fn whole(problem: &Problem, peer: SocketAddr) -> Response<Body> {
    let id = RequestId::fresh();
    let mut response = envelope::response(problem, &id);
    rejection::record(&id, peer, response.status(), problem);
    if let Ok(id) = id.to_string().try_into() {
        response.headers_mut().insert("x-request-id", id);
    }
    response
}

/// The same for a connection that cannot even be served: in one write, without a wait. A client that misses it sees a
/// closed connection.
pub fn without_service(stream: TcpStream, peer: SocketAddr) {
    let answer = rejection::no_service(&refusal(), peer);
    let told = stream.into_std().and_then(|mut stream| {
        // What was asked is taken off the line, or else the kernel answers with a reset that may overtake ours.
        let mut asked = [0; 8 << 10];
        match stream.read(&mut asked) {
            Ok(_) => {}
            Err(early) if early.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(gone) => return Err(gone),
        }
        stream.write_all(&answer)
    });
    if let Err(failure) = told {
        tracing::debug!(%failure, "a client beyond all bounds could not be told");
    }
}

fn refusal() -> Problem {
    let kind = Kind::Unavailable { retry_after: Duration::from_secs(1) };
    Problem::new(kind, "too many connections; try again in a second")
}
