//! Messages whose end does not come: what they may hold, and for how long.

use std::time::Duration;

use gembridge_api::acp::AcpConfig;
use gembridge_api::guard::body::BodyLimits;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::acp::support::agents;
use crate::acp::support::client::soon;
use crate::acp::support::server::{ADMIN, ANN, BOB, ServerSetup, TestServer};

const TEXT: u8 = 0x01;
const CONTINUATION: u8 = 0x00;
const LAST: u8 = 0x80;
const PING: u8 = 0x89;

/// A client that sends frames byte by byte.
struct Raw {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Raw {
    async fn connect(server: &TestServer, key: &str) -> Self {
        let mut stream = soon(TcpStream::connect(server.address)).await.unwrap();
        let request = format!(
            "GET /acp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\nconnection: upgrade\r\nupgrade: \
             websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        soon(stream.write_all(request.as_bytes())).await.unwrap();
        let mut raw = Self { stream, unread: Vec::new() };
        let end = loop {
            if let Some(at) = raw.unread.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            raw.more().await;
        };
        assert!(raw.unread.starts_with(b"HTTP/1.1 101"), "{:?}", String::from_utf8_lossy(&raw.unread));
        raw.unread.drain(..end);
        raw
    }

    /// The head of a frame of `length` bytes, and as much of its body as is given. The mask is zero.
    async fn send(&mut self, first: u8, length: u64, body: &[u8]) {
        let mut frame = vec![first, 0x80 | 127];
        if length < 126 {
            frame = vec![first, 0x80 | u8::try_from(length).unwrap()];
        } else {
            frame.extend(length.to_be_bytes());
        }
        frame.extend([0; 4]);
        frame.extend(body);
        // A server that has closed may have stopped reading.
        drop(soon(self.stream.write_all(&frame)).await);
    }

    async fn more(&mut self) -> usize {
        soon(self.stream.read_buf(&mut self.unread)).await.unwrap_or(0)
    }

    /// The next frame: its first byte and its body. `None` when the connection is gone.
    async fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        loop {
            if let [first, second, rest @ ..] = &self.unread[..] {
                let (skip, length) = match second {
                    126 if rest.len() >= 2 => (2, usize::from(u16::from_be_bytes([rest[0], rest[1]]))),
                    126 => (usize::MAX, 0),
                    short => (0, usize::from(*short)),
                };
                if skip != usize::MAX && rest.len() >= skip + length {
                    let frame = (*first, rest[skip..skip + length].to_vec());
                    self.unread.drain(..2 + skip + length);
                    return Some(frame);
                }
            }
            if self.more().await == 0 {
                return None;
            }
        }
    }

    /// The code and the reason of the close; what comes before is skipped.
    async fn closed(&mut self) -> (u16, String) {
        loop {
            let (first, body) = self.frame().await.expect("a close frame before the end");
            if first == 0x88 {
                return (u16::from_be_bytes([body[0], body[1]]), String::from_utf8(body[2..].to_vec()).unwrap());
            }
        }
    }
}

/// A message of this many bytes that is answered.
fn padded_ping(bytes: usize) -> String {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "$/ping", "params": { "pad": "" } }).to_string();
    message.replace("\"pad\":\"\"", &format!("\"pad\":\"{}\"", "x".repeat(bytes - message.len())))
}

fn small_budget() -> ServerSetup {
    let bodies = BodyLimits {
        small: 1_000,
        large: 100_000,
        small_budget: 30_000,
        large_budget: 300_000,
        wait: Duration::from_millis(300),
        ..BodyLimits::default()
    };
    ServerSetup { config: AcpConfig { message: 100_000, ..AcpConfig::default() }, bodies, ..ServerSetup::default() }
}

