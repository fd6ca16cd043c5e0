//! A fixture for one agent: driver, sessions and a store, and a client that follows what happens.

#[path = "turn_items.rs"]
pub mod turn_items;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gembridge_core::admission::Admission;
use gembridge_core::driver::SlashCommands;
use gembridge_core::limit::Limits;
use gembridge_core::log::{Attachment, Backpressure, From, LogEntry};
use gembridge_core::model::{
    AgentName, Answer, Ask, AskId, ClientId, Event, Failure, FailureKind, Outcome, Principal, Prompt, Seq, Stop, TurnId,
};
use gembridge_core::session::{AgentSetup, NewSession, SessionHandle, Sessions, SessionsConfig};
use gembridge_core::store::MemoryStore;
use gembridge_core::store::Store;
use gembridge_core::turn::PermissionPolicy;
use gembridge_drivers::profile::{AgentConfig, ApprovalMode, Execution, Profile, Quirk, Sandbox, Trust};
use gembridge_drivers::setup::{Audience, ClientAccess, DriverSetup, Forms, GuestFence, Home, ManagedDriver, Spares};
use gembridge_process::{GuardProgram, RestartPolicy, Spawner};
use gembridge_testkit::{Record, processes_with_tag};
use serde_json::Value;
use tempfile::TempDir;

use self::turn_items::TurnItems;

/// Long enough for a loaded machine; no test waits for it to pass.
pub const PATIENCE: Duration = Duration::from_mins(3);

/// More than a test makes an agent say: what it said can be looked at in memory.
const WHOLE_LOG: usize = 8 << 20;

/// The folder below that of the fixture in which the agent's processes note what they receive.
const RECORDS: &str = "records";

/// What a fixture is built from. Change what a test is about.
pub struct ScriptedAgent {
    pub setup: DriverSetup,
    pub limits: Limits,
    pub policy: PermissionPolicy,
    pub spares: Spares,
    pub store: Arc<dyn Store>,
    pub folder: TempDir,
}

pub struct AgentFixture {
    pub driver: Arc<dyn ManagedDriver>,
    pub sessions: Arc<Sessions>,
    pub folder: TempDir,
    pub spawner: Spawner,
    /// What the agent's processes received, all of them.
    pub record: Record,
}

impl ScriptedAgent {
    /// The fake agent with these arguments, working in an empty workspace. It is recorded, and tagged.
    pub fn fake(args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        // In a folder that a guest's process may write to as well.
        let records = folder.path().join(RECORDS);
        std::fs::create_dir(&records).unwrap();
        let record = records.join("record").display().to_string();
        // `DIR` in an argument is the fixture's own folder.
        let here = folder.path().display().to_string();
        let args = args.iter().map(|arg| arg.replace("DIR", &here));
        let eyes = ["--record".to_owned(), record, "--tag".to_owned(), tag(&folder)];
        let config = AgentConfig {
            command: Some(gembridge_testkit::fake_agent_path().display().to_string()),
            args: Some(args.chain(eyes).collect()),
            mode: Some(Execution::Agent),
            workspace: Some(workspace.clone()),
            guest_write: vec![records],
            ..AgentConfig::default()
        };
        let mut profile = Profile::custom("fake", &config, &[]).unwrap();
        profile.limits.sessions_per_process = 8;
        profile.limits.start_seconds = 30;
        Self::of(profile, gembridge_testkit::fake_agent_path(), Some(workspace), folder)
    }

    /// The same as a chat: no workspace, nothing to touch.
    pub fn fake_chat(args: &[&str]) -> Self {
        let mut plan = Self::fake(args);
        plan.setup.execution = Execution::Chat;
        plan.setup.workspace = None;
        plan
    }

