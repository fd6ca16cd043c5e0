//! The typed form of `agents/*.toml`: an agent is data. From a profile and a given environment comes a launch, without any I/O.

mod a2a;
mod builtin;
mod configured;
mod error;
mod guest;
mod headless;
mod launch;
mod layer;
mod login;
mod nearest;
mod quirk;
mod template;
mod version;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

pub use a2a::{A2a, A2aServer, CancelBy, Runtime, SessionSettings};
pub use configured::{AgentConfig, LimitsConfig};
pub use error::{FileError, ProfileError};
pub use guest::{Fence, HomeOwner, Reach};
pub use headless::{Headless, StreamFormat};
pub use launch::{Folders, Launch, LaunchFile, LaunchInput, Sandbox, Trust};
pub use layer::{FileTemplate, Layer};
pub use login::{Login, LoginFound};
pub use nearest::nearest;
pub use quirk::Quirk;
pub use version::{BadVersion, Version};

/// The variables of an environment, given by whoever read it.
pub type Environment = BTreeMap<String, String>;

/// One agent: how to find, start and treat it. Built in, or made from the operator's configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The word in `--agent NAME`: the name of the file, or of the table in the configuration.
    #[serde(skip)]
    pub name: String,
    /// What people call it.
    pub title: String,
    pub driver: Driver,
    /// How to get it, as a command or a sentence; shown when it is missing.
    #[serde(default)]
    pub install: String,
    /// How to log in, shown when no login was found.
    #[serde(default)]
    pub login_hint: String,
    /// The versions that this profile was run against.
    #[serde(default)]
    pub tested: Vec<Version>,
    pub command: Program,
    #[serde(default)]
    pub environment: Variables,
    /// In the order in which they are tried: the first one that is there counts.
    #[serde(default)]
    pub login: Vec<Login>,
    #[serde(default)]
    pub model: Models,
    #[serde(default)]
    pub modes: BTreeMap<ApprovalMode, Mode>,
    #[serde(default)]
    pub mcp: Mcp,
    #[serde(default)]
    pub tools: Tools,
    #[serde(default)]
    pub limits: Limits,
    #[serde(default)]
    pub quirks: Vec<Quirk>,
    /// Extension methods, each beginning with `_`, that an operator's client may send to the agent. All others are refused.
    #[serde(default)]
    pub extensions: Vec<String>,
    /// Added when the login needs nothing from the operator's home, so that the agent can have one of its own.
    #[serde(default)]
    pub private_home: Layer,
    /// Added only for a folder that the gateway owns or that the operator named as trusted.
    #[serde(default)]
    pub trusted: Layer,
    /// Added when the agent's own sandbox is asked for; an agent that has none leaves it out.
    pub sandbox: Option<Layer>,
    /// Added in chat: the agent's own tools and its long system prompt off, as far as it allows.
    #[serde(default)]
    pub chat: Layer,
    /// Added when it works as an agent in a workspace.
    #[serde(default)]
    pub agent: Layer,
    /// Added for guests, before the others: above all `unset` for variables that name the operator's folders.
    #[serde(default)]
    pub guest: Layer,
    /// What a guest's process may reach in spite of its fence.
    #[serde(default)]
    pub fence: Fence,
    /// How it runs with the driver `headless`; an agent that cannot leaves it out.
    pub headless: Option<Headless>,
    /// How it is reached with the driver `a2a`; an agent that is no A2A server leaves it out.
    pub a2a: Option<A2a>,
    /// What the operator chose; a built-in profile has the defaults.
    #[serde(skip)]
    pub chosen: Chosen,
}

/// The protocol that the agent speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Driver {
    Acp,
    /// One process per turn, with events as lines of JSON.
    Headless,
    /// A server that speaks A2A, at an address or started by us.
    A2a,
}

impl Driver {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Acp => "acp",
            Self::Headless => "headless",
            Self::A2a => "a2a",
        }
    }
}

/// The program to start.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Bare names that are looked up, or absolute paths, best first. Empty for a part of our own binary.
    pub names: Vec<String>,
    /// A variable in which people name the program, as a path or a bare name.
    pub variable: Option<String>,
    /// Arguments that make it speak the driver's protocol on stdio.
    #[serde(default)]
    pub args: Vec<String>,
    /// Arguments for old versions, instead of `args`.
    #[serde(default)]
    pub older: Vec<OlderArgs>,
    /// Arguments that make it print its version.
    #[serde(default = "version_args")]
    pub version_args: Vec<String>,
    /// The program is our own binary: always there, and of our own version.
    #[serde(default)]
    pub own_binary: bool,
}

