//! `gembridge sessions` on a home in which five agents have worked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::home::Home;

pub const CLAUDE: &str = "41f6ab9a-7d9c-4301-83a2-9d0f81cb2d62";
const CODEX: &str = "01a1e3cf-d729-7f52-b319-5efdf6ea15b1";
pub const GEMINI: &str = "bbbbbbbb-0000-4000-8000-000000000001";

pub fn fixture(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/transcripts").join(below)
}

pub fn put(home: &Home, below: &str, recorded: &str) {
    let text = fs::read(fixture(recorded)).unwrap();
    write(home, below, text);
}

pub fn write(home: &Home, below: &str, text: impl AsRef<[u8]>) {
    let path = home.path(below);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Every agent has a session of `/workspace`.
pub fn home() -> Home {
    let home = Home::new();
    put(&home, ".gemini/tmp/workspace/chats/session-a.jsonl", "gemini/0.61.0/headless_yolo_tools_summary.jsonl");
    put(&home, &format!(".claude/projects/-workspace/{CLAUDE}.jsonl"), &format!("claude/2.1.312/{CLAUDE}.jsonl"));
    let subagent = format!("{CLAUDE}/subagents/agent-acc69d26505d36192.jsonl");
    put(&home, &format!(".claude/projects/-workspace/{subagent}"), &format!("claude/2.1.312/{subagent}"));
    let rollout = format!("rollout-2026-11-16T10-03-31-{CODEX}.jsonl");
    put(&home, &format!(".codex/sessions/2026/11/16/{rollout}"), &format!("codex/0.166.0/{rollout}"));
    let qwen = "9d5a4213-0eea-4659-ba4f-e0cab9be633a.jsonl";
    put(&home, &format!(".qwen/projects/-workspace/chats/{qwen}"), &format!("qwen/0.24.4/{qwen}"));
    let database = home.path(".local/share/opencode/opencode.db");
    fs::create_dir_all(database.parent().unwrap()).unwrap();
    let database = rusqlite::Connection::open(database).unwrap();
    database.execute_batch(&fs::read_to_string(fixture("opencode/1.18.33/opencode.sql")).unwrap()).unwrap();
    home
}

fn session<'a>(list: &'a Value, agent: &str) -> &'a Value {
    list.as_array().unwrap().iter().find(|session| session["agent"] == agent).unwrap()
}

#[test]
fn the_sessions_of_all_agents_are_listed_with_what_is_known_of_them() {
    let list = home().run(&["sessions", "list", "--all", "--json"]).succeeds().json();
    assert_eq!(list.as_array().unwrap().len(), 5, "{list:#}");
    for (agent, title, model, turns, tokens) in [
        ("claude", "A title", "fake", 3, 105),
        ("codex", "ping", "gpt-5.5", 2, 60),
        ("gemini", "Go.", "gemini-3.8-flash", 1, 3084),
        ("opencode", "You said: ping", "m", 2, 75),
        ("qwen", "ping", "m", 2, 75),
    ] {
        let found = session(&list, agent);
        assert_eq!(found["title"], title, "{found:#}");
        assert_eq!(found["model"], model, "{found:#}");
        assert_eq!(found["turns"], turns, "{found:#}");
        assert_eq!(found["tokens"], tokens, "{found:#}");
        assert_eq!(found["project"], "/workspace", "{found:#}");
        assert!(found["updated"].as_u64() >= found["started"].as_u64(), "{found:#}");
    }
    assert_eq!(session(&list, "claude")["subagents"], serde_json::json!(["agent-acc69d26505d36192"]));
}

#[test]
fn the_table_is_for_people_and_narrowed_by_flags() {
    let home = home();
    let table = home.run(&["sessions", "list", "--all"]).succeeds().stdout;
    assert!(table.lines().next().unwrap().starts_with("ID "), "{table}");
    let is_claude = |line: &str| line.starts_with("41f6ab9a ") && line.contains(" claude    A title ");
    assert!(table.lines().any(is_claude), "{table}");
    assert_eq!(table.lines().count(), 6, "{table}");
    let table = home.run(&["sessions", "list", "--all", "--agent", "gemini"]).succeeds().stdout;
    assert_eq!(table.lines().count(), 2, "{table}");
    let table = home.run(&["sessions", "list", "--project", "/workspace", "-n", "2"]).succeeds().stdout;
    assert_eq!(table.lines().count(), 3, "{table}");
    home.run(&["sessions", "list", "--all", "--agent", "gemni"])
        .refused(2, "session files of agent `gemni` are not known");
}

