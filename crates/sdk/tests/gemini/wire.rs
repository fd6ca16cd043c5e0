//! What the library and the real Gemini CLI say to each other, line by line, and what they make of what neither expects.

use std::fs;
use std::path::PathBuf;

use gembridge_sdk::{AdapterBuilder, Prompt, Tool, ToolOrigin, TurnEvent};
use gembridge_testkit::{real_gemini, write_script};
use serde_json::{Value, json};

use crate::{Gemini, Numbers, Review, script};

/// The CLI between two recorders; what it says goes through a `sed` script on the way to us.
struct Recorded {
    gemini: Gemini,
}

impl Recorded {
    async fn new() -> Self {
        Self { gemini: Gemini::new().await }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.gemini.folder.path().join(name)
    }

    fn adapter(&self, sed: &str) -> AdapterBuilder {
        let (program, to, from) = (self.file("gemini"), self.file("to"), self.file("from"));
        let (to, from, real) = (to.display(), from.display(), real_gemini());
        let real = real.display();
        let script = format!("#!/bin/sh\ntee -a '{to}' | '{real}' \"$@\" | sed -u '{sed}' | tee -a '{from}'\n");
        write_script(&program, &script).unwrap();
        self.gemini.adapter().program(program)
    }

    /// The messages of one direction.
    fn messages(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.file(name)).unwrap();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// What the CLI was sent by this method.
    fn sent(&self, method: &str) -> Vec<Value> {
        self.messages("to").into_iter().filter(|message| message["method"] == method).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_handshake_the_session_and_the_prompt_have_the_form_that_the_cli_takes() {
    let recorded = Recorded::new().await;
    let add = Tool::new("add", "Adds two numbers", |numbers: Numbers| async move { Ok(numbers.a + numbers.b) });
    let adapter = recorded.adapter("").tool(add).build().unwrap();
    let folder = recorded.gemini.workspace();
    let listing = json!({"call": {"name": "list_directory", "id": "c1", "args": {"dir_path": folder}}});
    let adding = json!({"call": {"name": "mcp_host-tools_add", "id": "c2", "args": {"a": 2, "b": 40}}});
    let usage = json!({"usage": {"promptTokenCount": 1000, "candidatesTokenCount": 20, "totalTokenCount": 1020,
        "cachedContentTokenCount": 400}});
    let calls = json!([[listing, adding], [{"text": "done"}, usage]]);
    let prompt = Prompt::new(script(&calls)).image("image/png", b"not a picture");
    let reply = adapter.evaluate(prompt).await.unwrap();
    assert_eq!(reply.text, "done");

    let greeting =
        recorded.messages("from").into_iter().find(|message| message["result"]["agentCapabilities"] != Value::Null);
    let greeting = greeting.unwrap()["result"].clone();
    let methods = greeting["authMethods"].as_array().unwrap();
    assert!(!methods.is_empty(), "the CLI names methods of login: {greeting}");
    assert_eq!(recorded.sent("authenticate"), Vec::<Value>::new(), "and none of them was used");
    let abilities = &greeting["agentCapabilities"];
    assert_eq!(abilities["mcpCapabilities"]["http"], true, "{abilities}");
    assert_eq!(abilities["promptCapabilities"]["image"], true, "{abilities}");

    let begun =
        recorded.sent("session/new").into_iter().find(|message| message["params"]["mcpServers"][0] != Value::Null);
    let begun = &begun.unwrap()["params"];
    assert_eq!(begun["cwd"], folder.display().to_string());
    let server = &begun["mcpServers"][0];
    assert_eq!((&server["type"], &server["name"]), (&json!("http"), &json!("host-tools")), "{server}");
    assert!(server["url"].as_str().unwrap().starts_with("http://127.0.0.1:"), "{server}");
    let header = &server["headers"][0];
    assert_eq!(header["name"], "Authorization");
    assert!(header["value"].as_str().unwrap().starts_with("Bearer "), "{server}");

    let blocks = recorded.sent("session/prompt")[0]["params"]["prompt"].clone();
    let kinds: Vec<&str> = blocks.as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["text", "image"], "{blocks}");

    // Calls have the ids that the CLI gives them, and those of the program ids of their own.
    let updates = recorded.messages("from");
    let ids: Vec<&str> =
        updates.iter().filter_map(|message| message["params"]["update"]["toolCallId"].as_str()).collect();
    let own = reply.tools.iter().find(|tool| tool.origin == ToolOrigin::Agent).unwrap();
    assert!(ids.contains(&own.id.as_str()), "{ids:?}: {own:?}");
    let of_the_program = reply.tools.iter().find(|tool| tool.origin == ToolOrigin::Program).unwrap();
    assert_eq!(of_the_program.output.as_deref(), Some("42"));

    // Its model had 400 of its tokens from a cache; over ACP the CLI tells none of them.
    let used = reply.usage.unwrap();
    assert!(used.input.is_some_and(|tokens| tokens >= 1000) && used.output.is_some(), "{used:?}");
    let told = updates.iter().find_map(|message| message["result"]["_meta"]["quota"]["token_count"].as_object());
    assert!(told.is_some_and(|told| !told.keys().any(|name| name.contains("cach"))), "{told:?}");
    assert_eq!(used.cached, None);
    adapter.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn updates_that_nobody_knows_pass_and_an_image_falls_back_to_words() {
    let recorded = Recorded::new().await;
    // Every piece of an answer comes once more as an update of the future, and the CLI says that it takes no images.
    let future = "/agent_message_chunk/{p;s/agent_message_chunk/moon_phase_update/};s/\"image\":true/\"image\":false/";
    let adapter = recorded.adapter(future).build().unwrap();
    let prompt = Prompt::new("What is this?").image("image/png", b"not a picture");
    let mut stream = adapter.stream(prompt).await.unwrap();
    let mut unknown = Vec::new();
    while let Some(event) = stream.next().await {
        if let TurnEvent::Other(kind) = event {
            unknown.push(kind);
        }
    }
    let reply = stream.finish().await.unwrap();
    assert!(unknown.contains(&"moon_phase_update".to_owned()), "{unknown:?}");
    assert_eq!(reply.text.matches("You said").count(), 1, "nothing is told twice: {}", reply.text);
    assert!(reply.warnings.iter().any(|warning| warning.contains("takes no images")), "{:?}", reply.warnings);
    let contents = recorded.gemini.api.model_calls()[0].body["contents"].to_string();
    assert!(contents.contains("An image of the type image/png was attached here"), "{contents}");
    assert!(!contents.contains("bm90IGEgcGljdHVyZQ=="), "{contents}");

    // A typed answer comes through beside them as well.
    let review = json!({"summary": "clear", "score": 9});
    let call = json!({"call": {"name": "mcp_host-tools_structured_output", "id": "c2", "args": review}});
    let answer = adapter.evaluate_as::<Review>(script(&json!([[call], [{"text": "delivered"}]]))).await.unwrap();
    assert_eq!(answer.value, Review { summary: "clear".to_owned(), score: 9 });
    adapter.close().await;
}
