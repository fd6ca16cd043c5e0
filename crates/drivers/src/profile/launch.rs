//! From a profile to everything a start needs: program, arguments, the whole environment, files, folder. Pure.

use std::path::{Path, PathBuf};

use super::{
    ApprovalMode, Environment, Execution, HomeOwner, Layer, LoginFound, Profile, ProfileError, Reach, Version, guest,
    template::{self, Style, Values},
};

/// Variables that every child gets when they are set: without them programs do not find their way or the network.
const ALWAYS_PASSED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
];

/// Where the program is looked for when the given environment has no PATH.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What a launch depends on besides the profile.
#[derive(Debug, Clone, Copy)]
pub struct LaunchInput<'a> {
    pub program: &'a Path,
    pub version: Option<Version>,
    pub execution: Execution,
    /// The child's working folder: the operator's workspace, or an empty private one.
    pub workspace: &'a Path,
    pub trust: Trust,
    pub home: HomeOwner,
    pub folders: Folders<'a>,
    /// The environment from which names are passed on.
    pub environment: &'a Environment,
    /// The login that was found, see [`Profile::find_login`].
    pub login: Option<&'a LoginFound>,
    /// Instead of the profile's default.
    pub model: Option<&'a str>,
    pub approval: ApprovalMode,
    pub sandbox: Sandbox,
}

/// Folders that belong to the gateway, each 0700.
#[derive(Debug, Clone, Copy)]
pub struct Folders<'a> {
    /// Outlives the process: the agent's private home. One per agent, execution and principal.
    pub state: &'a Path,
    /// Lives as long as the process.
    pub private: &'a Path,
    /// May vanish at any time and may be shared by all agents of one principal.
    pub cache: &'a Path,
}

/// Whether the agent may trust what lies in its working folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The folder is the gateway's own, or the operator named it as trusted.
    Trusted,
    Untrusted,
}

/// What stands between the agent and the rest of the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sandbox {
    #[default]
    Off,
    /// The agent's own `--sandbox`.
    OfTheAgent,
    /// The kernel lets it write to its workspace and its own folders only.
    Landlock,
}

/// Everything needed to start the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    pub program: PathBuf,
    pub args: Vec<String>,
    /// All of it: the child inherits nothing.
    pub environment: Environment,
    /// To be made before the start, 0700.
    pub folders: Vec<PathBuf>,
    /// To be written before the start, 0600, each as a whole.
    pub files: Vec<LaunchFile>,
    pub cwd: PathBuf,
    /// The mode to set in each session.
    pub mode_id: Option<String>,
    /// The model that the process was started with.
    pub model: Option<String>,
    /// `_meta` for each `session/new`; often empty.
    pub session_meta: serde_json::Map<String, serde_json::Value>,
    /// What a fence around the process leaves open beside its own folders and its program.
    pub reach: Reach,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchFile {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
}

impl Profile {
    /// How this agent is started in these circumstances.
    pub fn launch(&self, input: &LaunchInput<'_>) -> Result<Launch, ProfileError> {
        let model = input.model.or(self.model.default.as_deref());
        let tools = self.tools_in(input.execution);
        let folders = [input.folders.state, input.folders.private, input.folders.cache, input.workspace];
        let [state, private, cache, workspace] = folders.map(Path::to_string_lossy);
        let values = Values {
            agent: &self.name,
            home: match input.home {
                HomeOwner::Operator => input.environment.get("HOME").map(String::as_str),
                HomeOwner::Guest => Some(&state),
            },
            state: &state,
            private: &private,
            cache: &cache,
            workspace: &workspace,
            login: input.login.map(|login| login.kind.as_str()),
            model,
            mcp_server: &self.mcp.server_name,
            denied_tools: &tools.denied,
            native_tools: &tools.left_on,
        };
        let mut launch = Launch {
            program: input.program.to_owned(),
            args: self.args_for(input.version).to_vec(),
            environment: self.environment_of(input, &values)?,
            folders: vec![input.folders.private.join("tmp")],
            files: Vec::new(),
            cwd: input.workspace.to_owned(),
            mode_id: self.mode_id(input.approval, input.trust)?.map(str::to_owned),
            model: model.map(str::to_owned),
            session_meta: serde_json::Map::new(),
            reach: Reach::default(),
        };
        if input.home == HomeOwner::Guest {
            launch.folders.extend(guest::home_folders(input.folders.state).map(|(_, folder)| folder));
        }
        launch.add_model(self, model)?;
        for layer in self.layers(input)? {
            launch.add(layer, input.execution, &values)?;
        }
        launch.reach = self.fence.reach(&values, &launch.environment)?;
        Ok(launch)
    }

    /// The arguments for a version; of several entries for old ones the oldest that fits. Unknown means new.
    fn args_for(&self, version: Option<Version>) -> &[String] {
        let fitting = self.command.older.iter().filter(|older| version.is_some_and(|version| version < older.below));
        fitting.min_by_key(|older| older.below).map_or(&self.command.args, |older| &older.args)
    }

