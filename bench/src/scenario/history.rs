//! Clients send all that was said with every request: what long histories cost, through the gateway and at the decoder
//! and the fingerprint alone.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Duration;

use anyhow::Context as _;
use gembridge_api::openai::wire::{Message, OneOrMany};
use gembridge_core::exchange::{ConversationLimits, Conversations};
use gembridge_core::model::{self, Role};
use serde::Deserialize;
use serde_json::Value;

use crate::args::Args;
use crate::gateway::Gateway;
use crate::http::{Connection, Reply, Target};
use crate::measure::{load_average, median, own_cpu};
use crate::report::{Bar, Report, Series};

pub const NAME: &str = "history";
pub const ABOUT: &str =
    "CPU of a request with a long history: gateway, decoder, fingerprint : serde_json::Value : barest reader, memcmp";

/// Through the gateway; all but the last two messages are known to the session.
const SERVED: [u32; 3] = [100, 1_000, 9_900];
const ALONE: [u32; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];

/// Requests of one measurement; each adds a question and an answer.
const TURNS: u32 = 10;

/// The least that a reader could keep of a message, with the same parser.
#[derive(Deserialize)]
struct Barest<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow)]
    content: Cow<'a, str>,
}

/// What people write, in JSON.
const ASKED: &str = "The quick brown fox jumps over the lazy dog, and then it says a few words more about itself, \
    its plans for the day, the weather as it was and as it will be, and what it thinks of dogs in general.";
/// What models write: paragraphs, lists and quotations.
const ANSWERED: &str = "Foxes **jump**, and dogs do not mind:\\n\\n- the fox is quick,\\n- the dog is lazy,\\n- and both \
    of them are \\\"brown\\\" in most of the pictures that people draw of them.\\n\\nShall I tell you more about either?";

pub fn run(args: &Args) -> anyhow::Result<Report> {
    let mut report = Report::new(NAME, ABOUT);
    served(args, &mut report)?;
    alone(args, &mut report)?;
    report.note("messages of 200 bytes, plain and with line ends and quotes in turn; a request that goes on with its session; the gateway takes 10 000 at most");
    report.note(format!("load average at the end: {}", load_average()));
    Ok(report)
}

fn served(args: &Args, report: &mut Report) -> anyhow::Result<()> {
    let mut costs = SERVED.map(|count| Series::new(format!("gateway, {count} messages: CPU"), "µs"));
    super::client_runtime()?.block_on(async {
        let gateway = Gateway::start()?;
        for _ in 0..args.rounds {
            for (count, cost) in SERVED.into_iter().zip(&mut costs) {
                let spent = talk(&gateway, count).await;
                let spent = spent.map_err(|error| error.context(gateway.last_words()))?;
                cost.push(spent.as_secs_f64() * 1e6 / f64::from(TURNS));
            }
        }
        anyhow::Ok(())
    })?;
    report.show_all(&costs);
    report.ratio("gateway, 9900 : 1000 messages", &costs[2], &costs[1], Some(Bar::gate_at_most(12.0)));
    Ok(())
}

/// CPU of some requests that each bring the whole history, in one session.
async fn talk(gateway: &Gateway, count: u32) -> anyhow::Result<Duration> {
    let target = &gateway.target;
    let mut connection = target.connect().await?;
    let mut history = messages(count - 1);
    let first = ask(&mut connection, target, &mut history).await?;
    let before = gateway.cpu()?;
    for _ in 0..TURNS {
        let session = ask(&mut connection, target, &mut history).await?;
        anyhow::ensure!(session == first, "the history was not found in its session");
    }
    Ok(gateway.cpu()?.saturating_sub(before))
}

