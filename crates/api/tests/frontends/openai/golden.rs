//! Requests beside what becomes of them: `request.json` and the agent's `events.jsonl` give `response.json`, and with
//! `stream` also `stream.sse`; and folding the stream gives the response.

use std::fs;
use std::path::{Path, PathBuf};

use gembridge_core::driver::Signal;
use gembridge_core::model::{Event, Stop, Text, Usage};
use serde_json::{Value, json};

use crate::openai::support::http::Answer;
use crate::openai::support::server::TestServer;
use crate::openai::support::tools::FakeTools;
use crate::openai::support::{done_with, stopped, text, thought, update};
use gembridge_core::test_support::ScriptedAgents;

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/frontends/openai/golden");
    let mut cases: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}

pub fn read(case: &Path, name: &str) -> String {
    fs::read_to_string(case.join(name)).unwrap_or_else(|error| panic!("{}/{name}: {error}", case.display()))
}

/// Does what stands in the lines, as the agent. Words and tools take two ways to the session: what comes first must
/// have arrived before the other is sent.
pub async fn perform(events: &str, server: &TestServer, agents: &ScriptedAgents, tools: &FakeTools) {
    let (mut words, mut deeds) = (0, 0);
    for line in events.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let (call, output) = (&event["call"], &event["output"]);
        if call.is_null() && output.is_null() {
            if deeds > 0 {
                server.until_logged(deeds, |event| matches!(event, Event::Called(_) | Event::Output(_))).await;
            }
            words += 1;
            agents.does(0, [signal(&event)]).await;
            continue;
        }
        if words > 0 {
            server
                .until_logged(words, |event| matches!(event, Event::Text(_) | Event::Thought(_) | Event::Usage(_)))
                .await;
        }
        deeds += 1;
        if call.is_null() {
            tools.output(0, output).await;
        } else {
            drop(tools.call(0, call["tool"].as_str().unwrap(), &call["arguments"]).await);
        }
    }
}

/// One line of `events.jsonl` as a signal.
fn signal(event: &Value) -> Signal {
    let (kind, value) = event.as_object().unwrap().iter().next().unwrap();
    let word = || value.as_str().unwrap();
    match kind.as_str() {
        "text" => text(word()),
        "escaped" => {
            let body = bytes::Bytes::copy_from_slice(word().as_bytes());
            update(gembridge_core::model::Event::Text(Text::escaped(body)))
        }
        "thought" => thought(word()),
        "usage" => {
            let count = |name: &str| value[name].as_u64();
            update(gembridge_core::model::Event::Usage(Usage {
                input: count("input"),
                output: count("output"),
                thought: count("thought"),
                cached_read: count("cached"),
                ..Usage::default()
            }))
        }
        "done" => match word() {
            "end_turn" => done_with(Usage::default()),
            "max_tokens" => stopped(Stop::MaxTokens),
            "refusal" => stopped(Stop::Refusal),
            other => panic!("{other}"),
        },
        other => panic!("{other}"),
    }
}

async fn play(case: &Path, stream: bool) -> Answer {
    let events = read(case, "events.jsonl");
    let (agents, tools) = (ScriptedAgents::new(|_| vec![]), FakeTools::new());
    let server = TestServer::with_calls_at_once(&agents, &tools).await;
    let mut request: Value = serde_json::from_str(&read(case, "request.json")).unwrap();
    request["stream"] = json!(stream);
    if stream {
        request["stream_options"] = json!({"include_usage": true});
    }
    let (answer, ()) = tokio::join!(async { server.stream(&request).await.whole().await }, async {
        agents.until_prompted(0).await;
        perform(&events, &server, &agents, &tools).await;
    });
    answer
}

/// What differs each time, made equal.
fn settled(mut value: Value) -> Value {
    value["id"] = json!("chatcmpl-0");
    value["created"] = json!(0);
    value["system_fingerprint"] = json!("fp_0");
    for (at, id) in call_ids(&value).iter().enumerate() {
        value = serde_json::from_str(&value.to_string().replace(id, &format!("call_{at}"))).unwrap();
    }
    value
}

