//! `gembridge run` and `gembridge chat` with the built-in agent, a real process.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value;

use crate::support::home::Home;
use crate::support::run::Ran;

fn run(home: &Home, args: &[&str]) -> Ran {
    home.run(&[&["run", "--agent", "demo"], args].concat())
}

fn with_input(home: &Home, args: &[&str], input: &str) -> Ran {
    let mut child =
        home.command(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    Ran::from(child.wait_with_output().unwrap())
}

#[test]
fn a_prompt_is_answered_on_standard_output_and_nothing_else_is_said() {
    let ran = run(&Home::new(), &["hello there"]).succeeds();
    assert!(ran.stdout.contains("hello there") && ran.stdout.ends_with('\n'), "{}", ran.stdout);
    assert_eq!(ran.stderr, "");
}

#[test]
fn with_no_agent_installed_the_demo_answers_and_says_so() {
    let ran = Home::new().run(&["run", "hello"]).succeeds();
    assert!(ran.stdout.contains("demo agent"));
    assert!(ran.stderr.contains("no agent is installed"), "{}", ran.stderr);
    assert_eq!(Home::new().run(&["--quiet", "run", "hello"]).succeeds().stderr, "");
}

#[test]
fn the_prompt_may_come_from_standard_input() {
    let home = Home::new();
    for args in [&["run", "--agent", "demo"][..], &["run", "--agent", "demo", "-"]] {
        let ran = with_input(&home, args, "from a pipe\n").succeeds();
        assert!(ran.stdout.contains("from a pipe"), "{}", ran.stdout);
    }
}

#[test]
fn json_is_one_object_and_stream_json_one_message_a_line() {
    let home = Home::new();
    let report = run(&home, &["--output-format", "json", "tool"]).succeeds().json();
    assert_eq!((&report["type"], &report["is_error"]), (&"result".into(), &false.into()));
    assert!(report["messages"].as_array().unwrap().iter().any(|message| message["content"][0]["type"] == "tool_use"));

    let lines: Vec<Value> = run(&home, &["-o", "stream-json", "hello"])
        .succeeds()
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!((&lines[0]["type"], &lines[0]["subtype"]), (&"system".into(), &"init".into()));
    let last = lines.last().unwrap();
    assert_eq!((&last["type"], &last["stop_reason"]), (&"result".into(), &"end_turn".into()));
    assert_eq!(lines[0]["session_id"], last["session_id"]);
}

#[test]
fn the_exit_code_tells_how_the_turn_ended() {
    let home = Home::new();
    let crashed = run(&home, &["crash 3"]);
    assert_eq!(crashed.code, Some(1));
    assert!(crashed.stderr.lines().last().unwrap().starts_with("gembridge: agent `demo` ended with exit code 3"));
    let late = run(&home, &["--timeout", "1", "wait"]);
    assert_eq!((late.code, late.stdout.as_str()), (Some(4), ""), "{}", late.stderr);
    let failed = run(&home, &["-o", "json", "error 500 no luck"]);
    assert_eq!(failed.code, Some(1));
    assert_eq!(failed.json()["is_error"], true);
}

#[test]
fn s19_with_nobody_to_ask_a_permission_is_refused_unless_the_flag_allows_it() {
    let home = Home::new();
    for args in [
        &["permission rm x"][..],
        &["--permissions", "ask", "permission rm x"],
        &["--permissions", "deny", "permission rm x"],
    ] {
        assert!(run(&home, args).succeeds().stdout.contains("Rejected"), "{args:?}");
    }
    assert!(run(&home, &["--permissions", "allow", "permission rm x"]).succeeds().stdout.contains("Allowed"));
}

#[test]
fn a_session_goes_on_where_it_was() {
    let home = Home::new();
    let first = run(&home, &["-o", "json", "hello"]).succeeds().json();
    let id = first["session_id"].as_str().unwrap();
    let second = run(&home, &["-o", "json", "--resume", id, "again"]).succeeds().json();
    assert_eq!(second["session_id"], id);
    run(&home, &["--resume", "no-id", "again"]).refused(2, "expected the id of a session");
    let unknown = "01a1de76-8378-75da-9a63-fc285e32a817";
    run(&home, &["--resume", unknown, "again"]).refused(2, "is not known");
}

#[test]
fn two_runs_at_once_do_not_disturb_each_other() {
    let home = Home::new();
    let start = |prompt: &str| {
        home.command(&["run", "--agent", "demo", prompt]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let both = [start("slow 20 20"), start("slow 20 20")];
    for child in both {
        Ran::from(child.wait_with_output().unwrap()).succeeds();
    }
}

#[test]
fn a_chat_through_a_pipe_takes_each_line_as_a_turn() {
    let home = Home::new();
    let ran = with_input(&home, &["chat", "--agent", "demo"], "first words\n\ncount\n/quit\nnever\n").succeeds();
    assert!(ran.stdout.contains("first words") && !ran.stdout.contains("never"), "{}", ran.stdout);
}

#[test]
fn s20_a_trusted_folder_is_worked_in_and_its_settings_are_still_not_read() {
    let home = Home::new();
    let project = home.path("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("gembridge.toml"), "[server]\nport = 'hostile'\n").unwrap();
    std::fs::write(project.join("note.txt"), "from the workspace").unwrap();
    home.run(&["trust", "add", "project"]).succeeds();
    let ran = run(&home, &["--cwd", "project", "read note.txt"]);
    assert!(ran.succeeds().stdout.contains("from the workspace"));
}

#[test]
fn s16_prompts_and_keys_are_in_no_log_whatever_the_level_and_however_it_ends() {
    let home = Home::new().with_config("gembridge.toml", "[auth]\nbearer_token = 'canary-token'\n");
    let log = home.path("log");
    let variables = [
        ("GEMINI_API_KEY", "canary-key"),
        ("GEMBRIDGE_TOKEN", "canary-variable"),
        ("LOG_LEVEL", "debug"),
        ("LOG_FILE", log.to_str().unwrap()),
    ];
    for prompt in ["canary-prompt", "crash 3\ncanary-prompt", "error 500 x\ncanary-prompt", "permission canary-prompt"]
    {
        let ran = home.run_with(&["run", "--agent", "demo", prompt], &variables);
        assert!(!ran.stderr.contains("canary"), "{}", ran.stderr);
    }
    let late = home.run_with(&["run", "--agent", "demo", "--timeout", "1", "wait\ncanary-prompt"], &variables);
    assert!(!late.stderr.contains("canary"), "{}", late.stderr);
    let logged = std::fs::read_to_string(&log).unwrap();
    assert!(!logged.is_empty() && !logged.contains("canary"), "{logged}");
}

#[test]
fn s15_the_agent_gets_none_of_our_secrets_and_a_hostile_prompt_stays_text() {
    let home = Home::new();
    let seen = home.path("seen");
    let script = format!("exec > '{}'; /usr/bin/env; /bin/cat /proc/$$/cmdline; exit 9", seen.display());
    let settings = format!("[agents.spy]\ncommand = '/bin/sh'\nargs = ['-c', \"\"\"{script}\"\"\"]\n");
    let home = home.with_config("gembridge.toml", &settings);
    let names = ["GEMBRIDGE_TOKEN", "AWS_SECRET_ACCESS_KEY", "REDIS_URL", "BEARER_TOKEN"];
    let secrets = names.map(|name| (name, "canary"));
    let ran = home.run_with(&["run", "--agent", "spy", "\"; touch pwn #canary $(touch pwn)"], &secrets);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let seen = std::fs::read_to_string(seen).unwrap();
    assert!(seen.contains("HOME=") && seen.contains("/bin/sh"), "{seen}");
    assert!(!seen.contains("canary"), "{seen}");
    assert!(!ran.stderr.contains("canary") && !home.path("pwn").exists(), "{}", ran.stderr);
}
