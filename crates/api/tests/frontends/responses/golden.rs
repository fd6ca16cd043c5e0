//! Requests beside what becomes of them: `request.json` and the agent's `events.jsonl` give `response.json`, and with
//! `stream` also `stream.sse`; and folding the stream gives the response.

use std::fs;
use std::path::{Path, PathBuf};

use gembridge_core::test_support::ScriptedAgents;
use serde_json::{Value, json};

use super::support::{create, events};
use crate::openai::golden::perform;
use crate::openai::support::http::Answer;
use crate::openai::support::server::TestServer;
use crate::openai::support::tools::FakeTools;

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/frontends/responses/golden");
    let mut cases: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}

fn read(case: &Path, name: &str) -> String {
    fs::read_to_string(case.join(name)).unwrap_or_else(|error| panic!("{}/{name}: {error}", case.display()))
}

async fn play(case: &Path, stream: bool) -> Answer {
    let script = read(case, "events.jsonl");
    let (agents, tools) = (ScriptedAgents::new(|_| vec![]), FakeTools::new());
    let server = TestServer::with_calls_at_once(&agents, &tools).await;
    let mut request: Value = serde_json::from_str(&read(case, "request.json")).unwrap();
    request["stream"] = json!(stream);
    let (answer, ()) = tokio::join!(create(&server, &request), async {
        agents.until_prompted(0).await;
        perform(&script, &server, &agents, &tools).await;
    });
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer
}

/// A body without what differs each time: ids and times.
fn settled(body: &str, response: &Value) -> String {
    let own = response["id"].as_str().unwrap().strip_prefix("resp_").unwrap();
    let mut body = body.replace(own, "0");
    let items = response["output"].as_array().unwrap();
    for (at, id) in items.iter().filter_map(|item| item["call_id"].as_str()).enumerate() {
        body = body.replace(id, &format!("call_{at}"));
    }
    for time in ["created_at", "completed_at"] {
        body = body.replace(&format!("\"{time}\":{}", response[time]), &format!("\"{time}\":0"));
    }
    body
}

/// The response that the events add up to.
fn folded(events: &[Value]) -> Value {
    let mut items: Vec<Value> = Vec::new();
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number, "{event}");
        let append =
            |field: &mut Value| *field = json!(field.as_str().unwrap().to_owned() + event["delta"].as_str().unwrap());
        let place = || usize::try_from(event["output_index"].as_u64().unwrap()).unwrap();
        match event["type"].as_str().unwrap() {
            "response.output_item.added" => {
                assert_eq!(place(), items.len(), "items come in order");
                items.push(event["item"].clone());
            }
            "response.content_part.added" => items[place()]["content"] = json!([event["part"]]),
            "response.reasoning_summary_part.added" => items[place()]["summary"] = json!([event["part"]]),
            "response.output_text.delta" => append(&mut items[place()]["content"][0]["text"]),
            "response.refusal.delta" => append(&mut items[place()]["content"][0]["refusal"]),
            "response.reasoning_summary_text.delta" => append(&mut items[place()]["summary"][0]["text"]),
            "response.function_call_arguments.delta" => append(&mut items[place()]["arguments"]),
            "response.custom_tool_call_input.delta" => append(&mut items[place()]["input"]),
            "response.output_text.done" => assert_eq!(items[place()]["content"][0]["text"], event["text"]),
            "response.refusal.done" => assert_eq!(items[place()]["content"][0]["refusal"], event["refusal"]),
            "response.reasoning_summary_text.done" => assert_eq!(items[place()]["summary"][0]["text"], event["text"]),
            "response.content_part.done" => assert_eq!(items[place()]["content"][0], event["part"]),
            "response.reasoning_summary_part.done" => assert_eq!(items[place()]["summary"][0], event["part"]),
            "response.function_call_arguments.done" => assert_eq!(items[place()]["arguments"], event["arguments"]),
            "response.custom_tool_call_input.done" => assert_eq!(items[place()]["input"], event["input"]),
            "response.output_item.done" => {
                let item = &mut items[place()];
                if !item["status"].is_null() {
                    item["status"] = event["item"]["status"].clone();
                }
                assert_eq!(*item, event["item"]);
            }
            "response.created" | "response.in_progress" => assert_eq!(event["response"]["status"], "in_progress"),
            "response.completed" | "response.incomplete" => {
                assert_eq!(number + 1, events.len(), "it is the last");
                assert_eq!(event["response"]["output"], json!(items));
            }
            other => panic!("{other}"),
        }
    }
    events.last().unwrap()["response"].clone()
}

#[tokio::test]
async fn every_folder_comes_out_as_it_is_written_down() {
    let cases = cases();
    assert!(cases.len() >= 5, "{cases:?}");
    for case in cases {
        let name = case.display();
        let whole = play(&case, false).await;
        let whole = settled(&whole.body, &whole.json());
        let stream = play(&case, true).await;
        let last = folded(&events(&stream.body));
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(
            value(&settled(&last.to_string(), &last)),
            value(&whole),
            "{name}: the stream folds into the answer"
        );
        assert_eq!(format!("{whole}\n"), read(&case, "response.json"), "{name}/response.json");
        assert_eq!(settled(&stream.body, &last), read(&case, "stream.sse"), "{name}/stream.sse");
    }
}
