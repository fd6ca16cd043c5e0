//! A connection to the gateway. The key is sent last: the other end shows first that it may have it.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Error};

use super::proof;
use super::relay::LONGEST_MESSAGE;
use super::{Address, Credential, EditorFolders};

const LONGEST_HANDSHAKE: Duration = Duration::from_secs(10);

/// Whom to connect to, as whom, and how to know that it is them.
#[derive(Clone)]
pub struct Target {
    pub address: Address,
    pub credential: Credential,
    pub trust: Trust,
    pub folders: EditorFolders,
}

/// What the other end shows before it gets the key.
#[derive(Clone)]
pub enum Trust {
    /// That it knows the secret in the state folder, so that it is this user's gateway. On this machine only.
    Proof { secret: PathBuf },
    /// A certificate of its name.
    Certificate(TlsConnector),
    /// Nothing, by the user's own word.
    Unchecked,
}

impl Target {
    /// The same gateway, for those who know their sessions themselves.
    pub(super) fn without_session(&self) -> Self {
        Self { address: self.address.without_session(), ..self.clone() }
    }
}

pub(super) trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

pub(super) type Socket = WebSocketStream<Box<dyn Duplex>>;

#[derive(Debug)]
pub(super) enum DialError {
    /// The gateway has answered, and said no.
    Refused {
        status: StatusCode,
        said: Option<Vec<u8>>,
    },
    /// The listener is not this user's gateway, or cannot show it.
    Unproven(String),
    /// The certificate is not good for this address.
    Certificate(String),
    Io(io::Error),
    WebSocket(Box<tungstenite::Error>),
}

impl DialError {
    /// Whether asking again changes nothing: the key was revoked, or the address is another's now.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Refused { status, .. } => status.is_client_error() && *status != StatusCode::TOO_MANY_REQUESTS,
            Self::Unproven(_) | Self::Certificate(_) => true,
            Self::Io(_) | Self::WebSocket(_) => false,
        }
    }
}

impl From<tungstenite::Error> for DialError {
    fn from(error: tungstenite::Error) -> Self {
        match error {
            Error::Http(response) => {
                let (head, said) = response.into_parts();
                Self::Refused { status: head.status, said }
            }
            Error::Io(error) => Self::Io(error),
            other => Self::WebSocket(Box::new(other)),
        }
    }
}

pub(super) async fn dial(target: &Target) -> Result<Socket, DialError> {
    match tokio::time::timeout(LONGEST_HANDSHAKE, open(target)).await {
        Ok(opened) => opened,
        Err(_) => Err(DialError::Io(io::ErrorKind::TimedOut.into())),
    }
}

async fn open(target: &Target) -> Result<Socket, DialError> {
    let stream: Box<dyn Duplex> = match &target.trust {
        Trust::Proof { secret } => Box::new(proven(&target.address, secret).await?),
        Trust::Certificate(connector) => Box::new(encrypted(&target.address, connector).await?),
        Trust::Unchecked => Box::new(tcp(&addresses(&target.address).await?).await?),
    };
    let config =
        WebSocketConfig::default().max_message_size(Some(LONGEST_MESSAGE)).max_frame_size(Some(LONGEST_MESSAGE));
    let request = target.address.request(&target.credential);
    let (socket, _) = tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await?;
    Ok(socket)
}

async fn addresses(address: &Address) -> Result<Vec<SocketAddr>, DialError> {
    Ok(lookup_host((address.host(), address.port())).await.map_err(DialError::Io)?.collect())
}

async fn tcp(addresses: &[SocketAddr]) -> Result<TcpStream, DialError> {
    let stream = TcpStream::connect(addresses).await.map_err(DialError::Io)?;
    stream.set_nodelay(true).map_err(DialError::Io)?;
    Ok(stream)
}

/// The first listener that proves to be ours. The proof and the key go over one connection, so that nobody can take
/// the port between the two.
pub(super) async fn proven(address: &Address, secret: &Path) -> Result<TcpStream, DialError> {
    let mut failure: Option<DialError> = None;
    // A name may stand for several listeners, and not each of them need be ours.
    for at in addresses(address).await?.into_iter().filter(|at| at.ip().is_loopback()) {
        let dialled = async {
            let mut stream = tcp(&[at]).await?;
            proof::ask(&mut stream, at, address.authority(), secret).await?;
            Ok::<_, DialError>(stream)
        };
        match dialled.await {
            Ok(stream) => return Ok(stream),
            // A listener that failed says more than one that was not there.
            Err(error) if error.is_final() || failure.is_none() => failure = Some(error),
            Err(_) => {}
        }
    }
    Err(failure.unwrap_or_else(|| DialError::Unproven(format!("`{}` is not of this machine", address.host()))))
}

async fn encrypted(
    address: &Address,
    connector: &TlsConnector,
) -> Result<tokio_rustls::client::TlsStream<TcpStream>, DialError> {
    let name = ServerName::try_from(address.host().to_owned()).map_err(|_| {
        DialError::Certificate(format!("`{}` is not a server name that a certificate can have", address.host()))
    })?;
    let stream = tcp(&addresses(address).await?).await?;
    connector.connect(name, stream).await.map_err(|error| {
        use tokio_rustls::rustls::Error as TlsError;
        let source = error.get_ref().and_then(|source| source.downcast_ref::<TlsError>());
        match source {
            Some(TlsError::InvalidCertificate(why)) => DialError::Certificate(why.to_string()),
            _ => DialError::Io(error),
        }
    })
}
