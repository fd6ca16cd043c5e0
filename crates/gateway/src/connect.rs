//! `gembridge connect`: a stdio ACP agent that relays to a gateway's WebSocket, for clients that start their agents.
//!
//! A line in is a frame out and the other way round; nothing is read but where a session has got to. So when the
//! gateway goes away, the relay comes back, takes its sessions up where they were, and the client misses nothing.

mod address;
mod dial;
mod folder;
mod resume_state;
mod proof;
mod relay;
mod tls;

pub use address::{Address, Credential, Scheme};
pub use dial::{Target, Trust};
pub use folder::{EditorFolders, TrustLists, Untrusted};
pub use tls::connector as tls;

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use gembridge_process::lines::LineReader;

use crate::exit::CommandResult;

/// Whether the listener at this address proves to be this user's gateway.
pub async fn is_own_gateway(address: &Address, secret: &Path) -> bool {
    address.is_of_this_machine()
        && matches!(tokio::time::timeout(PROOF, dial::proven(address, secret)).await, Ok(Ok(_)))
}

/// What the gateway of this user answers to a request with this key: the status alone.
pub async fn status(address: &Address, secret: &Path, path: &str, key: &str) -> Result<String, String> {
    let asked = async {
        let mut stream = dial::proven(address, secret).await?;
        proof::status(&mut stream, address.authority(), path, key).await
    };
    match tokio::time::timeout(ANSWER, asked).await {
        Ok(Ok(status)) => Ok(status),
        Ok(Err(_)) => Err("the gateway went away while it was asked".to_owned()),
        Err(_) => Err("the gateway did not answer in time".to_owned()),
    }
}

/// An agent may have to say first which models it has.
const ANSWER: Duration = Duration::from_secs(30);

/// How long a gateway has to prove itself.
const PROOF: Duration = Duration::from_secs(5);

/// Relays between standard input and output and the gateway, until either ends.
pub fn run(target: &Target) -> CommandResult {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let event_loop = built.context("no event loop; check the limit of open files (`ulimit -n`)")?;
    let relayed = event_loop.block_on(async {
        let lines = LineReader::new(tokio::io::stdin(), relay::LONGEST_MESSAGE);
        relay::run(lines, tokio::io::stdout(), target).await
    });
    // A read of standard input cannot be taken back; it ends with the process.
    event_loop.shutdown_background();
    relayed
}
