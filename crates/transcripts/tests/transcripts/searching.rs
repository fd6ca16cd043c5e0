//! The index finds words in every session, reads only what has changed, and can be made again.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gembridge_transcripts::{Agent, Facts, Hit, Index, Located, Piece, Query, ReadOptions, Scan, Supplier, Wanted};
use gembridge_unified::{Body, Role, UnifiedMessage};
use serde_json::{Value, json};

use crate::finding::everything;
use crate::home::{Home, text_of};

fn typed(text: &str, at: &str) -> Value {
    json!({"type": "user", "uuid": format!("u{at}"), "timestamp": format!("2026-01-01T00:00:{at}Z"), "cwd": "/home/me/app",
        "message": {"role": "user", "content": text}})
}

fn answered(text: &str, at: &str) -> Value {
    json!({"type": "assistant", "timestamp": format!("2026-01-01T00:00:{at}Z"), "message":
        {"id": format!("a{at}"), "role": "assistant", "model": "opus", "content": [{"type": "text", "text": text}]}})
}

struct Searched {
    home: Home,
    index: Index,
}

impl Searched {
    fn new(home: Home) -> Self {
        let index = Index::open(home.path("index.db")).unwrap();
        Self { home, index }
    }

    /// How many sessions were read.
    fn update(&mut self) -> usize {
        self.update_with(&self.home.scan())
    }

    fn update_with(&mut self, scan: &Scan) -> usize {
        let mut read = 0;
        let damages = self.index.update(&scan.sessions, &mut |_, _| read += 1).unwrap();
        assert_eq!(damages, []);
        read
    }

    fn find(&self, query: &str) -> Vec<Hit> {
        self.find_wanted(query, &Wanted::default())
    }

    fn find_wanted(&self, query: &str, wanted: &Wanted) -> Vec<Hit> {
        self.index.search(&Query::parse(query).unwrap(), wanted, 10).unwrap()
    }

    fn ids(&self, query: &str) -> Vec<String> {
        self.find(query).into_iter().map(|hit| hit.id).collect()
    }
}

#[test]
fn words_of_every_agents_sessions_are_found() {
    let mut searched = Searched::new(everything());
    assert_eq!(searched.update(), 5);
    let mut agents: Vec<_> = searched.find("ping").into_iter().map(|hit| hit.agent).collect();
    agents.sort_unstable();
    assert_eq!(agents, ["claude", "codex", "opencode", "qwen"]);
    let found = searched.find_wanted("ping", &Wanted { agent: Some(Agent::Codex), project: None });
    assert_eq!(found.iter().map(|hit| hit.agent).collect::<Vec<_>>(), ["codex"]);
    assert_eq!((found[0].title.as_deref(), found[0].model.as_deref()), (Some("ping"), Some("gpt-5.5")));
    for (folder, count) in [("/workspace", 4), ("/elsewhere", 0)] {
        let wanted = Wanted { agent: None, project: Some(PathBuf::from(folder)) };
        assert_eq!(searched.find_wanted("ping", &wanted).len(), count, "{folder}");
    }
}

#[test]
fn all_words_must_stand_in_a_passage_and_the_best_session_is_first() {
    let filler = "the build went through without a word about anything else ".repeat(20);
    let mut searched = Searched::new(
        Home::new()
            .with_file(
                ".claude/projects/p/one.jsonl",
                text_of(&[typed("hello", "01"), answered(&format!("a flaky test. {filler}"), "02")]),
            )
            .with_file(
                ".claude/projects/p/two.jsonl",
                text_of(&[typed("Why is the Tëst flaky?", "03"), answered("flaky", "04")]),
            )
            .with_file(
                ".claude/projects/p/three.jsonl",
                text_of(&[typed("a test", "05"), answered("not flaky", "06")]),
            ),
    );
    searched.update();
    assert_eq!(searched.ids("flaky test"), ["two", "one"], "accents and capitals make no difference");
    assert_eq!(searched.ids("\"flaky test\""), ["one"]);
    assert_eq!(searched.ids("flak*").len(), 3);
    assert_eq!(searched.ids("flak"), Vec::<String>::new());
    let best = searched.find("flaky test").remove(0);
    assert_eq!((best.role, best.passages, best.snippet.as_str()), (Role::User, 2, "Why is the Tëst flaky?"));
    assert_eq!(best.project.as_deref(), Some(std::path::Path::new("/home/me/app")));
}

#[test]
fn a_session_that_says_a_word_all_the_time_does_not_hide_the_others() {
    let long: Vec<_> = (0..600).map(|number| answered(&format!("apple {number}"), &format!("{number}"))).collect();
    let mut searched = Searched::new(
        Home::new()
            .with_file(".claude/projects/p/one.jsonl", text_of(&[typed("apple", "01")]))
            .with_file(".claude/projects/p/two.jsonl", text_of(&[typed("an apple", "02")])),
    );
    searched.update();
    // The newest.
    fs::write(searched.home.path(".claude/projects/p/long.jsonl"), text_of(&long)).unwrap();
    searched.update();
    let found = searched.find("apple");
    let mut ids: Vec<_> = found.iter().map(|hit| hit.id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["long", "one", "two"]);
    assert_eq!(found.iter().map(|hit| hit.passages).max(), Some(20));
}

