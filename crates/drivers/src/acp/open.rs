//! Opening a session in a process: made ahead, loaded, or new; then its model and mode.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use gembridge_core::driver::{Change, Opened, Resume, SessionSpec, Signal};
use gembridge_core::model::{Failure, FailureKind, SessionFacts};
use serde_json::json;
use tokio::sync::mpsc;

use super::hands::{Hands, Work};
use super::launch::AcpSetup;
use super::process::{AgentProcess, Lease, Premade};
use super::repeat::RepeatFilter;
use super::session::{AcpSession, model_option};
use super::table::{Opening, Phase};
use super::{decode, encode, error, wire};
use crate::profile::{Execution, Quirk};
use crate::workspace::{Jail, JailLimits, PrivateDir, TerminalLimits, Terminals};

/// Batches that a session's owner may be behind; then the agent waits.
const SIGNALS: usize = 64;
/// A replay that says nothing for this long is over.
const REPLAY_QUIET: Duration = Duration::from_millis(300);

/// A session for whoever asked.
pub(super) async fn session(setup: &AcpSetup, lease: Lease, spec: SessionSpec) -> Result<Opened, Failure> {
    let process = Arc::clone(lease.process());
    let mut ready = match prepared(&process, &spec, lease) {
        Prepared::Ahead(ready) => *ready,
        Prepared::Place(lease) => match loaded(setup, &process, &spec).await? {
            Some(half) => half.ready(lease, Resumed::Yes),
            None => fresh(setup, &process, cwd(setup, &spec)?, &spec).await?.ready(lease, Resumed::No),
        },
    };
    ready.apply(setup, &spec).await?;
    Ok(ready.opened(&spec))
}

/// A session for nobody yet.
pub(super) async fn ahead(setup: &AcpSetup, process: &Arc<AgentProcess>) -> Result<(), Failure> {
    let plain = SessionSpec::plain();
    let half = fresh(setup, process, cwd(setup, &plain)?, &plain).await?;
    process.keep_premade(Premade { opened: half.answer, name: half.name, signals: half.signals, folder: half.folder });
    Ok(())
}

enum Prepared {
    Ahead(Box<Ready>),
    Place(Lease),
}

/// The session that was made ahead, if it is what was asked for.
fn prepared(process: &Arc<AgentProcess>, spec: &SessionSpec, place: Lease) -> Prepared {
    let plain = spec.resume.is_none() && spec.tool_servers.is_empty() && spec.workspace.is_none();
    match plain.then(|| process.take_premade()).flatten() {
        Some((premade, lease)) => {
            process.uncount(place);
            Prepared::Ahead(Box::new(Ready {
                lease,
                name: premade.name,
                answer: premade.opened,
                signals: premade.signals,
                resumed: Resumed::No,
            }))
        }
        None => Prepared::Place(place),
    }
}

/// Where a session works.
struct Cwd {
    path: PathBuf,
    /// Made for this session alone.
    folder: Option<PrivateDir>,
}

fn cwd(setup: &AcpSetup, spec: &SessionSpec) -> Result<Cwd, Failure> {
    if let Some(path) = spec.workspace.clone().or_else(|| setup.workspace.clone()) {
        return Ok(Cwd { path, folder: None });
    }
    let folder = PrivateDir::create(&setup.private, "session").map_err(|error| {
        let root = setup.private.display();
        Failure::new(FailureKind::StoreFailed, format!("cannot make a folder for the session in `{root}`: {error}"))
    })?;
    Ok(Cwd { path: folder.path().to_owned(), folder: Some(folder) })
}

