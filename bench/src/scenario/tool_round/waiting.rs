//! What ten thousand calls that wait cost the gateway, and what of it is their connections' share.

use std::time::Duration;

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::client::Client;
use crate::gateway::Gateway;
use crate::measure::memory_kb;
use crate::report::Series;

pub const NOTE: &str = "memory: resident, of the gateway alone. A call waits on a connection of its own, which the agent holds open; an idle \
     connection to such a listener is measured in a process of its own, and taken off. 64 calls are one turn's most, \
     so 157 sessions share them; what the sessions cost was there before";

/// The most that one turn may have waiting.
const OF_ONE_TURN: usize = 64;
const SESSIONS: usize = 157;
/// On a busy machine a client is told of some calls later than of the others: their memory counts, they do not.
const TOLD: usize = 9_000;
const CONNECTIONS: usize = 2_000;
/// Buffers that are given back after a while are given back by then.
const SETTLE: Duration = Duration::from_secs(3);

pub struct Memory {
    connection: Series,
    call: Series,
    beyond: Series,
}

impl Default for Memory {
    fn default() -> Self {
        let series = |name: &str| Series::new(name, "kB");
        Self {
            connection: series("idle connection of an agent"),
            call: series("10 000 calls wait: each"),
            beyond: series("10 000 calls wait: each, without its connection"),
        }
    }
}

impl Memory {
    pub async fn measure(&mut self) -> anyhow::Result<()> {
        // A process of its own: what these connections leave to the allocator would hide what the calls cost.
        let connection = each_connection(&Gateway::start()?).await?;
        let gateway = Gateway::start()?;
        let mut clients = Vec::new();
        for _ in 0..SESSIONS {
            let mut client = Client::begin(&gateway, "call pick {}").await?;
            client.round().await?;
            clients.push(client);
        }
        let prompt = format!("call {}", vec!["pick {}"; OF_ONE_TURN].join(" and "));
        tokio::time::sleep(SETTLE).await;
        let before = memory_kb(gateway.pid())?;
        let mut waiting = 0;
        for client in &mut clients {
            client.say(&prompt).await?;
            waiting += client.calls();
        }
        anyhow::ensure!(waiting >= TOLD, "clients were told of {waiting} calls only");
        tokio::time::sleep(SETTLE).await;
        let call = (memory_kb(gateway.pid())? - before) / f64::from(u32::try_from(waiting)?);
        self.connection.push(connection);
        self.call.push(call);
        self.beyond.push((call - connection).max(0.0));
        Ok(())
    }

    pub fn series(&self) -> [&Series; 3] {
        [&self.connection, &self.call, &self.beyond]
    }

    pub fn beyond(&self) -> &Series {
        &self.beyond
    }
}

/// The share of one connection that has had an answer and says nothing more, in kB.
async fn each_connection(gateway: &Gateway) -> anyhow::Result<f64> {
    let port = other_port(gateway)?;
    tokio::time::sleep(SETTLE).await;
    let before = memory_kb(gateway.pid())?;
    let mut open = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\n\r\n").await?;
        let mut answer = [0; 256];
        let read = stream.read(&mut answer).await?;
        anyhow::ensure!(answer[..read].starts_with(b"HTTP/1.1 401"), "a stranger was not refused");
        open.push(stream);
    }
    tokio::time::sleep(SETTLE).await;
    let each = (memory_kb(gateway.pid())? - before) / f64::from(u32::try_from(CONNECTIONS)?);
    drop(open);
    Ok(each)
}

/// Where the gateway listens beside the address that it announces.
fn other_port(gateway: &Gateway) -> anyhow::Result<u16> {
    let inodes: Vec<String> = std::fs::read_dir(format!("/proc/{}/fd", gateway.pid()))?
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let table = std::fs::read_to_string("/proc/net/tcp")?;
    let listening = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_ours = fields.get(3) == Some(&"0A") && inodes.iter().any(|inode| fields.get(9) == Some(&inode.as_str()));
        let port = u16::from_str_radix(fields.get(1)?.split_once(':')?.1, 16).ok()?;
        is_ours.then_some(port)
    });
    let known = gateway.target.address.port();
    listening.into_iter().find(|port| *port != known).context("the gateway listens for no agents")
}