/// Sends the history with a new question; both it and the answer are part of it then.
async fn ask(connection: &mut Connection, target: &Target, history: &mut String) -> anyhow::Result<String> {
    history.push_str(r#",{"role":"user","content":"chunks 1 size 60"}"#);
    let request = target.conversation(&format!("[{history}]"), Reply::Whole, None);
    let head = connection.ask(&request).await?;
    let body = connection.text(&head).await?;
    anyhow::ensure!(head.status == 200, "status {}: {}", head.status, String::from_utf8_lossy(&body));
    let answer: Value = serde_json::from_slice(&body)?;
    let said = &answer["choices"][0]["message"]["content"];
    write!(history, r#",{{"role":"assistant","content":{said}}}"#)?;
    head.session.context("the answer names no session")
}

/// An even number of messages, or one less, each with words of its own.
fn messages(count: u32) -> String {
    let message = |number: u32| {
        let (role, words) = if number.is_multiple_of(2) { ("user", ASKED) } else { ("assistant", ANSWERED) };
        format!(r#"{{"role":"{role}","content":"{number}: {words}"}}"#)
    };
    (0..count & !1).map(message).collect::<Vec<_>>().join(",")
}

fn alone(args: &Args, report: &mut Report) -> anyhow::Result<()> {
    let conversations = Conversations::new(ConversationLimits::default());
    let mut growth: Vec<[Series; 2]> = Vec::new();
    for count in ALONE {
        let body = format!("[{}]", messages(count));
        let again = body.clone();
        let times = (2_000_000 / count).clamp(1, 2_000);
        let series = |who: &str| Series::new(format!("{count} messages: {who}"), "ns/message");
        let [mut decoder, mut print, mut both, mut barest, mut value, mut compared] =
            ["decoder", "fingerprint", "both", "barest reader", "serde_json::Value", "memcmp"].map(series);
        for _ in 0..args.rounds {
            let each = |spent: Duration| spent.as_secs_f64() * 1e9 / f64::from(count);
            let decoding = each(costed(times, || decode(&body).map(|messages| messages.len()))?);
            decoder.push(decoding);
            let read = decode(&body)?;
            let said = read.iter().map(said).collect::<anyhow::Result<Vec<_>>>()?;
            let printing = each(costed(times, || {
                let mut fingerprint = conversations.fingerprint();
                for said in &said {
                    fingerprint.add(said);
                }
                Ok(fingerprint.mark())
            })?);
            print.push(printing);
            both.push(decoding + printing);
            drop(read);
            value.push(each(costed(times.div_ceil(4), || Ok(serde_json::from_str::<Value>(&body)?))?));
            compared.push(each(costed(times, || Ok(black_box(&body) == black_box(&again)))?));
            barest.push(each(costed(times, || read_barely(&body))?));
        }
        report.show_all([&decoder, &print, &barest, &value, &compared]);
        let title = format!("{count} messages: fingerprint : decoder");
        report.ratio(title, &print, &decoder, Some(Bar::gate_at_most(0.1)));
        report.ratio(format!("{count} messages: Value : decoder"), &value, &decoder, Some(Bar::goal_at_least(4.0)));
        let title = format!("{count} messages: decoder and fingerprint : barest reader");
        report.ratio(title, &both, &barest, Some(Bar::goal_at_most(1.3)));
        growth.push([decoder, print]);
    }
    for (place, name) in ["decoder", "fingerprint"].into_iter().enumerate() {
        let (few, many) = (&growth[1][place], &growth[4][place]);
        report.ratio(format!("{name}, ns/message, 1 000 000 : 1000"), many, few, Some(Bar::gate_at_most(2.0)));
    }
    Ok(())
}

fn decode(body: &str) -> anyhow::Result<Vec<Message<'_>>> {
    Ok(serde_json::from_str(body)?)
}

/// The bytes of all roles and texts.
fn read_barely(body: &str) -> anyhow::Result<usize> {
    let messages: Vec<Barest<'_>> = serde_json::from_str(body)?;
    Ok(messages.iter().map(|message| message.role.len() + message.content.len()).sum())
}

fn said(message: &Message<'_>) -> anyhow::Result<model::Message> {
    let Some(OneOrMany::One(text)) = &message.content else { anyhow::bail!("a message without text") };
    let role = if message.role.as_deref() == Some("user") { Role::User } else { Role::Assistant };
    Ok(model::Message::text(role, &**text))
}

/// The CPU time of one go, the median of three times `times`.
fn costed<T>(times: u32, mut go: impl FnMut() -> anyhow::Result<T>) -> anyhow::Result<Duration> {
    let mut rounds = Vec::new();
    for _ in 0..3 {
        let before = own_cpu();
        for _ in 0..times {
            black_box(go()?);
        }
        rounds.push(own_cpu().saturating_sub(before).as_secs_f64() / f64::from(times));
    }
    Ok(Duration::from_secs_f64(median(&rounds)))
}
