//! Several calls of one turn of the model, with real agents: OpenCode makes them together, the Gemini CLI one by one.

use gembridge_testkit::gemini_api::FakeGemini;
use gembridge_testkit::model_api::FakeModel;
use gembridge_testkit::{opencode_settings, real_gemini, real_opencode};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::conversation::Conversation;
use crate::support::gateway::Gateway;
use crate::support::home::Home;

pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// A prompt whose model picks three in one turn and then says that it is done.
fn picking(prefix: &str) -> String {
    let pick = |n: u64| json!({"call": {"name": format!("{prefix}pick"), "args": {"n": n}}});
    format!("please SCRIPT:{}:END", json!({"calls": [[pick(1), pick(2), pick(3)], [{"text": "all picked"}]]}))
}

fn path() -> String {
    std::env::var("PATH").unwrap()
}

fn opencode(api: &FakeModel) -> Gateway {
    let home = Home::for_serving();
    let file = home.path("opencode.json");
    std::fs::write(&file, opencode_settings(&api.url_v1())).unwrap();
    // Two of its processes that make the database of a new home at the same time fail: there is no spare here.
    let program = real_opencode();
    home.configure_serving(&format!(
        "[agents.opencode]\ncommand = '{}'\nlimits = {{ spare = 0, start_seconds = 150 }}\n",
        program.display()
    ));
    let variables = [("PATH", path()), ("OPENCODE_CONFIG", file.display().to_string())];
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    home.serve_with(&["--agent", "opencode"], &variables)
}

#[test]
fn opencode_makes_three_calls_at_once_and_they_are_answered_in_reverse() {
    let runtime = runtime();
    let api = runtime.block_on(FakeModel::start()).unwrap();
    let gateway = opencode(&api);
    let mut talk = Conversation::new(&gateway, &["pick"], &picking("host-tools_"));
    let mut given = Vec::new();
    loop {
        let calls = talk.calls();
        for call in calls.iter().rev() {
            assert_eq!(call.name, "pick");
            let n = call.arguments["n"].as_u64().unwrap();
            talk.give(call, format!("picked {n}"));
            given.push(n);
        }
        if given.len() >= 3 {
            break;
        }
    }
    assert_eq!(talk.text(), "all picked");
    let mut sorted = given.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [1, 2, 3]);
    let asked = api.model_calls();
    let last = asked.last().unwrap()["messages"].as_array().unwrap();
    let results: Vec<_> = last.iter().filter(|message| message["role"] == "tool").collect();
    assert_eq!(results.len(), 3);
    for (place, result) in results.iter().enumerate() {
        let id = result["tool_call_id"].as_str().unwrap();
        assert!(id.ends_with(&format!("_{}", place + 1)), "{id}");
        assert!(result["content"].to_string().contains(&format!("picked {}", place + 1)), "{result}");
    }
    let declared: Vec<_> = asked[0]["tools"].as_array().unwrap().iter().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(declared, ["host-tools_pick"], "nothing of its own");
}

pub fn gemini(api: &FakeGemini) -> Gateway {
    let variables = [
        ("PATH", path()),
        ("GEMINI_CLI_PATH", real_gemini().display().to_string()),
        ("GEMINI_API_KEY", "fake-key".to_owned()),
        ("GOOGLE_GEMINI_BASE_URL", api.url()),
    ];
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    let home = Home::for_serving();
    home.configure_serving("[agents.gemini]\nlimits.start_seconds = 150\n");
    home.serve_with(&["--agent", "gemini"], &variables)
}

