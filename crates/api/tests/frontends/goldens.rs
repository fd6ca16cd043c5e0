//! Requests beside what becomes of them, for the dialects of Messages and Ollama: `request.json` and the agent's `events.jsonl` give
//! `response.json`, and with `stream` the file that begins with `stream`; and folding the stream gives the response.

use std::fs;
use std::path::{Path, PathBuf};

use gembridge_core::test_support::ScriptedAgents;
use serde_json::{Value, json};

use crate::openai::golden::{perform, read};
use crate::openai::support::http::{Answer, post};
use crate::openai::support::server::TestServer;
use crate::openai::support::tools::FakeTools;

/// What differs between the two.
struct Dialect {
    name: &'static str,
    /// Where a request is sent.
    path: fn(&Value) -> &'static str,
    stream_file: &'static str,
    /// The parts of a stream, as JSON.
    parts: fn(&str) -> Vec<Value>,
    /// The answer that the parts add up to.
    folded: fn(&[Value]) -> Value,
    /// What differs each time.
    changing: &'static [&'static str],
}

fn cases(dialect: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/frontends/goldens").join(dialect);
    let mut cases: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(cases.len() >= 10, "{cases:?}");
    cases
}

async fn play(dialect: &Dialect, case: &Path, stream: bool) -> Answer {
    let events = read(case, "events.jsonl");
    let (agents, tools) = (ScriptedAgents::new(|_| vec![]), FakeTools::new());
    let server = TestServer::with_calls_at_once(&agents, &tools).await;
    let mut request: Value = serde_json::from_str(&read(case, "request.json")).unwrap();
    request["stream"] = json!(stream);
    let asking = async { post(server.address, (dialect.path)(&request), &[], request.to_string()).await.whole().await };
    let (answer, ()) = tokio::join!(asking, async {
        agents.until_prompted(0).await;
        perform(&events, &server, &agents, &tools).await;
    });
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer
}

/// What differs each time, made equal, wherever it stands.
fn settle(value: &mut Value, changing: &[&str], calls: &mut Vec<String>) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| settle(value, changing, calls)),
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str() {
                    Some(id) if name == "id" && id.starts_with("call_") => {
                        let at = calls.iter().position(|known| known == id).unwrap_or_else(|| {
                            calls.push(id.to_owned());
                            calls.len() - 1
                        });
                        *value = json!(format!("call_{at}"));
                    }
                    _ if changing.contains(&name.as_str()) => *value = json!(0),
                    _ => settle(value, changing, calls),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn settled(mut value: Value, dialect: &Dialect) -> Value {
    settle(&mut value, dialect.changing, &mut Vec::new());
    value
}

async fn every_folder_comes_out_as_it_is_written_down(dialect: Dialect) {
    let mut differences = Vec::new();
    for case in cases(dialect.name) {
        let name = case.display();
        let whole = settled(play(&dialect, &case, false).await.json(), &dialect);
        let stream = play(&dialect, &case, true).await;
        let parts = (dialect.parts)(&stream.body);
        assert_eq!(settled((dialect.folded)(&parts), &dialect), whole, "{name}: the stream folds into the answer");
        let parts = settled(json!(parts), &dialect);
        let lines =
            parts.as_array().unwrap().iter().map(Value::to_string).fold(String::new(), |all, part| all + &part + "\n");
        for (file, found) in [("response.json", format!("{whole:#}\n")), (dialect.stream_file, lines)] {
            if fs::read_to_string(case.join(file)).unwrap_or_default() != found {
                differences.push(format!("{name}/{file} should be\n{found}"));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

fn events(stream: &str) -> Vec<Value> {
    let events = stream.split("\n\n").filter(|event| !event.is_empty());
    let event = |event: &str| {
        let (name, data) = event.split_once("\ndata: ").unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!(name, format!("event: {}", data["type"].as_str().unwrap()));
        data
    };
    events.map(event).collect()
}

/// As the client's library does it.
fn folded_events(events: &[Value]) -> Value {
    let mut message = events[0]["message"].clone();
    let mut input = String::new();
    for event in events {
        let at = event["index"].as_u64().and_then(|index| usize::try_from(index).ok()).unwrap_or_default();
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                message["content"].as_array_mut().unwrap().push(event["content_block"].clone());
                assert_eq!(message["content"].as_array().unwrap().len(), at + 1);
                input.clear();
            }
            "content_block_delta" => {
                for (field, more) in event["delta"].as_object().unwrap().iter().filter(|(field, _)| *field != "type") {
                    if field == "partial_json" {
                        input += more.as_str().unwrap();
                        message["content"][at]["input"] = serde_json::from_str(&input).unwrap();
                    } else {
                        let before = message["content"][at][field].as_str().unwrap().to_owned();
                        message["content"][at][field] = json!(before + more.as_str().unwrap());
                    }
                }
            }
            "message_delta" => {
                for (field, value) in event["delta"].as_object().unwrap() {
                    message[field] = value.clone();
                }
                message["usage"] = event["usage"].clone();
            }
            _ => {}
        }
    }
    assert_eq!(events.last().unwrap()["type"], "message_stop");
    message
}

fn lines(stream: &str) -> Vec<Value> {
    stream.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn folded_lines(lines: &[Value]) -> Value {
    let (last, before) = lines.split_last().unwrap();
    let mut whole = last.clone();
    let mut put = |parent: &str, field: &str| {
        let of = |line: &Value| line.pointer(&format!("{parent}/{field}")).and_then(Value::as_str).map(str::to_owned);
        let sum: String = before.iter().filter_map(of).collect();
        if let (false, Some(parent)) = (sum.is_empty(), whole.pointer_mut(parent)) {
            parent[field] = json!(sum);
        }
    };
    put("/message", "content");
    put("/message", "thinking");
    put("", "response");
    put("", "thinking");
    let calls: Vec<Value> =
        before.iter().flat_map(|line| line["message"]["tool_calls"].as_array().cloned().unwrap_or_default()).collect();
    if !calls.is_empty() {
        whole["message"]["tool_calls"] = json!(calls);
    }
    assert!(last["done"] == true && before.iter().all(|line| line["done"] == false));
    whole
}

#[tokio::test]
async fn messages() {
    every_folder_comes_out_as_it_is_written_down(Dialect {
        name: "messages",
        path: |_| "/v1/messages",
        stream_file: "stream.events.jsonl",
        parts: events,
        folded: folded_events,
        changing: &["id"],
    })
    .await;
}

#[tokio::test]
async fn ollama() {
    every_folder_comes_out_as_it_is_written_down(Dialect {
        name: "ollama",
        path: |request| if request["prompt"].is_null() { "/api/chat" } else { "/api/generate" },
        stream_file: "stream.ndjson",
        parts: lines,
        folded: folded_lines,
        changing: &["created_at", "total_duration", "prompt_eval_duration", "eval_duration"],
    })
    .await;
}
