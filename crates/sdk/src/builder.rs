//! How an adapter is described before it is built.

mod agent;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gembridge_core::driver::{ServerOrigin, ToolServer};
use gembridge_drivers::profile::{Environment, Profile, Trust};
use gembridge_drivers::setup::ClientAccess;

pub(crate) use self::agent::AgentChoice;
use crate::adapter::Adapter;
use crate::budget::Budget;
use crate::engine::EngineConfig;
use crate::error::BuildError;
use crate::event::Observed;
use crate::helper_process::HelperProgram;
use crate::permission::Permissions;
use crate::reply::ToolUse;
use crate::tool::Tool;

/// What an adapter shall be. Everything has a default; [`build`](Self::build) starts nothing yet.
#[must_use]
pub struct AdapterBuilder {
    agent: AgentChoice,
    program: Option<PathBuf>,
    args: Vec<String>,
    workspace: Option<PathBuf>,
    trust: Trust,
    inherited: Inherited,
    environment: BTreeMap<String, String>,
    removed: Vec<String>,
    helper: Option<PathBuf>,
    sessions_per_process: Option<u32>,
    home: AgentHome,
    access: ClientAccess,
    startup_timeout: Option<Duration>,
    quiet_period: Option<Duration>,
    cancel_grace: Option<Duration>,
    terms: AdapterTerms,
}

/// What an agent gets of the environment of this process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inherited {
    Everything,
    /// What every program needs, and what the profile names.
    Necessary,
}

/// Whose home an agent works in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentHome {
    OfTheCaller,
    /// Its own, where its login needs nothing of the caller's.
    Private,
}

/// On which terms an adapter works, once it is built.
#[derive(Clone)]
pub(crate) struct AdapterTerms {
    pub model: Option<String>,
    pub mode: Option<String>,
    pub permissions: Permissions,
    pub tools: Arc<[Tool]>,
    pub after_tool: Option<AfterTool>,
    pub tool_servers: Vec<ToolServer>,
    pub observer: Option<Observer>,
    pub budget: Option<Budget>,
    pub turn_timeout: Duration,
    pub concurrency: usize,
    pub takes_empty_answers: bool,
}