#[tokio::test]
async fn f7_unfinished_messages_of_one_key_hold_at_most_its_share_of_the_memory() {
    let server = TestServer::with(&agents::echo(), small_budget());
    let mut first = Raw::connect(&server, ANN).await;
    // Half in one frame and half in a fragment: both are held.
    first.send(TEXT, 50_000, &vec![b'x'; 50_000]).await;
    first.send(CONTINUATION, 49_000, &vec![b'x'; 40_000]).await;
    first.send(PING, 0, b"").await;
    let mut others = Vec::new();
    for _ in 0..5 {
        let mut socket = Raw::connect(&server, ANN).await;
        socket.send(TEXT, 90_000, &vec![b'x'; 80_000]).await;
        others.push(socket);
    }
    for mut socket in others {
        let (code, reason) = socket.closed().await;
        assert_eq!(code, 1013, "{reason}");
        assert!(reason.contains("this key") && reason.contains("try again"), "{reason}");
    }
    // The others have their shares: messages of the same size pass.
    for key in [BOB, ADMIN] {
        let mut socket = Raw::connect(&server, key).await;
        let message = padded_ping(90_000);
        socket.send(TEXT, 50_000, &message.as_bytes()[..50_000]).await;
        socket.send(LAST | CONTINUATION, 40_000, &message.as_bytes()[50_000..]).await;
        let (opcode, body) = socket.frame().await.expect("an answer");
        assert_eq!((opcode, String::from_utf8(body).unwrap().contains("result")), (0x81, true));
    }
}

#[tokio::test]
async fn f7_what_a_socket_held_comes_back_when_it_is_gone() {
    let server = TestServer::with(&agents::echo(), small_budget());
    let mut socket = Raw::connect(&server, ANN).await;
    socket.send(TEXT, 99_000, &vec![b'x'; 98_900]).await;
    let mut second = Raw::connect(&server, ANN).await;
    second.send(TEXT, 90_000, &vec![b'x'; 80_000]).await;
    assert_eq!(second.closed().await.0, 1013, "the first one is held");
    drop(socket);
    let message = padded_ping(90_000);
    let answered = async {
        loop {
            let mut third = Raw::connect(&server, ANN).await;
            third.send(LAST | TEXT, 90_000, &message.as_bytes()[..80_000]).await;
            third.stream.write_all(&message.as_bytes()[80_000..]).await.ok();
            if matches!(third.frame().await, Some((0x81, _))) {
                return;
            }
        }
    };
    soon(answered).await;
}

#[tokio::test]
async fn f7_an_unfinished_message_has_a_deadline_that_pings_do_not_extend() {
    let bodies = BodyLimits { idle: Duration::from_millis(500), ..BodyLimits::default() };
    let server = TestServer::with(&agents::echo(), ServerSetup { bodies, ..ServerSetup::default() });
    let mut socket = Raw::connect(&server, ANN).await;
    socket.send(TEXT, 5, b"{\"a\":").await;
    let closing = async {
        loop {
            socket.send(PING, 2, b"hi").await;
            let (first, body) = socket.frame().await.expect("a pong or a close");
            if first == 0x88 {
                return (u16::from_be_bytes([body[0], body[1]]), String::from_utf8(body[2..].to_vec()).unwrap());
            }
            assert_eq!(first, 0x8a, "pings are answered meanwhile");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let (code, reason) = soon(closing).await;
    assert_eq!(code, 1008, "{reason}");
    assert!(reason.contains("too slowly"), "{reason}");
}

#[tokio::test]
async fn f7_a_message_that_comes_steadily_passes_however_many_pieces_it_has() {
    let bodies = BodyLimits { idle: Duration::from_secs(20), ..BodyLimits::default() };
    let config = AcpConfig { silence: Duration::from_millis(100), ..AcpConfig::default() };
    let server = TestServer::with(&agents::echo(), ServerSetup { config, bodies, ..ServerSetup::default() });
    let mut socket = Raw::connect(&server, ANN).await;
    let message = padded_ping(20_000);
    // One frame, so that no sign of life can come in between.
    socket.send(TEXT | LAST, 20_000, &[]).await;
    for piece in message.as_bytes().chunks(2_000) {
        socket.stream.write_all(piece).await.unwrap();
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    loop {
        let (first, _) = socket.frame().await.expect("an answer");
        assert_ne!(first, 0x88, "it was closed");
        if first == 0x81 {
            return;
        }
    }
}
