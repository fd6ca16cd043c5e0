//! Opening a session in a process: made ahead, loaded, or new; then its model and mode.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gembridge_core::driver::{
    AgentSession as _, Change, CloseMode, Opened, Resume, ServerOrigin, SessionSpec, Signal, SlashCommands, ToolServer,
};
use gembridge_core::model::{Failure, FailureKind, Timestamp};
use serde_json::json;
use tokio::sync::mpsc;

use super::client_methods::{ClientMethods, Work};
use super::connection::Connection;
use super::description::{Described, Description};
use super::encode::Reach;
use super::fence::Enclosure;
use super::launch::no_folder;
use super::process::{AgentProcess, Lease, Premade};
use super::retry_dedup::RetryDedup;
use super::routing_table::{Opening, Phase, Tools};
use super::session::AcpSession;
use super::{encode, error, wire};
use crate::profile::{Execution, Quirk};
use crate::setup::Audience;
use crate::setup::{DriverSetup, Home};
use crate::workspace::{InnerDir, Jail, JailLimits, TerminalLimits, Terminals};

/// Batches that a session's owner may be behind, each up to what one read holds; then the agent waits.
const SIGNALS: usize = 16;
/// A replay that says nothing for this long is over.
const REPLAY_QUIET: Duration = Duration::from_millis(300);

/// A session for whoever asked.
pub(super) async fn session(setup: &DriverSetup, lease: Lease, spec: SessionSpec) -> Result<Opened, Failure> {
    let process = Arc::clone(lease.process());
    let ready = match prepared(setup, &process, &spec, lease) {
        Prepared::Ahead(ready) => *ready,
        Prepared::Lease(lease) => match loaded(setup, &process, &spec).await? {
            Some(half) => half.ready(lease, Resumed::Yes, spec.slash),
            None => {
                fresh(setup, &process, cwd(setup, &process, &spec)?, &spec).await?.ready(lease, Resumed::No, spec.slash)
            }
        },
    };
    match ready.apply(setup, &spec).await {
        Ok(()) => Ok(ready.opened(setup, &spec)),
        Err(failure) => {
            Box::new(ready.session).close(CloseMode::Release).await;
            Err(failure)
        }
    }
}

/// A session for nobody yet.
pub(super) async fn ahead(setup: &DriverSetup, process: &Arc<AgentProcess>) -> Result<(), Failure> {
    let plain = SessionSpec::plain();
    let half = fresh(setup, process, cwd(setup, process, &plain)?, &plain).await?;
    if let Some(slot) = process.connection().table().slot(&half.name) {
        slot.phase = Phase::Ahead;
    }
    let Half { name, description, signals, folder } = half;
    process.keep_premade(Premade { description, name, signals, folder });
    Ok(())
}

enum Prepared {
    Ahead(Box<Ready>),
    Lease(Lease),
}

/// The session that was made ahead, if it is what was asked for.
fn prepared(setup: &DriverSetup, process: &Arc<AgentProcess>, spec: &SessionSpec, place: Lease) -> Prepared {
    let nothing_to_load = spec.resume.is_none() || !is_kept(setup, spec);
    let plain = nothing_to_load && spec.tool_servers.is_empty() && spec.workspace.is_none();
    match plain.then(|| process.take_premade()).flatten() {
        Some((premade, lease)) => {
            process.uncount(place);
            if let Some(slot) = process.connection().table().slot(&premade.name) {
                slot.phase = Phase::Live;
            }
            let Premade { description, name, signals, folder: _ } = premade;
            let half = Half { name, description, signals, folder: None };
            Prepared::Ahead(Box::new(half.ready(lease, Resumed::No, spec.slash)))
        }
        None => Prepared::Lease(place),
    }
}

/// Where a session works.
struct Cwd {
    path: PathBuf,
    /// Made for this session alone.
    folder: Option<InnerDir>,
}

