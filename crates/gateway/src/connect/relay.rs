//! The loop between the client's lines and the gateway's frames.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use gembridge_process::lines::LineReader;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_tungstenite::tungstenite::Message;

use super::dial::{DialError, Socket, Target, dial};
use super::folder::{ClientFolders, EditorFolders};
use super::resume_state::ResumeState;
use crate::exit::{CommandError, CommandResult, ExitCode};

/// The longest message either way. What the gateway does not take it refuses itself.
pub(super) const LONGEST_MESSAGE: usize = 64 << 20;
/// A gateway that restarts is waited for: about half a minute in all.
const ATTEMPTS: u32 = 12;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_GOODBYE: Duration = Duration::from_secs(1);
/// Messages of the relay itself that wait for the client to read.
const MOST_OWN_WORDS: usize = 16;

/// How a connection came to its end.
enum End {
    /// The client has nothing more to say.
    ClientLeft,
    GatewayGone(String),
}

/// What the client says, line by line.
struct Client<R> {
    reader: LineReader<R>,
    /// Read, and not sent yet.
    held: VecDeque<String>,
}

impl<R: AsyncRead + Unpin> Client<R> {
    /// Reads on, unless something is held. Whether there is anything to send.
    async fn speaks(&mut self) -> Result<bool, CommandError> {
        while self.held.is_empty() {
            let Some(batch) = self.reader.next_batch().await.context("the client cannot be understood")? else {
                return Ok(false);
            };
            let lines = batch.iter().map(String::from_utf8_lossy).filter(|line| !line.trim().is_empty());
            self.held.extend(lines.map(std::borrow::Cow::into_owned));
        }
        Ok(true)
    }
}

pub(super) async fn run<R, W>(reader: LineReader<R>, mut out: W, target: &Target) -> CommandResult
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut client = Client { reader, held: VecDeque::new() };
    let state = RefCell::new(ResumeState::default());
    let folders = RefCell::new(ClientFolders::default());
    let (own_words, mut from_relay) = mpsc::channel(MOST_OWN_WORDS);
    let mut socket = dial(target).await.map_err(|error| unreachable(target, &error))?;
    loop {
        let (mut sink, mut stream) = socket.split();
        // Each way goes on while the other waits, and what is being written is written to its end.
        let end = tokio::select! {
            end = upward(&mut client, &mut sink, &state, (&folders, &target.folders), &own_words) => end?,
            end = downward(&mut stream, &mut out, &state, &folders, &mut from_relay) => end?,
        };
        let why = match end {
            End::ClientLeft => {
                // The gateway may be gone as well; either way there is nobody left to tell.
                tokio::time::timeout(LONGEST_GOODBYE, sink.close()).await.ok();
                return Ok(ExitCode::Success);
            }
            End::GatewayGone(why) => why,
        };
        let told = state.borrow_mut().lost(&why);
        for line in told {
            write(&mut out, &line).await?;
        }
        let coming = come_back(target, &state);
        tokio::pin!(coming);
        socket = loop {
            tokio::select! {
                back = &mut coming => break back?,
                speaks = client.speaks(), if client.held.is_empty() => {
                    if !speaks? {
                        return Ok(ExitCode::Success);
                    }
                }
            }
        };
    }
}

async fn upward<R: AsyncRead + Unpin>(
    client: &mut Client<R>,
    sink: &mut SplitSink<Socket, Message>,
    state: &RefCell<ResumeState>,
    (folders, rule): (&RefCell<ClientFolders>, &EditorFolders),
    own_words: &mpsc::Sender<String>,
) -> Result<End, CommandError> {
    while client.speaks().await? {
        while let Some(line) = client.held.pop_front() {
            let routed = folders.borrow_mut().said(line, rule);
            for line in routed.to_client {
                // Whoever takes it lives as long as this does.
                if own_words.send(line).await.is_err() {
                    return gone_either_way().await;
                }
            }
            for line in routed.to_gateway {
                let line = state.borrow_mut().said(&line).map(std::borrow::Cow::into_owned);
                let Some(line) = line else { continue };
                if sink.feed(Message::text(line)).await.is_err() {
                    return gone_either_way().await;
                }
            }
        }
        if sink.flush().await.is_err() {
            return gone_either_way().await;
        }
    }
    Ok(End::ClientLeft)
}

/// Whoever reads from a gateway that cannot be written to finds out as well, and is the one who ends between two lines.
async fn gone_either_way<T>() -> T {
    std::future::pending().await
}

