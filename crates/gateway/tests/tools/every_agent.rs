//! A client's tools with every real agent that is listed: a round, a call that fails, a cancel while one waits, and the
//! session that goes on. The agent's own tools beside them: allowed, refused, cancelled.

use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::conversation::Conversation;
use crate::real_agents::runtime;
use crate::support::gateway::{Gateway, post};
use crate::support::home::Home;
use crate::support::messages::{is_answer, said};
use crate::support::real_agent::{Agent, Model};
use crate::support::websocket::Client;

/// Dropped in this order: the agents end before the model that they ask.
struct Served {
    gateway: Gateway,
    model: Model,
    _runtime: Runtime,
}

fn served(agent: Agent, settings: impl FnOnce(&Home) -> String) -> Served {
    let runtime = runtime();
    let model = runtime.block_on(Model::start(agent));
    let home = Home::for_serving();
    let settings = settings(&home);
    let gateway = agent.serve(home, &model, &settings, &[]);
    Served { gateway, model, _runtime: runtime }
}

/// The name of a client's tool that is also the name of one of the agent's own.
fn shared_name(agent: Agent) -> &'static str {
    match agent {
        Agent::Gemini | Agent::Qwen => "read_file",
        Agent::Claude => "Bash",
        Agent::Codex => "exec_command",
        Agent::OpenCode => "bash",
    }
}

/// A prompt whose model calls that tool of the client as this agent lets it, and then says that it is done.
fn picking(agent: Agent) -> String {
    let name = shared_name(agent);
    let args = json!({"n": 7});
    let prefix = match agent {
        // Its model finds tools of servers by a search, and calls them in their group.
        Agent::Codex => {
            let search = json!({"call": {"name": "tool_search", "args": {"query": name}}});
            let call = json!({"call": {"name": name, "namespace": "mcp__host_tools", "args": args}});
            return format!("please SCRIPT:{}:END", json!({"calls": [[search], [call], [{"text": "done"}]]}));
        }
        Agent::Gemini => "mcp_host-tools_",
        Agent::Claude | Agent::Qwen => "mcp__host-tools__",
        Agent::OpenCode => "host-tools_",
    };
    calling(&format!("{prefix}{name}"), &args)
}

/// A prompt whose model makes this call, and then says that it is done.
fn calling(name: &str, args: &Value) -> String {
    let call = json!({"call": {"name": name, "args": args}});
    format!("please SCRIPT:{}:END", json!({"calls": [[call], [{"text": "done"}]]}))
}

fn client_tools_work_with(agent: Agent) {
    let served = served(agent, |_| String::new());
    let gateway = &served.gateway;
    let (name, pick) = (shared_name(agent), picking(agent));

    let mut talk = Conversation::new(gateway, &[name], &pick);
    let calls = talk.calls();
    assert_eq!((calls.len(), calls[0].name.as_str()), (1, name));
    assert_eq!(calls[0].arguments, json!({"n": 7}));
    let declared = served.model.declared();
    // Codex tells its model of the server alone, and of its tools when it searches.
    let is_told = |tool: &String| {
        if agent == Agent::Codex { tool.contains("host-tools") } else { tool.ends_with(&format!("_{name}")) }
    };
    assert!(declared.iter().any(is_told), "the model knows of it by its name: {declared:?}");
    talk.give(&calls[0], "a plum of the tests");
    assert_eq!(talk.text(), "done");
    assert!(served.model.last_call().contains("a plum of the tests"), "the model reads the result");
    // The fakes report the same context for each call of the model; the agents report it in four ways.
    let context = if agent == Agent::Gemini { 900..1_500 } else { 8..16 };
    assert!(context.contains(&talk.prompt_tokens[1]), "the context of one call: {:?}", talk.prompt_tokens);

    // The same conversation goes on, with another call.
    talk.say(&pick);
    let call = talk.calls().remove(0);
    talk.give(&call, "a pear of the tests");
    assert_eq!(talk.text(), "done");
    assert!(served.model.last_call().contains("a plum of the tests"), "and knows what was before");

    // A turn that is cancelled while its call waits, and the session after it.
    talk.say(&pick);
    let parked = talk.answer();
    assert_eq!(parked.json()["choices"][0]["finish_reason"], "tool_calls", "{}", parked.body);
    let session = parked.header("x-session-id").expect("the session is named").to_owned();
    let mut watcher = Client::known(gateway, "/acp");
    watcher.call("session/load", &json!({"sessionId": session, "cwd": "/", "mcpServers": []})).unwrap();
    watcher.notify("session/cancel", &json!({"sessionId": session}));
    watcher.until(|message| message["method"] == "_gembridge/turn_ended");
    let mut connection = gateway.connect();
    let more = json!({"model": "default", "messages": [{"role": "user", "content": "are you there?"}]});
    post(&mut connection, &gateway.key, &more, &[("x-session-id", &session)]);
    let answer = connection.answer().unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(served.model.last_call().contains("are you there?"), "the model reads it");
}

#[test]
fn r29_gemini_calls_a_clients_tool() {
    client_tools_work_with(Agent::Gemini);
}

#[test]
fn r29_claude_calls_a_clients_tool() {
    client_tools_work_with(Agent::Claude);
}

#[test]
fn r29_codex_calls_a_clients_tool() {
    client_tools_work_with(Agent::Codex);
}

#[test]
fn r29_opencode_calls_a_clients_tool() {
    client_tools_work_with(Agent::OpenCode);
}

