//! What is particular to OpenCode's database and folders.

use std::fs;

use gembridge_unified::Block;

use crate::home::{Content, Home, blocks};

const SESSION: &str = "ses_e1c2fd596ffevKdlA3KkRkHL8Z";

#[test]
fn a_session_is_found_in_the_database_once_although_its_folders_are_still_there() {
    let home = Home::new().with_opencode_database().with_opencode_folders();
    let scan = home.scan();
    assert_eq!(scan.sessions.len(), 1);
    assert!(scan.sessions[0].paths()[0].ends_with("opencode.db"));
}

#[test]
fn reading_the_database_leaves_nothing_beside_it() {
    let home = Home::new().with_opencode_database();
    let names = || {
        let entries = fs::read_dir(home.path(".local/share/opencode")).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>()
    };
    let before = names();
    assert!(!Content::of(&home.scan().sessions[0]).messages.is_empty());
    assert_eq!(names(), before);
}

#[test]
fn what_a_running_opencode_has_not_yet_put_into_the_file_is_read_too() {
    let home = Home::new().with_opencode_database();
    let database = rusqlite::Connection::open(home.path(".local/share/opencode/opencode.db")).unwrap();
    let mode: String = database.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
    database.execute("UPDATE session SET title = 'changed'", []).unwrap();
    let content = Content::of(&home.scan().sessions[0]);
    assert_eq!(content.facts.title.as_deref(), Some("changed"));
}

#[test]
fn a_damaged_row_is_reported_by_its_id_and_the_rest_is_read() {
    let home = Home::new().with_opencode_database();
    let database = rusqlite::Connection::open(home.path(".local/share/opencode/opencode.db")).unwrap();
    let part: String =
        database.query_row("SELECT min(id) FROM part WHERE data LIKE '%\"tool\"%'", [], |row| row.get(0)).unwrap();
    database.execute("UPDATE part SET data = '{' WHERE id = ?1", [&part]).unwrap();
    drop(database);
    let content = Content::of(&home.scan().sessions[0]);
    assert_eq!(content.damages.len(), 1);
    assert!(content.damages[0].reason.contains(&part), "{}", content.damages[0]);
    assert!(content.messages.len() >= 7);
}

#[test]
fn a_file_that_is_no_database_is_reported_and_the_folders_are_read() {
    let home =
        Home::new().with_file(".local/share/opencode/opencode.db", b"this is no database").with_opencode_folders();
    let scan = home.scan();
    assert_eq!(scan.sessions.len(), 1);
    assert_eq!(scan.damages.len(), 1);
    assert!(scan.damages[0].path.ends_with("opencode.db"));
}

#[test]
fn a_damaged_file_of_a_folder_is_reported_by_its_path() {
    let home = Home::new().with_opencode_folders();
    let folder = home.path(&format!(".local/share/opencode/storage/message/{SESSION}"));
    let first = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).min().unwrap();
    fs::write(&first, "{").unwrap();
    let content = Content::of(&home.scan().sessions[0]);
    assert_eq!(content.damages.iter().map(|damage| &damage.path).collect::<Vec<_>>(), [&first]);
    assert_eq!(content.messages.len(), 6);
}

#[test]
fn a_failed_call_is_an_error_and_a_failed_command_is_not() {
    let home = Home::new().with_opencode_database();
    let content = Content::of(&home.scan().sessions[0]);
    let found: Vec<_> = content
        .messages
        .iter()
        .flat_map(blocks)
        .filter_map(|block| match block {
            Block::ToolResult { is_error, exit_code, .. } => Some((*is_error, *exit_code)),
            _ => None,
        })
        .collect();
    assert_eq!(found, [(false, None), (true, None), (false, None), (false, Some(3))]);
    assert_eq!(content.facts.usage.total(), 75);
}
