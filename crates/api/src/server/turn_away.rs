//! Clients that there is no room for: told to come back, instead of left alone.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use axum::body::Body;
use axum::http::Response;
use tokio::net::TcpStream;
use uuid::Uuid;

use crate::guard::envelope;
use crate::identity::RequestId;
use crate::problem::{Kind, Problem};

/// The answer to a request for which there is no room.
pub fn no_room() -> Response<Body> {
    let (problem, id) = refusal();
    let mut response = envelope::response(&problem, &id);
    if let Ok(id) = id.0.try_into() {
        response.headers_mut().insert("x-request-id", id);
    }
    response
}

/// The same for a connection that cannot even be served: in one write, without a wait. A client that misses it sees a
/// closed connection.
pub fn without_service(stream: TcpStream) {
    let (problem, id) = refusal();
    let body = envelope::json(&problem, &id);
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n\
         x-request-id: {}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        id.0,
        body.len()
    );
    let told = stream.into_std().and_then(|mut stream| {
        // What was asked is taken off the line, or else the kernel answers with a reset that may overtake ours.
        let mut asked = [0; 8 << 10];
        match stream.read(&mut asked) {
            Ok(_) => {}
            Err(early) if early.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(gone) => return Err(gone),
        }
        stream.write_all(&[head.as_bytes(), &body].concat())
    });
    if let Err(failure) = told {
        tracing::debug!(%failure, "a client beyond all bounds could not be told");
    }
}

fn refusal() -> (Problem, RequestId) {
    let kind = Kind::Unavailable { retry_after: Duration::from_secs(1) };
    (Problem::new(kind, "too many connections; try again in a second"), RequestId(Uuid::now_v7().to_string()))
}