#[test]
fn the_gemini_cli_makes_the_same_three_calls_in_three_rounds() {
    let runtime = runtime();
    let api = runtime.block_on(FakeGemini::start()).unwrap();
    let gateway = gemini(&api);
    let mut talk = Conversation::new(&gateway, &["pick"], &picking("mcp_host-tools_"));
    for n in 1..=3_u64 {
        let calls = talk.calls();
        assert_eq!(calls.len(), 1, "one at a time");
        assert_eq!(calls[0].arguments, json!({"n": n}), "without what the CLI adds");
        talk.give(&calls[0], format!("picked {n}"));
    }
    assert_eq!(talk.text(), "all picked");
    let calls = api.model_calls();
    assert_eq!(calls.len(), 2, "one turn of the model, and the next one with all results");
    let results = calls[1].body["contents"].as_array().unwrap().iter().map(ToString::to_string).collect::<String>();
    assert!((1..=3).all(|n| results.contains(&format!("picked {n}"))), "{results}");
}

/// The model refuses a request that does not declare just these.
fn calling(tool: &str, declared: &[&str]) -> String {
    let named = |name: &str| format!("mcp_host-tools_{name}");
    let declared: serde_json::Map<_, _> = declared.iter().map(|name| (named(name), json!({}))).collect();
    let expect = json!({"expect": {"declared": declared}});
    let call = json!({"call": {"name": named(tool), "args": {"n": 1}}});
    format!("please SCRIPT:{}:END", json!({"calls": [[expect, call], [{"text": "done"}]]}))
}

#[test]
fn the_gemini_cli_is_offered_another_set_of_tools_and_declares_it() {
    let runtime = runtime();
    let api = runtime.block_on(FakeGemini::start()).unwrap();
    let gateway = gemini(&api);
    let mut messages = Vec::new();
    for tools in [&["pick"][..], &["choose"], &["choose", "pick"], &["pick"], &["take"]] {
        let mut talk = Conversation::new(&gateway, tools, "");
        talk.messages.clone_from(&messages);
        talk.say(&calling(tools[0], tools));
        let call = talk.calls().remove(0);
        assert_eq!(call.name, tools[0]);
        talk.give(&call, "given");
        assert_eq!(talk.text(), "done");
        messages.clone_from(&talk.messages);
    }
}

#[test]
fn results_that_are_numbers_and_lists_reach_the_model_of_the_gemini_cli_unharmed() {
    let runtime = runtime();
    let api = runtime.block_on(FakeGemini::start()).unwrap();
    let gateway = gemini(&api);
    for result in ["4242", "[\"one\",\"two\"]", "true", "null", "{\"found\":7}"] {
        let mut talk = Conversation::new(&gateway, &["pick"], &calling("pick", &["pick"]));
        let call = talk.calls().remove(0);
        talk.give(&call, result);
        assert_eq!(talk.text(), "done", "{result}");
        let model_call = api.model_calls().pop().unwrap();
        let returned =
            model_call.body["contents"].as_array().unwrap().last().unwrap()["parts"][0]["functionResponse"].clone();
        // The CLI marks what came from outside.
        let marked = format!("<untrusted_context>\n{result}\n</untrusted_context>");
        assert_eq!(returned["response"], json!({ "output": marked }));
    }
}

#[test]
fn the_gemini_cli_calls_a_clients_tool_that_is_named_like_one_of_its_own() {
    let runtime = runtime();
    let api = runtime.block_on(FakeGemini::start()).unwrap();
    let gateway = gemini(&api);
    let mut first = Conversation::new(&gateway, &["read_file"], "which tools are there?");
    first.text();
    let declared = api.model_calls()[0].body["tools"][0]["functionDeclarations"][0]["name"].clone();
    let declared = declared.as_str().expect("it is declared").to_owned();
    assert_eq!(declared, "mcp_host-tools_read_file", "by its own name");
    let call = json!({"call": {"name": declared, "args": {"n": 1}}});
    let script = json!({"calls": [[call], [{"text": "read"}]]});
    let mut talk = Conversation::new(&gateway, &["read_file"], &format!("please SCRIPT:{script}:END"));
    let call = talk.calls().remove(0);
    assert_eq!(call.name, "read_file", "the client hears its own name");
    talk.give(&call, "a line");
    assert_eq!(talk.text(), "read");
}