    pub fn of(profile: Profile, program: PathBuf, workspace: Option<PathBuf>, folder: TempDir) -> Self {
        let execution = if workspace.is_some() { Execution::Agent } else { Execution::Chat };
        let setup = DriverSetup {
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
            audience: Audience::Operators,
            guest_fence: GuestFence::Landlock,
            guest_nice: 5,
            home: Home::OfTheProcess,
            umask: 0o022,
            private: folder.path().join("private"),
            cache: folder.path().join("cache"),
            spawner: Spawner::new(GuardProgram::at(env!("CARGO_BIN_EXE_drivers-test-guard"))).unwrap(),
            shim: Some(PathBuf::from("/our/own/program")),
            forms: Forms::NotOffered,
            access: ClientAccess::ALL,
            restart: RestartPolicy::default(),
            line: gembridge_process::DEFAULT_LINE_LIMIT,
            waiting: 64,
        };
        // Nobody has to wait for a default: a test that needs a bound to be reached sets it.
        let limits =
            Limits { cancel_grace: PATIENCE, answer_alone: PATIENCE, ring_bytes: WHOLE_LOG, ..Limits::default() };
        let store = Arc::new(MemoryStore::new());
        Self { setup, limits, policy: PermissionPolicy::ask(), spares: Spares::None, store, folder }
    }

    #[must_use]
    pub fn quirks(mut self, quirks: &[Quirk]) -> Self {
        self.setup.profile.quirks = quirks.to_vec();
        self
    }

    /// Methods that operators may send to the agent.
    #[must_use]
    pub fn extensions(mut self, methods: &[&str]) -> Self {
        self.setup.profile.extensions = methods.iter().map(ToString::to_string).collect();
        self
    }

    /// Serves keys that are not the operator's.
    #[must_use]
    pub fn for_guests(mut self) -> Self {
        self.setup.audience = Audience::Guests;
        self
    }

    /// Changes one or two of the limits of sessions.
    #[must_use]
    pub fn limit(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    #[must_use]
    pub fn policy(mut self, policy: PermissionPolicy) -> Self {
        self.policy = policy;
        self
    }

    pub fn start(self) -> AgentFixture {
        let spawner = self.setup.spawner.clone();
        let name = AgentName::new(self.setup.profile.name.as_str());
        let driver = self.setup.start(self.spares);
        let setup = AgentSetup {
            driver: driver.clone(),
            limits: self.limits,
            policy: self.policy,
            admission: Admission::default(),
        };
        let sessions = Sessions::new(self.store, HashMap::from([(name, setup)]), SessionsConfig::default());
        let record = Record::at(self.folder.path().join(RECORDS).join("record"));
        AgentFixture { driver, sessions: Arc::new(sessions), folder: self.folder, spawner, record }
    }
}

/// The folder's own name, which no other test shares.
fn tag(folder: &TempDir) -> String {
    format!("fixture-{}", folder.path().file_name().unwrap().display())
}

/// The tests' own `PATH`, which agents need to find their interpreters.
#[expect(clippy::disallowed_methods, reason = "tests have no gateway that reads the environment for them")]
pub fn path() -> String {
    std::env::var("PATH").unwrap()
}

impl AgentFixture {
    pub async fn session(&self) -> Client {
        self.session_of("tester").await
    }

    pub async fn session_of(&self, principal: &str) -> Client {
        let new = NewSession { principal: Principal::new(principal), ..self.new_session() };
        self.session_with(new).await
    }

    pub async fn session_with(&self, new: NewSession) -> Client {
        Client::attach(self.sessions.create(new).await.unwrap()).await
    }

    pub fn new_session(&self) -> NewSession {
        NewSession {
            principal: Principal::new("tester"),
            agent: self.sessions.agents().next().unwrap().0.clone(),
            workspace: None,
            model: None,
            mode: None,
            tool_servers: Vec::new(),
            slash: SlashCommands::AsText,
        }
    }

    pub fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    /// A path for `until PATH` that is not there yet, and its text.
    pub fn gate(&self, name: &str) -> (PathBuf, String) {
        let path = self.folder.path().join(name);
        let text = path.display().to_string();
        (path, text)
    }

    pub fn tag(&self) -> String {
        tag(&self.folder)
    }

    /// The living processes of the agent with all that they started, guards included.
    pub fn processes(&self) -> Vec<u32> {
        processes_with_tag(&self.tag())
    }

    /// Waits until the agent has received the `nth` message of a method, counted from 1.
    pub async fn received(&self, method: &str, nth: usize) -> Value {
        eventually(&format!("`{method}` {nth}"), || self.record.messages_of(method).into_iter().nth(nth - 1)).await
    }

