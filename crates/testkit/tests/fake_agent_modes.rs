//! Each fault mode of the fake agent does what its name says.

#![expect(clippy::disallowed_methods, reason = "starts the program under test")]

use std::{
    fs::{self, File},
    io::Write,
    process::{Command, Stdio},
    time::Duration,
};

use gembridge_testkit::{
    Record, fake_agent_path,
    raw_acp::{Exchange, RawAcp},
};
use serde_json::{Value, json};

fn mode(modes: &str) -> RawAcp {
    RawAcp::fake(&["--mode", modes])
}

fn ready(modes: &str) -> (RawAcp, String) {
    let mut agent = mode(modes);
    agent.initialize();
    let session = agent.open_session("/");
    (agent, session)
}

fn stop_reason(exchange: &Exchange) -> &Value {
    &exchange.response["result"]["stopReason"]
}

/// Every line from the prompt up to its response, as bytes.
fn lines_of_a_turn(agent: &mut RawAcp, session: &str, prompt: &str) -> Vec<Vec<u8>> {
    let id = agent.start_prompt(session, prompt);
    let mut lines = Vec::new();
    loop {
        let line = agent.line().unwrap();
        let is_response = serde_json::from_slice(&line).is_ok_and(|message: Value| message["id"] == id);
        lines.push(line);
        if is_response {
            return lines;
        }
    }
}

#[test]
fn noise_surrounds_a_turn_that_completes() {
    let table: [(&str, &[u8]); 5] = [
        ("banner", b"Loaded cached credentials"),
        ("garbage", b"}{ not json"),
        ("badutf8", b"bad-\xff-utf8"),
        ("batch", b"[{\"jsonrpc\""),
        ("unknown-id", b"\"id\":987654321"),
    ];
    for (name, needle) in table {
        let (mut agent, session) = ready(name);
        let lines = lines_of_a_turn(&mut agent, &session, "say hello");
        let holds = |needle: &[u8]| lines.iter().any(|line| line.windows(needle.len()).any(|part| part == needle));
        assert!(holds(needle), "{name} made no noise");
        assert!(holds(b"\"hello\""), "{name} lost the answer");
        assert!(lines.last().unwrap().windows(8).any(|part| part == b"end_turn"), "{name} did not end the turn");
    }
}

#[test]
fn banner_comes_before_the_first_message() {
    let mut agent = mode("banner");
    agent.request("initialize", &json!({"protocolVersion": 1}));
    assert!(agent.line().unwrap().starts_with(b"Loaded"));
    assert!(agent.line().unwrap().starts_with(b"{"));
}

#[test]
fn dup_reply_sends_a_response_twice() {
    let (mut agent, session) = ready("dup-reply");
    let response = lines_of_a_turn(&mut agent, &session, "say hello").pop().unwrap();
    assert_eq!(agent.line().unwrap(), response);
}

#[test]
fn modes_that_end_the_process_mid_turn() {
    for (name, pieces, code) in [("crash-mid:3", 3, 3), ("crash-mid:0", 0, 3), ("exit0-mid", 1, 0), ("halfline", 1, 0)]
    {
        let (mut agent, session) = ready(name);
        agent.start_prompt(&session, "say hello");
        let mut lines = Vec::new();
        while let Some(line) = agent.line() {
            lines.push(String::from_utf8(line).unwrap());
        }
        let chunks = lines.iter().filter(|line| line.contains("chunk-") && line.ends_with("}\n")).count();
        assert_eq!((chunks, agent.wait().code()), (pieces, Some(code)), "{name}");
        let ends_in_half_a_line = lines.last().is_some_and(|line| !line.ends_with('\n'));
        assert_eq!(ends_in_half_a_line, name == "halfline", "{name}");
    }
}

