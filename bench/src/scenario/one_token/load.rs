//! Requests one after another, or at a fixed rate whatever the answers do.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::SCRIPT;
use crate::frames::{Frames, content};
use crate::http::{Connection, Reply, Target};
use crate::raw_agent::Shared;
use crate::streams::Lane;

#[derive(Clone, Copy)]
pub struct Rate {
    pub a_second: u32,
    pub lasting: Duration,
}

pub async fn one_after_another(target: &Target, lane: &mut Lane, reply: Reply, count: u32) -> anyhow::Result<Vec<f64>> {
    let request = target.chat(&SCRIPT.prompt(), reply, lane.session.as_deref());
    let mut times = Vec::new();
    for _ in 0..count {
        let since = Instant::now();
        once(&mut lane.connection, &request, reply).await?;
        times.push(since.elapsed().as_secs_f64() * 1e6);
    }
    Ok(times)
}

/// All clients at an even pace, one after the other. A request whose client still waits for the answer before counts
/// from when it was due.
pub async fn at_rate(target: &Target, lanes: &mut Vec<Lane>, reply: Reply, rate: Rate) -> anyhow::Result<Vec<f64>> {
    let clients = lanes.len();
    let begin = Instant::now() + Duration::from_millis(20);
    let mut tasks = JoinSet::new();
    for (place, mut lane) in lanes.drain(..).enumerate() {
        let request = target.chat(&SCRIPT.prompt(), reply, lane.session.as_deref());
        tasks.spawn(async move {
            let mut times = Vec::new();
            for due in dues(place, clients, rate, begin) {
                let since = wait(due).await;
                once(&mut lane.connection, &request, reply).await?;
                times.push(since.elapsed().as_secs_f64() * 1e6);
            }
            anyhow::Ok((place, lane, times))
        });
    }
    let (mut back, mut times) = (Vec::new(), Vec::new());
    while let Some(done) = tasks.join_next().await {
        let (place, lane, of_lane) = done??;
        back.push((place, lane));
        times.extend(of_lane);
    }
    back.sort_by_key(|(place, _)| *place);
    lanes.extend(back.into_iter().map(|(_, lane)| lane));
    Ok(times)
}

/// The same at the agents' own pipes.
pub async fn at_rate_raw(
    agents: &[Arc<Shared>],
    clients: usize,
    rate: Rate,
    calls: &mut u64,
) -> anyhow::Result<Vec<f64>> {
    let begin = Instant::now() + Duration::from_millis(20);
    let first = *calls;
    *calls += 100_000;
    let mut tasks = JoinSet::new();
    for place in 0..clients {
        let agent = Arc::clone(&agents[place % agents.len()]);
        let session = place / agents.len();
        tasks.spawn(async move {
            let mut times = Vec::new();
            for (call, due) in dues(place, clients, rate, begin).into_iter().enumerate() {
                let since = wait(due).await;
                agent.turn(session, first + u64::try_from(call)?, &SCRIPT.prompt()).await?;
                times.push(since.elapsed().as_secs_f64() * 1e6);
            }
            anyhow::Ok(times)
        });
    }
    let mut times = Vec::new();
    while let Some(done) = tasks.join_next().await {
        times.extend(done??);
    }
    Ok(times)
}

/// When the requests of this client are due.
fn dues(place: usize, clients: usize, rate: Rate, begin: Instant) -> Vec<Instant> {
    let all = (rate.lasting.as_secs_f64() * f64::from(rate.a_second)).round();
    let apart = rate.lasting.div_f64(all);
    let mut dues = Vec::new();
    let mut number = u32::try_from(place).unwrap_or(u32::MAX);
    while f64::from(number) < all {
        dues.push(begin + apart * number);
        number += u32::try_from(clients).unwrap_or(u32::MAX);
    }
    dues
}

/// Waits until the request is due. A client that is free then counts from when its clock, which is a coarse one, let it
/// go.
async fn wait(due: Instant) -> Instant {
    if Instant::now() >= due {
        return due;
    }
    sleep_until(due).await;
    Instant::now()
}

async fn once(connection: &mut Connection, request: &[u8], reply: Reply) -> anyhow::Result<()> {
    let head = connection.ask(request).await?;
    if head.status != 200 {
        let body = connection.text(&head).await?;
        anyhow::bail!("status {}: {}", head.status, String::from_utf8_lossy(&body));
    }
    match reply {
        Reply::Whole => {
            let body = connection.text(&head).await?;
            let mut expected = Vec::new();
            SCRIPT.write(1, &mut expected);
            anyhow::ensure!(content(&body) == Some(&expected[..]), "an answer is `{}`", String::from_utf8_lossy(&body));
        }
        Reply::Stream => {
            let mut frames = Frames::new(SCRIPT, std::time::Instant::now());
            connection.body(&head, |piece| frames.take(piece)).await?;
            frames.end()?;
        }
    }
    Ok(())
}
