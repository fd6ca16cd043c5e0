//! Files that the agent reads and writes through us.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use gembridge_core::model::{Ask, ToolStatus};
use serde_json::json;

use super::gemini_fixture::{GeminiAgent, allow, calling, refuse, script, title_of, tools_of, turn_answering};
use crate::agent_fixture::Turned;

#[tokio::test(flavor = "multi_thread")]
async fn files_are_made_and_changed_through_our_hands() {
    let fixture = GeminiAgent::agent().await.start();
    let workspace = fixture.workspace();
    let old = workspace.join("old.txt");
    fs::write(&old, "one\ntwo\n").unwrap();
    let inode = fs::metadata(&old).unwrap().ino();
    let outside = fixture.folder.path().join("outside.txt");
    fs::write(&outside, "untouched").unwrap();
    std::os::unix::fs::symlink(&outside, workspace.join("link.txt")).unwrap();

    let mut client = fixture.session().await;
    let prompt = script(json!([
        [
            {"call": {"name": "write_file", "id": "c1", "args": {"file_path": workspace.join("sub/new.txt"), "content": "née\n"}}},
            {"call": {"name": "replace", "id": "c2", "args": {"file_path": old, "instruction": "change it", "old_string": "two", "new_string": "2"}}},
        ],
        [{"text": "done"}],
    ]));
    let turned = turn_answering(&mut client, &prompt, allow).await;
    assert_eq!(turned.finished(), "done");
    assert_eq!(turned.asks.len(), 2);
    assert_eq!(statuses(&turned), [Some(ToolStatus::Completed); 2]);
    assert_eq!(fs::read_to_string(workspace.join("sub/new.txt")).unwrap(), "née\n");
    assert_eq!(fs::read_to_string(&old).unwrap(), "one\n2\n");
    assert_ne!(fs::metadata(&old).unwrap().ino(), inode, "we replace a file as a whole, the agent would write into it");

    let prompt = calling("write_file", json!({"file_path": workspace.join("link.txt"), "content": "changed"}));
    let turned = turn_answering(&mut client, &prompt, allow).await;
    assert_eq!(fs::read_to_string(&outside).unwrap(), "untouched", "no link leads out of the workspace");
    assert_eq!(turned.finished(), "done");
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_other_programs_obey_needs_our_own_consent() {
    let fixture = GeminiAgent::agent().await.start();
    let workspace = fixture.workspace();
    let workflow = workspace.join(".github/workflows/build.yml");
    let prompt = calling("write_file", json!({"file_path": workflow, "content": "on: push\n"}));
    let mut client = fixture.session().await;
    let ours = |ask: &Ask| title_of(ask).contains("which other programs obey");

    let turned = turn_answering(&mut client, &prompt, |ask| if ours(ask) { refuse(ask) } else { allow(ask) }).await;
    assert_eq!(turned.asks.iter().map(ours).collect::<Vec<_>>(), [false, true], "the agent's question, then ours");
    assert!(!workflow.exists());
    assert_eq!(turned.finished(), "done", "the turn goes on");
    assert_eq!(statuses(&turned), [Some(ToolStatus::Failed); 2]);

    let turned = turn_answering(&mut client, &prompt, allow).await;
    assert_eq!(turned.asks.iter().map(ours).collect::<Vec<_>>(), [false, true]);
    assert_eq!(fs::read_to_string(&workflow).unwrap(), "on: push\n");
    assert_eq!(statuses(&turned), [Some(ToolStatus::Completed); 2]);

    // The agent refuses these by itself, before anybody could be asked.
    fs::create_dir(workspace.join(".git")).unwrap();
    fs::write(workspace.join(".git/config"), "[core]\n").unwrap();
    let hostile = json!({"file_path": workspace.join(".git/config"), "content": "[core]\n\tfsmonitor = touch pwn\n"});
    let turned = turn_answering(&mut client, &calling("write_file", hostile), allow).await;
    assert_eq!(turned.finished(), "done");
    assert_eq!(fs::read_to_string(workspace.join(".git/config")).unwrap(), "[core]\n");
    fixture.end().await;
}

fn statuses(turned: &Turned) -> Vec<Option<ToolStatus>> {
    tools_of(turned).iter().map(|tool| tool.call.status).collect()
}
