//! Joining a session for its last turn: as quick where a million entries lie before it as where there are a hundred.

use std::time::Instant;

use anyhow::Context as _;
use serde_json::Value;

use super::{SIZE, on_client_runtime};
use crate::args::Args;
use crate::frames::{Script, content};
use crate::gateway::{Gateway, Seat};
use crate::http::Reply;
use crate::measure::{median, millis};
use crate::report::{Bar, Report, Series};
use crate::websocket::{Reading, WebSocket};

const LENGTHS: [u32; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];

/// Pieces of each turn but the last.
const TURN: Script = Script::Chunks { count: 1_000, size: SIZE };
const SHORT_TURN: Script = Script::Chunks { count: 90, size: SIZE };
const LAST_TURN: Script = Script::Chunks { count: 3, size: SIZE };

/// Times that each session is joined in a round.
const TIMES: u32 = 40;

pub fn measure(args: &Args, report: &mut Report) -> anyhow::Result<()> {
    let series = |what: &str, unit| LENGTHS.map(|length| Series::new(format!("join 1 turn of {length}: {what}"), unit));
    let (mut cpu, mut wall) = (series("CPU", "µs"), series("time", "µs"));
    let mut cold = series("time, first after a restart", "ms");
    on_client_runtime(async {
        let mut gateway = Gateway::start()?;
        // Joined first, so that what a new process does once is nobody's.
        let warm_up = session_of(&gateway, LENGTHS[0]).await?;
        let mut sessions = Vec::new();
        for length in LENGTHS {
            sessions.push(session_of(&gateway, length).await?);
        }
        for _ in 0..args.rounds {
            gateway = gateway.restart()?;
            join(&gateway, &warm_up).await?;
            for (place, session) in sessions.iter().enumerate() {
                cold[place].push(join(&gateway, session).await? / 1e3);
            }
            for (place, session) in sessions.iter().enumerate() {
                let mut times = Vec::new();
                let before = gateway.cpu()?;
                for _ in 0..TIMES {
                    times.push(join(&gateway, session).await?);
                }
                let spent = gateway.cpu()?.saturating_sub(before);
                cpu[place].push(millis(spent) * 1e3 / f64::from(TIMES));
                wall[place].push(median(&times));
            }
        }
        anyhow::Ok(())
    })?;
    report.show_all(cpu.iter().chain(&wall).chain(&cold));
    let constant = Some(Bar::gate_at_most(1.5));
    report.ratio("join 1 turn, CPU, 10⁶ entries : 10²", &cpu[4], &cpu[0], constant);
    report.ratio("join 1 turn, time, 10⁶ entries : 10²", &wall[4], &wall[0], None);
    report.ratio("join 1 turn after a restart, time, 10⁶ entries : 10²", &cold[4], &cold[0], None);
    Ok(())
}

/// A session with so many entries, turns of equal length and a short one.
async fn session_of(gateway: &Gateway, length: u32) -> anyhow::Result<String> {
    let mut seat = gateway.seats(1).await?.pop().context("no session")?;
    if length < TURN.count() {
        speak(gateway, &mut seat, SHORT_TURN).await?;
    }
    for _ in 0..length / TURN.count() {
        speak(gateway, &mut seat, TURN).await?;
    }
    speak(gateway, &mut seat, LAST_TURN).await?;
    Ok(seat.session)
}

async fn speak(gateway: &Gateway, seat: &mut Seat, script: Script) -> anyhow::Result<()> {
    let request = gateway.target.chat(&script.prompt(), Reply::Whole, Some(&seat.session));
    let head = seat.connection.ask(&request).await?;
    let body = seat.connection.text(&head).await?;
    anyhow::ensure!(head.status == 200, "status {}: {}", head.status, String::from_utf8_lossy(&body));
    let length = content(&body).map_or(0, <[u8]>::len);
    anyhow::ensure!(length == SIZE * script.count() as usize, "{length} bytes came: {}", gateway.last_words());
    Ok(())
}

/// From the first byte to the end of the replay, in µs.
async fn join(gateway: &Gateway, session: &str) -> anyhow::Result<f64> {
    let since = Instant::now();
    let mut socket = WebSocket::open(&gateway.target, &format!("/acp?session={session}&limit=1")).await?;
    socket.initialize().await?;
    let mut pieces = 0;
    let mut expected = Vec::new();
    socket
        .take(|message| {
            let message: Value = serde_json::from_slice(message)?;
            if message["params"]["update"]["sessionUpdate"] == "agent_message_chunk" {
                pieces += 1;
                LAST_TURN.write(pieces, &mut expected);
                let text = message["params"]["update"]["content"]["text"].as_str().unwrap_or_default();
                anyhow::ensure!(text.as_bytes() == expected, "piece {pieces} is `{text}`");
            }
            let is_over = message["method"] == "_gembridge/replay_ended";
            Ok(if is_over { Reading::IsOver } else { Reading::GoesOn })
        })
        .await?;
    anyhow::ensure!(pieces == LAST_TURN.count(), "{pieces} pieces of the last turn came");
    Ok(since.elapsed().as_secs_f64() * 1e6)
}
