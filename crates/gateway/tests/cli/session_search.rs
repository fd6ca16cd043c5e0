//! `gembridge sessions search`, `stats`, `watch` and `resume` on a home in which agents have worked.

use std::fs;
use std::io::Write as _;

use gembridge_testkit::fake_agent_path;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::sessions::{CLAUDE, GEMINI, home, write};
use crate::support::home::Home;

fn lines(records: &[Value]) -> String {
    records.iter().flat_map(|record| [record.to_string(), "\n".to_owned()]).collect()
}

fn typed(text: &str, folder: &str) -> Value {
    json!({"type": "user", "uuid": text, "timestamp": "2026-11-14T10:00:00Z", "cwd": folder,
        "message": {"role": "user", "content": text}})
}

fn answered(id: &str, text: &str) -> Value {
    json!({"type": "assistant", "timestamp": "2026-11-14T10:00:01Z", "requestId": "r", "message": {"id": id, "model": "opus-5-20261101",
        "role": "assistant", "content": [{"type": "text", "text": text}], "usage":
            {"input_tokens": 1_000_000, "output_tokens": 100_000, "cache_read_input_tokens": 2_000_000}}})
}

#[test]
fn words_are_found_with_the_command_that_goes_on_with_the_session() {
    let home = home();
    let found = home.run(&["sessions", "search", "ping", "--json"]).succeeds().json();
    assert_eq!(found.as_array().unwrap().len(), 4, "{found:#}");
    let claude = found.as_array().unwrap().iter().find(|hit| hit["agent"] == "claude").unwrap();
    assert_eq!((&claude["id"], &claude["resume"]), (&CLAUDE.into(), &"gembridge sessions resume 41f6ab9a".into()));
    assert!(claude["snippet"].as_str().unwrap().contains("ping"), "{claude:#}");
    let text = home.run(&["sessions", "search", "ping", "--agent", "claude"]).succeeds().stdout;
    assert!(text.starts_with("A title\nclaude · fake · /workspace · "), "{text}");
    assert!(text.ends_with("\n  gembridge sessions resume 41f6ab9a\n"), "{text}");
    let none = home.run(&["sessions", "search", "ping", "unheard-of"]).succeeds();
    assert!(
        none.stdout.is_empty() && none.stderr.contains("none of 6 sessions has all these words"),
        "{}",
        none.stderr
    );
    home.run(&["sessions", "search", "-"]).refused(2, "no word in the query");
}

#[test]
fn what_is_written_later_is_found_by_the_next_search() {
    let home = Home::new();
    let path = home.path(".claude/projects/p/abc.jsonl");
    write(&home, ".claude/projects/p/abc.jsonl", lines(&[typed("apples", "/w")]));
    let count = |words: &[&str]| {
        let args: Vec<_> = ["sessions", "search", "--json"].iter().chain(words).copied().collect();
        home.run(&args).succeeds().json().as_array().unwrap().len()
    };
    assert_eq!((count(&["apples"]), count(&["pears"])), (1, 0));
    fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap()
        .write_all(lines(&[answered("a", "pears")]).as_bytes())
        .unwrap();
    assert_eq!((count(&["apples"]), count(&["pears"]), count(&["pea*"])), (1, 1, 1));
    fs::remove_file(&path).unwrap();
    assert_eq!(count(&["apples"]), 0);
}

#[test]
fn tokens_are_counted_once_by_day_agent_model_and_project() {
    let home = home();
    let stats = home.run_with(&["sessions", "stats", "--json"], &[("TZ", "UTC")]).succeeds().json();
    // 105 of Claude Code's session and 15 of its subagent's.
    assert_eq!(stats["total"]["total"], 120 + 60 + 3084 + 75 + 75, "{stats:#}");
    let row = |rows: &str, name: &str| {
        let found = stats[rows].as_array().unwrap().iter().find(|row| row["name"] == name).cloned();
        found.unwrap_or_else(|| panic!("{rows} {name}: {stats:#}"))
    };
    let gemini = row("agents", "gemini");
    assert_eq!((&gemini["cache_read"], &gemini["total"]), (&300.into(), &3084.into()), "{gemini:#}");
    let parts = ["input", "output", "thoughts", "cache_read", "cache_write", "other"];
    let sum: u64 = parts.iter().map(|part| gemini[*part].as_u64().unwrap()).sum();
    assert_eq!(sum, 3084, "cached tokens are not counted as input too: {gemini:#}");
    assert_eq!(row("models", "m")["total"], 150);
    assert_eq!(row("projects", "/workspace")["total"], 3414);
    assert_eq!(row("days", "2026-11-16")["total"], 330);
    assert!(stats["total"].get("cost").is_none(), "no price is known: {stats:#}");
    let only = |args: &[&str]| {
        let args: Vec<_> = ["sessions", "stats", "--json"].iter().chain(args).copied().collect();
        home.run_with(&args, &[("TZ", "UTC")]).succeeds().json()["total"]["total"].clone()
    };
    assert_eq!(only(&["--agent", "codex"]), 60);
    assert_eq!(only(&["--since", "2026-11-16"]), 330);
    assert_eq!(only(&["--until", "2026-11-15"]), 3084);
    assert_eq!(only(&["--project", "/workspace", "--agent", "qwen"]), 75);
    home.run(&["sessions", "stats", "--since", "2026-11-16", "--until", "2026-11-15"]).refused(2, "swap them");
    home.run(&["sessions", "stats", "--since", "today"]).refused(2, "expected a day, such as");
}