/// A session that the agent has, before it is anybody's.
struct Half {
    name: Arc<str>,
    answer: Bytes,
    signals: mpsc::Receiver<Vec<Signal>>,
    folder: Option<PrivateDir>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Resumed {
    Yes,
    No,
}

struct Ready {
    lease: Lease,
    name: Arc<str>,
    answer: Bytes,
    signals: mpsc::Receiver<Vec<Signal>>,
    resumed: Resumed,
}

impl Half {
    fn ready(self, lease: Lease, resumed: Resumed) -> Ready {
        let lease = match self.folder {
            Some(folder) => lease.in_folder(folder),
            None => lease,
        };
        Ready { lease, name: self.name, answer: self.answer, signals: self.signals, resumed }
    }
}

fn opening(setup: &AcpSetup, cwd: &Path) -> Result<(Opening, mpsc::Receiver<Vec<Signal>>), Failure> {
    let (sink, signals) = mpsc::channel(SIGNALS);
    let work = match setup.execution {
        Execution::Chat => None,
        Execution::Agent => Some(work(setup, cwd)?),
    };
    let hands = Arc::new(Hands { work, missing_reads_empty: setup.profile.has(Quirk::NewFilesNeedEmptyRead) });
    let repeat = setup.profile.has(Quirk::RetriesRepeatText).then(RepeatFilter::default);
    Ok((Opening { sink, hands, repeat }, signals))
}

fn work(setup: &AcpSetup, cwd: &Path) -> Result<Work, Failure> {
    let jail = Jail::open(cwd, JailLimits::default()).map_err(|error| {
        let folder = cwd.display();
        Failure::new(FailureKind::Unsupported, format!("the workspace `{folder}` cannot be opened: {error}"))
    })?;
    let jail = Arc::new(jail);
    let source = setup.environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
    let environment = gembridge_process::Environment::from_empty::<&str>(&source, &[]);
    let terminals = Terminals::new(setup.spawner.clone(), Arc::clone(&jail), environment, TerminalLimits::default());
    let terminals = Arc::new(terminals);
    Ok(Work { jail, terminals })
}

async fn fresh(setup: &AcpSetup, process: &AgentProcess, cwd: Cwd, spec: &SessionSpec) -> Result<Half, Failure> {
    match new_session(setup, process, &cwd.path, spec).await {
        Err(failure) if failure.kind == FailureKind::NeedsLogin && process.abilities().authenticate => {
            authenticate(setup, process).await?;
            new_session(setup, process, &cwd.path, spec).await
        }
        other => other,
    }
    .map(|half| Half { folder: cwd.folder, ..half })
    .map_err(|failure| with_hint(setup, failure))
}

async fn new_session(
    setup: &AcpSetup,
    process: &AgentProcess,
    cwd: &Path,
    spec: &SessionSpec,
) -> Result<Half, Failure> {
    let (opening, signals) = opening(setup, cwd)?;
    let mut params = json!({ "cwd": cwd, "mcpServers": encode::tool_servers(&spec.tool_servers) });
    add_meta(&mut params, process);
    let answer = process.connection().open("session/new", &params, opening, within(setup)).await?;
    let opened = read(setup, &answer)?;
    let Some(name) = opened.session_id else {
        return Err(error::protocol(&setup.profile.name, "`session/new` was answered without a session id"));
    };
    Ok(Half { name: name.into(), answer, signals, folder: None })
}

fn add_meta(params: &mut serde_json::Value, process: &AgentProcess) {
    if let Some(meta) = process.session_meta() {
        params["_meta"] = json!(meta);
    }
}

/// Logs in with what the environment has. The answer proves nothing: the next `session/new` does.
async fn authenticate(setup: &AcpSetup, process: &AgentProcess) -> Result<(), Failure> {
    let method = setup.login.as_ref().map(|login| login.kind.as_str());
    let params = json!({ "methodId": method });
    process.connection().call("authenticate", &params, within(setup)).await.map(|_| ())
}

/// The session from before, where the agent has it and loading does no harm. `None`: it must begin anew.
async fn loaded(setup: &AcpSetup, process: &AgentProcess, spec: &SessionSpec) -> Result<Option<Half>, Failure> {
    let Some(resume) = &spec.resume else { return Ok(None) };
    let method = match process.abilities() {
        can if can.resume => "session/resume",
        can if can.load => "session/load",
        _ => return Ok(None),
    };
    if setup.profile.has(Quirk::LoadDestroysWithinMinute) {
        next_minute_after(resume).await;
    }
    let cwd = cwd(setup, spec)?;
    match load(setup, process, spec, resume, method, &cwd.path).await {
        Ok(half) => Ok(Some(Half { folder: cwd.folder, ..half })),
        Err(failure) if matches!(failure.kind, FailureKind::Refused { .. } | FailureKind::Unsupported) => {
            tracing::info!(%failure, "the agent no longer has the session; it begins anew");
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

async fn load(
    setup: &AcpSetup,
    process: &AgentProcess,
    spec: &SessionSpec,
    resume: &Resume,
    method: &str,
    cwd: &Path,
) -> Result<Half, Failure> {
    let name = Arc::clone(&resume.agent_session);
    let (opening, signals) = opening(setup, cwd)?;
    let connection = process.connection();
    connection.table().add(Arc::clone(&name), opening, Phase::Replaying);
    let servers = encode::tool_servers(&spec.tool_servers);
    let mut params = json!({ "sessionId": name, "cwd": cwd, "mcpServers": servers });
    add_meta(&mut params, process);
    let answer = connection.call(method, &params, within(setup)).await;
    if answer.is_err() {
        connection.table().remove(&name);
    }
    let answer = answer?;
    if setup.profile.has(Quirk::LoadReplayStraddlesResponse) {
        replay_is_over(process, &name).await;
    }
    if let Some(slot) = connection.table().slot(&name) {
        slot.phase = Phase::Live;
    }
    Ok(Half { name, answer, signals, folder: None })
}

/// Waits until the agent has stopped repeating the old conversation.
async fn replay_is_over(process: &AgentProcess, name: &str) {
    let replayed = || process.connection().table().slot(name).map_or(0, |slot| slot.replayed);
    let mut before = replayed();
    loop {
        tokio::time::sleep(REPLAY_QUIET).await;
        let now = replayed();
        if now == before {
            return;
        }
        before = now;
    }
}

/// An agent that names its files by the minute destroys a session which is loaded in the minute it was made.
async fn next_minute_after(resume: &Resume) {
    const MINUTE: u64 = 60_000;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    if now / MINUTE == resume.last_used.0 / MINUTE {
        let wait = MINUTE - now % MINUTE;
        tracing::warn!(
            seconds = wait / 1_000,
            "waiting for the next minute, since this agent loses a session otherwise"
        );
        tokio::time::sleep(Duration::from_millis(wait)).await;
    }
}

impl Ready {
    /// Sets what was asked for and is not so already.
    async fn apply(&mut self, setup: &AcpSetup, spec: &SessionSpec) -> Result<(), Failure> {
        let facts = self.facts();
        if let Some(model) = spec.model.as_ref().filter(|model| facts.model.as_ref() != Some(model)) {
            self.change(Change::Model(Arc::clone(model))).await?;
        }
        let mode = spec.mode.clone().or_else(|| mode_of(setup));
        if let Some(mode) = mode.filter(|mode| facts.mode.as_ref() != Some(mode)) {
            self.change(Change::Mode(mode)).await?;
        }
        Ok(())
    }

    async fn change(&mut self, change: Change) -> Result<(), Failure> {
        let process = Arc::clone(self.lease.process());
        let models = self.facts().models;
        super::session::checked(&models, &change)?;
        let option = self.wire().and_then(|opened| model_option(&opened));
        super::session::changed(&process, &self.name, option.as_deref(), change).await.map(|_| ())
    }

    fn wire(&self) -> Option<wire::SessionOpened<'_>> {
        serde_json::from_slice(&self.answer).ok()
    }

    fn facts(&self) -> SessionFacts {
        self.wire().map(|opened| decode::session_facts(&opened)).unwrap_or_default()
    }

    fn opened(self, spec: &SessionSpec) -> Opened {
        let mut facts = self.facts();
        facts.model = spec.model.clone().or(facts.model);
        facts.mode = spec.mode.clone().or(facts.mode);
        let option = self.wire().and_then(|opened| model_option(&opened));
        let resumed = self.resumed == Resumed::Yes;
        let name = Arc::clone(&self.name);
        let session = AcpSession::new(self.lease, self.name, spec.slash, facts.models.clone(), option);
        Opened { agent: Box::new(session), signals: self.signals, facts, agent_session: name, resumed }
    }
}

/// The mode that the operator wants in every session.
fn mode_of(setup: &AcpSetup) -> Option<Arc<str>> {
    let mode = setup.profile.mode_id(setup.approval, setup.trust).ok().flatten()?;
    Some(mode.into())
}

fn read<'a>(setup: &AcpSetup, answer: &'a Bytes) -> Result<wire::SessionOpened<'a>, Failure> {
    serde_json::from_slice(answer).map_err(|unread| error::protocol(&setup.profile.name, unread))
}

fn within(setup: &AcpSetup) -> Duration {
    Duration::from_secs(setup.profile.limits.start_seconds)
}

fn with_hint(setup: &AcpSetup, mut failure: Failure) -> Failure {
    if failure.kind == FailureKind::NeedsLogin && !setup.profile.login_hint.is_empty() {
        failure.message = format!("{}; {}", failure.message, setup.profile.login_hint);
    }
    failure
}
