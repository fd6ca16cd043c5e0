//! `[agents.NAME]` of the operator's configuration: an agent of their own in three lines, or changes to a known one.

use std::path::PathBuf;

use serde::Deserialize;

use super::{
    A2a, ApprovalMode, Chosen, Driver, Execution, Fence, Layer, Limits, Mcp, Models, Profile, ProfileError, Program,
    Sandbox, Tools, Variables, a2a,
    builtin::{check_extension, check_name},
    launch::check_model,
    nearest,
};

/// One `[agents.NAME]` table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentConfig {
    /// The program: a bare name that is looked up, or an absolute path. An agent of your own needs this or `url`.
    pub command: Option<String>,
    /// The address of an A2A server that is the agent, such as `http://127.0.0.1:41242`, instead of a program.
    pub url: Option<String>,
    /// The name of a variable whose value is sent to that server as its key (`Authorization: Bearer`).
    pub key_variable: Option<String>,
    /// `acp` (default), `headless`: a process for each turn, where the profile says how, or `a2a`: the server at `url`.
    pub driver: Option<Driver>,
    /// Its arguments, instead of those of the profile.
    pub args: Option<Vec<String>>,
    /// `chat` (default): an empty private folder and no tools of its own. `agent`: works in the workspace and asks permission.
    pub mode: Option<Execution>,
    /// The folder to work in, as an absolute path.
    pub workspace: Option<PathBuf>,
    /// The model to use when a request names none.
    pub model: Option<String>,
    /// How much it may do unasked: `default`, `auto_edit`, `yolo` or `plan`. The privileged ones need a trusted workspace.
    pub approval_mode: Option<ApprovalMode>,
    /// Names of variables that are passed on to it, besides those of the profile.
    pub env: Vec<String>,
    /// Tools of its own that stay on in chat and run unasked, such as `google_web_search`.
    pub native_tools: Vec<String>,
    /// `off` (default), `of-the-agent`: its own sandbox, `landlock`: it may write to its workspace and its own folders only.
    pub sandbox: Option<Sandbox>,
    /// Whether chat sessions of one process share an empty working folder instead of having one each: saves a folder for
    /// each conversation. On for agents without tools of their own in chat.
    pub shared_chat_folder: Option<bool>,
    /// Extension methods, each beginning with `_`, that clients with an admin key may send to it. All others are refused.
    pub extensions: Vec<String>,
    /// Files and folders that its process may read when it serves guests, beside its own folders, its program and the
    /// libraries of the system: absolute paths.
    pub guest_read: Vec<PathBuf>,
    /// Folders that its process may read and write when it serves guests, beside its own: absolute paths.
    pub guest_write: Vec<PathBuf>,
    pub limits: LimitsConfig,
}

/// `[agents.NAME.limits]`: only what differs from the profile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Sessions that share one process.
    pub sessions_per_process: Option<u32>,
    /// A process is replaced after this many turns.
    pub recycle_after_turns: Option<u32>,
    /// A process is replaced when it holds more memory than this, in megabytes.
    pub recycle_above_mb: Option<u64>,
    /// Processes kept ready for the next session.
    pub spare: Option<u32>,
    /// Sessions opened ahead of time.
    pub premade_sessions: Option<u32>,
    /// How long a cancelled turn may take to end, in milliseconds.
    pub cancel_grace_ms: Option<u64>,
    /// How long a start may take, in seconds.
    pub start_seconds: Option<u64>,
    /// Turns that run at once, instead of `limits.turns`.
    pub turns: Option<u32>,
    /// Requests of one key that may wait, instead of `limits.queue`.
    pub queue: Option<u32>,
}

impl Profile {
    /// The profile of `[agents.name]`: a known one with changes, or a new one.
    pub fn custom(name: &str, config: &AgentConfig, known: &[Self]) -> Result<Self, ProfileError> {
        let profile = match known.iter().find(|profile| profile.name == name) {
            Some(profile) => profile.clone(),
            None => Self::unknown_agent(name, config, known)?,
        };
        profile.with(config)
    }

    fn unknown_agent(name: &str, config: &AgentConfig, known: &[Self]) -> Result<Self, ProfileError> {
        check_name(name)?;
        let Some(command) = config.command.as_ref().or(config.url.as_ref()) else {
            let names: Vec<&str> = known.iter().map(|profile| profile.name.as_str()).collect();
            let nearest = nearest(name, &names).map(str::to_owned);
            return Err(ProfileError::NoCommand { agent: name.to_owned(), nearest });
        };
        Ok(Self {
            name: name.to_owned(),
            title: name.to_owned(),
            driver: if config.url.is_some() { Driver::A2a } else { Driver::Acp },
            install: String::new(),
            login_hint: String::new(),
            tested: Vec::new(),
            command: Program {
                names: vec![command.clone()],
                variable: None,
                args: Vec::new(),
                older: Vec::new(),
                version_args: super::version_args(),
                own_binary: false,
            },
            environment: Variables::default(),
            login: Vec::new(),
            model: Models::default(),
            modes: std::collections::BTreeMap::default(),
            mcp: Mcp::default(),
            tools: Tools::default(),
            limits: Limits::default(),
            quirks: Vec::new(),
            extensions: Vec::new(),
            private_home: Layer::default(),
            trusted: Layer::default(),
            sandbox: None,
            chat: Layer::default(),
            agent: Layer::default(),
            guest: Layer::default(),
            fence: Fence::default(),
            headless: None,
            a2a: None,
            chosen: Chosen::default(),
        })
    }