#[test]
fn hang_init_reads_and_says_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let record = Record::at(folder.path().join("record"));
    let mut agent = RawAcp::fake(&["--mode", "hang-init", "--record", record.path().to_str().unwrap()]);
    agent.request("initialize", &json!({"protocolVersion": 1}));
    record.wait_for("initialize", 1);
    assert_eq!(agent.line_within(Duration::from_millis(200)), None);
}

#[test]
fn hang_prompt_outlives_its_cancel() {
    let (mut agent, session) = ready("hang-prompt");
    agent.start_prompt(&session, "say hello");
    agent.notify("session/cancel", &json!({"sessionId": session}));
    let listed = agent.call("session/list", &json!({}));
    assert!(listed.before.iter().all(|message| message["method"] == "session/update"), "{:?}", listed.before);
    assert_eq!(agent.line_within(Duration::from_millis(200)), None);
}

#[test]
fn sizes_are_kept() {
    let (mut agent, session) = ready("hugeline:2M");
    let lines = lines_of_a_turn(&mut agent, &session, "say hello");
    assert!(lines.iter().any(|line| line.len() > 2 << 20));
    assert_eq!(lines.len(), 4, "the session's commands, the huge line, the answer, the response");

    let (mut agent, session) = ready("flood:1M");
    let lines = lines_of_a_turn(&mut agent, &session, "say hello");
    let bytes: usize = lines.iter().map(Vec::len).sum();
    assert!((1 << 20..2 << 20).contains(&bytes), "{bytes} bytes");
    assert!(lines.iter().all(|line| line.len() < 500));
}

#[test]
fn stderr_flood_fills_stderr_before_answers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stderr");
    let mut command = Command::new(fake_agent_path());
    command.args(["--mode", "stderr-flood:1M"]).stderr(File::create(&path).unwrap());
    let mut agent = RawAcp::start(&mut command).unwrap();
    agent.initialize();
    let session = agent.open_session("/");
    assert_eq!(agent.prompt(&session, "say hello").text(), "hello");
    assert!(fs::metadata(&path).unwrap().len() >= 2 << 20);
}

#[test]
fn no_read_stdin_lets_the_pipe_fill_up() {
    let folder = tempfile::tempdir().unwrap();
    let record = Record::at(folder.path().join("record"));
    let mut command = Command::new(fake_agent_path());
    command.args(["--mode", "no-read-stdin:1", "--record", record.path().to_str().unwrap()]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"method\":\"initialize\",\"id\":1}\n").unwrap();
    record.wait_for("initialize", 1);
    let writer = std::thread::spawn(move || stdin.write_all(&vec![b' '; 4 << 20]));
    std::thread::sleep(Duration::from_millis(200));
    assert!(!writer.is_finished(), "four megabytes fitted into a pipe that nobody reads");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(writer.join().unwrap().is_err());
    assert_eq!(record.messages().len(), 1);

    let (mut agent, session) = ready("no-read-stdin");
    agent.start_prompt(&session, "say hello");
    while let Some(line) = agent.line_within(Duration::from_millis(200)) {
        assert!(!String::from_utf8(line).unwrap().contains("hello"), "the prompt was read");
    }
}

#[test]
fn late_reply_comes_after_what_was_asked_later() {
    let (mut agent, session) = ready("late-reply:500");
    let id = agent.start_prompt(&session, "wait-cancel");
    agent.notify("session/cancel", &json!({"sessionId": session}));
    let listed = agent.call("session/list", &json!({}));
    assert!(listed.before.iter().all(|message| message["id"] != id), "the prompt was answered first");
    assert_eq!(*stop_reason(&agent.finish(id, |_| json!({}))), "cancelled");
}

#[test]
fn slow_answers_like_ok() {
    let (mut agent, session) = ready("slow:5");
    assert_eq!(agent.prompt(&session, "say a ;; say b").text(), "ab");
}