fn version_args() -> Vec<String> {
    vec!["--version".to_owned()]
}

/// Arguments for versions older than `below`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OlderArgs {
    pub below: Version,
    pub args: Vec<String>,
}

/// The environment of the child, which otherwise begins empty.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variables {
    /// Names whose values are passed on when they are set: logins and endpoints.
    #[serde(default)]
    pub pass: Vec<String>,
    /// Values that are set, with placeholders.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
}

/// Which model the agent uses, and how it is told.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Models {
    /// The flag that takes a model, given as `--flag=name`. Without one the model is set over the protocol only.
    pub flag: Option<String>,
    /// Pinned when nobody names another one.
    pub default: Option<String>,
    /// Models that the agent is known to take, also where it does not list them.
    #[serde(default)]
    pub known: Vec<String>,
}

/// How much an agent may do unasked: the operator's word, mapped to the agent's own mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalMode {
    /// The agent asks before it changes anything.
    #[default]
    Default,
    /// Edits are made unasked.
    AutoEdit,
    /// Everything is done unasked.
    Yolo,
    /// Reads only.
    Plan,
}

impl ApprovalMode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AutoEdit => "auto_edit",
            Self::Yolo => "yolo",
            Self::Plan => "plan",
        }
    }
}

impl std::str::FromStr for ApprovalMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Default, Self::AutoEdit, Self::Yolo, Self::Plan]
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| format!("`{text}` is not an approval mode; use `default`, `auto_edit`, `yolo` or `plan`"))
    }
}

/// The agent's own name for an approval mode.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mode {
    /// The mode id of `session/set_mode`.
    pub id: String,
    /// Only in a trusted workspace.
    #[serde(default)]
    pub privileged: bool,
}

/// What the agent does with MCP servers given in `session/new`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Mcp {
    /// The name under which our server is given to the agent.
    pub server_name: String,
    /// How a tool's name looks to the model: this, then the tool's own name. `{mcp_server}` is the server's name.
    pub tool_prefix: String,
    /// A longer name (prefix included) is cut by the agent.
    pub name_limit: Option<usize>,
    /// The title of a permission for a tool of our server, with `{tool}` and `{mcp_server}`; the name that the model sees
    /// where there is none.
    pub permission_title: Option<String>,
    /// By what a permission says that it is about a tool of our server.
    pub permission_sign: PermissionSign,
    /// The agent gives up on a call after this many seconds.
    pub call_seconds: Option<u64>,
    /// How long a prompt waits for the agent to read the list of our tools; then it goes out all the same. 0 for one that
    /// reads it only when it is prompted.
    pub list_seconds: u64,
    /// Calls that come within so many milliseconds of each other are one round for the client. An agent that makes its
    /// calls one after the other needs only as long as the words before a call may take to arrive.
    pub gather_ms: u64,
}

impl Default for Mcp {
    fn default() -> Self {
        Self {
            // No underscore: some agents parse a tool's name back at underscores.
            server_name: "host-tools".to_owned(),
            tool_prefix: String::new(),
            name_limit: None,
            permission_title: None,
            permission_sign: PermissionSign::Title,
            call_seconds: None,
            list_seconds: 10,
            gather_ms: 25,
        }
    }
}

/// By what an agent lets know that a permission is about a tool of an MCP server. None of these is written by a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PermissionSign {
    /// The title is the tool's name, or what `permission_title` says.
    #[default]
    Title,
    /// `_meta.toolName` has the tool's name; the title has the arguments.
    MetaToolName,
    /// The permission names neither: the `tool_call` before it, of the same id, has `_meta.is_mcp_tool_call` and the server
    /// in its input, and the permission itself has `_meta.is_mcp_tool_approval`.
    AnnouncedCall,
}

/// The agent's own tools.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tools {
    /// Every tool that the tested versions have: what chat turns off by name.
    #[serde(default)]
    pub native: Vec<String>,
    /// Those of `native` that have no way to a file or a command: an operator who leaves them on in chat leaves them on for
    /// guests too. All others stay off for guests.
    #[serde(default)]
    pub harmless: Vec<String>,
    /// It opens files that a prompt names, by a link or after an `@`, although its tools are off.
    #[serde(default)]
    pub opens_named_files: bool,
    /// What chat does about the agent's own tools. It decides whether guests are served.
    #[serde(default)]
    pub in_chat: ChatTools,
}