/// In chat a session works in the folder of its process, which a fence leaves open and which one owner of sessions has to
/// itself. Where one session might find what another left, each has one of its own in there.
fn cwd(setup: &DriverSetup, process: &AgentProcess, spec: &SessionSpec) -> Result<Cwd, Failure> {
    if let Some(path) = spec.workspace.clone().or_else(|| setup.workspace.clone()) {
        return Ok(Cwd { path, folder: None });
    }
    let failed = |error: std::io::Error| no_folder(setup, &error);
    if setup.profile.shares_chat_folder() {
        return Ok(Cwd { path: process.enclosure().chat_folder().map_err(failed)?, folder: None });
    }
    let folder = InnerDir::create(process.enclosure().folder.path(), "session").map_err(failed)?;
    Ok(Cwd { path: folder.path().to_owned(), folder: Some(folder) })
}

/// A session that the agent has, before it is anybody's.
struct Half {
    name: Arc<str>,
    description: Arc<Description>,
    signals: mpsc::Receiver<Vec<Signal>>,
    folder: Option<InnerDir>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Resumed {
    Yes,
    No,
}

/// A session that is somebody's. Dropping it takes it out of the process again.
struct Ready {
    session: AcpSession,
    signals: mpsc::Receiver<Vec<Signal>>,
    resumed: Resumed,
}

impl Half {
    fn ready(self, lease: Lease, resumed: Resumed, slash: SlashCommands) -> Ready {
        let lease = match self.folder {
            Some(folder) => lease.in_folder(folder),
            None => lease,
        };
        let session = AcpSession::new(lease, self.name, slash, self.description);
        Ready { session, signals: self.signals, resumed }
    }
}

fn opening(
    setup: &DriverSetup,
    process: &AgentProcess,
    cwd: &Path,
    spec: &SessionSpec,
) -> Result<(Opening, mpsc::Receiver<Vec<Signal>>), Failure> {
    let (sink, signals) = mpsc::channel(SIGNALS);
    let work = match setup.execution {
        Execution::Chat => None,
        Execution::Agent => Some(work(setup, process, cwd)?),
    };
    let missing_reads_empty = setup.profile.has(Quirk::NewFilesNeedEmptyRead);
    let methods = Arc::new(ClientMethods { work, access: setup.access, missing_reads_empty });
    let repeat = setup.profile.has(Quirk::RetriesRepeatText).then(RetryDedup::default);
    let has_ours = spec.tool_servers.iter().any(|server| server.origin == ServerOrigin::Ours);
    let tools = if has_ours { Tools::Given } else { Tools::NotGiven };
    Ok((Opening { sink, methods, repeat, tools }, signals))
}

fn work(setup: &DriverSetup, process: &AgentProcess, cwd: &Path) -> Result<Work, Failure> {
    let jail = Jail::open(cwd, JailLimits { umask: setup.umask, ..JailLimits::default() }).map_err(|error| {
        let folder = cwd.display();
        Failure::new(FailureKind::Unsupported, format!("the workspace `{folder}` cannot be opened: {error}"))
    })?;
    let jail = Arc::new(jail);
    let source = setup.environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
    let mut environment = gembridge_process::Environment::from_empty::<&str>(&source, &[]);
    let Enclosure { folder, fence, .. } = process.enclosure();
    let mut fence = fence.clone();
    if let Some(fence) = &mut fence {
        environment = environment.with("TMPDIR", folder.path().join("tmp"));
        fence.writable.push(cwd.to_owned());
    }
    let terminals = Terminals::new(setup.spawner.clone(), Arc::clone(&jail), environment, TerminalLimits::default());
    let terminals = Arc::new(terminals.fenced(fence));
    Ok(Work { jail, terminals })
}

async fn fresh(setup: &DriverSetup, process: &AgentProcess, cwd: Cwd, spec: &SessionSpec) -> Result<Half, Failure> {
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
    setup: &DriverSetup,
    process: &AgentProcess,
    cwd: &Path,
    spec: &SessionSpec,
) -> Result<Half, Failure> {
    let (opening, signals) = opening(setup, process, cwd, spec)?;
    let mut params = json!({ "cwd": cwd, "mcpServers": tool_servers(setup, process, spec)? });
    add_meta(&mut params, process);
    let _turn = process.turn_to_open().await;
    let answer = process.connection().open("session/new", &params, opening, within(setup)).await?;
    let Described { id, description } = described(setup, process, &answer)?;
    let Some(name) = id else {
        return Err(error::protocol(&setup.profile.name, "`session/new` was answered without a session id"));
    };
    process.creation_times().note(&name, Timestamp::now());
    Ok(Half { name, description, signals, folder: None })
}

/// The tool servers in the way that the agent takes them.
fn tool_servers(setup: &DriverSetup, process: &AgentProcess, spec: &SessionSpec) -> Result<serde_json::Value, Failure> {
    let own_name = setup.profile.mcp.server_name.as_str();
    let poses = |server: &ToolServer| server.origin == ServerOrigin::Others && *server.name == *own_name;
    if spec.tool_servers.iter().any(poses) {
        let text = format!("a tool server is called `{own_name}`, which is the name of ours; give it another");
        return Err(Failure::new(FailureKind::Unsupported, text));
    }
    let reach = match &setup.shim {
        _ if process.abilities().http_tools || spec.tool_servers.is_empty() => Reach::Http,
        Some(program) => Reach::Shim(program),
        None => {
            let agent = &setup.profile.name;
            let text = format!("agent `{agent}` takes no tool servers over HTTP; use another agent for client tools");
            return Err(Failure::new(FailureKind::Unsupported, text));
        }
    };
    Ok(encode::tool_servers(&spec.tool_servers, own_name, &reach))
}

fn add_meta(params: &mut serde_json::Value, process: &AgentProcess) {
    if let Some(meta) = process.session_meta() {
        params["_meta"] = json!(meta);
    }
}

/// Logs in with what the environment has. The answer proves nothing: the next `session/new` does.
async fn authenticate(setup: &DriverSetup, process: &AgentProcess) -> Result<(), Failure> {
    let method = setup.login.as_ref().map(|login| login.kind.as_str());
    let params = json!({ "methodId": method });
    process.connection().call("authenticate", &params, within(setup)).await.map(|_| ())
}

/// The session from before, where the agent has it and loading does no harm. `None`: it must begin anew.
async fn loaded(setup: &DriverSetup, process: &AgentProcess, spec: &SessionSpec) -> Result<Option<Half>, Failure> {
    let Some(resume) = spec.resume.as_ref().filter(|_| is_kept(setup, spec)) else { return Ok(None) };
    let method = match process.abilities() {
        can if can.resume => "session/resume",
        can if can.load => "session/load",
        _ => return Ok(None),
    };
    if setup.profile.has(Quirk::LoadDestroysWithinMinute) {
        next_minute(process, resume).await;
    }
    let cwd = cwd(setup, process, spec)?;
    match load(setup, process, spec, resume, method, &cwd.path).await {
        Ok(half) => Ok(Some(Half { folder: cwd.folder, ..half })),
        Err(failure) if matches!(failure.kind, FailureKind::Refused { .. } | FailureKind::Unsupported) => {
            tracing::info!(%failure, "the agent no longer has the session; it begins anew");
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// Whether a session of an earlier process can still be where the agent looks for it. If not, nobody waits for a load.
fn is_kept(setup: &DriverSetup, spec: &SessionSpec) -> bool {
    let own_home = setup.audience == Audience::Guests || setup.login.as_ref().is_some_and(|login| login.private_home);
    let home_stays = !own_home || matches!(setup.home, Home::Lasting(_));
    let folder_stays = setup.workspace.is_some() || spec.workspace.is_some();
    home_stays && (folder_stays || !setup.profile.has(Quirk::SessionsAreKeptByFolder))
}

async fn load(
    setup: &DriverSetup,
    process: &AgentProcess,
    spec: &SessionSpec,
    resume: &Resume,
    method: &str,
    cwd: &Path,
) -> Result<Half, Failure> {
    let name = Arc::clone(&resume.agent_session);
    let (opening, signals) = opening(setup, process, cwd, spec)?;
    let connection = process.connection();
    connection.table().add(&name, opening, Phase::Replaying);
    let claim = Claim { connection, name: Some(Arc::clone(&name)) };
    let servers = tool_servers(setup, process, spec)?;
    let mut params = json!({ "sessionId": name, "cwd": cwd, "mcpServers": servers });
    add_meta(&mut params, process);
    process.creation_times().note(&name, Timestamp::now());
    let _turn = process.turn_to_open().await;
    let answer = connection.call(method, &params, within(setup)).await?;
    process.creation_times().note(&name, Timestamp::now());
    if setup.profile.has(Quirk::LoadReplayStraddlesResponse) {
        replay_is_over(process, &name).await;
    }
    if let Some(slot) = connection.table().slot(&name) {
        slot.phase = Phase::Live;
    }
    claim.keep();
    // Some agents answer a load with nothing that can be read.
    let description = described(setup, process, &answer).map(|described| described.description).unwrap_or_default();
    Ok(Half { name, description, signals, folder: None })
}

/// A session that is taken out again unless it came to be.
struct Claim<'a> {
    connection: &'a Connection,
    name: Option<Arc<str>>,
}

impl Claim<'_> {
    fn keep(mut self) {
        self.name = None;
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            self.connection.table().remove(name);
        }
    }
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
async fn next_minute(process: &AgentProcess, resume: &Resume) {
    if let Some(wait) = process.creation_times().wait(resume, Timestamp::now()) {
        tracing::warn!(
            seconds = wait.as_secs(),
            "waiting for the next minute, since this agent loses a session otherwise"
        );
        tokio::time::sleep(wait).await;
    }
}

impl Ready {
    /// Sets what was asked for and is not so already.
    async fn apply(&self, setup: &DriverSetup, spec: &SessionSpec) -> Result<(), Failure> {
        let facts = &self.session.description().facts;
        if let Some(model) = &spec.model {
            // An agent that was started with a model says that it has it, whether there is one of that name or not.
            self.session.check_model(model)?;
            if facts.model.as_ref() != Some(model) {
                self.session.changing(Change::Model(Arc::clone(model))).await?;
            }
        }
        if let Some(mode) = self.mode(setup, spec).filter(|mode| facts.mode.as_ref() != Some(mode)) {
            self.session.changing(Change::Mode(mode)).await?;
        }
        Ok(())
    }

    /// The mode that was asked for, or that the operator wants in every session. A guest's session that has a privileged
    /// mode from before goes on without it.
    fn mode(&self, setup: &DriverSetup, spec: &SessionSpec) -> Option<Arc<str>> {
        let rights = self.session.rights();
        let asked = spec.mode.clone().filter(|mode| setup.audience == Audience::Operators || rights.allows_mode(mode));
        let of_the_operator = || setup.profile.mode_id(setup.approval, setup.trust).ok().flatten();
        asked.or_else(|| of_the_operator().map(Into::into))
    }

    fn opened(self, setup: &DriverSetup, spec: &SessionSpec) -> Opened {
        let mut facts = self.session.description().facts.clone();
        facts.model = spec.model.clone().or(facts.model);
        facts.mode = self.mode(setup, spec).or(facts.mode);
        let (agent_session, resumed) = (self.session.name(), self.resumed == Resumed::Yes);
        // With tools of its own it has more to lose than that one turn.
        let forgets_cut_turns = setup.execution == Execution::Chat && setup.profile.has(Quirk::CutTurnsAreForgotten);
        let (agent, signals) = (Box::new(self.session), self.signals);
        Opened { agent, signals, facts, agent_session, resumed, forgets_cut_turns }
    }
}

/// What the agent says of the session that it opened.
fn described(setup: &DriverSetup, process: &AgentProcess, answer: &Bytes) -> Result<Described, Failure> {
    let describe = |opened: &wire::SessionOpened<'_>| Description::of(opened, &setup.profile, process.rights());
    process.descriptions().read(answer, describe).map_err(|unread| error::protocol(&setup.profile.name, unread))
}

fn within(setup: &DriverSetup) -> Duration {
    Duration::from_secs(setup.profile.limits.start_seconds)
}

fn with_hint(setup: &DriverSetup, mut failure: Failure) -> Failure {
    if failure.kind == FailureKind::NeedsLogin && !setup.profile.login_hint.is_empty() {
        failure.message = format!("{}; {}", failure.message, setup.profile.login_hint);
    }
    failure
}
