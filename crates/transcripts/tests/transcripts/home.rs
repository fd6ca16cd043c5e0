//! A home with sessions of agents, and short ways to read one.

use std::fs;
use std::path::{Path, PathBuf};

use gembridge_transcripts::{Agent, Damage, Facts, Library, Located, Piece, ReadOptions, Root, Scan, read};
use gembridge_unified::{Block, Body, UnifiedMessage};
use serde_json::Value;

/// A recorded file.
pub fn fixture(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/transcripts").join(below)
}

pub struct Home {
    root: tempfile::TempDir,
    known: Vec<PathBuf>,
}

impl Home {
    pub fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap(), known: Vec::new() }
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.root.path().join(below)
    }

    pub fn with_file(self, below: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub fn with_fixture(self, below: &str, recorded: &str) -> Self {
        let content = fs::read(fixture(recorded)).unwrap();
        self.with_file(below, content)
    }

    /// A project whose hash may lead back to it.
    pub fn knowing(mut self, project: &str) -> Self {
        self.known.push(project.into());
        self
    }

    pub fn with_opencode_database(self) -> Self {
        let folder = self.path(".local/share/opencode");
        fs::create_dir_all(&folder).unwrap();
        let database = rusqlite::Connection::open(folder.join("opencode.db")).unwrap();
        database.execute_batch(&fs::read_to_string(fixture("opencode/1.18.33/opencode.sql")).unwrap()).unwrap();
        self
    }

    pub fn with_opencode_folders(self) -> Self {
        copy(&fixture("opencode/json-folders/storage"), &self.path(".local/share/opencode/storage"));
        self
    }

    pub fn library(&self) -> Library {
        let root = |agent, below: &str| Root { agent, folder: self.path(below) };
        let roots = vec![
            root(Agent::Claude, ".claude"),
            root(Agent::Codex, ".codex"),
            root(Agent::Gemini, ".gemini"),
            root(Agent::OpenCode, ".local/share/opencode"),
            root(Agent::Qwen, ".qwen"),
        ];
        Library { roots, known_projects: self.known.clone() }
    }

    pub fn scan(&self) -> Scan {
        self.library().scan()
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// What a session reads as.
#[derive(Debug, PartialEq)]
pub struct Content {
    pub facts: Facts,
    pub messages: Vec<UnifiedMessage>,
    pub damages: Vec<Damage>,
}

impl Content {
    pub fn of(session: &Located) -> Self {
        Self::with(session, ReadOptions::default())
    }

    pub fn with(session: &Located, options: ReadOptions) -> Self {
        let (mut messages, mut damages) = (Vec::new(), Vec::new());
        let facts = read(session, options, &mut |piece| match piece {
            Piece::Message(message) => messages.push(*message),
            Piece::Damage(damage) => damages.push(damage),
        });
        Self { facts, messages, damages }
    }

    pub fn of_fixture(agent: Agent, recorded: &str) -> Self {
        let path = fixture(recorded);
        assert!(path.exists(), "{}", path.display());
        Self::of(&Located::of_file(agent, path))
    }

    /// Lines of JSON as a session of an agent.
    pub fn of_lines(agent: Agent, lines: &[Value]) -> Self {
        Self::of_text(agent, &text_of(lines))
    }

    pub fn of_text(agent: Agent, text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.jsonl");
        fs::write(&path, text).unwrap();
        Self::of(&Located::of_file(agent, path))
    }

    /// Ids of calls, in their order.
    pub fn calls(&self) -> Vec<&str> {
        let blocks = self.messages.iter().flat_map(blocks);
        let ids = blocks.filter_map(|block| match block {
            Block::ToolUse { id, .. } => Some(id.as_str()),
            _ => None,
        });
        ids.collect()
    }

    /// Ids of the calls that results answer, in their order.
    pub fn results(&self) -> Vec<&str> {
        let blocks = self.messages.iter().flat_map(blocks);
        let ids = blocks.filter_map(|block| match block {
            Block::ToolResult { tool_use_id, .. } => Some(tool_use_id.as_str()),
            _ => None,
        });
        ids.collect()
    }
}

/// Records as the lines of a file.
pub fn text_of(lines: &[Value]) -> String {
    lines.iter().flat_map(|line| [line.to_string(), "\n".to_owned()]).collect()
}

pub fn blocks(message: &UnifiedMessage) -> &[Block] {
    match &message.content {
        Body::Text(_) => &[],
        Body::Blocks(blocks) => blocks,
    }
}
