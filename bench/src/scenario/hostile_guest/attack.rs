//! What a hostile guest does, at rates that stand here: as fast as it can would measure how the machine shares its cores.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};

use super::{GUEST, OPERATOR};
use crate::http::Target;
use crate::websocket::{Reading, WebSocket};

/// Sockets whose client begins sessions, forks them and leaves them idle: 40 a second together, where the agent keeps up.
const STORMS: usize = 8;
const STORM_EVERY: Duration = Duration::from_millis(200);
const HALF_MESSAGES: usize = 40;
const SLOW_UPLOADS: usize = 8;

/// What the hostile guest says to its agents.
pub const WORD: &str = "eve-was-here";

pub struct Attack {
    tasks: JoinSet<()>,
    done: Arc<Done>,
}

/// What became of it.
pub struct Attacked {
    pub said: String,
    /// What it read of others.
    pub crossed: Vec<String>,
}

/// How often keys come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    Fast,
    /// As often as the limit of requests for one key allows.
    WithinTheLimit,
}

impl Pace {
    fn churn(self) -> Duration {
        match self {
            Self::Fast => Duration::from_millis(500),
            Self::WithinTheLimit => Duration::from_millis(1_500),
        }
    }
}

/// What it has managed to do.
#[derive(Default)]
struct Done {
    sessions: AtomicU64,
    sessions_refused: AtomicU64,
    forks_refused: AtomicU64,
    sockets_refused: AtomicU64,
    half_messages: AtomicU64,
    uploads: AtomicU64,
    uploads_refused: AtomicU64,
    keys: AtomicU64,
    /// Messages with words of others.
    crossed: Mutex<Vec<String>>,
}

impl Attack {
    pub fn begin(eve: &Target, churner: &Target, pace: Pace) -> Self {
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
        let (churner, counted) = (churner.clone(), Arc::clone(&done));
        tasks.spawn(again(move || churn(churner.clone(), Arc::clone(&counted), pace)));
        Self { tasks, done }
    }

    /// Leaves, and says what it did.
    pub async fn end(mut self) -> Attacked {
        self.tasks.shutdown().await;
        let counted = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let done = &*self.done;
        let said = format!(
            "{} sessions begun, {} refused, {} forks refused, {} half messages, {} sockets refused, {} slow uploads, {} refused, \
             {} keys made and revoked",
            counted(&done.sessions),
            counted(&done.sessions_refused),
            counted(&done.forks_refused),
            counted(&done.half_messages),
            counted(&done.sockets_refused),
            counted(&done.uploads),
            counted(&done.uploads_refused),
            counted(&done.keys)
        );
        Attacked { said, crossed: std::mem::take(&mut done.crossed()) }
    }
}

impl Done {
    fn crossed(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.crossed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look_at(&self, message: &[u8]) {
        let has = |word: &str| memchr::memmem::find(message, word.as_bytes()).is_some();
        if has(GUEST) || has(OPERATOR) {
            self.crossed().push(format!("the hostile guest read: {}", String::from_utf8_lossy(message)));
        }
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
    let opened = WebSocket::client(&eve).await;
    let mut socket = opened.inspect_err(|_| count(&done.sockets_refused))?;
    let mut due = interval(STORM_EVERY);
    for _ in 0..60 {
        due.tick().await;
        let opened = call(&mut socket, "session/new", &json!({"cwd": "/", "mcpServers": []}), &done).await?;
        let Some(session) = opened["result"]["sessionId"].as_str() else {
            count(&done.sessions_refused);
            continue;
        };
        count(&done.sessions);
        socket.prompt(session, WORD).await?;
        let server = json!({ "name": "sh", "command": "/bin/sh", "args": [], "env": [] });
        let fork = json!({ "sessionId": session, "cwd": "/", "mcpServers": [server] });
        if call(&mut socket, "session/fork", &fork, &done).await?.get("error").is_some() {
            count(&done.forks_refused);
        }
        call(&mut socket, "session/list", &json!({}), &done).await?;
    }
    Ok(())
}

/// The answer to a request, refused or not. Every message before it is looked at.
async fn call(socket: &mut WebSocket, method: &str, params: &Value, done: &Done) -> anyhow::Result<Value> {
    let id = socket.ask(method, params).await?;
    let mut answer = Value::Null;
    let answered = socket.take(|message| {
        done.look_at(message);
        let read: Value = serde_json::from_slice(message)?;
        if read["id"] == id && read.get("method").is_none() {
            answer = read;
            return Ok(Reading::IsOver);
        }
        Ok(Reading::GoesOn)
    });
    answered.await?;
    Ok(answer)
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
    count(&done.half_messages);
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
    count(&done.uploads);
    loop {
        let sent = stream.write_all(&[b' '; 10_000]).await;
        sent.inspect_err(|_| count(&done.uploads_refused))?;
        sleep(Duration::from_millis(500)).await;
    }
}

fn count(number: &AtomicU64) {
    number.fetch_add(1, Ordering::Relaxed);
}

async fn until_closed(mut stream: TcpStream) -> anyhow::Result<()> {
    let mut unread = vec![0; 16 << 10];
    while stream.read(&mut unread).await? > 0 {}
    Ok(())
}

/// Keys that come and go, by the operator's hand.
async fn churn(operator: Target, done: Arc<Done>, pace: Pace) -> anyhow::Result<()> {
    let mut due = interval(pace.churn());
    for number in 0.. {
        due.tick().await;
        let mut connection = operator.connect().await?;
        let made = connection.ask(&operator.create_key(&format!("temporary-{number}"))).await?;
        connection.text(&made).await?;
        let mut connection = operator.connect().await?;
        let gone = connection.ask(&operator.revoke_key(&format!("temporary-{number}"))).await?;
        connection.text(&gone).await?;
        count(&done.keys);
    }
    Ok(())
}