    fn with(mut self, config: &AgentConfig) -> Result<Self, ProfileError> {
        if let Some(url) = &config.url {
            self = self.at_address(url, config)?;
        } else if config.key_variable.is_some() {
            return Err(ProfileError::KeyWithoutUrl { agent: self.name });
        }
        if let Some(driver) = config.driver {
            self = self.with_driver(driver)?;
        }
        if let Some(command) = &config.command {
            self.command.names = vec![command.clone()];
            // The operator's word is the last one: no variable of the environment changes it.
            self.command.variable = None;
            self.command.own_binary = false;
        }
        if let Some(args) = &config.args {
            self.command.args.clone_from(args);
            self.command.older.clear();
        }
        if let Some(model) = &config.model {
            if self.model.flag.is_some() {
                check_model(model)?;
            }
            self.model.default = Some(model.clone());
        }
        for name in &config.env {
            if !self.environment.pass.contains(name) {
                self.environment.pass.push(name.clone());
            }
        }
        for method in &config.extensions {
            check_extension(&self.name, method)?;
            if !self.extensions.contains(method) {
                self.extensions.push(method.clone());
            }
        }
        let (read, write) = (&config.guest_read, &config.guest_write);
        if let Some(relative) = read.iter().chain(write).find(|path| !path.is_absolute()) {
            return Err(ProfileError::RelativePath(relative.clone()));
        }
        self.fence.read_also.extend(read.iter().cloned());
        self.fence.write_also.extend(write.iter().cloned());
        self.limits = config.limits.over(self.limits);
        self.chosen = self.choose(config)?;
        Ok(self)
    }

    /// The agent is the server at this address, and no program of ours.
    fn at_address(mut self, url: &str, config: &AgentConfig) -> Result<Self, ProfileError> {
        if config.command.is_some() || config.args.is_some() {
            return Err(ProfileError::CommandAndUrl { agent: self.name });
        }
        let address = a2a::address(&self.name, url)?;
        self.driver = Driver::A2a;
        self.command.names = vec![url.to_owned()];
        self.command.variable = None;
        self.command.own_binary = false;
        let key_variable = config.key_variable.clone();
        self.a2a = Some(A2a { address: Some(address), key_variable, ..self.a2a.unwrap_or_default() });
        Ok(self)
    }

    fn choose(&self, config: &AgentConfig) -> Result<Chosen, ProfileError> {
        let execution = config.mode.unwrap_or_default();
        match &config.workspace {
            Some(folder) if !folder.is_absolute() => return Err(ProfileError::RelativeWorkspace(folder.clone())),
            None if execution == Execution::Agent => {
                return Err(ProfileError::NoWorkspace { agent: self.name.clone() });
            }
            _ => {}
        }
        for tool in &config.native_tools {
            if !self.tools.native.contains(tool) {
                let known: Vec<&str> = self.tools.native.iter().map(String::as_str).collect();
                return Err(ProfileError::UnknownTool {
                    agent: self.name.clone(),
                    tool: tool.clone(),
                    nearest: nearest(tool, &known).map(str::to_owned),
                    known: if known.is_empty() { "none that is known".to_owned() } else { known.join(", ") },
                });
            }
        }
        let approval = config.approval_mode.unwrap_or_default();
        if approval != ApprovalMode::Default && !self.modes.contains_key(&approval) {
            return Err(ProfileError::NoMode { agent: self.name.clone(), mode: approval.as_str() });
        }
        Ok(Chosen {
            execution,
            workspace: config.workspace.clone(),
            approval,
            native_tools: config.native_tools.clone(),
            shared_chat_folder: config.shared_chat_folder,
            sandbox: config.sandbox.unwrap_or_default(),
            turns: config.limits.turns,
            queue: config.limits.queue,
        })
    }
}

impl LimitsConfig {
    fn over(&self, limits: Limits) -> Limits {
        Limits {
            sessions_per_process: self.sessions_per_process.unwrap_or(limits.sessions_per_process),
            recycle_after_turns: self.recycle_after_turns.unwrap_or(limits.recycle_after_turns),
            recycle_above_mb: self.recycle_above_mb.unwrap_or(limits.recycle_above_mb),
            spare: self.spare.unwrap_or(limits.spare),
            premade_sessions: self.premade_sessions.unwrap_or(limits.premade_sessions),
            quiet_ms: limits.quiet_ms,
            cancel_grace_ms: self.cancel_grace_ms.unwrap_or(limits.cancel_grace_ms),
            start_seconds: self.start_seconds.unwrap_or(limits.start_seconds),
        }
    }
}
