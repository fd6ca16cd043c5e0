//! Files and commands of an agent: inside its workspace, or not at all.

use std::os::unix::fs::symlink;

use gembridge_core::model::{Answer, AnsweredBy, AskBody, Event, OptionKind, ToolContent};
use gembridge_core::turn::PermissionPolicy;
use gembridge_drivers::profile::Quirk;
use gembridge_testkit::record;
use serde_json::Value;

use super::agent_fixture::{AgentFixture, ScriptedAgent};

#[tokio::test]
async fn s13_no_way_out_of_the_workspace_is_open() {
    let fixture = ScriptedAgent::fake(&["--mode", "fs-escape"]).start();
    let (inside, outside) = (fixture.workspace(), fixture.folder.path());
    std::fs::write(outside.join("secret.txt"), "canary").unwrap();
    std::fs::create_dir(outside.join("workspace-evil")).unwrap();
    std::fs::write(outside.join("workspace-evil/secret.txt"), "canary").unwrap();
    std::fs::create_dir(inside.join("sub")).unwrap();
    symlink(outside.join("secret.txt"), inside.join("link-to-file")).unwrap();
    symlink(outside, inside.join("link-to-folder")).unwrap();
    symlink(outside.join("not-there"), inside.join("dangling-link")).unwrap();
    let fifo = rustix::fs::mknodat(rustix::fs::CWD, inside.join("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0);
    fifo.unwrap();
    // Writes outside are asked about before they are refused; nobody is there to say yes.
    let mut client = fixture.session().await;
    let turn = client.prompt("go").await;
    let turned = loop {
        let entry = client.next().await;
        match entry.event {
            // Even a person's yes opens no way out.
            Event::Asked(ask) => client.answer(ask.id, ask.allow_once().unwrap()).await.unwrap(),
            Event::Ended(_) => break client.finish(turn).await,
            _ => {}
        }
    };
    let text = turned.finished();
    assert_eq!(text.lines().count(), 15, "{text}");
    assert!(!text.contains("LEAKED") && !text.contains("hidden"), "{text}");
    assert_eq!(std::fs::read_to_string(outside.join("secret.txt")).unwrap(), "canary");
    assert!(!outside.join("written.txt").exists() && !outside.join("not-there").exists());
    fixture.end().await;
}

#[tokio::test]
async fn s13_files_inside_are_read_by_line_and_limit_and_written_with_their_folders() {
    let fixture = ScriptedAgent::fake(&[]).start();
    std::fs::write(fixture.workspace().join("five"), "1\n2\n3\n4\n5\n").unwrap();
    let mut client = fixture.session().await;
    assert_eq!(client.turn("read five line 2 limit 2").await.finished(), "read: 2\n3\n");
    assert_eq!(client.turn("read five").await.finished(), "read: 1\n2\n3\n4\n5\n");
    assert_eq!(
        client.turn("write new/deep/file.txt one\\ntwo ;; read new/deep/file.txt").await.finished(),
        "write: okread: one\ntwo"
    );
    assert_eq!(std::fs::read_to_string(fixture.workspace().join("new/deep/file.txt")).unwrap(), "one\ntwo");
    fixture.end().await;
}

#[tokio::test]
async fn a_file_that_is_not_there_is_an_error_unless_the_agent_needs_it_empty() {
    let strict = ScriptedAgent::fake(&[]).start();
    let text = strict.session().await.turn("read missing.txt").await.finished();
    assert!(text.starts_with("read error -32002: ") && text.contains("does not exist"), "{text}");
    strict.end().await;
    let lenient = ScriptedAgent::fake(&[]).quirks(&[Quirk::NewFilesNeedEmptyRead]).start();
    assert_eq!(lenient.session().await.turn("read missing.txt").await.finished(), "read: ");
    lenient.end().await;
}

const HOOK: &str = "write .git/config evil";

#[tokio::test]
async fn s13_a_write_that_other_programs_obey_is_asked_about_whoever_may_edit() {
    // May edit unasked; that does not go as far as this.
    let policy = PermissionPolicy::ask().with_auto([gembridge_core::model::ToolKind::Edit]);
    let fixture = ScriptedAgent::fake(&[]).policy(policy).start();
    let mut client = fixture.session().await;
    let turn = client.prompt(HOOK).await;
    let ask = client.asked().await;
    let AskBody::Permission { tool, options, .. } = &ask.body else { panic!("{ask:?}") };
    assert!(matches!(&tool.content.as_deref().unwrap()[0], ToolContent::Diff { new, .. } if new.to_str() == "evil"));
    assert!(options.iter().all(|option| matches!(option.kind, OptionKind::AllowOnce | OptionKind::RejectOnce)));
    assert!(!fixture.workspace().join(".git").exists(), "nothing is written before the answer");
    client.answer(ask.id, ask.allow_once().unwrap()).await.unwrap();
    assert_eq!(client.finish(turn).await.finished(), "write: ok");
    assert_eq!(std::fs::read_to_string(fixture.workspace().join(".git/config")).unwrap(), "evil");
    fixture.end().await;
}

#[tokio::test]
async fn s13_such_a_write_is_refused_by_a_no_by_silence_and_by_policy() {
    let no = |fixture: AgentFixture, by: AnsweredBy| async move {
        let turned = fixture.session().await.turn(HOOK).await;
        let text = turned.finished();
        assert!(text.starts_with("write error -32600: ") && text.contains("refused"), "{text}");
        let decided =
            turned.events().find_map(|event| if let Event::Answered { by, .. } = event { Some(*by) } else { None });
        assert_eq!(decided, Some(by));
        assert!(!fixture.workspace().join(".git").exists());
        fixture.end().await;
    };
    no(ScriptedAgent::fake(&[]).policy(PermissionPolicy::reject()).start(), AnsweredBy::Policy).await;
    let impatient = ScriptedAgent::fake(&[]).limit(|limits| limits.answer = std::time::Duration::from_millis(100));
    no(impatient.start(), AnsweredBy::Timeout).await;

    let fixture = ScriptedAgent::fake(&[]).start();
    let mut client = fixture.session().await;
    let turn = client.prompt(HOOK).await;
    let ask = client.asked().await;
    client.answer(ask.id, Answer::Option("reject".into())).await.unwrap();
    assert!(client.finish(turn).await.finished().contains("refused"));
    assert!(!fixture.workspace().join(".git").exists());
    fixture.end().await;
}

#[tokio::test]
async fn a_chat_has_no_files_and_no_terminals_and_says_so() {
    let fixture = ScriptedAgent::fake_chat(&[]).start();
    let mut client = fixture.session().await;
    for script in ["read a", "write a b", "terminal true"] {
        let text = client.turn(script).await.finished();
        assert!(text.contains(" error -32601: "), "{script}: {text}");
    }
    let hello = &fixture.record.messages_of("initialize")[0]["params"]["clientCapabilities"];
    assert_eq!(*hello, serde_json::json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false}));
    fixture.end().await;
}

