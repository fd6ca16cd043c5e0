//! The loop between the client's lines and the gateway's frames.

use std::time::Duration;

use anyhow::Context as _;
use futures_util::{SinkExt as _, StreamExt as _};
use gembridge_process::lines::LineReader;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::place::Place;
use super::{Address, Credential};
use crate::exit::{CommandError, CommandResult, ExitCode};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// How a connection came to its end.
enum End {
    /// The client has nothing more to say.
    ClientLeft,
    GatewayGone,
}

/// A gateway that restarts is waited for: about half a minute in all.
const ATTEMPTS: u32 = 12;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_HANDSHAKE: Duration = Duration::from_secs(10);
const LARGEST_FRAME: usize = 64 << 20;

pub(super) async fn run<R, W>(
    mut lines: LineReader<R>,
    mut out: W,
    address: &Address,
    credential: &Credential,
) -> CommandResult
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut place = Place::default();
    let mut socket = dial(address, credential).await.map_err(|error| unreachable(address, &error))?;
    loop {
        match relay(&mut lines, &mut out, &mut socket, &mut place).await? {
            End::ClientLeft => {
                // The gateway may be gone as well; either way there is nobody left to tell.
                socket.close(None).await.ok();
                return Ok(ExitCode::Success);
            }
            End::GatewayGone => {
                for line in place.fail_waiting() {
                    write(&mut out, &line).await?;
                }
                socket = come_back(address, credential, &place).await?;
            }
        }
    }
}

async fn relay<R, W>(
    lines: &mut LineReader<R>,
    out: &mut W,
    socket: &mut Socket,
    place: &mut Place,
) -> Result<End, CommandError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    loop {
        tokio::select! {
            batch = lines.next_batch() => {
                let Some(batch) = batch.context("the client's line cannot be read")? else { return Ok(End::ClientLeft) };
                for line in &batch {
                    let line = String::from_utf8_lossy(line);
                    if line.trim().is_empty() {
                        continue;
                    }
                    place.said(&line);
                    if socket.feed(Message::text(line.into_owned())).await.is_err() {
                        return Ok(End::GatewayGone);
                    }
                }
                if socket.flush().await.is_err() {
                    return Ok(End::GatewayGone);
                }
            }
            frame = socket.next() => match frame {
                Some(Ok(Message::Text(text))) => {
                    if Place::is_ours(&text) {
                        continue;
                    }
                    place.heard(&text);
                    write(out, &text).await?;
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Ok(End::GatewayGone),
                // Pings are answered below us; the protocol has no binary messages.
                Some(Ok(_)) => {}
            },
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

async fn come_back(address: &Address, credential: &Credential, place: &Place) -> Result<Socket, CommandError> {
    let mut pause = FIRST_PAUSE;
    let mut last = None;
    for _ in 0..ATTEMPTS {
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        match take_up(address, credential, place).await {
            Ok(socket) => return Ok(socket),
            // The key was revoked, or the address is another's now: asking again changes nothing.
            Err(error @ Error::Http(_)) => return Err(unreachable(address, &error)),
            Err(error) => last = Some(error),
        }
    }
    let error = last.unwrap_or(Error::ConnectionClosed);
    Err(unreachable(address, &error))
}

async fn take_up(address: &Address, credential: &Credential, place: &Place) -> Result<Socket, Error> {
    let mut socket = dial(address, credential).await?;
    for message in place.take_up() {
        socket.send(Message::text(message)).await?;
    }
    Ok(socket)
}

async fn dial(address: &Address, credential: &Credential) -> Result<Socket, Error> {
    let config = WebSocketConfig::default().max_message_size(Some(LARGEST_FRAME)).max_frame_size(Some(LARGEST_FRAME));
    let dialling = tokio_tungstenite::connect_async_with_config(address.request(credential), Some(config), true);
    match tokio::time::timeout(LONGEST_HANDSHAKE, dialling).await {
        Ok(dialled) => dialled.map(|(socket, _)| socket),
        Err(_) => Err(Error::Io(std::io::ErrorKind::TimedOut.into())),
    }
}

fn unreachable(address: &Address, error: &Error) -> CommandError {
    let message = match error {
        Error::Http(response) => {
            let status = response.status();
            let why = match status.as_u16() {
                401 => "the key is not known there; set `GEMBRIDGE_KEY` or use `--key-file`".to_owned(),
                403 => "it does not answer to this name; run `gembridge serve --allow-host NAME` there".to_owned(),
                404 => "there is no such session or path".to_owned(),
                _ => told(response.body().as_deref()),
            };
            format!("the gateway at `{address}` answered {status}: {why}")
        }
        Error::Io(error) => format!("no gateway at `{address}`: {error}; start one with `gembridge serve`"),
        error => format!("no gateway at `{address}`: {error}"),
    };
    CommandError::new(ExitCode::Failed, message)
}

/// The sentence in the gateway's own error.
fn told(body: Option<&[u8]>) -> String {
    let value: Option<serde_json::Value> = body.and_then(|body| serde_json::from_slice(body).ok());
    let message = value.as_ref().and_then(|value| value["error"]["message"].as_str());
    message.unwrap_or("it did not say why").to_owned()
}
