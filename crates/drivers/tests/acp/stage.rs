//! A stage for one agent: driver, sessions and a store, and a client that follows what happens.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gembridge_core::driver::SlashCommands;
use gembridge_core::limit::Limits;
use gembridge_core::log::{Attachment, From, LogEntry, Pace};
use gembridge_core::model::{AgentName, ClientId, Event, Outcome, Principal, Prompt, TurnId};
use gembridge_core::session::{AgentSetup, NewSession, SessionHandle, Sessions, SessionsConfig};
use gembridge_core::turn::{Fold, PermissionPolicy};
use gembridge_drivers::acp::{AcpDriver, AcpSetup, Home, Spares};
use gembridge_drivers::profile::{AgentConfig, ApprovalMode, Execution, Profile, Quirk, Sandbox, Trust};
use gembridge_process::{GuardProgram, RestartPolicy, Spawner};
use gembridge_store::MemoryStore;
use tempfile::TempDir;

/// Long enough for a loaded machine; no test waits for it to pass.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// What a stage is built from. Change what a test is about.
pub struct Plan {
    pub setup: AcpSetup,
    pub limits: Limits,
    pub policy: PermissionPolicy,
    pub spares: Spares,
    pub folder: TempDir,
}

pub struct Stage {
    pub driver: Arc<AcpDriver>,
    pub sessions: Arc<Sessions>,
    pub folder: TempDir,
    pub spawner: Spawner,
}

impl Plan {
    /// The fake agent with these arguments, working in an empty workspace.
    pub fn fake(args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        let config = AgentConfig {
            command: Some(gembridge_testkit::fake_agent_path().display().to_string()),
            args: Some(args.iter().map(ToString::to_string).collect()),
            mode: Some(Execution::Agent),
            workspace: Some(workspace.clone()),
            ..AgentConfig::default()
        };
        let mut profile = Profile::custom("fake", &config, &[]).unwrap();
        profile.limits.sessions_per_process = 8;
        Self::of(profile, gembridge_testkit::fake_agent_path(), Some(workspace), folder)
    }

    pub fn of(profile: Profile, program: PathBuf, workspace: Option<PathBuf>, folder: TempDir) -> Self {
        let execution = if workspace.is_some() { Execution::Agent } else { Execution::Chat };
        let setup = AcpSetup {
            profile,
            program,
            version: None,
            execution,
            workspace,
            trust: Trust::Trusted,
            environment: BTreeMap::from([("PATH".to_owned(), path())]),
            login: None,
            model: None,
            approval: ApprovalMode::Default,
            sandbox: Sandbox::Off,
            fence: false,
            home: Home::OfTheProcess,
            private: folder.path().join("private"),
            cache: folder.path().join("cache"),
            spawner: Spawner::new(GuardProgram::at(env!("CARGO_BIN_EXE_drivers-test-guard"))).unwrap(),
            restart: RestartPolicy::default(),
        };
        Self { setup, limits: Limits::default(), policy: PermissionPolicy::ask(), spares: Spares::None, folder }
    }

    #[must_use]
    pub fn quirks(mut self, quirks: &[Quirk]) -> Self {
        self.setup.profile.quirks = quirks.to_vec();
        self
    }

    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    #[must_use]
    pub fn policy(mut self, policy: PermissionPolicy) -> Self {
        self.policy = policy;
        self
    }

    pub fn start(self) -> Stage {
        let spawner = self.setup.spawner.clone();
        let name = AgentName::new(self.setup.profile.name.as_str());
        let driver = Arc::new(AcpDriver::new(self.setup, self.spares));
        let setup = AgentSetup { driver: driver.clone(), limits: self.limits, policy: self.policy };
        let sessions = Sessions::new(
            Arc::new(MemoryStore::new()),
            HashMap::from([(name, setup)]),
            SessionsConfig::default(),
        );
        Stage { driver, sessions: Arc::new(sessions), folder: self.folder, spawner }
    }
}

/// The tests' own `PATH`, which agents need to find their interpreters.
#[expect(clippy::disallowed_methods, reason = "tests have no gateway that reads the environment for them")]
pub fn path() -> String {
    std::env::var("PATH").unwrap()
}

impl Stage {
    pub async fn session(&self) -> Client {
        self.session_of("tester").await
    }

    pub async fn session_of(&self, principal: &str) -> Client {
        let agent = self.sessions.agents().next().unwrap().0.clone();
        let new = NewSession {
            principal: Principal::new(principal),
            agent,
            workspace: None,
            model: None,
            mode: None,
            tool_servers: Vec::new(),
            slash: SlashCommands::AsText,
        };
        let handle = self.sessions.create(new).await.unwrap();
        Client::attach(handle).await
    }

    pub fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    /// Ends everything, and proves that nothing of it is left.
    pub async fn end(self) {
        self.sessions.shutdown().await;
        tokio::time::timeout(PATIENCE, self.spawner.shut_down()).await.expect("every child is collected");
        assert_eq!(self.spawner.living(), 0);
    }
}

/// Somebody who follows a session.
pub struct Client {
    pub handle: SessionHandle,
    attachment: Attachment,
    seen: Vec<LogEntry>,
    taken: usize,
}

impl Client {
    pub async fn attach(handle: SessionHandle) -> Self {
        let attachment = handle.attach(From::After(gembridge_core::model::Seq::START), Pace::Own).await.unwrap();
        let seen = attachment.snapshot.iter().flat_map(|batch| batch.iter().cloned()).collect();
        Self { handle, attachment, seen, taken: 0 }
    }

    pub async fn prompt(&self, text: &str) -> TurnId {
        self.handle.prompt(Prompt::text(text), ClientId(1)).await.unwrap().turn
    }

    /// The next entry of the log.
    pub async fn next(&mut self) -> LogEntry {
        while self.taken == self.seen.len() {
            let batch = tokio::time::timeout(PATIENCE, self.attachment.follow.recv()).await;
            let batch = batch.expect("something happens in the session").expect("the session goes on");
            self.seen.extend(batch.iter().cloned());
        }
        self.taken += 1;
        self.seen[self.taken - 1].clone()
    }

    /// The next event that `wanted` picks; the others are passed over.
    pub async fn until<T>(&mut self, mut wanted: impl FnMut(&Event) -> Option<T>) -> T {
        loop {
            if let Some(found) = wanted(&self.next().await.event) {
                return found;
            }
        }
    }

    /// Prompts and waits for the end of that turn.
    pub async fn turn(&mut self, text: &str) -> Turned {
        let turn = self.prompt(text).await;
        self.finish(turn).await
    }

    pub async fn finish(&mut self, turn: TurnId) -> Turned {
        let mut events = Vec::new();
        loop {
            let entry = self.next().await;
            if entry.turn != Some(turn) {
                continue;
            }
            let ended = match &entry.event {
                Event::Ended(outcome) => Some(outcome.clone()),
                _ => None,
            };
            events.push(entry);
            if let Some(outcome) = ended {
                return Turned { events, outcome };
            }
        }
    }
}

/// A turn from its prompt to its end.
pub struct Turned {
    pub events: Vec<LogEntry>,
    pub outcome: Outcome,
}

impl Turned {
    pub fn fold(&self) -> Fold {
        let mut fold = Fold::default();
        for entry in &self.events {
            fold.push(&entry.event);
        }
        fold
    }

    pub fn text(&self) -> String {
        self.fold().text()
    }
}
