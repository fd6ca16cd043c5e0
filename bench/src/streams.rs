//! Many streams at once, each on a connection of its own, all begun together.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::frames::{Frames, Script, Seen};
use crate::gateway::Seat;
use crate::http::{Connection, Reply, Target};

/// A connection, and the session that its requests belong to.
pub struct Lane {
    pub connection: Connection,
    pub session: Option<String>,
}

impl From<Seat> for Lane {
    fn from(seat: Seat) -> Self {
        Self { connection: seat.connection, session: Some(seat.session) }
    }
}

/// Lanes to a server that knows no sessions.
pub async fn lanes(target: &Target, count: usize) -> anyhow::Result<Vec<Lane>> {
    let mut lanes = Vec::with_capacity(count);
    for _ in 0..count {
        lanes.push(Lane { connection: target.connect().await?, session: None });
    }
    Ok(lanes)
}

/// When streams begin.
#[derive(Clone, Copy, Debug)]
pub enum Begin {
    AtOnce,
    /// Evenly over this time, as clients come that know nothing of each other.
    Spread(Duration),
}

/// Whether every gap between two pieces is kept, or the longest only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gaps {
    All,
    Longest,
}

pub struct Run {
    pub seen: Vec<Seen>,
    /// From the first request to the last end.
    pub wall: Duration,
}

/// Runs `times` streams, one after another, on each lane, and gives the lanes back.
pub async fn run(
    target: &Target,
    lanes: &mut Vec<Lane>,
    script: Script,
    times: u32,
    begin: Begin,
    gaps: Gaps,
) -> anyhow::Result<Run> {
    let count = lanes.len();
    let ready = Arc::new(Barrier::new(count + 1));
    let mut tasks = JoinSet::new();
    for (place, mut lane) in lanes.drain(..).enumerate() {
        let request = target.chat(&script.prompt(), Reply::Stream, lane.session.as_deref());
        let ready = Arc::clone(&ready);
        tasks.spawn(async move {
            ready.wait().await;
            if let Begin::Spread(over) = begin {
                tokio::time::sleep(over.mul_f64(f64::from(u32::try_from(place)?) / f64::from(u32::try_from(count)?)))
                    .await;
            }
            let mut seen = Vec::new();
            for _ in 0..times {
                seen.push(stream(&mut lane.connection, &request, script, gaps).await?);
            }
            anyhow::Ok((place, lane, seen))
        });
    }
    ready.wait().await;
    let since = Instant::now();
    let mut back = Vec::with_capacity(count);
    let mut seen = Vec::new();
    while let Some(done) = tasks.join_next().await {
        let (place, lane, streams) = done??;
        back.push((place, lane));
        seen.extend(streams);
    }
    let wall = since.elapsed();
    back.sort_by_key(|(place, _)| *place);
    lanes.extend(back.into_iter().map(|(_, lane)| lane));
    Ok(Run { seen, wall })
}

/// One stream, read to its end, every piece checked.
pub async fn stream(connection: &mut Connection, request: &[u8], script: Script, gaps: Gaps) -> anyhow::Result<Seen> {
    let mut frames = Frames::new(script, Instant::now());
    if gaps == Gaps::All {
        frames = frames.with_gaps();
    }
    let head = connection.ask(request).await?;
    if head.status != 200 {
        let body = connection.text(&head).await?;
        anyhow::bail!("status {}: {}", head.status, String::from_utf8_lossy(&body));
    }
    connection.body(&head, |piece| frames.take(piece)).await?;
    frames.end()
}
