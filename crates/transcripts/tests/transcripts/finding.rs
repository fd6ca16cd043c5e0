//! Sessions are found by project, by id and by age, and nothing but sessions is opened.

use std::fs;
use std::path::Path;

use gembridge_transcripts::{Agent, FindError};

use crate::home::{Content, Home};

const RECORDED: &str = "gemini/0.61.0/headless_yolo_tools_summary.jsonl";
const CHILD: &str = "gemini/0.61.0/subagent_child.jsonl";
const OLD: &str = "gemini/0.11.3/acp_session-490e8150.json";
const HASH: &str = "c52ddf65534b7b46035084358ab7902be4bfef220bdb503ac7039cc861905b05";

/// One session of each agent, all begun in `/workspace`.
pub fn everything() -> Home {
    Home::new()
        .with_fixture(".gemini/tmp/workspace/chats/session-a.jsonl", RECORDED)
        .with_file(".gemini/tmp/workspace/.project_root", "/workspace")
        .with_fixture(
            ".claude/projects/-workspace/41f6ab9a-7d9c-4301-83a2-9d0f81cb2d62.jsonl",
            "claude/2.1.312/41f6ab9a-7d9c-4301-83a2-9d0f81cb2d62.jsonl",
        )
        .with_fixture(
            ".codex/sessions/2026/11/16/rollout-2026-11-16T10-03-31-01a1e3cf-d729-7f52-b319-5efdf6ea15b1.jsonl",
            "codex/0.166.0/rollout-2026-11-16T10-03-31-01a1e3cf-d729-7f52-b319-5efdf6ea15b1.jsonl",
        )
        .with_fixture(
            ".qwen/projects/-workspace/chats/9d5a4213-0eea-4659-ba4f-e0cab9be633a.jsonl",
            "qwen/0.24.4/9d5a4213-0eea-4659-ba4f-e0cab9be633a.jsonl",
        )
        .with_opencode_database()
}

fn project_of(home: &Home) -> Option<String> {
    let scan = home.scan();
    assert_eq!(scan.sessions.len(), 1);
    scan.sessions[0].project.as_ref().map(|project| project.display().to_string())
}

#[test]
fn the_sessions_of_every_agent_are_found_by_their_project() {
    let scan = everything().scan();
    let mut agents: Vec<_> =
        scan.of_project(Path::new("/workspace")).unwrap().iter().map(|found| found.agent).collect();
    agents.sort_unstable();
    assert_eq!(agents, Agent::ALL);
    assert_eq!(scan.of_project(Path::new("/")).unwrap().len(), 5, "what is below counts");
    assert!(scan.of_project(Path::new("/work")).is_err(), "a folder, not the beginning of a name");
}

#[test]
fn none_found_names_the_project_and_the_folders_that_were_searched() {
    let home = Home::new();
    let error = home.scan().of_project(Path::new("/elsewhere")).unwrap_err().to_string();
    assert!(error.contains("`/elsewhere`"), "{error}");
    for folder in [".claude", ".codex", ".gemini", ".local/share/opencode", ".qwen"] {
        assert!(error.contains(home.path(folder).to_str().unwrap()), "{error}");
    }
    assert!(matches!(home.scan().latest(None), Err(FindError::None { .. })));
}

#[test]
fn an_id_may_be_cut_short_as_long_as_it_means_one_session() {
    let scan = everything().scan();
    assert_eq!(scan.by_id("41f6").unwrap().agent, Agent::Claude);
    assert_eq!(scan.by_id("bbbbbbbb-0000-4000-8000-000000000001").unwrap().agent, Agent::Gemini);
    assert!(scan.by_id("nothing").unwrap_err().to_string().contains("no session `nothing` was found in"));
    assert!(scan.by_id("").is_err());
    let home = everything().with_fixture(
        ".claude/projects/-workspace/41f60000-7d9c-4301-83a2-9d0f81cb2d62.jsonl",
        "claude/2.1.312/41f6ab9a-7d9c-4301-83a2-9d0f81cb2d62.jsonl",
    );
    let error = home.scan().by_id("41f6").unwrap_err();
    assert!(error.to_string().contains("is the beginning of 2 sessions"), "{error}");
}

#[test]
fn an_id_that_is_the_beginning_of_another_means_itself() {
    let recorded = "claude/2.1.312/41f6ab9a-7d9c-4301-83a2-9d0f81cb2d62.jsonl";
    let home = Home::new()
        .with_fixture(".claude/projects/p/abc.jsonl", recorded)
        .with_fixture(".claude/projects/p/abcd.jsonl", recorded);
    assert_eq!(home.scan().by_id("abc").unwrap().id, "abc");
}