#[tokio::test]
async fn s18_each_chat_works_in_an_empty_private_folder_of_its_own() {
    use std::os::unix::fs::PermissionsExt as _;

    let fixture = ScriptedAgent::fake_chat(&[]).start();
    let mut folders = std::collections::BTreeSet::new();
    for _ in 0..3 {
        let mut client = fixture.session().await;
        let given: Value = serde_json::from_str(&client.turn("session").await.finished()).unwrap();
        let folder = std::path::PathBuf::from(given["cwd"].as_str().unwrap());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert!(folders.insert(folder));
    }
    assert_eq!(fixture.record.starts().len(), 1, "in one process");
    fixture.end().await;
    assert!(folders.iter().all(|folder| !folder.exists()), "they went with their sessions");
}

#[tokio::test]
async fn terminals_run_give_their_output_and_are_killed() {
    let fixture = ScriptedAgent::fake(&[]).start();
    std::fs::write(fixture.workspace().join("here"), "").unwrap();
    let mut client = fixture.session().await;
    assert_eq!(client.turn("terminal ls").await.finished(), "terminal: exit 0 signal null output here\n");
    let text = client.turn("terminal false").await.finished();
    assert_eq!(text, "terminal: exit 1 signal null output ");
    let text = client.turn("terminal-kill sleep 1000").await.finished();
    assert_eq!(text, "terminal: exit null signal \"SIGTERM\" output ");
    let text = client.turn("terminal no-such-program").await.finished();
    assert!(text.starts_with("terminal error ") && text.contains("was not found"), "{text}");
    fixture.end().await;
}