#[test]
fn the_present_folder_is_the_project_unless_another_is_named() {
    let home = Home::new();
    let project = home.path("project");
    fs::create_dir(&project).unwrap();
    let real = project.canonicalize().unwrap();
    put(&home, ".gemini/tmp/p/chats/session-a.jsonl", "gemini/0.61.0/headless_yolo_tools_summary.jsonl");
    write(&home, ".gemini/tmp/p/.project_root", real.to_str().unwrap());
    let list = home.run_in(&project, &["sessions", "list", "--json"]).succeeds().json();
    assert_eq!(list[0]["id"], GEMINI);
    let shown = home.run_in(&project, &["sessions", "show"]).succeeds().stdout;
    assert!(shown.starts_with("Go.\n"), "{shown}");
    let elsewhere = home.path("empty");
    let refused = home.run_in(&elsewhere, &["sessions", "list"]).refused(2, "no session of `");
    for folder in [".claude", ".codex", ".gemini", ".local/share/opencode", ".qwen"] {
        assert!(refused.stderr.contains(home.path(folder).to_str().unwrap()), "{}", refused.stderr);
    }
    assert_eq!(Home::new().run(&["sessions", "list", "--all", "--json"]).succeeds().stdout, "[]\n");
}

#[test]
fn a_session_is_shown_with_a_line_for_each_tool() {
    let shown = home().run(&["sessions", "show", "bbbb"]).succeeds().stdout;
    for line in
        ["> headless tools", "(thinking) T: body", "✓ Bash echo one", "✗ Read nope.txt", "    File not found", "end."]
    {
        assert!(shown.contains(line), "`{line}` is missing in\n{shown}");
    }
    assert!(!shown.contains("Process Group PGID"), "outputs are left out: {shown}");
    let full = home().run(&["sessions", "show", "bbbb", "--full"]).succeeds().stdout;
    assert!(full.contains("Process Group PGID") && full.contains("\"command\": \"echo one\""), "{full}");
    // Results that come in a later message stand with their call.
    let claude = home().run(&["sessions", "show", CLAUDE]).succeeds().stdout;
    assert!(claude.contains("✓ Read /workspace/note.txt") && claude.contains("✗ Bash echo made; exit 3"), "{claude}");
}

#[test]
fn what_a_session_holds_does_not_steer_the_terminal() {
    let home = Home::new();
    let line = serde_json::json!({"type": "user", "uuid": "u", "cwd": "/w\u{1b}[2J", "message": {"role": "user",
        "content": "a\u{1b}]52;c;x\u{7}b"}});
    write(&home, ".claude/projects/p/abc.jsonl", format!("{line}\n{{\"\u{1b}[31m\n"));
    for args in
        [&["sessions", "list", "--all"][..], &["sessions", "show", "abc"], &["sessions", "show", "abc", "--full"]]
    {
        let ran = home.run(args).succeeds();
        assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'), "{}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn a_session_is_exported_as_json_and_as_lines() {
    let home = home();
    let whole = home.run(&["sessions", "export", GEMINI, "--format", "json"]).succeeds().json();
    assert_eq!((&whole["id"], &whole["agent"], &whole["title"]), (&GEMINI.into(), &"gemini".into(), &"Go.".into()));
    let messages = whole["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 5);
    assert_eq!(messages[2]["content"][1]["name"], "Bash");
    assert_eq!(messages[2]["usage"]["input_tokens"], 1001);
    assert_eq!(messages[2]["usage"]["cache_read_input_tokens"], 100);
    assert_eq!(messages[2]["_original"]["toolCalls"][0]["name"], "run_shell_command");
    assert_eq!(home.run(&["sessions", "show", GEMINI, "--json"]).succeeds().json(), whole);
    assert_eq!(home.run(&["sessions", "export", GEMINI, "--json"]).succeeds().json(), whole);
    let lines = home.run(&["sessions", "export", GEMINI, "--format", "jsonl"]).succeeds().stdout;
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(&lines, messages);
    let without = home.run(&["sessions", "export", GEMINI, "--format", "jsonl", "--no-originals"]).succeeds().stdout;
    assert!(!without.contains("_original"));
}

#[test]
fn the_names_of_tools_are_chosen_by_a_flag() {
    let home = Home::new();
    let call = serde_json::json!({"id": "m", "timestamp": "2026-01-01T00:00:00Z", "type": "gemini", "content": "", "toolCalls":
        [{"id": "c", "name": "glob", "args": {"pattern": "*"}, "status": "success"}]});
    let header = serde_json::json!({"sessionId": "session-1", "projectHash": "h"});
    write(&home, ".gemini/tmp/p/chats/session-1.jsonl", format!("{header}\n{call}\n"));
    let name = |names: &str| {
        let args = ["sessions", "export", "session-1", "--format", "json", "--tool-names", names];
        home.run(&args).succeeds().json()["messages"][0]["content"][0]["name"].clone()
    };
    assert_eq!((name("extended"), name("basic")), ("Glob".into(), "glob".into()));
}

#[test]
fn markdown_and_html_are_readable_and_long_outputs_are_cut() {
    let home = Home::new();
    let long = "x".repeat(50_000);
    let lines = [
        serde_json::json!({"type": "user", "uuid": "u", "cwd": "/w", "message": {"role": "user",
            "content": "<script>alert(1)</script> & more"}}),
        serde_json::json!({"type": "assistant", "uuid": "a", "message": {"id": "a", "role": "assistant", "content": [
            {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "</pre><img onerror=x>"}}]}}),
        serde_json::json!({"type": "user", "uuid": "r", "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t", "content": format!("````\n{long}")}]}}),
    ];
    write(&home, ".claude/projects/p/abc.jsonl", lines.map(|line| line.to_string()).join("\n"));
    let page = home.run(&["sessions", "export", "abc", "--format", "html"]).succeeds().stdout;
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"), "{page}");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt; &amp; more"), "{page}");
    assert!(!page.contains("<script") && !page.contains("<img"), "{page}");
    assert!(page.contains("more characters") && page.len() < 40_000, "{}", page.len());
    let text = home.run(&["sessions", "export", "abc", "--format", "markdown"]).succeeds().stdout;
    assert!(text.starts_with("# <script>") && text.contains("## claude") && text.contains("**`Bash`**"), "{text}");
    assert!(text.contains("\n`````text\n````\n"), "the fence is longer than what is inside: {text}");
    assert!(text.contains("more characters") && text.len() < 10_000, "{}", text.len());
}

