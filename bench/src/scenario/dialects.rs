//! The same streams in every dialect: what each wire format costs the gateway beside chat completions.

use serde_json::{Value, json};

use crate::args::Args;
use crate::frames::Script;
use crate::gateway::{Gateway, Seat};
use crate::measure::load_average;
use crate::report::{Bar, Report, Series};

pub const NAME: &str = "dialects";
pub const ABOUT: &str = "CPU of one piece and of 10 000 pieces: Responses, Messages and Ollama : chat completions";

struct Dialect {
    name: &'static str,
    path: &'static str,
    body: fn(&str) -> Value,
    /// Stands in each event that has a piece, and in no other.
    piece: &'static str,
    /// Stands in the last event.
    end: &'static str,
}

const DIALECTS: [Dialect; 4] = [
    Dialect {
        name: "chat",
        path: "/v1/chat/completions",
        body: |prompt| json!({ "model": "demo", "stream": true, "messages": [{ "role": "user", "content": prompt }] }),
        piece: r#""delta":{"content":"#,
        end: "[DONE]",
    },
    Dialect {
        name: "responses",
        path: "/v1/responses",
        body: |prompt| json!({ "model": "demo", "stream": true, "input": prompt }),
        piece: "event: response.output_text.delta",
        end: "event: response.completed",
    },
    Dialect {
        name: "messages",
        path: "/v1/messages",
        body: |prompt| {
            let messages = json!([{ "role": "user", "content": prompt }]);
            json!({ "model": "demo", "stream": true, "max_tokens": 10_000_000, "messages": messages })
        },
        piece: r#""type":"text_delta""#,
        end: "event: message_stop",
    },
    Dialect {
        name: "ollama",
        path: "/api/chat",
        body: |prompt| json!({ "model": "demo", "messages": [{ "role": "user", "content": prompt }] }),
        piece: r#""done":false"#,
        end: r#""done":true"#,
    },
];

/// How many pieces an answer has, how often it is asked for in a round, and what is counted.
struct Case {
    name: &'static str,
    script: Script,
    times: u32,
    unit: &'static str,
}

const CASES: [Case; 2] = [
    Case { name: "one-token", script: Script::Chunks { count: 1, size: 60 }, times: 400, unit: "µs/request" },
    Case { name: "firehose-http", script: Script::Chunks { count: 10_000, size: 60 }, times: 5, unit: "µs/event" },
];

pub fn run(args: &Args) -> anyhow::Result<Report> {
    let mut report = Report::new(NAME, ABOUT);
    for case in &CASES {
        let mut costs =
            DIALECTS.each_ref().map(|dialect| Series::new(format!("{}: {}", case.name, dialect.name), case.unit));
        super::client_runtime()?.block_on(async {
            let gateway = Gateway::start()?;
            let mut seats = gateway.seats(DIALECTS.len()).await?;
            for round in 0..=args.rounds {
                for (place, dialect) in DIALECTS.iter().enumerate() {
                    let cost = cost(case, dialect, &gateway, &mut seats[place]).await;
                    let cost = cost.map_err(|error| error.context(gateway.last_words()))?;
                    // The first round warms everything up.
                    if round > 0 {
                        costs[place].push(cost);
                    }
                }
            }
            anyhow::Ok(())
        })?;
        report.show_all(&costs);
        let [chat, others @ ..] = &costs;
        for (other, dialect) in others.iter().zip(&DIALECTS[1..]) {
            let name = format!("{}: CPU, {} : chat", case.name, dialect.name);
            report.ratio(name, other, chat, Some(Bar::goal_at_most(1.2)));
        }
    }
    report.note("CPU of the gateway alone, one client; each dialect goes on in a session of its own, by `x-session-id`; pieces are counted");
    report.note(format!("load average at the end: {}", load_average()));
    Ok(report)
}

/// Microseconds of CPU of the gateway for each request, or for each piece.
async fn cost(case: &Case, dialect: &Dialect, gateway: &Gateway, seat: &mut Seat) -> anyhow::Result<f64> {
    let body = (dialect.body)(&case.script.prompt()).to_string();
    let request = gateway.target.post(dialect.path, &body, Some(&seat.session));
    let before = gateway.cpu()?;
    for _ in 0..case.times {
        let head = seat.connection.ask(&request).await?;
        let text = seat.connection.text(&head).await?;
        let pieces = memchr::memmem::find_iter(&text, dialect.piece).count();
        let is_whole =
            pieces == case.script.count() as usize && memchr::memmem::find(&text, dialect.end.as_bytes()).is_some();
        anyhow::ensure!(
            head.status == 200 && is_whole,
            "{}: {} with {pieces} pieces: {}",
            dialect.name,
            head.status,
            String::from_utf8_lossy(&text[..text.len().min(2_000)])
        );
    }
    let spent = gateway.cpu()?.saturating_sub(before);
    Ok(spent.as_secs_f64() * 1e6 / f64::from(case.times) / f64::from(case.script.count()))
}
