//! Every setting there is, typed. The file, the schema, `config show` and the names of the variables all come from here.

use std::collections::BTreeMap;
use std::time::Duration;

use gembridge_api::guard::address::Network;
use gembridge_drivers::profile::AgentConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::value::{
    AbsolutePath, Count, HostName, Listed, ModelName, Nice, Port, Price, Secret, Size, Span, Switch, Tally,
};

/// Settings of gembridge. A key that is left out has the default shown here.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    pub default: DefaultSettings,
    pub server: ServerSettings,
    pub auth: AuthSettings,
    pub openai: OpenAiSettings,
    pub acp: AcpSettings,
    pub a2a: A2aSettings,
    pub guests: GuestSettings,
    pub cluster: ClusterSettings,
    pub limits: LimitSettings,
    pub sessions: SessionSettings,
    pub turn: TurnSettings,
    pub permissions: PermissionSettings,
    pub log: LogSettings,
    /// What a client calls a model → what the agent calls it.
    pub models: BTreeMap<String, ModelName>,
    /// What a million tokens of a model cost, for `gembridge sessions stats`. A model of a longer name, such as one with a
    /// date, has the price of the name that it begins with.
    pub prices: BTreeMap<String, PriceSettings>,
    /// Agents of your own, and changes to the known ones, by name.
    #[serde(skip_serializing)]
    pub agents: BTreeMap<String, AgentConfig>,
}

/// What is used when nothing else is named.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DefaultSettings {
    /// The agent. Without it: `gemini` where it is installed, then the first of `claude`, `codex`, `opencode`, `qwen` and `goose` that
    /// is installed and logged in, and the built-in `demo` agent where there is none.
    pub agent: Option<String>,
}

/// Where the gateway listens.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServerSettings {
    /// An address or a host name. Anything but this machine itself needs `auth`.
    pub host: String,
    pub port: Port,
    /// One more port with the ACP WebSocket at `/`.
    pub acp_port: Option<Port>,
    /// One more port with A2A's JSON-RPC at `/`. Its clients expect 41242.
    pub a2a_port: Option<Port>,
    /// Names beside `localhost` under which clients may ask for this gateway, such as `bridge.example.org`.
    pub hosts: Listed<HostName>,
    /// Somebody else speaks TLS with the clients: no warning about an address beyond this machine.
    pub behind_proxy: Switch,
    /// The addresses of proxies whose `X-Forwarded-*` headers are believed.
    pub proxies: Listed<Network>,
    /// Let every browser extension call, not only those of `gembridge origins`.
    pub any_extension: Switch,
    /// How long running turns may go on when the gateway is asked to stop.
    pub drain: Span,
    /// Connections open at once.
    pub connections: Count,
    /// Connections open at once from one client address, this machine aside.
    pub connections_per_address: Count,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: Port(11434),
            acp_port: None,
            a2a_port: None,
            hosts: Listed::default(),
            behind_proxy: Switch(false),
            proxies: Listed::default(),
            any_extension: Switch(false),
            drain: Span(Duration::from_secs(30)),
            connections: Count(50_000),
            connections_per_address: Count(256),
        }
    }
}

/// Who may use the gateway.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AuthSettings {
    /// One more admin key beside those of `gembridge keys`: 32 characters or more where others can reach the gateway.
    pub bearer_token: Option<Secret>,
}

/// How the OpenAI API treats its clients.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OpenAiSettings {
    /// Refuse a model that is not listed, instead of answering with the default one and a warning.
    pub strict_models: Switch,
    /// Show what the agent's own tools gave back, as a heading and a quotation before the text.
    pub show_tools: Switch,
    /// How much of a history goes to an agent that has not heard it: in a new session, or where it takes one over.
    pub history: Size,
}

impl Default for OpenAiSettings {
    fn default() -> Self {
        Self { strict_models: Switch(false), show_tools: Switch(false), history: Size(512 << 10) }
    }
}

/// How the ACP API treats its clients.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AcpSettings {
    /// Let a client name MCP servers for its session, as far as they are reached over HTTP.
    pub allow_mcp_servers: Switch,
}

/// How the A2A API treats its clients.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct A2aSettings {
    /// Tools of the agent that run in tasks of A2A clients without a question, each time once, such as `google_web_search`.
    pub auto_approve: Listed<String>,
    /// A file with the tools that clients of this gateway run, for tasks whose client names none: a list of objects with `name`,
    /// `description` and `parameters`. It is read again when it changes.
    pub tool_schemas: Option<AbsolutePath>,
}

/// How keys of rank `user` are kept apart from the operator.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GuestSettings {
    /// The kernel keeps a guest's agent to its own folders, its program and its libraries. Turned off, and on a kernel that cannot
    /// do it, guests are served only by agents that have no way to a file.
    pub fence: Switch,
    /// How far the processes of guests' agents stand behind all others on a busy machine, as `nice` counts it: 0 is not at
    /// all, 5 leaves them a third of what an operator's get, 19 next to nothing.
    pub nice: Nice,
}

impl Default for GuestSettings {
    fn default() -> Self {
        Self { fence: Switch(true), nice: Nice(5) }
    }
}