pub(crate) type AfterTool = Arc<dyn Fn(&ToolUse) -> Option<String> + Send + Sync>;
pub(crate) type Observer = Arc<dyn Fn(Observed<'_>) + Send + Sync>;

/// How long a turn may take if nothing else is said.
const TURN: Duration = Duration::from_mins(10);
const CONCURRENCY: usize = 64;

impl AdapterBuilder {
    pub(crate) fn new(agent: AgentChoice) -> Self {
        Self {
            agent,
            program: None,
            args: Vec::new(),
            workspace: None,
            trust: Trust::Trusted,
            inherited: Inherited::Everything,
            environment: BTreeMap::new(),
            removed: Vec::new(),
            helper: None,
            sessions_per_process: None,
            home: AgentHome::OfTheCaller,
            access: ClientAccess::NONE,
            startup_timeout: None,
            quiet_period: None,
            cancel_grace: None,
            terms: AdapterTerms {
                model: None,
                mode: None,
                permissions: Permissions::default(),
                tools: Arc::default(),
                after_tool: None,
                tool_servers: Vec::new(),
                observer: None,
                budget: None,
                turn_timeout: TURN,
                concurrency: CONCURRENCY,
                takes_empty_answers: false,
            },
        }
    }

    /// The agent's program, instead of what is found by the profile.
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// Arguments after those of the profile. Never put prompts or secrets here: everybody can read arguments.
    pub fn args<A: Into<String>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Where the agent works, as an absolute path. Without one, each session has an empty private folder that is removed with
    /// it. The folder counts as trusted, as the caller named it; see [`untrusted`](Self::untrusted).
    pub fn workspace(mut self, folder: impl Into<PathBuf>) -> Self {
        self.workspace = Some(folder.into());
        self
    }

    /// What lies in the workspace may be anybody's: the agent obeys no settings in it. Some agents then leave out tools too.
    pub fn untrusted(mut self) -> Self {
        self.trust = Trust::Untrusted;
        self
    }

    /// The model. One that the agent does not list is an error that names those it does; one without a list decides itself.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.terms.model = Some(model.into());
        self
    }

    /// The agent's mode, by its id. An agent that does not have it works on with a warning.
    pub fn mode(mut self, mode: impl Into<String>) -> Self {
        self.terms.mode = Some(mode.into());
        self
    }

    /// Who answers when the agent asks for a permission. By default everything is allowed once.
    pub fn permissions(mut self, permissions: Permissions) -> Self {
        self.terms.permissions = permissions;
        self
    }

    /// A variable for the agent, over those of this process.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.insert(name.into(), value.into());
        self
    }

    /// A variable of this process that the agent does not get.
    pub fn env_remove(mut self, name: impl Into<String>) -> Self {
        self.removed.push(name.into());
        self
    }

    /// The agent inherits nothing of this process's environment but `PATH`, `HOME` and the language: only what
    /// [`env`](Self::env) names, and what its profile needs.
    pub fn clear_env(mut self) -> Self {
        self.inherited = Inherited::Necessary;
        self
    }

    /// How long the start of the agent and of its session may take together.
    pub fn startup_timeout(mut self, time: Duration) -> Self {
        self.startup_timeout = Some(time);
        self
    }

    /// How long the agent must have sent nothing after its last word before a turn counts as over.
    pub fn quiet_period(mut self, time: Duration) -> Self {
        self.quiet_period = Some(time);
        self
    }

    /// How long a turn may take in all; ten minutes by default. A prompt's own deadline may be sooner.
    pub fn turn_timeout(mut self, time: Duration) -> Self {
        self.terms.turn_timeout = time;
        self
    }

    /// How long an agent that was told to stop may take before its process is ended.
    pub fn cancel_grace(mut self, time: Duration) -> Self {
        self.cancel_grace = Some(time);
        self
    }

    /// The agent may read files of its workspace through this program. Off by default: agents read them by themselves.
    pub fn file_reads(mut self, allowed: bool) -> Self {
        self.access.reads = allowed;
        self
    }

    /// The agent may write files of its workspace through this program, and nowhere else. Off by default.
    pub fn file_writes(mut self, allowed: bool) -> Self {
        self.access.writes = allowed;
        self
    }

    /// A function of this program that the agent may call.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.terms.tools = self.terms.tools.iter().cloned().chain([tool]).collect();
        self
    }

    /// Looks at each call of a function of this program that succeeded, and may add a word to what the agent is told.
    pub fn after_tool(mut self, hook: impl Fn(&ToolUse) -> Option<String> + Send + Sync + 'static) -> Self {
        self.terms.after_tool = Some(Arc::new(hook));
        self
    }

    /// One more MCP server for the agent, over HTTP, after that of this program's functions.
    pub fn mcp_server(
        mut self,
        name: impl AsRef<str>,
        url: impl Into<String>,
        headers: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let server = ToolServer {
            name: name.as_ref().into(),
            url: url.into(),
            headers: headers.into_iter().collect(),
            origin: ServerOrigin::Others,
        };
        self.terms.tool_servers.push(server);
        self
    }

    /// Hears every event of every evaluation, before whoever asked does. It must not block.
    pub fn observer(mut self, observer: impl Fn(Observed<'_>) + Send + Sync + 'static) -> Self {
        self.terms.observer = Some(Arc::new(observer));
        self
    }

    /// What all prompts of this adapter may use together; a prompt's own budget goes before it.
    pub fn budget(mut self, budget: &Budget) -> Self {
        self.terms.budget = Some(budget.clone());
        self
    }

    /// How many turns run at once; 64 by default. Others wait.
    pub fn concurrency(mut self, turns: usize) -> Self {
        self.terms.concurrency = turns.max(1);
        self
    }

    /// How many sessions share one process, instead of what the profile says.
    pub fn sessions_per_process(mut self, sessions: u32) -> Self {
        self.sessions_per_process = Some(sessions.max(1));
        self
    }

    /// The agent has a home of its own, which goes with its process, where its login needs nothing of the caller's.
    pub fn private_home(mut self) -> Self {
        self.home = AgentHome::Private;
        self
    }

    /// An answer without a word is an answer, instead of an error.
    pub fn allow_empty_answers(mut self) -> Self {
        self.terms.takes_empty_answers = true;
        self
    }

    /// The program that guards are started from, where this one does not call [`run_helper`](crate::run_helper):
    /// `gembridge`, or any that does.
    pub fn helper_program(mut self, program: impl Into<PathBuf>) -> Self {
        self.helper = Some(program.into());
        self
    }

    /// Checks everything that can be checked without starting the agent, which the first prompt does.
    pub fn build(self) -> Result<Adapter, BuildError> {
        if let Some(workspace) = &self.workspace {
            check_workspace(workspace)?;
        }
        check_names(&self.terms.tools)?;
        let mut environment = crate::environment::of_this_process();
        environment.retain(|name, _| !self.removed.contains(name));
        environment.extend(self.environment.clone());
        let helper = HelperProgram::find(self.helper.as_deref(), &environment)?;
        let mut profile = self.agent.profile()?;
        if self.workspace.is_none() {
            self.agent.leave_out_folder(&mut profile);
        }
        self.adjust(&mut profile, &environment);
        let program = match &self.program {
            Some(program) => program.clone(),
            None => agent::find_program(&profile, &environment, &helper.path)?,
        };
        let defaults = self.agent.defaults();
        let config = EngineConfig {
            adapter: format!("{}_acp", profile.name),
            program,
            environment,
            workspace: self.workspace,
            trust: self.trust,
            helper,
            home: self.home,
            access: self.access,
            startup: self.startup_timeout.unwrap_or(defaults.startup),
            quiet: self.quiet_period.unwrap_or(defaults.quiet),
            cancel_grace: self.cancel_grace.unwrap_or(Duration::from_millis(profile.limits.cancel_grace_ms)),
            profile,
            terms: self.terms,
        };
        Ok(Adapter::new(config))
    }

    /// What was said here goes before what the profile says.
    fn adjust(&self, profile: &mut Profile, environment: &Environment) {
        profile.command.args.extend(self.args.iter().cloned());
        for older in &mut profile.command.older {
            older.args.extend(self.args.iter().cloned());
        }
        if let Some(sessions) = self.sessions_per_process {
            profile.limits.sessions_per_process = sessions;
        }
        let passed = match self.inherited {
            Inherited::Everything => environment,
            Inherited::Necessary => &self.environment,
        };
        // An agent that writes to a pipe needs no colours, whatever the terminal of this program can show.
        let is_passed = |name: &&String| name.as_str() != "TERM" || self.environment.contains_key(*name);
        let known = profile.environment.pass.clone();
        profile.environment.pass = passed.keys().filter(is_passed).cloned().chain(known).collect();
        for name in self.environment.keys() {
            profile.environment.set.remove(name);
        }
    }
}

fn check_workspace(workspace: &Path) -> Result<(), BuildError> {
    if !workspace.is_absolute() {
        return Err(BuildError::RelativeWorkspace(workspace.to_owned()));
    }
    if !workspace.is_dir() {
        return Err(BuildError::NoWorkspace(workspace.to_owned()));
    }
    Ok(())
}

fn check_names(tools: &[Tool]) -> Result<(), BuildError> {
    for (place, tool) in tools.iter().enumerate() {
        if tools[..place].iter().any(|other| other.name() == tool.name()) {
            return Err(BuildError::SameName(tool.name().to_owned()));
        }
    }
    Ok(())
}

impl fmt::Debug for AdapterBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdapterBuilder")
            .field("agent", &self.agent)
            .field("workspace", &self.workspace)
            .field("model", &self.terms.model)
            .field("permissions", &self.terms.permissions)
            .finish_non_exhaustive()
    }
}
