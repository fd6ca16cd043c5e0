//! Who listens on a port that is taken, as far as it says so itself.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// All in all: whoever starts a gateway waits for this.
const PATIENCE: Duration = Duration::from_millis(500);
const LONGEST: u64 = 4_096;
/// Every answer of a gateway has it, and none of those that it resembles.
const OURS: &str = "x-request-id";

/// What is known by what it answers.
pub fn of(mut address: SocketAddr) -> Option<&'static str> {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        SocketAddr::V4(_) | SocketAddr::V6(_) => {}
    }
    let answers = |path: &str, sign: &str| ask(address, path).is_some_and(|answer| answer.contains(sign));
    let is_ollama = |answer: String| answer.contains("Ollama is running") && !answer.contains(OURS);
    if ask(address, "/").is_some_and(is_ollama) {
        Some("Ollama")
    } else if answers("/health", "gembridge") || answers("/v1/models", "gembridge keys") {
        Some("another gembridge")
    } else {
        None
    }
}

fn ask(address: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    // In one piece: a listener that reads once has all of it.
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    // What came before a timeout counts.
    stream.take(LONGEST).read_to_end(&mut answer).ok();
    Some(String::from_utf8_lossy(&answer).into_owned())
}