#[test]
fn costs_come_from_the_price_table_of_the_settings() {
    let home = Home::new();
    write(&home, ".claude/projects/p/abc.jsonl", lines(&[typed("hi", "/w"), answered("a", "one")]));
    // A copy of the answer in a session that goes on with the first one costs nothing.
    write(&home, ".claude/projects/p/def.jsonl", lines(&[typed("hi", "/w"), answered("a", "one")]));
    home.configure("[prices.'opus-5']\ninput = 5\noutput = 25.0\ncache_read = 0.5\n");
    let stats = home.run(&["sessions", "stats", "--json"]).succeeds().json();
    assert_eq!(stats["total"]["total"], 3_100_000);
    assert!((stats["total"]["cost"].as_f64().unwrap() - 8.5).abs() < 1e-9, "{stats:#}");
    let text = home.run_with(&["sessions", "stats"], &[("TZ", "UTC")]).succeeds().stdout;
    assert!(text.starts_with(&format!("2026-11-14  {}   3.1M  8.50\n", "█".repeat(40))), "{text}");
    assert!(text.contains("\nMODEL "), "{text}");
    let by_model = home.run(&["sessions", "stats", "--by", "model"]).succeeds().stdout;
    assert!(by_model.starts_with("MODEL ") && by_model.lines().count() == 3, "{by_model}");
    home.configure("[prices.other]\ninput = 5\noutput = 25\n");
    let text = home.run(&["sessions", "stats"]).succeeds().stdout;
    assert!(text.ends_with("no price in `[prices]` for opus-5-20261101\n"), "{text}");
    home.configure("[prices.other]\ninput = -1\noutput = 25\n");
    home.run(&["sessions", "stats"]).refused(2, "`-1` is not a price");
    assert_eq!(Home::new().run(&["sessions", "stats"]).succeeds().stdout, "no tokens were counted\n");
}

#[test]
fn a_session_is_watched_as_it_is_written() {
    let home = Home::new();
    let path = home.path(".claude/projects/p/abc.jsonl");
    write(&home, ".claude/projects/p/abc.jsonl", lines(&[typed("first", "/w"), typed("second", "/w")]));
    let append =
        |text: &str| fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(text.as_bytes()).unwrap();
    let mut page = home.start(&["sessions", "watch", "abc", "-n", "1"]);
    let mut messages = home.start(&["sessions", "watch", "abc", "--json", "--no-originals", "-n", "1"]);
    page.shows("> second");
    messages.shows("\"second\"");
    let line = lines(&[answered("a", "a whole answer")]);
    let (half, rest) = line.split_at(line.len() / 2);
    append(half);
    append(rest);
    page.shows("a whole answer");
    messages.shows("a whole answer");
    let call = json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}});
    let mut more = answered("a", "");
    more["message"]["content"] = json!([call]);
    append(&lines(&[more]));
    append(&lines(&[typed("third", "/w")]));
    page.shows("> third");
    messages.shows("\"third\"");
    page.signal(Signal::INT);
    messages.signal(Signal::INT);
    let page = page.ends().stdout;
    assert!(!page.contains("> first"), "{page}");
    assert_eq!(page.matches("a whole answer").count(), 1, "{page}");
    let messages = messages.ends().stdout;
    let last: Value = serde_json::from_str(messages.lines().last().unwrap()).unwrap();
    assert_eq!(last["content"], "third");
}