/// Whether an agent still has tools of its own in chat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChatTools {
    /// It has none, or all of them are off by one switch or by a list of those that stay on: no way to a file is left.
    Off,
    /// Each is turned off by its name: a tool of a version that was not tested would be on.
    DeniedByName,
    /// Nobody has looked, as for an agent of the operator's own.
    #[default]
    Unknown,
    /// They cannot be turned off. Guests are not served.
    On,
}

/// How many sessions, how long, how patient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Sessions that share one process; for an agent that cannot close them, sessions ever opened in it.
    pub sessions_per_process: u32,
    pub recycle_after_turns: u32,
    pub recycle_above_mb: u64,
    /// Processes kept past `initialize` for the next session.
    pub spare: u32,
    /// Sessions opened ahead of time in the spare process.
    pub premade_sessions: u32,
    /// How long updates may trail a response.
    pub quiet_ms: u64,
    /// How long a cancelled turn may take to end before the process is ended.
    pub cancel_grace_ms: u64,
    /// How long `initialize` and `session/new` may take together.
    pub start_seconds: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions_per_process: 1,
            recycle_after_turns: 200,
            recycle_above_mb: 1024,
            spare: 1,
            premade_sessions: 0,
            quiet_ms: 0,
            cancel_grace_ms: 5_000,
            start_seconds: 30,
        }
    }
}

/// How the agent is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Execution {
    /// As a model: an empty private folder, none of its own tools, permissions refused.
    #[default]
    Chat,
    /// As an agent: works in a named workspace and asks for permission.
    Agent,
}

/// What the operator chose for this agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chosen {
    pub execution: Execution,
    pub workspace: Option<PathBuf>,
    pub approval: ApprovalMode,
    /// Tools of the agent's own that stay on in chat and run unasked.
    pub native_tools: Vec<String>,
    /// Whether chat sessions share the folder of their process, instead of what the profile allows.
    pub shared_chat_folder: Option<bool>,
    pub sandbox: Sandbox,
    /// Turns that run at once, instead of what holds for all agents.
    pub turns: Option<u32>,
    /// Requests of one key that may wait, instead of what holds for all agents.
    pub queue: Option<u32>,
}

impl Profile {
    /// Whether chat sessions work in one folder of their process. Only where nothing of one could be found by another: the
    /// agent has no tools of its own, and does not keep sessions by folder.
    pub fn shares_chat_folder(&self) -> bool {
        let is_safe = self.tools.in_chat == ChatTools::Off && !self.has(Quirk::SessionsAreKeptByFolder);
        self.chosen.shared_chat_folder.unwrap_or(is_safe)
    }

    /// It is a server that runs already, and no program of ours.
    pub fn is_at_address(&self) -> bool {
        self.a2a.as_ref().is_some_and(|a2a| a2a.address.is_some())
    }

    pub fn has(&self, quirk: Quirk) -> bool {
        self.quirks.contains(&quirk)
    }

    /// The agent's own mode id for an approval mode; `None` when nothing needs to be set.
    pub fn mode_id(&self, mode: ApprovalMode, trust: Trust) -> Result<Option<&str>, ProfileError> {
        match (self.modes.get(&mode), mode) {
            (Some(found), _) if found.privileged && trust == Trust::Untrusted => {
                Err(ProfileError::ModeNeedsTrust { mode: mode.as_str() })
            }
            (Some(found), _) => Ok(Some(&found.id)),
            (None, ApprovalMode::Default) => Ok(None),
            (None, _) => Err(ProfileError::NoMode { agent: self.name.clone(), mode: mode.as_str() }),
        }
    }

    /// How the model sees the tools of our MCP server: this, then the tool's own name.
    pub fn mcp_tool_prefix(&self) -> String {
        self.mcp.tool_prefix.replace("{mcp_server}", &self.mcp.server_name)
    }

    /// The login that the environment and the existence of files name; what is in a file is never looked at.
    pub fn find_login(
        &self,
        environment: &Environment,
        exists: &dyn Fn(&std::path::Path) -> bool,
    ) -> Option<LoginFound> {
        login::find(&self.login, environment, &self.environment.pass, exists)
    }
}