    /// Waits until no process of the agent is left.
    pub async fn deserted(&self) {
        eventually("no process is left", || self.processes().is_empty().then_some(())).await;
    }

    /// Ends everything, and proves that nothing of it is left.
    pub async fn end(self) {
        self.sessions.shutdown().await;
        tokio::time::timeout(PATIENCE, self.spawner.shut_down()).await.expect("every child is collected");
        assert_eq!(self.spawner.living(), 0);
        assert_eq!(self.processes(), Vec::<u32>::new(), "no process outlives the fixture");
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

/// Somebody who follows a session.
pub struct Client {
    pub handle: SessionHandle,
    attachment: Attachment,
    seen: Vec<LogEntry>,
    taken: usize,
}

impl Client {
    pub async fn attach(handle: SessionHandle) -> Self {
        let attachment = handle.attach(From::After(Seq::START), Backpressure::Own).await.unwrap();
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

    /// The next question.
    pub async fn asked(&mut self) -> Ask {
        self.until(|event| match event {
            Event::Asked(ask) => Some((**ask).clone()),
            _ => None,
        })
        .await
    }

    /// Waits for a piece of text.
    pub async fn said(&mut self, wanted: &str) {
        self.until(|event| matches!(event, Event::Text(text) if text.to_str() == wanted).then_some(())).await;
    }

    pub async fn answer(&self, ask: AskId, answer: Answer) -> Result<(), gembridge_core::error::Error> {
        self.handle.answer(ask, answer, ClientId(1)).await
    }

    /// Prompts and waits for the end of that turn.
    pub async fn turn(&mut self, text: &str) -> Turned {
        let turn = self.prompt(text).await;
        self.finish(turn).await
    }

    /// Waits for the end of a turn and gives all of it, what was seen before included.
    pub async fn finish(&mut self, turn: TurnId) -> Turned {
        let ends = |entry: &LogEntry| match &entry.event {
            Event::Ended(outcome) if entry.turn == Some(turn) => Some(outcome.clone()),
            _ => None,
        };
        let mut outcome = self.seen[..self.taken].iter().find_map(ends);
        while outcome.is_none() {
            outcome = ends(&self.next().await);
        }
        let events = self.seen[..self.taken].iter().filter(|entry| entry.turn == Some(turn)).cloned().collect();
        Turned { events, outcome: outcome.unwrap() }
    }

    /// Everything seen so far, of all turns and between them.
    pub fn seen(&self) -> &[LogEntry] {
        &self.seen[..self.taken]
    }

    /// How often the log says that this turn ended. Looks at the whole log as it is now.
    pub async fn ends_of(&self, turn: TurnId) -> usize {
        let whole = self.handle.attach(From::After(Seq::START), Backpressure::Own).await.unwrap();
        assert_eq!(whole.older, None, "the whole log is in memory");
        let entries = whole.snapshot.iter().flat_map(|batch| batch.iter());
        entries.filter(|entry| entry.turn == Some(turn) && matches!(entry.event, Event::Ended(_))).count()
    }
}

/// A turn from its prompt to its end.
pub struct Turned {
    pub events: Vec<LogEntry>,
    pub outcome: Outcome,
}

impl Turned {
    pub fn fold(&self) -> TurnItems {
        let mut fold = TurnItems::default();
        for entry in &self.events {
            fold.push(&entry.event);
        }
        fold
    }

    pub fn text(&self) -> String {
        self.fold().text()
    }

    /// The failure of a turn that was interrupted.
    pub fn failure(&self) -> &Failure {
        match &self.outcome {
            Outcome::Interrupted(failure) => failure,
            other => panic!("the turn was not interrupted: {other:?}; it said `{}`", self.text()),
        }
    }

    pub fn failed_as(&self, kind: FailureKind) -> &Failure {
        let failure = self.failure();
        assert_eq!(failure.kind, kind, "{failure}");
        failure
    }

    /// The text of a turn that ended well.
    pub fn finished(&self) -> String {
        assert_eq!(self.outcome, Outcome::Finished(Stop::EndTurn), "it said `{}`", self.text());
        self.text()
    }

    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.events.iter().map(|entry| &entry.event)
    }
}