async fn downward(
    stream: &mut SplitStream<Socket>,
    out: &mut (impl AsyncWrite + Unpin),
    state: &RefCell<ResumeState>,
    folders: &RefCell<ClientFolders>,
    from_relay: &mut mpsc::Receiver<String>,
) -> Result<End, CommandError> {
    loop {
        let message = tokio::select! {
            Some(line) = from_relay.recv() => {
                write(out, &line).await?;
                continue;
            }
            message = stream.next() => message,
        };
        match message {
            Some(Ok(Message::Text(text))) => {
                let heard = state.borrow_mut().heard(&text).map(std::borrow::Cow::into_owned);
                if let Some(line) = heard {
                    // Before the client can say anything that follows from it.
                    let note = folders.borrow_mut().heard(&line);
                    write(out, &line).await?;
                    if let Some(note) = note {
                        write(out, &note).await?;
                    }
                }
            }
            Some(Ok(Message::Close(Some(frame)))) if !frame.reason.is_empty() => {
                return Ok(End::GatewayGone(frame.reason.to_string()));
            }
            Some(Ok(Message::Close(_))) | None => return Ok(End::GatewayGone("it was closed".to_owned())),
            Some(Err(error)) => return Ok(End::GatewayGone(error.to_string())),
            // Pings are answered below us; the protocol has no binary messages.
            Some(Ok(_)) => {}
        }
    }
}

/// One message a line: a line end inside of one can only be white space.
async fn write(out: &mut (impl AsyncWrite + Unpin), text: &str) -> Result<(), CommandError> {
    let mut line = text.replace(['\n', '\r'], " ");
    line.push('\n');
    out.write_all(line.as_bytes()).await.context("the client does not read any more")?;
    out.flush().await.context("the client does not read any more")?;
    Ok(())
}

async fn come_back(target: &Target, state: &RefCell<ResumeState>) -> Result<Socket, CommandError> {
    let nameless = state.borrow().has_entered_named().then(|| target.without_session());
    let target = nameless.as_ref().unwrap_or(target);
    let messages = state.borrow().take_up();
    let mut pause = FIRST_PAUSE;
    let mut attempt = 1;
    loop {
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        match take_up(target, &messages).await {
            Ok(socket) => return Ok(socket),
            Err(error) if error.is_final() || attempt == ATTEMPTS => return Err(unreachable(target, &error)),
            Err(_) => attempt += 1,
        }
    }
}

async fn take_up(target: &Target, messages: &[String]) -> Result<Socket, DialError> {
    let mut socket = dial(target).await?;
    for message in messages {
        socket.send(Message::text(message)).await.map_err(DialError::from)?;
    }
    Ok(socket)
}

fn unreachable(target: &Target, error: &DialError) -> CommandError {
    let address = &target.address;
    let message = match error {
        DialError::Refused { status, said } => {
            let why = match status.as_u16() {
                401 => "the key is not known there; set `GEMBRIDGE_KEY` or use `--key-file`".to_owned(),
                403 => "it does not answer to this name; run `gembridge serve --allow-host NAME` there".to_owned(),
                404 => "there is no such session or path".to_owned(),
                _ => told(said.as_deref()),
            };
            format!("the gateway at `{address}` answered {status}: {why}")
        }
        DialError::Unproven(why) => format!(
            "what listens at `{address}` did not prove to be your gateway: {why}; the key was not sent. Start yours with \
             `gembridge serve`, with another `--port` if that one is taken; if you know who listens there, name the key \
             with `--key-file` or `GEMBRIDGE_KEY` and say `--insecure`"
        ),
        DialError::Certificate(why) => format!(
            "the certificate of `{address}` is not good: {why}; name the certificate authority of a private one with \
             `--ca FILE`"
        ),
        DialError::Io(error) => format!("no gateway at `{address}`: {error}; start `gembridge serve`"),
        DialError::WebSocket(error) => format!("no gateway at `{address}`: {error}"),
    };
    CommandError::new(ExitCode::Failed, message)
}

/// The sentence in the gateway's own error.
fn told(body: Option<&[u8]>) -> String {
    let value: Option<serde_json::Value> = body.and_then(|body| serde_json::from_slice(body).ok());
    let message = value.as_ref().and_then(|value| value["error"]["message"].as_str());
    message.unwrap_or("it did not say why").to_owned()
}