/// Several gateways as one, which share what they must in Redis or Valkey. Without `redis` the gateway stands alone.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClusterSettings {
    /// Where Redis is: `redis://host:6379`, `rediss://` for TLS, with `user:password@` and `/1` for another database.
    pub redis: Option<Secret>,
    /// Where the other gateways reach this one: a name or an address, with a port where it is not `server.port`.
    pub address: Option<String>,
    /// The same on all gateways of the cluster: 32 characters or more, as `openssl rand -hex 32` makes them.
    pub secret: Option<Secret>,
    /// A file that holds the secret instead.
    pub secret_file: Option<AbsolutePath>,
}

/// Bounds of the gateway.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitSettings {
    /// Requests that one key may make in `window`. Without it: 100, and no limit for admin keys on this machine itself.
    pub requests: Option<Count>,
    pub window: Span,
    /// Requests without a good key that one client address may make in `window`.
    pub refused: Count,
    /// The largest request body.
    pub body: Size,
    /// The longest line that an agent may write.
    pub agent_line: Size,
    /// Messages of a session that are kept in memory; all of them are on disk.
    pub history: Count,
    /// Turns that run at once with one agent; the others wait. Without it: 64, and 1024 for the built-in agent.
    pub turns: Option<Count>,
    /// Requests of one key that may wait for an agent.
    pub queue: Count,
    /// Sessions in memory at once.
    pub sessions: Count,
    /// Sessions of one agent that may wait for their next message; the one used longest ago leaves first. Without it: as
    /// many as fill four of the agent's processes.
    pub idle_sessions: Option<Count>,
    /// Sessions of one agent that a guest's key may have open, and turns that it may run, at once; idle ones are closed at
    /// the agent for others. Without it: a third of what the agent has. Admin keys have no such bound.
    pub sessions_per_key: Option<Count>,
    /// Sessions that a guest's key may have agents open at the same moment; the others wait. Without it: a quarter of the
    /// processors, and one at least. In `window` it may have as many opened as it may make `requests`. Admin keys have no
    /// such bounds.
    pub openings_per_key: Option<Count>,
    /// A session that nobody uses for this long leaves the memory, and its agent is told to forget it.
    pub keep: Span,
}

impl LimitSettings {
    /// Requests of one key in `window`, where they are counted.
    pub fn requests(&self) -> u32 {
        self.requests.map_or(100, |requests| requests.0)
    }
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            requests: None,
            window: Span(Duration::from_mins(1)),
            refused: Count(20),
            body: Size(10 << 20),
            agent_line: Size(10 << 20),
            history: Count(2_000),
            turns: None,
            queue: Count(256),
            sessions: Count(4_096),
            idle_sessions: None,
            sessions_per_key: None,
            openings_per_key: None,
            keep: Span(Duration::from_mins(30)),
        }
    }
}

/// How long sessions stay on disk. The one used longest ago leaves first, and never one that is open.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SessionSettings {
    /// Days after its last use; 0 for ever.
    pub keep_days: Tally,
    /// Megabytes of all of them together; 0 for as many as there is room for.
    pub keep_mb: Tally,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self { keep_days: Tally(30), keep_mb: Tally(10_240) }
    }
}

/// What a million tokens cost, in the currency that you like.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceSettings {
    pub input: Price,
    pub output: Price,
    /// Read from a cache; without it as `input`.
    pub cache_read: Option<Price>,
    /// Written to a cache; without it as `input`.
    pub cache_write: Option<Price>,
}

/// How long a turn may take. Both clocks stand still while it waits for a person or a tool of the client.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TurnSettings {
    /// The agent may be silent for this long.
    pub idle: Span,
    /// The whole turn.
    pub total: Span,
}

impl Default for TurnSettings {
    fn default() -> Self {
        Self { idle: Span(Duration::from_mins(2)), total: Span(Duration::from_mins(10)) }
    }
}

/// What happens when an agent asks whether a tool may run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PermissionSettings {
    pub policy: Policy,
    /// A question waits this long for the people who are attached and can answer it; then it is answered with no.
    pub wait: Span,
    /// The same while nobody is attached who could answer.
    pub alone: Span,
    /// Another policy for one workspace folder.
    pub workspaces: BTreeMap<AbsolutePath, Policy>,
}

impl Default for PermissionSettings {
    fn default() -> Self {
        Self {
            policy: Policy::Ask,
            wait: Span(Duration::from_mins(15)),
            alone: Span(Duration::from_secs(5)),
            workspaces: BTreeMap::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Ask the person; with nobody there, no.
    Ask,
    /// Always no.
    Deny,
    /// Yes to each call. As a setting it covers reading, searching, fetching and editing; the rest is still asked.
    Allow,
}

/// What is written about the gateway's own work. Prompts and answers are not.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LogSettings {
    /// Without it: `info` for `serve`, `warn` for everything else.
    pub level: Option<Level>,
    /// A file for the log as JSON lines, beside standard error.
    pub file: Option<AbsolutePath>,
    /// One more file for errors only.
    pub errors_file: Option<AbsolutePath>,
    /// A log file of this size is renamed to `.old` and begun anew.
    pub rotate: Size,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self { level: None, file: None, errors_file: None, rotate: Size(2 << 20) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Error,
    Warn,
    Info,
    Debug,
}