#[test]
fn permission_storm_counts_the_outcomes() {
    let (mut agent, session) = ready("permission-storm:30");
    let id = agent.start_prompt(&session, "go");
    let mut asked = 0;
    let exchange = agent.finish(id, |_| {
        asked += 1;
        match asked % 3 {
            0 => json!({"outcome": {"outcome": "cancelled"}}),
            1 => json!({"outcome": {"outcome": "selected", "optionId": "proceed_once"}}),
            _ => json!({"outcome": {"outcome": "selected", "optionId": "cancel"}}),
        }
    });
    assert_eq!(exchange.text(), "storm: 10 allowed, 10 rejected, 10 cancelled, 0 errors");
}

#[test]
fn fs_escape_tells_what_it_got() {
    for (content, verdict) in [("secret", "LEAKED"), ("", "hidden")] {
        let (mut agent, session) = ready("fs-escape");
        let id = agent.start_prompt(&session, "go");
        let text = agent.finish(id, |_| json!({"content": content})).text();
        assert_eq!(text.lines().filter(|line| line.starts_with("escape read") && line.ends_with(verdict)).count(), 9);
        assert_eq!(text.lines().filter(|line| line.starts_with("escape write") && line.ends_with("LEAKED")).count(), 6);
    }
}

#[test]
fn dump_env_tells_what_the_process_was_given() {
    let mut command = Command::new(fake_agent_path());
    command.args(["--mode", "dump-env"]).env_clear().env("CANARY", "yellow");
    let mut agent = RawAcp::start(&mut command).unwrap();
    agent.initialize();
    let session = agent.open_session("/");
    let told: Value = serde_json::from_str(&agent.prompt(&session, "go").text()).unwrap();
    assert_eq!(told["env"], json!({"CANARY": "yellow"}));
    let descriptors: Vec<u64> = told["fds"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    assert_eq!(descriptors[..3], [0, 1, 2]);
    for inherited in &descriptors[3..] {
        let ours = format!("/proc/self/fd/{inherited}");
        assert!(fs::exists(&ours).unwrap(), "descriptor {inherited} is the agent's own");
    }
    assert_eq!(told["argv"][2], "dump-env");
}

#[test]
fn needs_auth_until_authenticated() {
    let mut agent = mode("needs-auth");
    let methods = agent.initialize()["result"]["authMethods"].clone();
    let open = json!({"cwd": "/", "mcpServers": []});
    assert_eq!(agent.call("session/new", &open).response["error"]["code"], -32000);
    assert_eq!(agent.call("authenticate", &json!({"methodId": "other"})).response["error"]["code"], -32602);
    assert_eq!(agent.call("authenticate", &json!({"methodId": methods[0]["id"]})).response["result"], json!({}));
    assert!(agent.call("session/new", &open).response["result"]["sessionId"].is_string());
}

#[test]
fn bad_version_offers_a_protocol_that_is_not_there() {
    assert_eq!(mode("bad-version").initialize()["result"]["protocolVersion"], 99);
}

#[test]
fn crash_start_while_crashes_only_while_the_path_exists() {
    assert_eq!(mode("crash-start").wait().code(), Some(7));
    let folder = tempfile::tempdir().unwrap();
    let flag = folder.path().join("flag");
    fs::write(&flag, "").unwrap();
    let modes = format!("crash-start-while:{}", flag.display());
    assert_eq!(mode(&modes).wait().code(), Some(7));
    fs::remove_file(&flag).unwrap();
    assert_eq!(mode(&modes).initialize()["result"]["protocolVersion"], 1);
}

#[test]
fn a_command_line_with_a_mistake_is_refused() {
    for arguments in [["--mode", "nonsense"], ["--quirk", "nonsense"], ["--nonsense", "x"]] {
        let output = Command::new(fake_agent_path()).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(String::from_utf8(output.stderr).unwrap().contains("is not known"), "{arguments:?}");
    }
    let old = Command::new(fake_agent_path()).args(["--quirk", "no-acp-flag", "--acp"]).output().unwrap();
    assert_eq!(old.status.code(), Some(1));
}
