//! Every recorded run, and beside it what it reads as: `NAME.expected.txt`. The program is a shell that writes the recording.
//!
//! `UPDATE_GOLDEN=1` writes the files anew; read the difference before you commit it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use gembridge_core::model::{Event, Outcome};
use serde_json::Value;

use crate::scripted::{agent, recorded};

#[expect(clippy::disallowed_methods, reason = "the switch of a test is no setting of the product")]
fn update_is_wanted() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some()
}

/// What the program wrote, and its exit code.
struct Run {
    stdout: String,
    stderr: String,
    code: i64,
}

impl Run {
    fn of(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        if path.extension().is_some_and(|end| end == "jsonl") {
            return Self { stdout: text, stderr: String::new(), code: 0 };
        }
        let mut run = Self { stdout: String::new(), stderr: String::new(), code: 0 };
        for line in text.lines() {
            let noted: Value = serde_json::from_str(line).unwrap();
            match noted["dir"].as_str() {
                Some("stdout") => writeln!(run.stdout, "{}", noted["msg"]).unwrap(),
                Some("stderr") => writeln!(run.stderr, "{}", noted["msg"].as_str().unwrap_or_default()).unwrap(),
                Some("exit") => run.code = noted["msg"].as_i64().unwrap_or(0),
                _ => {}
            }
        }
        run
    }
}

async fn rendered(name: &str, path: &Path) -> String {
    let run = Run::of(path);
    let plan = agent(name, &format!("cat \"$here/stderr\" >&2; cat \"$here/stdout\"; exit {}", run.code));
    fs::write(plan.folder.path().join("stdout"), &run.stdout).unwrap();
    fs::write(plan.folder.path().join("stderr"), &run.stderr).unwrap();
    let fixture = plan.start();
    let mut client = fixture.session().await;
    let turned = client.turn("go").await;
    let mut out = String::new();
    for entry in client.seen() {
        match &entry.event {
            Event::Text(text) => writeln!(out, "text {:?}", text.to_str()).unwrap(),
            Event::Thought(text) => writeln!(out, "thought {:?}", text.to_str()).unwrap(),
            Event::ToolCall(call) => {
                let (title, status) = (call.title.as_deref().unwrap_or_default(), call.status);
                writeln!(out, "tool {} {title:?} {status:?}", call.id).unwrap();
            }
            Event::Model(model) => writeln!(out, "model {model}").unwrap(),
            Event::Usage(usage) => {
                let counts =
                    [usage.input, usage.output, usage.thought, usage.cached_read, usage.cached_write, usage.total];
                writeln!(out, "usage {}", serde_json::json!(counts)).unwrap();
            }
            Event::Other { kind } => writeln!(out, "other {kind}").unwrap(),
            _ => {}
        }
    }
    match &turned.outcome {
        Outcome::Interrupted(failure) => writeln!(out, "failed {:?}: {}", failure.kind, failure.message).unwrap(),
        outcome => writeln!(out, "{outcome:?}").unwrap(),
    }
    fixture.end().await;
    out
}

async fn check(name: &str, at_least: usize) {
    let mut paths: Vec<_> = fs::read_dir(recorded(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "ndjson" || end == "jsonl"));
    paths.sort();
    assert!(paths.len() >= at_least, "{paths:?}");
    for path in paths {
        let actual = rendered(name, &path).await;
        let beside = path.with_extension("expected.txt");
        if update_is_wanted() {
            fs::write(&beside, &actual).unwrap();
        }
        let expected = fs::read_to_string(&beside).unwrap_or_else(|error| panic!("{}: {error}", beside.display()));
        assert!(actual == expected, "{} differs; UPDATE_GOLDEN=1 writes it anew\n{actual}", beside.display());
    }
}

#[tokio::test]
async fn runs_of_gemini_cli_read_as_recorded() {
    check("gemini", 19).await;
}

#[tokio::test]
async fn runs_of_claude_code_read_as_recorded() {
    check("claude", 2).await;
}
