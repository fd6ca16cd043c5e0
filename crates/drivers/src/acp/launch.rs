//! From a profile to a process that has done its handshake: files written, child started, `initialize` answered.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use gembridge_core::model::{AgentFacts, Failure, FailureKind};
use gembridge_process::{CommandSpec, Environment, Factory, Priority, Sandbox, SpawnError};
use rustix::io::Errno;
use serde_json::json;

use super::client_rights::ClientRights;
use super::connection::Connection;
use super::creation_times::CreationTimes;
use super::fence::{self, Enclosure};
use super::own_tools::OwnTools;
use super::process::{Abilities, AgentProcess, Terms};
use super::router::Router;
use super::{decode, error, open, wire};
use crate::detect::version_of;
use crate::profile::{Execution, Folders, HomeOwner, Launch, LaunchInput, Version};
use crate::setup::{Audience, ClientAccess, DriverSetup, Forms, Home};
use crate::workspace::PrivateDir;

/// The version of the protocol that we speak.
const PROTOCOL: u64 = 1;

/// Makes warm processes for the pool.
pub(super) struct Maker {
    setup: Arc<DriverSetup>,
    creation_times: Arc<CreationTimes>,
}

impl Maker {
    pub(super) fn new(setup: Arc<DriverSetup>) -> Self {
        Self { setup, creation_times: Arc::default() }
    }
}

impl Factory for Maker {
    type Item = Arc<AgentProcess>;
    type Error = Failure;

    fn make(&self) -> gembridge_process::pool::BoxFuture<'_, Result<Self::Item, Failure>> {
        Box::pin(async {
            let process = start(&self.setup, &self.creation_times).await?;
            for _ in 0..self.setup.profile.limits.premade_sessions {
                open::ahead(&self.setup, &process).await?;
            }
            Ok(process)
        })
    }

    fn is_alive(&self, item: &Self::Item) -> bool {
        !item.connection().is_gone()
    }

    fn closed(&self, item: &Self::Item) -> gembridge_process::pool::BoxFuture<'static, ()> {
        let gone = item.connection().watch_gone();
        Box::pin(gone)
    }

    fn retire(&self, item: Self::Item) -> gembridge_process::pool::BoxFuture<'_, ()> {
        Box::pin(async move { item.connection().stop().await })
    }
}

/// Starts an agent, does the handshake and ends it again: what it says of itself.
pub async fn greet(setup: &DriverSetup) -> Result<AgentFacts, Failure> {
    let process = start(setup, &Arc::default()).await?;
    let facts = process.facts().clone();
    process.connection().stop().await;
    Ok(facts)
}

async fn start(setup: &DriverSetup, creation_times: &Arc<CreationTimes>) -> Result<Arc<AgentProcess>, Failure> {
    let first = start_as(setup, setup.version, creation_times).await;
    let may_be_old = setup.version.is_none() && !setup.profile.command.older.is_empty();
    match first {
        // An old version ends at once when it meets a flag that it does not know. Asking for the version costs a
        // start of its own, so it is done only then.
        Err(failure) if may_be_old && failure.kind == FailureKind::Crashed => {
            let asked = version_of(&setup.profile, &setup.program, &setup.environment, &setup.spawner).await;
            let old =
                asked.ok().filter(|version| setup.profile.command.older.iter().any(|older| *version < older.below));
            match old {
                Some(version) => start_as(setup, Some(version), creation_times).await,
                None => Err(failure),
            }
        }
        other => other,
    }
}

async fn start_as(
    setup: &DriverSetup,
    version: Option<Version>,
    creation_times: &Arc<CreationTimes>,
) -> Result<Arc<AgentProcess>, Failure> {
    let private = PrivateDir::create(&setup.private, &setup.profile.name).map_err(|error| no_folder(setup, &error))?;
    let launch = launch(setup, version, &private)?;
    write_files(&launch).map_err(|error| no_folder(setup, &error))?;
    let fence = fence::around(setup, &launch, private.path())?;
    let command = command(setup, &launch, fence.clone());
    let child = setup.spawner.spawn(command).await.map_err(|error| unstarted(setup, &error))?;
    let router = Router {
        agent: setup.profile.name.as_str().into(),
        quirks: setup.profile.quirks.clone(),
        own_tools: OwnTools::of(&setup.profile),
    };
    let connection = Connection::new(child, router);
    match initialize(setup, &connection).await {
        Ok((facts, abilities)) => {
            let terms = Terms {
                rights: ClientRights::of(setup),
                limits: setup.profile.limits,
                session_meta: launch.session_meta,
            };
            let enclosure = Enclosure { folder: private, fence, chat: OnceLock::new() };
            Ok(AgentProcess::new(connection, facts, abilities, terms, Arc::clone(creation_times), enclosure))
        }
        Err(failure) => {
            connection.kill();
            Err(failure)
        }
    }
}

