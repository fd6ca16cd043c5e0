//! What a hostile guest does, at rates that stand here: as fast as it can would measure how the machine shares its cores.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};

use crate::http::Target;
use crate::websocket::WebSocket;

/// Sockets whose client begins sessions, forks them and leaves them idle.
const STORMS: usize = 2;
const STORM_EVERY: Duration = Duration::from_millis(50);
const HALF_MESSAGES: usize = 40;
const SLOW_UPLOADS: usize = 8;
const CHURN_EVERY: Duration = Duration::from_millis(500);

/// What the hostile guest says to its agents.
pub const WORD: &str = "eve-was-here";

pub struct Attack {
    tasks: JoinSet<()>,
    done: Arc<Done>,
}

/// What it has managed to do.
#[derive(Default)]
struct Done {
    sessions: AtomicU64,
    refused: AtomicU64,
    half_messages: AtomicU64,
    uploads: AtomicU64,
    keys: AtomicU64,
}

impl Attack {
    pub fn begin(eve: &Target, operator: &Target) -> Self {
        let done = Arc::new(Done::default());
        let mut tasks = JoinSet::new();
        for _ in 0..STORMS {
            let (eve, done) = (eve.clone(), Arc::clone(&done));
            tasks.spawn(again(move || storm(eve.clone(), Arc::clone(&done))));
        }
        for _ in 0..HALF_MESSAGES {
            let (eve, done) = (eve.clone(), Arc::clone(&done));
            tasks.spawn(again(move || half_message(eve.clone(), Arc::clone(&done))));
        }
        for _ in 0..SLOW_UPLOADS {
            let (eve, done) = (eve.clone(), Arc::clone(&done));
            tasks.spawn(again(move || slow_upload(eve.clone(), Arc::clone(&done))));
        }
        let (operator, counted) = (operator.clone(), Arc::clone(&done));
        tasks.spawn(again(move || churn(operator.clone(), Arc::clone(&counted))));
        Self { tasks, done }
    }

    /// Leaves, and says what it did.
    pub async fn end(mut self) -> String {
        self.tasks.shutdown().await;
        let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let Done { sessions, refused, half_messages, uploads, keys } = &*self.done;
        format!(
            "{} sessions begun, {} requests refused, {} half messages, {} slow uploads, {} keys made and revoked",
            count(sessions),
            count(refused),
            count(half_messages),
            count(uploads),
            count(keys)
        )
    }
}

/// Comes back whenever it was thrown out.
async fn again<F: Future<Output = anyhow::Result<()>>>(mut attempt: impl FnMut() -> F) {
    loop {
        // What the gateway does to it is what the others are measured by.
        drop(attempt().await);
        sleep(Duration::from_millis(200)).await;
    }
}

async fn storm(eve: Target, done: Arc<Done>) -> anyhow::Result<()> {
    let mut socket = WebSocket::client(&eve).await?;
    let mut due = interval(STORM_EVERY);
    for _ in 0..60 {
        due.tick().await;
        match socket.begin().await {
            Ok(session) => {
                done.sessions.fetch_add(1, Ordering::Relaxed);
                socket.prompt(&session, WORD).await?;
                let server = json!({ "name": "sh", "command": "/bin/sh", "args": [], "env": [] });
                let fork = json!({ "sessionId": session, "cwd": "/", "mcpServers": [server] });
                if socket.call("session/fork", &fork).await.is_err() {
                    done.refused.fetch_add(1, Ordering::Relaxed);
                }
            }
            Err(_) => drop(done.refused.fetch_add(1, Ordering::Relaxed)),
        }
    }
    Ok(())
}

/// A message of 10 MB that lacks its last byte.
async fn half_message(eve: Target, done: Arc<Done>) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(eve.address).await?;
    let Target { address, key } = &eve;
    let request = format!(
        "GET /acp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\nConnection: Upgrade\r\nUpgrade: \
         websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let length: u64 = 10 << 20;
    stream.write_all(&[&[0x81, 0xff][..], &length.to_be_bytes(), &[0; 4]].concat()).await?;
    let piece = vec![b'x'; 64 << 10];
    for _ in 0..159 {
        stream.write_all(&piece).await?;
        sleep(Duration::from_millis(5)).await;
    }
    done.half_messages.fetch_add(1, Ordering::Relaxed);
    until_closed(stream).await
}

/// A body of 10 MB, 10 kB every half second.
async fn slow_upload(eve: Target, done: Arc<Done>) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(eve.address).await?;
    let Target { address, key } = &eve;
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\nContent-Type: \
         application/json\r\nContent-Length: 10485760\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&vec![b' '; 2 << 20]).await?;
    done.uploads.fetch_add(1, Ordering::Relaxed);
    loop {
        stream.write_all(&[b' '; 10_000]).await?;
        sleep(Duration::from_millis(500)).await;
    }
}

async fn until_closed(mut stream: TcpStream) -> anyhow::Result<()> {
    let mut unread = vec![0; 16 << 10];
    while stream.read(&mut unread).await? > 0 {}
    Ok(())
}

/// Keys that come and go, by the operator's hand.
async fn churn(operator: Target, done: Arc<Done>) -> anyhow::Result<()> {
    let mut due = interval(CHURN_EVERY);
    for number in 0.. {
        due.tick().await;
        let mut connection = operator.connect().await?;
        let made = connection.ask(&operator.create_key(&format!("temporary-{number}"))).await?;
        connection.text(&made).await?;
        let mut connection = operator.connect().await?;
        let gone = connection.ask(&operator.revoke_key(&format!("temporary-{number}"))).await?;
        connection.text(&gone).await?;
        done.keys.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