#[test]
fn only_what_has_changed_is_read_again() {
    let path = ".claude/projects/p/one.jsonl";
    let (one, two) = (text_of(&[typed("apple", "01")]), text_of(&[typed("banana", "02")]));
    let mut searched = Searched::new(Home::new().with_file(path, &one).with_file(".claude/projects/p/two.jsonl", two));
    assert_eq!((searched.update(), searched.update()), (2, 0));
    fs::write(searched.home.path(path), format!("{one}{}\n", answered("cherry", "03"))).unwrap();
    assert_eq!(searched.update(), 1);
    assert_eq!((searched.ids("apple"), searched.ids("cherry")), (vec!["one".to_owned()], vec!["one".to_owned()]));
    assert_eq!(searched.find("apple")[0].passages, 2, "the passage and the title, each once");
    fs::remove_file(searched.home.path(path)).unwrap();
    assert_eq!(searched.update(), 0);
    assert_eq!((searched.ids("apple"), searched.ids("banana")), (vec![], vec!["two".to_owned()]));
}

#[test]
fn an_index_of_another_version_or_none_at_all_is_made_again_and_is_private() {
    use std::os::unix::fs::PermissionsExt as _;

    let home = Home::new().with_file(".claude/projects/p/one.jsonl", text_of(&[typed("apple", "01")]));
    let mut searched = Searched::new(home);
    assert_eq!(searched.update(), 1);
    let path = searched.home.path("index.db");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o077, 0);
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    searched.index = Index::open(&path).unwrap();
    assert_eq!((searched.ids("apple").len(), searched.update(), searched.ids("apple").len()), (0, 1, 1));
    let Searched { home, index } = searched;
    drop(index);
    fs::write(&path, "this is no database, whatever its name is".repeat(100)).unwrap();
    let mut searched = Searched::new(home);
    assert_eq!((searched.update(), searched.ids("apple").len()), (1, 1));
    assert!(Index::open("/nowhere/index.db").is_err());
}

#[test]
fn a_query_without_a_word_is_refused() {
    assert!(Query::parse(" - ").unwrap_err().to_string().contains("no word in the query"));
}

/// Sessions in a form of its own.
#[derive(Debug, Default)]
struct Own {
    version: AtomicU64,
}

impl Supplier for Own {
    fn read(&self, id: &str, _: ReadOptions, on: &mut dyn FnMut(Piece)) -> Facts {
        on(Piece::Message(Box::new(UnifiedMessage {
            id: "m".to_owned(),
            role: Role::User,
            content: Body::Text(format!("durian of {id}")),
            timestamp: 1,
            tool: "demo".to_owned(),
            model: None,
            usage: None,
            original: None,
        })));
        Facts::default()
    }

    fn version(&self, _: &str) -> u64 {
        self.version.load(Ordering::Relaxed)
    }
}

#[test]
fn sessions_that_somebody_else_supplies_are_found_like_all_others() {
    let own = Arc::new(Own::default());
    let mut searched = Searched::new(everything());
    let mut scan = searched.home.scan();
    let supplier: Arc<dyn Supplier> = own.clone();
    scan.add([Located::supplied("mine".to_owned(), u64::MAX, supplier)], PathBuf::from("/state"));
    assert_eq!(scan.sessions[0].id, "mine", "the latest first");
    assert_eq!(scan.sessions[0], scan.sessions[0].clone());
    assert_ne!(scan.sessions[0], Located::supplied("mine".to_owned(), u64::MAX, Arc::new(Own::default())));
    assert_eq!(scan.sessions[0].paths(), [] as [PathBuf; 0]);
    assert!(scan.by_id("nothing").unwrap_err().to_string().contains("`/state`"));
    assert_eq!((searched.update_with(&scan), searched.update_with(&scan)), (6, 0));
    own.version.store(1, Ordering::Relaxed);
    assert_eq!(searched.update_with(&scan), 1);
    let found = searched.find("durian");
    assert_eq!((found[0].agent, found[0].id.as_str()), ("gembridge", "mine"));
}

#[test]
fn a_session_tells_when_it_has_changed() {
    let home = everything().with_opencode_folders();
    for session in home.scan().sessions {
        assert_eq!(session.live_version(), session.live_version());
        let Some(before) = session.live_version() else {
            assert_eq!(session.agent, Agent::OpenCode);
            continue;
        };
        let path = &session.paths()[0];
        let mut bytes = fs::read(path).unwrap();
        bytes.push(b'\n');
        fs::write(path, bytes).unwrap();
        assert_ne!(session.live_version(), Some(before), "{:?}", session.agent);
    }
    let folders = Home::new().with_opencode_folders();
    assert_eq!(folders.scan().sessions[0].live_version(), None);
}
