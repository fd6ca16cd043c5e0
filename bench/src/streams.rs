//! Many streams at once, each on a connection of its own, all begun together.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::frames::{Frames, Script, Seen, Start};
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

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub script: Script,
    /// Streams of each lane, one after another.
    pub times: u32,
    pub begin: Begin,
    pub gaps: Gaps,
}

pub struct Run<T> {
    pub seen: Vec<Seen>,
    /// From the first request to the last end.
    pub wall: Duration,
    /// From when every lane had its first piece to the last end.
    pub together: Duration,
    /// What was read from the clock at that moment.
    pub at_start: T,
}

/// Runs streams on all lanes, and gives the lanes back. The clock is read when every lane has had its first piece.
pub async fn run<T>(
    target: &Target,
    lanes: &mut Vec<Lane>,
    plan: Plan,
    clock: impl FnOnce() -> T,
) -> anyhow::Result<Run<T>> {
    let (start, ready) = (Start::of(lanes.len()), Arc::new(Barrier::new(lanes.len() + 1)));
    let mut tasks = JoinSet::new();
    for (place, mut lane) in lanes.drain(..).enumerate() {
        let request = target.chat(&plan.script.prompt(), Reply::Stream, lane.session.as_deref());
        let (ready, start) = (Arc::clone(&ready), Arc::clone(&start));
        let late = plan.begin.late(place, start.streams());
        tasks.spawn(async move {
            ready.wait().await;
            tokio::time::sleep(late).await;
            let mut seen = Vec::new();
            for _ in 0..plan.times {
                seen.push(stream(&mut lane.connection, &request, plan, &start).await?);
            }
            anyhow::Ok((place, lane, seen))
        });
    }
    ready.wait().await;
    let since = Instant::now();
    let mut done = Vec::new();
    loop {
        tokio::select! {
            biased;
            () = start.everybody() => break,
            Some(ended) = tasks.join_next() => done.push(ended??),
        }
    }
    let is_unpaced = matches!(plan.script, Script::Chunks { .. });
    anyhow::ensure!(is_unpaced || done.is_empty(), "a stream ended before all of them had begun");
    let (began, at_start) = (Instant::now(), clock());
    while let Some(ended) = tasks.join_next().await {
        done.push(ended??);
    }
    let (wall, together) = (since.elapsed(), began.elapsed());
    done.sort_by_key(|(place, ..)| *place);
    let mut seen = Vec::new();
    for (_, lane, streams) in done {
        lanes.push(lane);
        seen.extend(streams);
    }
    Ok(Run { seen, wall, together, at_start })
}

impl Begin {
    /// How long this stream waits for its turn.
    fn late(self, place: usize, of: usize) -> Duration {
        let share = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        match self {
            Self::AtOnce => Duration::ZERO,
            Self::Spread(over) => over.mul_f64(share(place) / share(of)),
        }
    }
}

/// One stream, read to its end, every piece checked.
async fn stream(connection: &mut Connection, request: &[u8], plan: Plan, start: &Arc<Start>) -> anyhow::Result<Seen> {
    let mut frames = Frames::new(plan.script, Instant::now()).together(start);
    if plan.gaps == Gaps::All {
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
