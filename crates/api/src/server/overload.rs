//! Clients that cannot be served now: they are told to come back, instead of left without an answer.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;

use crate::problem::{Kind, Problem};
use crate::server::malformed;

/// In the extensions of a request that the server does not serve: the guard answers it with this, rendered by the
/// frontend whose route matched.
#[derive(Clone, Debug)]
pub struct Declined(pub Problem);

/// For a request on a connection beyond the limits.
pub fn too_many_connections() -> Problem {
    let kind = Kind::Unavailable { retry_after: Duration::from_secs(1) };
    Problem::new(kind, "too many connections; try again in a second")
}

/// For a new request on a connection that was open before the drain began.
pub fn shutting_down() -> Problem {
    let kind = Kind::Unavailable { retry_after: Duration::from_secs(5) };
    Problem::new(kind, "the gateway is shutting down; try again in a few seconds")
}

/// Refuses a connection that cannot even be served: in one write, without a wait. A client that misses it sees a
/// closed connection.
pub fn refuse_connection(stream: TcpStream, peer: SocketAddr) {
    let answer = malformed::response_bytes(&too_many_connections(), peer);
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
        tracing::debug!(%failure, "a client beyond all limits could not be told");
    }
}
