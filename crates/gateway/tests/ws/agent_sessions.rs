//! The sessions that agents keep themselves, as an admin's page lists, reads, searches and goes on with them.

use std::fs;

use serde_json::{Value, json};

use crate::support::gateway::Gateway;
use crate::support::home::Home;
use crate::support::http::Answer;
use crate::support::websocket::Client;

const ID: &str = "aaaaaaaa-0000-4000-8000-000000000001";
const PATH: &str = "/admin/agent-sessions";

/// A session of Claude Code with a prompt, a call and its result, and an answer.
fn claude_lines(project: &str) -> Vec<Value> {
    let at = "2026-11-01T10:00:00Z";
    let call = json!({"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}});
    let result = json!({"type": "tool_result", "tool_use_id": "t1", "content": "x".repeat(50_000)});
    let usage = json!({"input_tokens": 10, "output_tokens": 5});
    vec![
        json!({"type": "user", "uuid": "u1", "timestamp": at, "cwd": project,
            "message": {"role": "user", "content": "Why does the quokka test fail?"}}),
        json!({"type": "assistant", "uuid": "a1", "timestamp": at, "requestId": "r1",
            "message": {"id": "m1", "role": "assistant", "model": "opus", "content": [call], "usage": usage}}),
        json!({"type": "user", "uuid": "u2", "timestamp": at, "message": {"role": "user", "content": [result]}}),
        json!({"type": "assistant", "uuid": "a2", "timestamp": at, "requestId": "r2",
            "message": {"id": "m2", "role": "assistant", "model": "opus", "usage": usage,
                "content": [{"type": "text", "text": "It waits for a lock."}]}}),
    ]
}

/// A gateway of an operator who has used Claude Code.
fn gateway() -> Gateway {
    let home = Home::for_serving();
    let folder = home.path(".claude/projects/-work");
    fs::create_dir_all(&folder).unwrap();
    let lines: Vec<_> = claude_lines("/work").iter().map(ToString::to_string).collect();
    fs::write(folder.join(format!("{ID}.jsonl")), lines.join("\n")).unwrap();
    fs::write(home.path(".claude/secret.jsonl"), "{\"token\":\"canary\"}\n").unwrap();
    home.serve()
}

fn go_on(gateway: &Gateway, path: &str) -> Answer {
    let bearer = format!("Bearer {}", gateway.key);
    gateway.ask("POST", path, &[("authorization", &bearer), ("content-type", "application/json")], Some("{}"))
}

#[test]
fn a_session_of_an_agent_is_listed_and_read_within_bounds() {
    let gateway = gateway();
    let list = gateway.get(PATH).json();
    assert_eq!((&list["total"], &list["next"]), (&json!(1), &Value::Null), "{list:#}");
    let session = &list["sessions"][0];
    for (field, expected) in [
        ("agent", json!("claude")),
        ("id", json!(ID)),
        ("title", json!("Why does the quokka test fail?")),
        ("project", json!("/work")),
        ("model", json!("opus")),
        ("turns", json!(1)),
        ("tokens", json!(30)),
    ] {
        assert_eq!(session[field], expected, "{field}: {session:#}");
    }
    let read = gateway.get(&format!("{PATH}/claude/{ID}")).json();
    let messages = read["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 4, "{read:#}");
    assert_eq!(messages[0]["content"], "Why does the quokka test fail?");
    assert!(messages.iter().all(|message| message.get("_original").is_none()));
    let output = messages[2]["content"][0]["content"].as_str().unwrap();
    assert!(output.len() < 5_000 && output.ends_with("more characters"), "{} bytes", output.len());
    let page = gateway.get(&format!("{PATH}/claude/{ID}?from=1&limit=2")).json();
    assert_eq!((page["messages"].as_array().unwrap().len(), &page["next"]), (2, &json!(3)));
}

#[test]
fn s11_s13_guests_see_nothing_of_it_and_no_name_leads_out_of_the_agents_folders() {
    let gateway = gateway();
    let guest = gateway.home.key("guest");
    let bearer = format!("Bearer {guest}");
    for (method, path) in [
        ("GET", PATH.to_owned()),
        ("GET", format!("{PATH}/search?q=quokka")),
        ("GET", format!("{PATH}/claude/{ID}")),
        ("POST", format!("{PATH}/claude/{ID}/continue")),
    ] {
        let body = (method == "POST").then_some("{}");
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        let answer = gateway.ask(method, &path, &headers, body);
        assert_eq!(answer.status, 403, "{method} {path}");
        assert!(!answer.body.contains("quokka"), "{}", answer.body);
    }
    for name in [
        "claude/nothing",
        "claude/..%2F..%2Fsecret",
        "claude/%2Fetc%2Fpasswd",
        "..%2F.claude/secret",
        "codex/aaaaaaaa-0000-4000-8000-000000000001",
        "claude/aaaaaaaa",
    ] {
        let answer = gateway.get(&format!("{PATH}/{name}"));
        assert_eq!(answer.status, 404, "{name}: {}", answer.body);
        assert!(!answer.body.contains("canary") && !answer.body.contains("root:"), "{}", answer.body);
        assert_eq!(go_on(&gateway, &format!("{PATH}/{name}/continue")).status, 404, "{name}");
    }
    for query in ["?from=-1", "?limit=many", "/search", "/search?q=", "/search?q=%22"] {
        assert_eq!(gateway.get(&format!("{PATH}{query}")).status, 400, "{query}");
    }
    let long = "a".repeat(2_000);
    assert_eq!(gateway.get(&format!("{PATH}/search?q={long}")).status, 400);
}

#[test]
fn what_was_said_is_found_by_its_words_as_it_grows() {
    let gateway = gateway();
    let found = gateway.get(&format!("{PATH}/search?q=lock")).json();
    let hit = &found["sessions"][0];
    assert_eq!(
        (&hit["agent"], &hit["id"], &found["indexing"]),
        (&json!("claude"), &json!(ID), &Value::Null),
        "{found:#}"
    );
    assert!(hit["snippet"].as_str().unwrap().contains("waits for a lock"), "{hit}");
    assert_eq!(gateway.get(&format!("{PATH}/search?q=wombat")).json()["sessions"], json!([]));
    let path = gateway.home.path(&format!(".claude/projects/-work/{ID}.jsonl"));
    let line = json!({"type": "user", "uuid": "u9", "timestamp": "2026-11-01T11:00:00Z",
        "message": {"role": "user", "content": "And the wombat?"}});
    let before = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{before}\n{line}\n")).unwrap();
    assert_eq!(gateway.get(&format!("{PATH}/search?q=wombat")).json()["sessions"][0]["id"], ID);
}

#[test]
fn an_admin_goes_on_with_a_session_of_an_agent() {
    let gateway = gateway();
    let answer = go_on(&gateway, &format!("{PATH}/claude/{ID}/continue"));
    assert_eq!(answer.status, 200, "{}", answer.body);
    let gone_on = answer.json();
    let session = gone_on["sessionId"].as_str().unwrap().to_owned();
    // Claude Code is not installed here, and nobody trusts the folder.
    assert_eq!((&gone_on["agent"], &gone_on["workspace"]), (&json!("demo"), &Value::Null));
    let note = gone_on["note"].as_str().unwrap();
    assert!(note.contains("`claude` is not served") && note.contains("gembridge trust add /work"), "{note}");
    let mut client = Client::known(&gateway, "/acp");
    let id = client.request("session/load", &json!({ "sessionId": session, "cwd": "/", "mcpServers": [] }));
    let told = client.until(|message| message["id"] == id);
    let told = told.iter().map(ToString::to_string).collect::<String>();
    for said in ["Why does the quokka test fail?", "(called Bash: ls)", "It waits for a lock."] {
        assert!(told.contains(said), "{said} is not in {told}");
    }
    let (_, end) = client.turn(&session, "say on it goes");
    assert_eq!(end.unwrap()["stopReason"], "end_turn");
    let guest = gateway.home.key("guest");
    let mut other = Client::connect_to(gateway.address, &guest, "/acp").unwrap();
    other.call("initialize", &json!({ "protocolVersion": 1 })).unwrap();
    let refused = other.call("session/load", &json!({ "sessionId": session, "cwd": "/", "mcpServers": [] }));
    assert!(refused.is_err(), "{refused:?}");
}

#[test]
fn files_of_a_workspace_are_named_to_admins_only() {
    let home = Home::for_serving();
    let folder = home.path("project");
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::write(folder.join("src/quokka.rs"), "").unwrap();
    let program = gembridge_testkit::fake_agent_path();
    home.configure_serving(&format!(
        "[agents.fake]\ncommand = {:?}\nmode = 'agent'\nworkspace = {:?}\n",
        program.to_str().unwrap(),
        folder.to_str().unwrap()
    ));
    home.stdout_of(&["trust", "add", folder.to_str().unwrap()]);
    let gateway = home.serve_fake();
    let mut client = Client::known(&gateway, "/acp");
    let session = client.call("session/new", &json!({ "cwd": folder, "mcpServers": [] })).unwrap();
    let session = session["sessionId"].as_str().unwrap().to_owned();
    for place in [format!("session={session}"), "agent=fake".to_owned()] {
        let path = format!("/admin/workspace-files?{place}&q=quok");
        assert_eq!(gateway.get(&path).json(), json!({ "files": ["src/quokka.rs"] }), "{place}");
        let guest = gateway.home.key(&place.replace('=', "-")[..5]);
        assert_eq!(gateway.get_as(&guest, &path).status, 403);
    }
    for (query, status) in [("", 400), ("?session=nothing", 404), ("?session=a&agent=b", 400), ("?agent=none", 200)] {
        assert_eq!(gateway.get(&format!("/admin/workspace-files{query}")).status, status, "{query}");
    }
}