    fn environment_of(&self, input: &LaunchInput<'_>, values: &Values<'_>) -> Result<Environment, ProfileError> {
        let mut environment = base_environment(input.program, input.environment);
        let passed = self.environment.pass.iter().filter_map(|name| Some((name, input.environment.get(name)?)));
        environment.extend(passed.map(|(name, value)| (name.clone(), value.clone())));
        environment.insert("TMPDIR".to_owned(), format!("{}/tmp", values.private));
        for (name, value) in &self.environment.set {
            environment.insert(name.clone(), template::fill(value, values, Style::Plain)?);
        }
        if input.home == HomeOwner::Guest {
            let folders = guest::home_folders(input.folders.state);
            environment.extend(folders.map(|(name, folder)| (name.to_owned(), folder.to_string_lossy().into_owned())));
        }
        Ok(environment)
    }

    /// The environment in which the program is asked for its version: no login, no folders of ours.
    pub fn version_environment(&self, program: &Path, environment: &Environment) -> Environment {
        let mut variables = base_environment(program, environment);
        let fixed = self.environment.set.iter().filter(|(_, value)| !value.contains('{'));
        variables.extend(fixed.map(|(name, value)| (name.clone(), value.clone())));
        variables
    }

    fn layers(&self, input: &LaunchInput<'_>) -> Result<Vec<&Layer>, ProfileError> {
        let mut layers = Vec::new();
        if input.home == HomeOwner::Guest {
            layers.push(&self.guest);
        }
        if input.home == HomeOwner::Guest || input.login.is_some_and(|login| login.private_home) {
            layers.push(&self.private_home);
        }
        if input.trust == Trust::Trusted {
            layers.push(&self.trusted);
        }
        if input.sandbox == Sandbox::OfTheAgent {
            let none = || ProfileError::NoSandbox { agent: self.name.clone() };
            layers.push(self.sandbox.as_ref().ok_or_else(none)?);
        }
        layers.push(match input.execution {
            Execution::Chat => &self.chat,
            Execution::Agent => &self.agent,
        });
        Ok(layers)
    }

    fn tools_in(&self, execution: Execution) -> ToolChoice {
        let left_on = self.chosen.native_tools.clone();
        let denied = match execution {
            Execution::Agent => Vec::new(),
            Execution::Chat => self.tools.native.iter().filter(|tool| !left_on.contains(tool)).cloned().collect(),
        };
        ToolChoice { denied, left_on }
    }
}

struct ToolChoice {
    denied: Vec<String>,
    left_on: Vec<String>,
}

impl Launch {
    fn add_model(&mut self, profile: &Profile, model: Option<&str>) -> Result<(), ProfileError> {
        if let (Some(flag), Some(model)) = (&profile.model.flag, model) {
            check_model(model)?;
            self.args.push(format!("{flag}={model}"));
        }
        Ok(())
    }

    fn add(&mut self, layer: &Layer, execution: Execution, values: &Values<'_>) -> Result<(), ProfileError> {
        self.session_meta.extend(layer.session_meta.clone());
        for name in &layer.unset {
            self.environment.remove(name);
        }
        for (name, value) in &layer.set {
            self.environment.insert(name.clone(), template::fill(value, values, Style::Plain)?);
        }
        for arg in &layer.args {
            self.args.push(template::fill(arg, values, Style::Plain)?);
        }
        for file in &layer.file {
            let mut bytes = template::fill(file.content_in(execution), values, Style::Quoted)?;
            if !values.denied_tools.is_empty() {
                bytes.push_str(&template::fill(&file.content_if_denied, values, Style::Quoted)?);
            }
            if !values.native_tools.is_empty() {
                bytes.push_str(&template::fill(&file.content_if_native, values, Style::Quoted)?);
            }
            let path = PathBuf::from(template::fill(&file.path, values, Style::Plain)?);
            if let Some(folder) = path.parent()
                && !self.folders.iter().any(|known| known == folder)
            {
                self.folders.push(folder.to_owned());
            }
            self.files.push(LaunchFile { path, bytes: bytes.into_bytes() });
        }
        Ok(())
    }
}

/// What every child gets, whatever the agent.
fn base_environment(program: &Path, source: &Environment) -> Environment {
    let passed = ALWAYS_PASSED.iter().filter_map(|name| Some(((*name).to_owned(), source.get(*name)?.clone())));
    let mut environment: Environment = passed.collect();
    let path = with_folder_of(program, environment.get("PATH").map_or(DEFAULT_PATH, String::as_str));
    environment.insert("PATH".to_owned(), path);
    for (name, value) in [("TERM", "dumb"), ("NO_COLOR", "1")] {
        environment.insert(name.to_owned(), value.to_owned());
    }
    environment
}

/// The search path, begun with the program's own folder if it is not in it: a script found elsewhere has its interpreter beside it.
fn with_folder_of(program: &Path, path: &str) -> String {
    match program.parent().filter(|folder| folder.is_absolute()) {
        Some(folder) if !std::env::split_paths(path).any(|known| known == folder) => {
            format!("{}:{path}", folder.display())
        }
        _ => path.to_owned(),
    }
}

/// A model's name becomes an argument, so its shape is checked even when it came from a list.
pub(super) fn check_model(model: &str) -> Result<(), ProfileError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '/' | '-');
    if model.is_empty() || model.len() > 128 || model.starts_with('-') || !model.chars().all(fits) {
        return Err(ProfileError::BadModel(model.to_owned()));
    }
    Ok(())
}
