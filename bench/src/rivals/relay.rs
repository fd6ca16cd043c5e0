//! The shortest way from an agent's pipe to a WebSocket: lines become frames, frames become lines, nothing is read,
//! kept or numbered. And a socket that says what it hears.

use std::process::Stdio;
use std::sync::{Arc, Mutex};

use anyhow::Context as _;
use futures_util::{SinkExt as _, StreamExt as _, stream};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, accept_async};

use super::server::Serving;

/// As large as the buffer that the gateway reads an agent's pipe into.
const BUFFER: usize = 256 * 1024;

/// When lines leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leave {
    /// When no other is there.
    Together,
    /// Each by itself.
    OneByOne,
}

/// A relay that gathers: what is there goes out together.
pub fn serve_relay(listener: TcpListener) -> Serving {
    serve(listener, |stream| relay(stream, Leave::Together))
}

/// A relay whose lines go out one by one, as they come.
pub fn serve_relay_line_by_line(listener: TcpListener) -> Serving {
    serve(listener, |stream| relay(stream, Leave::OneByOne))
}

pub fn serve_echo(listener: TcpListener) -> Serving {
    serve(listener, echo)
}

fn serve<F>(listener: TcpListener, each: impl Fn(TcpStream) -> F + 'static) -> Serving
where
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    Box::pin(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            connections.spawn(each(stream));
            // A client that leaves is no news.
            while connections.try_join_next().is_some() {}
        }
    })
}

async fn echo(stream: TcpStream) -> anyhow::Result<()> {
    let mut socket = accept_async(stream).await?;
    while let Some(message) = socket.next().await {
        if let Message::Text(text) = message? {
            socket.send(Message::Text(text)).await?;
        }
    }
    Ok(())
}

/// One client with an agent of its own.
async fn relay(stream: TcpStream, leave: Leave) -> anyhow::Result<()> {
    let (mut sink, mut source) = accept_async(stream).await?.split();
    let (agent, mut stdin, stdout) = start()?;
    let mut lines = stdout.lines();
    let out = async move {
        match leave {
            Leave::Together => {
                let messages = stream::try_unfold(lines, |mut lines| async move {
                    let line = lines.next_line().await.map_err(Error::Io)?;
                    Ok(line.map(|line| (Message::text(line), lines)))
                });
                messages.forward(sink).await?;
            }
            Leave::OneByOne => {
                while let Some(line) = lines.next_line().await? {
                    sink.send(Message::text(line)).await?;
                }
            }
        }
        anyhow::Ok(())
    };
    let back = async move {
        while let Some(message) = source.next().await {
            if let Message::Text(text) = message? {
                tell(&mut stdin, &text).await?;
            }
        }
        anyhow::Ok(())
    };
    let over = tokio::select! {
        over = out => over,
        over = back => over,
    };
    drop(agent);
    over
}

fn start() -> anyhow::Result<(Child, ChildStdin, BufReader<ChildStdout>)> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("demo-agent").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut agent = command.spawn().context("the demo agent did not start")?;
    let stdin = agent.stdin.take().context("the demo agent has no stdin")?;
    let stdout = agent.stdout.take().context("the demo agent has no stdout")?;
    rustix::pipe::fcntl_setpipe_size(&stdout, BUFFER)?;
    Ok((agent, stdin, BufReader::with_capacity(BUFFER, stdout)))
}

async fn tell(stdin: &mut ChildStdin, text: &str) -> anyhow::Result<()> {
    Ok(stdin.write_all(format!("{text}\n").as_bytes()).await?)
}

/// Lines that were read together, shared by all who get them.
type Lines = Arc<[Utf8Bytes]>;
type Clients = Arc<Mutex<Vec<mpsc::Sender<Lines>>>>;

/// Batches that wait for one client; then all wait for it.
const QUEUE: usize = 256;

/// One agent whose lines go to every client.
pub fn serve_fan(listener: TcpListener) -> Serving {
    Box::pin(async move {
        let (_agent, stdin, stdout) = start()?;
        let (clients, stdin) = (Clients::default(), Arc::new(tokio::sync::Mutex::new(stdin)));
        let mut tasks = JoinSet::new();
        tasks.spawn(hand_out(stdout, Arc::clone(&clients)));
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let (sender, lines) = mpsc::channel(QUEUE);
            clients.lock().map_err(|_| anyhow::anyhow!("a task panicked"))?.push(sender);
            tasks.spawn(share(stream, lines, Arc::clone(&stdin)));
            while tasks.try_join_next().is_some() {}
        }
    })
}

async fn hand_out(mut stdout: BufReader<ChildStdout>, clients: Clients) -> anyhow::Result<()> {
    let mut line = String::new();
    loop {
        let mut lines = Vec::new();
        while lines.is_empty() || memchr::memchr(b'\n', stdout.buffer()).is_some() {
            line.clear();
            anyhow::ensure!(stdout.read_line(&mut line).await? > 0, "the demo agent ended");
            lines.push(Utf8Bytes::from(line.trim_end()));
        }
        let lines = Lines::from(lines);
        let all = clients.lock().map_err(|_| anyhow::anyhow!("a task panicked"))?.clone();
        for client in all {
            // A client that left hears no more.
            client.send(Arc::clone(&lines)).await.ok();
        }
    }
}

async fn share(
    stream: TcpStream,
    mut lines: mpsc::Receiver<Lines>,
    stdin: Arc<tokio::sync::Mutex<ChildStdin>>,
) -> anyhow::Result<()> {
    let mut socket: WebSocketStream<TcpStream> = accept_async(stream).await?;
    loop {
        tokio::select! {
            Some(batch) = lines.recv() => {
                for line in batch.iter() {
                    socket.feed(Message::Text(line.clone())).await?;
                }
                socket.flush().await?;
            }
            message = socket.next() => {
                let Some(message) = message else { return Ok(()) };
                if let Message::Text(text) = message? {
                    tell(&mut *stdin.lock().await, &text).await?;
                }
            }
        }
    }
}