#[test]
fn the_gateways_own_sessions_are_one_more_source() {
    let home = Home::new();
    let run = ["run", "--agent", "demo", "--output-format", "json", "a quince, please"];
    let own = home.run(&run).succeeds().json()["session_id"].as_str().unwrap().to_owned();
    let list = home.run(&["sessions", "list", "--all", "--json"]).succeeds().json();
    assert_eq!(
        (&list[0]["id"], &list[0]["agent"], &list[0]["turns"]),
        (&own.as_str().into(), &"gembridge".into(), &1.into())
    );
    let shown = home.run(&["sessions", "show", &own]).succeeds().stdout;
    assert!(shown.contains("> a quince, please"), "{shown}");
    let found = home.run(&["sessions", "search", "quince", "--json"]).succeeds().json();
    assert_eq!(found[0]["id"], own.as_str());
    let exported = home.run(&["sessions", "export", &own, "--format", "json"]).succeeds().json();
    assert_eq!(exported["messages"][0]["tool"], "demo", "{exported:#}");
    let resumed = home.run(&["sessions", "resume", &own, "and another", "--json"]).succeeds().json();
    assert_eq!(resumed["session_id"], own.as_str());
    let list = home.run(&["sessions", "list", "--all", "--agent", "gembridge", "--json"]).succeeds().json();
    assert_eq!(list[0]["turns"], 2, "{list:#}");
    home.run(&["sessions", "resume", &own, "--agent", "demo", "x"]).refused(2, "goes on with its own agent");
}

/// The fake agent under the name of one that writes sessions.
fn as_agent(home: &Home, name: &str) {
    let (agent, record) = (fake_agent_path(), home.record());
    let args = ["--record", record.path().to_str().unwrap()];
    home.configure(&format!("[agents.{name}]\ncommand = '{}'\nargs = {args:?}\n", agent.display()));
}

fn prompt_text(home: &Home) -> String {
    let prompts = home.record().messages_of("session/prompt");
    let blocks = prompts.last().unwrap()["params"]["prompt"].as_array().unwrap().clone();
    blocks.iter().filter_map(|block| block["text"].as_str().map(str::to_owned)).collect::<Vec<_>>().join("\n")
}

#[test]
fn another_agent_is_told_what_was_said() {
    let home = home();
    as_agent(&home, "goose");
    let ran =
        home.run(&["sessions", "resume", "bbbb", "say well then", "--agent", "goose", "--chat", "--json"]).succeeds();
    assert_eq!(ran.json()["result"], "well then");
    let told = prompt_text(&home);
    for said in ["[User]\nheadless tools", "[Assistant]\n", "(called Bash: echo one)", "end.", "[User]\nsay well then"]
    {
        assert!(told.contains(said), "`{said}` is missing in\n{told}");
    }
    assert!(!told.contains("session_context"), "what a program added is for its own agent: {told}");
    assert_eq!(home.record().messages_of("session/resume").len(), 0, "the agent never had it");
    // From now on it is a session of the gateway.
    let own = ran.json()["session_id"].as_str().unwrap().to_owned();
    let shown = home.run(&["sessions", "show", &own]).succeeds().stdout;
    assert!(shown.contains("> headless tools") && shown.contains("> say well then"), "{shown}");
}

#[test]
fn the_agent_that_wrote_a_session_is_asked_for_it_in_its_folder() {
    let home = Home::new();
    let folder = home.path("project");
    fs::create_dir(&folder).unwrap();
    let real = folder.canonicalize().unwrap();
    let real = real.to_str().unwrap();
    write(&home, ".claude/projects/p/abc.jsonl", lines(&[typed("plums", real), answered("a", "ripe")]));
    as_agent(&home, "claude");
    home.run(&["sessions", "resume", "abc", "say more"]).refused(2, "is not trusted");
    home.run(&["trust", "add", real]).succeeds();
    assert_eq!(home.run(&["sessions", "resume", "abc", "say more"]).succeeds().stdout, "more\n");
    let asked = home.record().messages_of("session/resume");
    assert_eq!((&asked[0]["params"]["sessionId"], &asked[0]["params"]["cwd"]), (&"abc".into(), &real.into()));
    let told = prompt_text(&home);
    assert!(told.contains("plums") && told.contains("ripe"), "it no longer had it, so it was told: {told}");
}

#[test]
fn what_cannot_be_gone_on_with_is_refused_with_the_way_out() {
    let home = home();
    home.run(&["sessions", "resume", "agent-acc69d26505d36192"])
        .refused(2, &format!("gembridge sessions resume {CLAUDE}"));
    home.run(&["sessions", "resume", "unheard-of"]).refused(2, "no session `unheard-of` was found");
    home.run(&["sessions", "resume", GEMINI, "--agent", "unheard-of", "x"])
        .refused(2, "agent `unheard-of` is not known");
    home.run(&["sessions", "resume", GEMINI, "x", "--chat"]).refused(3, "gemini");
}