/// The ids of calls, in order.
fn call_ids(value: &Value) -> Vec<String> {
    let choices = value["choices"].as_array().unwrap();
    let of = |choice: &Value| ["message", "delta"].map(|side| choice[side]["tool_calls"].as_array().cloned());
    let calls = choices.iter().flat_map(of).flatten().flatten();
    calls.map(|call| call["id"].as_str().unwrap().to_owned()).collect()
}

/// The stream, with each chunk settled and its keys in the order of the wire.
fn settled_stream(answer: &Answer) -> String {
    let id = answer.chunks()[0]["id"].as_str().unwrap().to_owned();
    let created = answer.chunks()[0]["created"].to_string();
    let fingerprint = answer.chunks()[0]["system_fingerprint"].as_str().unwrap().to_owned();
    let ids: Vec<String> = answer.chunks().iter().flat_map(call_ids).collect();
    let named = |body: String, (at, id): (usize, &String)| body.replace(id, &format!("call_{at}"));
    let body = ids.iter().enumerate().fold(answer.body.clone(), named);
    body.replace(&id, "chatcmpl-0")
        .replace(&format!("\"created\":{created}"), "\"created\":0")
        .replace(&fingerprint, "fp_0")
}

/// The answer that the chunks add up to.
fn folded(chunks: &[Value]) -> Value {
    let mut choices: Vec<Value> = Vec::new();
    let mut usage = Value::Null;
    for chunk in chunks {
        if !chunk["usage"].is_null() {
            usage = chunk["usage"].clone();
        }
        for piece in chunk["choices"].as_array().unwrap() {
            let index = usize::try_from(piece["index"].as_u64().unwrap()).unwrap();
            while choices.len() <= index {
                let message = json!({"role": "assistant", "content": "", "refusal": null});
                choices.push(json!({"index": index, "message": message, "logprobs": null, "finish_reason": null}));
            }
            let choice = &mut choices[index];
            for call in piece["delta"]["tool_calls"].as_array().into_iter().flatten() {
                let message = choice["message"].as_object_mut().unwrap();
                let calls = message.entry("tool_calls").or_insert(json!([])).as_array_mut().unwrap();
                assert_eq!(call["index"], calls.len(), "calls come in order");
                let mut call = call.clone();
                call.as_object_mut().unwrap().remove("index");
                calls.push(call);
            }
            if !piece["delta"]["function_call"].is_null() {
                choice["message"]["function_call"] = piece["delta"]["function_call"].clone();
            }
            for field in ["content", "reasoning_content", "refusal"] {
                if let Some(more) = piece["delta"][field].as_str() {
                    let before = choice["message"][field].as_str().unwrap_or_default().to_owned();
                    choice["message"][field] = json!(before + more);
                }
            }
            if !piece["finish_reason"].is_null() {
                choice["finish_reason"] = piece["finish_reason"].clone();
            }
        }
    }
    for choice in &mut choices {
        let message = &mut choice["message"];
        let says_otherwise = ["tool_calls", "function_call", "refusal"].iter().any(|way| !message[way].is_null());
        if says_otherwise && message["content"] == "" {
            message["content"] = Value::Null;
        }
    }
    let first = &chunks[0];
    json!({
        "id": first["id"], "object": "chat.completion", "created": first["created"], "model": first["model"],
        "system_fingerprint": first["system_fingerprint"], "choices": choices, "usage": usage,
    })
}

#[tokio::test]
async fn every_folder_comes_out_as_it_is_written_down() {
    let cases = cases();
    assert!(cases.len() >= 5, "{cases:?}");
    for case in cases {
        let name = case.display();
        let whole = settled(play(&case, false).await.json());
        let stream = play(&case, true).await;
        assert_eq!(settled(folded(&stream.chunks())), whole, "{name}: the stream folds into the answer");
        let expected: Value = serde_json::from_str(&read(&case, "response.json")).unwrap();
        assert_eq!(whole, expected, "{name}/response.json");
        assert_eq!(settled_stream(&stream), read(&case, "stream.sse"), "{name}/stream.sse");
    }
}