#[test]
fn what_is_damaged_is_told_by_place_and_the_rest_is_listed() {
    let home = home();
    let path = home.path(&format!(".claude/projects/-workspace/{CLAUDE}.jsonl"));
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{{\"cut\n{text}")).unwrap();
    let ran = home.run(&["sessions", "list", "--all", "--json"]).succeeds();
    let list: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (session(&list, "claude")["damaged"].as_u64(), session(&list, "claude")["turns"].as_u64()),
        (Some(1), Some(3))
    );
    assert!(ran.stderr.contains(&format!("{CLAUDE}.jsonl:1: ")), "{}", ran.stderr);
}

#[test]
fn an_unknown_or_ambiguous_id_is_refused_with_the_way_out() {
    let home = home();
    home.run(&["sessions", "show", "nothing"]).refused(2, "`gembridge sessions list --all` lists all");
    home.run(&["sessions", "export"]).refused(2, "no session of `");
}

#[test]
fn every_command_of_the_document_works_as_it_is_printed() {
    let home = home();
    let project = home.path("project");
    fs::create_dir(&project).unwrap();
    put(&home, ".gemini/tmp/p/chats/session-b.jsonl", "gemini/0.61.0/interactive_rewind.jsonl");
    write(&home, ".gemini/tmp/p/.project_root", project.canonicalize().unwrap().to_str().unwrap());
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sessions.md");
    let document = fs::read_to_string(document).unwrap();
    let blocks = document.split("\n```sh\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    let lines: Vec<_> = blocks.flat_map(str::lines).collect();
    assert!(lines.len() >= 7, "{lines:?}");
    let programs = Path::new(env!("CARGO_BIN_EXE_gembridge")).parent().unwrap();
    for line in lines {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", line]).env_clear().env("HOME", home.path("")).env("PATH", programs).current_dir(&project);
        let ran = shell.output().unwrap();
        assert!(ran.status.success(), "{line}\n{}", String::from_utf8_lossy(&ran.stderr));
    }
    for file in ["session.md", "session.html", "session.jsonl"] {
        assert!(fs::metadata(project.join(file)).unwrap().len() > 100, "{file}");
    }
}

#[test]
fn a_reader_of_a_long_export_that_leaves_early_is_no_error() {
    use std::process::Stdio;
    let home = home();
    let args = ["sessions", "export", GEMINI, "--format", "json"];
    let mut child = home.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}