#[test]
fn r29_qwen_calls_a_clients_tool() {
    client_tools_work_with(Agent::Qwen);
}

/// The agent's own tool that makes a file, by words that its model would use.
fn own_tool(agent: Agent, file: &str) -> (&'static str, Value) {
    let command = format!("touch {file}");
    match agent {
        Agent::Gemini | Agent::Qwen => {
            ("run_shell_command", json!({"command": command, "description": "makes a file", "is_background": false}))
        }
        Agent::Claude => ("Bash", json!({"command": command, "description": "makes a file"})),
        Agent::Codex => (
            "exec_command",
            json!({"cmd": command, "sandbox_permissions": "require_escalated", "justification": "makes a file"}),
        ),
        Agent::OpenCode => ("bash", json!({"command": command, "description": "makes a file"})),
    }
}

enum Reply {
    Option(&'static str),
    Cancel,
}

/// Prompts, answers the question that comes, and gives everything that came with the end of the turn.
fn asked(client: &mut Client, session: &str, prompt: &str, reply: &Reply) -> Vec<Value> {
    let id = client.prompt(session, prompt);
    let mut messages =
        client.until(|message| message["method"] == "session/request_permission" || is_answer(message, id));
    let question = messages.last().unwrap().clone();
    assert_eq!(question["method"], "session/request_permission", "it asks: {messages:#?}");
    match reply {
        Reply::Option(kind) => {
            let options = question["params"]["options"].as_array().unwrap();
            let option = options.iter().find(|option| option["kind"] == *kind).unwrap_or_else(|| panic!("{options:?}"));
            let outcome = json!({"outcome": {"outcome": "selected", "optionId": option["optionId"]}});
            client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": outcome}));
        }
        Reply::Cancel => client.notify("session/cancel", &json!({"sessionId": session})),
    }
    messages.extend(client.until(|message| is_answer(message, id)));
    messages
}

fn permissions_are_kept_by(agent: Agent) {
    let served = served(agent, |home| {
        let workspace = home.path("workspace");
        std::fs::create_dir(&workspace).unwrap();
        home.run(&["trust", "add", workspace.to_str().unwrap()]).succeeds();
        format!("mode = 'agent'\nworkspace = '{}'\n", workspace.display())
    });
    let workspace = served.gateway.home.path("workspace");
    let mut client = Client::known(&served.gateway, "/acp");
    let opened = client.call("session/new", &json!({"cwd": workspace, "mcpServers": []})).unwrap();
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    let prompt = |file: &str| {
        let (name, args) = own_tool(agent, workspace.join(file).to_str().unwrap());
        calling(name, &args)
    };
    let allowed = asked(&mut client, &session, &prompt("allowed"), &Reply::Option("allow_once"));
    assert_eq!(allowed.last().unwrap()["result"]["stopReason"], "end_turn", "{allowed:#?}");
    assert!(workspace.join("allowed").exists(), "{allowed:#?}");
    asked(&mut client, &session, &prompt("refused"), &Reply::Option("reject_once"));
    assert!(!workspace.join("refused").exists());
    let cancelled = asked(&mut client, &session, &prompt("cancelled"), &Reply::Cancel);
    assert_eq!(cancelled.last().unwrap()["result"]["stopReason"], "cancelled", "{cancelled:#?}");
    assert!(!workspace.join("cancelled").exists());
    let (messages, end) = client.turn(&session, "are you there?");
    assert_eq!(end.unwrap()["stopReason"], "end_turn");
    assert!(!said(&messages).is_empty());
    assert!(served.model.last_call().contains("are you there?"), "the model reads it");
}

#[test]
fn gemini_keeps_to_the_answers_of_a_person() {
    permissions_are_kept_by(Agent::Gemini);
}

#[test]
fn claude_keeps_to_the_answers_of_a_person() {
    permissions_are_kept_by(Agent::Claude);
}

#[test]
fn codex_keeps_to_the_answers_of_a_person() {
    permissions_are_kept_by(Agent::Codex);
}

#[test]
fn opencode_keeps_to_the_answers_of_a_person() {
    permissions_are_kept_by(Agent::OpenCode);
}

#[test]
fn qwen_keeps_to_the_answers_of_a_person() {
    permissions_are_kept_by(Agent::Qwen);
}

#[test]
fn a_model_that_gemini_does_not_have_is_refused_by_name_as_by_every_agent() {
    let runtime = runtime();
    let model = runtime.block_on(Model::start(Agent::Gemini));
    let home = Home::new();
    let url = match &model {
        Model::Gemini(api) => api.url(),
        Model::Scripted(_) => unreachable!("it has a model of its own"),
    };
    let (path, program) = (std::env::var("PATH").unwrap(), gembridge_testkit::real_gemini());
    let variables = [
        ("PATH", path.as_str()),
        ("GEMINI_CLI_PATH", program.to_str().unwrap()),
        ("GEMINI_API_KEY", "fake-key"),
        ("GOOGLE_GEMINI_BASE_URL", &url),
    ];
    for (agent, asked) in [("gemini", "gemini-9"), ("demo", "demo-9")] {
        let ran = home.run_with(&["run", "--agent", agent, "--model", asked, "hi"], &variables);
        assert_ne!(ran.code, Some(0), "{agent}");
        assert!(ran.stderr.contains(&format!("model `{asked}` is not one of the agent's")), "{}", ran.stderr);
    }
    assert_eq!(model.calls(), 0, "no model was asked");
}