pub(crate) fn launch(setup: &DriverSetup, version: Option<Version>, private: &PrivateDir) -> Result<Launch, Failure> {
    let state = match &setup.home {
        Home::OfTheProcess => private.path().join("home"),
        Home::Lasting(path) => path.clone(),
    };
    let workspace = match &setup.workspace {
        Some(workspace) => workspace.clone(),
        None => private.path().join("empty"),
    };
    let input = LaunchInput {
        program: &setup.program,
        version,
        execution: setup.execution,
        workspace: &workspace,
        trust: setup.trust,
        home: match setup.audience {
            Audience::Operators => HomeOwner::Operator,
            Audience::Guests => HomeOwner::Guest,
        },
        folders: Folders { state: &state, private: private.path(), cache: &setup.cache },
        environment: &setup.environment,
        login: setup.login.as_ref(),
        model: setup.model.as_deref(),
        approval: setup.approval,
        sandbox: setup.sandbox,
    };
    let mut launch =
        setup.profile.launch(&input).map_err(|error| Failure::new(FailureKind::Unsupported, error.to_string()))?;
    launch.folders.push(state);
    launch.folders.push(setup.cache.clone());
    if setup.workspace.is_none() {
        launch.folders.push(workspace);
    }
    Ok(launch)
}

pub(crate) fn write_files(launch: &Launch) -> io::Result<()> {
    for folder in &launch.folders {
        make_folder(folder)?;
    }
    for file in &launch.files {
        if let Some(parent) = file.path.parent() {
            make_folder(parent)?;
        }
        write_file(&file.path, &file.bytes)?;
    }
    Ok(())
}

fn make_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Written beside and moved into place: an agent that starts at the same time never reads half a file.
fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;

    let beside = path.with_extension(format!("new-{}", std::process::id()));
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(bytes)?;
    std::fs::rename(&beside, path)
}

pub(crate) fn command(setup: &DriverSetup, launch: &Launch, fence: Option<Sandbox>) -> CommandSpec {
    let variables: BTreeMap<OsString, OsString> =
        launch.environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
    let mut command =
        CommandSpec::new(&launch.program, Environment::inherit(variables)).args(launch.args.iter()).cwd(&launch.cwd);
    command.limits.line = setup.line;
    if setup.execution == Execution::Agent {
        command = command.umask(Some(setup.umask));
    }
    if setup.audience == Audience::Guests {
        command = command.priority(Priority::lowered_by(setup.guest_nice));
    }
    command.sandbox = fence;
    command
}

async fn initialize(setup: &DriverSetup, connection: &Connection) -> Result<(AgentFacts, Abilities), Failure> {
    let access = match setup.execution {
        Execution::Agent => setup.access,
        Execution::Chat => ClientAccess::NONE,
    };
    let mut params = json!({
        "protocolVersion": PROTOCOL,
        "clientCapabilities": {
            "fs": { "readTextFile": access.reads, "writeTextFile": access.writes },
            "terminal": access.terminals,
        },
        "clientInfo": { "name": "gembridge", "title": "gembridge", "version": env!("CARGO_PKG_VERSION") },
    });
    if setup.forms == Forms::Shown {
        params["clientCapabilities"]["elicitation"] = json!({ "form": {} });
    }
    let within = Duration::from_secs(setup.profile.limits.start_seconds);
    let answer = connection.call("initialize", &params, within).await?;
    let agent = &setup.profile.name;
    let initialized: wire::Initialized =
        serde_json::from_slice(&answer).map_err(|unread| error::protocol(agent, unread))?;
    if initialized.protocol_version != PROTOCOL {
        let theirs = initialized.protocol_version;
        return Err(error::protocol(
            agent,
            format!("it speaks ACP version {theirs}, gembridge speaks {PROTOCOL}; update the older of the two"),
        ));
    }
    let can = &initialized.agent_capabilities;
    let abilities = Abilities {
        http_tools: can.mcp_capabilities.http,
        load: can.load_session,
        resume: can.session_capabilities.resume.is_some(),
        close: can.session_capabilities.close.is_some(),
        authenticate: setup.login.as_ref().is_some_and(|login| {
            login.private_home && initialized.auth_methods.iter().any(|method| method.id == login.kind)
        }),
    };
    Ok((decode::agent_facts(&initialized, &answer), abilities))
}

pub(crate) fn unstarted(setup: &DriverSetup, error: &SpawnError) -> Failure {
    let agent = &setup.profile.name;
    let install = match (error, setup.profile.install.as_str()) {
        (SpawnError::NotFound { .. }, install) if !install.is_empty() => format!("; `{install}`"),
        _ => String::new(),
    };
    let retry_after = Duration::from_secs(5);
    Failure::new(FailureKind::Unavailable { retry_after }, format!("agent `{agent}` did not start: {error}{install}"))
}

/// A folder of ours that could not be made.
pub(crate) fn no_folder(setup: &DriverSetup, error: &io::Error) -> Failure {
    let folder = setup.private.display();
    let (kind, way_out) = match Errno::from_io_error(error) {
        Some(Errno::MFILE | Errno::NFILE) => {
            (FailureKind::Unavailable { retry_after: Duration::from_secs(1) }, "; try again in a second")
        }
        _ => (FailureKind::StoreFailed, ""),
    };
    Failure::new(kind, format!("cannot prepare the agent's folders in `{folder}`: {error}{way_out}"))
}