#[test]
fn the_latest_is_the_one_written_last() {
    let home = everything();
    let touched = home.path(".qwen/projects/-workspace/chats/9d5a4213-0eea-4659-ba4f-e0cab9be633a.jsonl");
    let later = std::time::SystemTime::now() + std::time::Duration::from_mins(1);
    fs::File::options().append(true).open(touched).unwrap().set_modified(later).unwrap();
    // The database of OpenCode tells its own time, which is later than that of this machine may be.
    let scan = home.scan();
    let latest = scan.sessions.iter().find(|session| session.agent != Agent::OpenCode).unwrap();
    assert_eq!(latest.agent, Agent::Qwen);
}

#[test]
fn the_folder_of_a_gemini_session_comes_from_its_project_root_first() {
    let home = Home::new()
        .with_fixture(".gemini/tmp/workspace/chats/session-a.jsonl", RECORDED)
        .with_file(".gemini/tmp/workspace/.project_root", "/from/root\n")
        .with_file(".gemini/projects.json", r#"{"projects":{"/from/list":"workspace"}}"#);
    assert_eq!(project_of(&home).as_deref(), Some("/from/root"));
    let home = Home::new()
        .with_fixture(".gemini/tmp/workspace/chats/session-a.jsonl", RECORDED)
        .with_file(".gemini/history/workspace/.project_root", "/from/history");
    assert_eq!(project_of(&home).as_deref(), Some("/from/history"));
}

#[test]
fn then_from_the_list_of_projects() {
    let home = Home::new()
        .with_fixture(".gemini/tmp/workspace/chats/session-a.jsonl", RECORDED)
        .with_file(".gemini/projects.json", r#"{"projects":{"/from/list":"workspace"}}"#);
    assert_eq!(project_of(&home).as_deref(), Some("/from/list"));
}

#[test]
fn then_from_the_hash_of_a_known_folder() {
    let old = Home::new().with_fixture(&format!(".gemini/tmp/{HASH}/chats/session-a.json"), OLD);
    assert_eq!(project_of(&old), None, "a hash leads nowhere by itself");
    let old = old.knowing("/workspace");
    assert_eq!(project_of(&old).as_deref(), Some("/workspace"));
    // The file has the hash too, whatever its folder is called.
    let renamed = Home::new().with_fixture(".gemini/tmp/short-name/chats/session-a.json", OLD).knowing("/workspace");
    assert_eq!(project_of(&renamed).as_deref(), Some("/workspace"));
}

#[test]
fn and_last_from_what_the_program_told_the_model() {
    let home = Home::new().with_fixture(".gemini/tmp/unknown/chats/session-a.jsonl", RECORDED);
    assert_eq!(project_of(&home).as_deref(), Some("/workspace"));
    let home = Home::new().with_fixture(".gemini/tmp/unknown/chats/session-a.jsonl", CHILD);
    assert_eq!(project_of(&home).as_deref(), Some("/workspace"));
}

#[test]
fn a_session_that_was_copied_to_its_new_folder_is_one_session() {
    let home = Home::new()
        .with_fixture(&format!(".gemini/tmp/{HASH}/chats/session-a.json"), OLD)
        .with_fixture(".gemini/tmp/workspace/chats/session-a.json", OLD);
    let scan = home.scan();
    assert_eq!(scan.sessions.len(), 1);
    let content = Content::of(&scan.sessions[0]);
    assert_eq!(content.messages.len(), Content::of_fixture(Agent::Gemini, OLD).messages.len());
}

#[test]
fn links_and_pipes_in_the_place_of_a_session_are_not_opened() {
    let home =
        Home::new().with_file(".gemini/oauth_creds.json", "{\"canary\":1}").with_file(".gemini/tmp/p/chats/x", "");
    let chats = home.path(".gemini/tmp/p/chats");
    std::os::unix::fs::symlink(home.path(".gemini/oauth_creds.json"), chats.join("session-link.json")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, chats.join("session-pipe.jsonl"), rustix::fs::Mode::RUSR).unwrap();
    assert_eq!(home.scan().sessions, []);
}

#[test]
fn every_path_that_is_read_is_a_session() {
    let home = everything()
        .with_file(".gemini/oauth_creds.json", "canary")
        .with_file(".gemini/settings.json", "canary")
        .with_file(".codex/auth.json", "canary")
        .with_file(".claude/.credentials.json", "canary")
        .with_file(".qwen/oauth_creds.json", "canary")
        .with_file(".local/share/opencode/auth.json", "canary");
    for session in &home.scan().sessions {
        for path in session.paths() {
            let is_log = path.extension().is_some_and(|extension| extension == "jsonl");
            assert!(is_log || path.ends_with("opencode.db"), "{}", path.display());
        }
        assert!(!format!("{:?}", Content::of(session)).contains("canary"));
    }
}