/// More commands than we do other things at once: whoever waits for their ends must not stop the rest.
#[tokio::test]
async fn many_commands_that_run_for_long_hold_up_nothing_else() {
    let mut plan = ScriptedAgent::fake(&[]);
    plan.setup.profile.limits.sessions_per_process = 100;
    let fixture = plan.start();
    let mut busy = Vec::new();
    for _ in 0..34 {
        let mut client = fixture.session().await;
        let turn = client.prompt("terminal sleep 1000").await;
        client.until(|event| matches!(event, Event::ToolCall(_)).then_some(())).await;
        busy.push((client, turn));
    }
    assert_eq!(fixture.record.starts().len(), 1, "they share one process");
    let mut other = fixture.session().await;
    assert_eq!(other.turn("write a b ;; read a").await.finished(), "write: okread: b");
    for (client, _) in &busy {
        client.handle.cancel().await.unwrap();
    }
    for (mut client, turn) in busy {
        client.finish(turn).await;
    }
    fixture.end().await;
}

#[tokio::test]
async fn s12_prompt_text_reaches_the_agent_on_stdin_only() {
    let fixture = ScriptedAgent::fake(&[]).start();
    let hostile = "\"; touch pwn-canary # $(touch pwn-canary) --yolo -m pwn-canary \u{0} \n--pwn-canary";
    let mut client = fixture.session().await;
    client.turn(hostile).await.finished();
    assert_eq!(fixture.received("session/prompt", 1).await["params"]["prompt"][0]["text"], hostile);
    let started = |entry: record::Entry| if let record::Event::Started(argv) = entry.event { Some(argv) } else { None };
    for argv in fixture.record.entries().into_iter().filter_map(started) {
        assert!(argv.iter().all(|argument| !argument.contains("pwn-canary") && argument != "--yolo"), "{argv:?}");
    }
    let tree = fixture.processes();
    assert!(tree.len() >= 2, "the agent and its guard were looked at");
    let carriers = gembridge_testkit::processes_with_tag("pwn-canary");
    assert!(!tree.iter().any(|pid| carriers.contains(pid)), "in no argument, in no variable");
    assert!(!fixture.workspace().join("pwn-canary").exists());
    fixture.end().await;
}

#[tokio::test]
async fn s15_the_agent_gets_what_the_profile_names_and_three_descriptors() {
    let mut plan = ScriptedAgent::fake(&["--mode", "dump-env"]);
    plan.setup.profile.environment.pass.push("FAKE_LOGIN".into());
    for (name, value) in [
        ("FAKE_LOGIN", "key"),
        ("LANG", "C.UTF-8"),
        ("GEMBRIDGE_TOKEN", "canary"),
        ("AWS_SECRET_ACCESS_KEY", "canary"),
        ("REDIS_URL", "canary"),
    ] {
        plan.setup.environment.insert(name.into(), value.into());
    }
    let fixture = plan.start();
    let text = fixture.session().await.turn("go").await.finished();
    assert!(!text.contains("canary"), "{text}");
    let seen: Value = serde_json::from_str(&text).unwrap();
    let names: Vec<&str> = seen["env"].as_object().unwrap().keys().map(String::as_str).collect();
    let expected = ["FAKE_LOGIN", "LANG", "NO_COLOR", "PATH", "TERM", "TMPDIR"];
    assert_eq!(names.iter().filter(|name| !name.starts_with("GEMBRIDGE_")).copied().collect::<Vec<_>>(), expected);
    let ours: Vec<_> = names.iter().filter(|name| name.starts_with("GEMBRIDGE_")).collect();
    assert_eq!(ours.len(), 1, "the tag of the run alone: {ours:?}");
    assert_eq!((&seen["env"]["TERM"], &seen["env"]["FAKE_LOGIN"]), (&"dumb".into(), &"key".into()));
    assert_eq!(seen["fds"], serde_json::json!([0, 1, 2]));
    assert_eq!(seen["cwd"], fixture.workspace().to_str().unwrap());
    fixture.end().await;
}
