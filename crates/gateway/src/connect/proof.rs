//! Asks a listener on this machine to prove that it is this user's gateway, over the connection that the key will take.

use std::net::SocketAddr;
use std::path::Path;

use gembridge_api::acp::proof::{LocalSecret, Nonce, PATH, Proof};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::dial::DialError;

/// More than any gateway of ours answers.
const LONGEST_HEAD: usize = 8 << 10;
const LONGEST_BODY: usize = 1 << 10;

/// Reads exactly one response, so that the connection can go on with a request for a WebSocket.
pub(super) async fn ask<S>(stream: &mut S, reached: SocketAddr, host: &str, secret: &Path) -> Result<(), DialError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let nonce = Nonce::generate().map_err(DialError::Io)?;
    let request = format!("GET {PATH}?nonce={} HTTP/1.1\r\nhost: {host}\r\n\r\n", nonce.to_hex());
    stream.write_all(request.as_bytes()).await.map_err(DialError::Io)?;
    let (status, length) = head(stream).await?;
    match status.as_str() {
        "200" => {}
        "429" | "503" => return Err(DialError::Io(std::io::Error::other("the gateway is busy"))),
        _ => return Err(unproven(format!("it answered {status} to the question, as other programs do"))),
    }
    let length = length.filter(|length| *length <= LONGEST_BODY);
    let mut body = vec![0; length.ok_or_else(|| unproven("it answered something else"))?];
    stream.read_exact(&mut body).await.map_err(DialError::Io)?;
    let proof: Proof = serde_json::from_slice(&body).map_err(|_| unproven("it answered something else"))?;
    // Read after the answer: a gateway that has just started has written it by now.
    let known = std::fs::read_to_string(secret)
        .map_err(|error| unproven(format!("the secret of your gateway, `{}`: {error}", secret.display())))?;
    let known = LocalSecret::from_hex(&known)
        .ok_or_else(|| unproven(format!("`{}` does not hold the secret of a gateway", secret.display())))?;
    if known.accepts(&proof, &nonce, reached) {
        return Ok(());
    }
    Err(unproven("it does not know the secret in your state folder, so it is another user's or another folder's"))
}

fn unproven(why: impl Into<String>) -> DialError {
    DialError::Unproven(why.into())
}

/// The status of a request without a body that has a key. The gateway on the other end has proven itself.
pub(super) async fn status<S>(stream: &mut S, host: &str, path: &str, key: &str) -> Result<String, DialError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(DialError::Io)?;
    head(stream).await.map(|(status, _)| status)
}

/// The status of a response, and how long its body is.
async fn head<S: AsyncRead + Unpin>(stream: &mut S) -> Result<(String, Option<usize>), DialError> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == LONGEST_HEAD {
            return Err(unproven("it does not speak HTTP"));
        }
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof && !head.is_empty() => {
                return Err(unproven("it does not speak HTTP"));
            }
            Err(error) => return Err(DialError::Io(error)),
        }
    }
    let head = String::from_utf8_lossy(&head);
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 "));
    let status = status.and_then(|status| status.get(..3)).ok_or_else(|| unproven("it does not speak HTTP"))?;
    let status: String = status.chars().filter(char::is_ascii_digit).collect();
    let lengths = lines.filter_map(|line| line.split_once(':'));
    let mut lengths = lengths.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    Ok((status, lengths.next().and_then(|(_, value)| value.trim().parse().ok())))
}
