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
