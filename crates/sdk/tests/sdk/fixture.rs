//! Adapters for tests: of the fake agent, which is recorded, and of the demo agent.

use std::path::{Path, PathBuf};
use std::time::Duration;

use gembridge_sdk::{Adapter, AdapterBuilder};
use gembridge_testkit::Record;
use serde_json::Value;
use tempfile::TempDir;

/// Long enough for a loaded machine; no test waits for it to pass.
pub const PATIENCE: Duration = Duration::from_mins(3);

pub fn helper() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_sdk-test-helper"))
}

/// The demo agent.
pub fn demo() -> AdapterBuilder {
    Adapter::demo().helper_program(helper()).startup_timeout(PATIENCE)
}

/// The fake agent, what it received, and a folder of the test's own.
pub struct Fake {
    pub folder: TempDir,
    pub record: Record,
}

impl Fake {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("workspace")).unwrap();
        let record = Record::at(folder.path().join("record"));
        Self { folder, record }
    }

    /// `DIR` in an argument is the folder of the test.
    pub fn adapter(&self, args: &[&str]) -> AdapterBuilder {
        let here = self.folder.path().display().to_string();
        let args = args.iter().map(|arg| arg.replace("DIR", &here));
        Adapter::custom("fake", gembridge_testkit::fake_agent_path())
            .args(args)
            .args(["--record".to_owned(), format!("{here}/record"), "--tag".to_owned(), self.tag()])
            .helper_program(helper())
            .startup_timeout(PATIENCE)
            .quiet_period(Duration::ZERO)
            .sessions_per_process(8)
    }

    /// In a workspace of the test.
    pub fn in_workspace(&self, args: &[&str]) -> AdapterBuilder {
        self.adapter(args).workspace(self.workspace())
    }

    pub fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn tag(&self) -> String {
        format!("sdk-{}", self.folder.path().file_name().unwrap().display())
    }

    /// What the agent was sent by this method, each time.
    pub fn received(&self, method: &str) -> Vec<Value> {
        self.record.messages_of(method)
    }

    /// Waits until the agent has received a message of this method.
    pub async fn receives(&self, method: &str) -> Value {
        eventually(method, || self.received(method).into_iter().next()).await
    }

    /// Waits until no process of the agent is left.
    pub async fn is_deserted(&self) {
        let tag = self.tag();
        eventually("no process is left", || gembridge_testkit::processes_with_tag(&tag).is_empty().then_some(())).await;
    }
}

/// Looks again and again until something is found.
pub async fn eventually<T>(wanted: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(tokio::time::Instant::now() < deadline, "never: {wanted}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Lets this much time pass at once, for every clock of this runtime. Nothing is waited for: an agent is a process, and would
/// be outrun by a clock that stands still while it works.
pub async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// The next piece of text of a stream.
pub async fn next_text(stream: &mut gembridge_sdk::TurnStream) -> String {
    loop {
        match stream.next().await {
            Some(gembridge_sdk::TurnEvent::Text(text)) => return text,
            Some(_) => {}
            None => panic!("the stream ended without a word"),
        }
    }
}

/// The names in a folder.
pub fn entries(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
