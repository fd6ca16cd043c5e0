//! The real Gemini CLI on a fake API without delay: as our profile starts it, as people start it, and bare.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use gembridge_drivers::profile::{
    ApprovalMode, Environment, Execution, Folders, HomeOwner, LaunchInput, Profile, Sandbox, Trust,
};
use gembridge_testkit::raw_acp::RawAcp;
use gembridge_testkit::{fake_gemini_api_path, real_gemini};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Turned, check_pieces};
use crate::house::{House, profile, search_path};
use crate::measure::{ended_children_cpu, tree};

/// Both sides use the same model by name, so that nobody pays for a call that chooses one.
pub const MODEL: &str = "gemini-3.8-flash";

const PIECES: u32 = 20;

/// The fake API as a process of its own: its CPU time is nobody's.
pub struct Api {
    process: Child,
    url: String,
}

impl Api {
    pub fn start() -> anyhow::Result<Self> {
        let program = fake_gemini_api_path();
        let mut process = Command::new(&program).stdout(Stdio::piped()).spawn().context("no fake Gemini API")?;
        let stdout = process.stdout.take().context("the fake API has no stdout")?;
        let mut url = String::new();
        BufReader::new(stdout).read_line(&mut url)?;
        Ok(Self { process, url: url.trim_end().to_owned() })
    }

    /// The environment that a gateway would be started in.
    pub fn environment(&self, node: Option<&Path>) -> anyhow::Result<Environment> {
        let path = match node {
            Some(folder) => format!("{}:{}", folder.display(), search_path()?),
            None => search_path()?,
        };
        let variables =
            [("PATH", path.as_str()), ("GEMINI_API_KEY", "fake-key"), ("GOOGLE_GEMINI_BASE_URL", self.url.as_str())];
        Ok(variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into())
    }

    /// The sessions of our gateway on the real CLI, its profile as it ships.
    pub fn house(&self) -> anyhow::Result<House> {
        House::open(profile("gemini")?, real_gemini(), self.environment(None)?)
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// A prompt that the fake API answers in pieces, and these pieces.
pub struct Script {
    pub prompt: String,
    pub pieces: Vec<String>,
}

impl Script {
    pub fn new() -> Self {
        let filler = "lorem ipsum dolor sit amet consectetur adipiscing";
        let pieces: Vec<String> = (1..=PIECES).map(|number| format!("piece {number:02} {filler} ")).collect();
        let steps: Vec<Value> = pieces.iter().map(|piece| json!({ "text": piece })).collect();
        Self { prompt: format!("answer SCRIPT:{}:END", json!({ "calls": [steps] })), pieces }
    }
}

/// A home that the CLI accepts without asking, and that keeps it from the network.
fn home(folder: &Path) -> anyhow::Result<PathBuf> {
    let home = folder.join("home");
    let settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
        "privacy": {"usageStatisticsEnabled": false},
    });
    std::fs::create_dir_all(home.join(".gemini"))?;
    std::fs::write(home.join(".gemini/settings.json"), settings.to_string())?;
    Ok(home)
}

/// How somebody starts the CLI who does not read its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relaunch {
    /// The CLI starts itself a second time with more memory.
    Default,
    /// `GEMINI_CLI_NO_RELAUNCH=1`
    Off,
}

/// The CLI without anything of ours, in a folder of its own.
pub struct PlainCli {
    folder: TempDir,
    environment: Environment,
}

/// One request that had a process of its own.
pub struct Spawned {
    pub first: Duration,
    pub total: Duration,
}

impl PlainCli {
    pub fn new(api: &Api) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let home = home(folder.path())?.display().to_string();
        std::fs::create_dir(folder.path().join("workspace"))?;
        let mut environment = api.environment(None)?;
        for (name, value) in
            [("HOME", home.as_str()), ("GEMINI_CLI_HOME", &home), ("GEMINI_CLI_TRUST_WORKSPACE", "true")]
        {
            environment.insert(name.to_owned(), value.to_owned());
        }
        Ok(Self { folder, environment })
    }

    pub fn command(&self, relaunch: Relaunch) -> Command {
        let mut command = Command::new(real_gemini());
        command.env_clear().envs(&self.environment).current_dir(self.workspace()).stderr(Stdio::null());
        command.args(["-m", MODEL]);
        if relaunch == Relaunch::Off {
            command.env("GEMINI_CLI_NO_RELAUNCH", "1");
        }
        command
    }

    pub fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    /// `gemini -p PROMPT -o stream-json`, from its start to its end.
    pub fn request(&self, script: &Script, relaunch: Relaunch) -> anyhow::Result<Spawned> {
        let started = Instant::now();
        let mut command = self.command(relaunch);
        command.args(["-o", "stream-json", "-p", &script.prompt]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().context("the Gemini CLI did not start")?;
        let stdout = process.stdout.take().context("the CLI has no stdout")?;
        let (mut first, mut pieces) = (None, Vec::new());
        for line in BufReader::new(stdout).lines() {
            // Banners share the stream.
            let Ok(message) = serde_json::from_str::<Value>(&line?) else { continue };
            if message["type"] == "message" && message["role"] == "assistant" {
                first.get_or_insert_with(|| started.elapsed());
                pieces.push(message["content"].as_str().unwrap_or_default().to_owned());
            }
        }
        let status = process.wait()?;
        anyhow::ensure!(status.success(), "the CLI ended with {status}");
        check_pieces(&pieces, &script.pieces)?;
        Ok(Spawned { first: first.context("the CLI said nothing")?, total: started.elapsed() })
    }

    /// The same, with the CPU time of everything it started.
    pub fn costed(&self, script: &Script, relaunch: Relaunch) -> anyhow::Result<(Spawned, Duration)> {
        let before = ended_children_cpu()?;
        let spawned = self.request(script, relaunch)?;
        Ok((spawned, ended_children_cpu()?.saturating_sub(before)))
    }
}

/// The limit: the CLI started as our chat profile starts it, with nothing between us and its pipe.
pub struct RawChat {
    cli: RawAcp,
    workspace: PathBuf,
    _folder: TempDir,
}

impl RawChat {
    pub fn start(api: &Api) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let profile = profile("gemini")?;
        let mut command = chat_command(&profile, &api.environment(None)?, folder.path())?;
        let mut cli = RawAcp::start(&mut command)?;
        let answer = cli.initialize();
        anyhow::ensure!(answer.get("error").is_none(), "the CLI refused `initialize`: {answer}");
        Ok(Self { cli, workspace: folder.path().join("workspace"), _folder: folder })
    }

    pub fn pid(&self) -> u32 {
        self.cli.pid()
    }

    pub fn session(&mut self) -> String {
        self.cli.open_session(&self.workspace.display().to_string())
    }

    /// One turn; lines are looked into when all of them are there.
    pub fn turn(&mut self, session: &str, script: &Script, since: Instant) -> anyhow::Result<Turned> {
        let id = self.cli.start_prompt(session, &script.prompt);
        let ending = format!("\"id\":{id},");
        let (mut first, mut lines) = (None, Vec::new());
        let total = loop {
            let line = self.cli.line().context("the CLI ended")?;
            let now = since.elapsed();
            if first.is_none() && contains(&line, b"\"agent_message_chunk\"") {
                first = Some(now);
            }
            let over = contains(&line[..line.len().min(64)], ending.as_bytes());
            lines.push(line);
            if over {
                break now;
            }
        };
        let messages: Vec<Value> = lines.iter().filter_map(|line| serde_json::from_slice(line).ok()).collect();
        let end = messages.last().map_or(Value::Null, |message| message["result"]["stopReason"].clone());
        anyhow::ensure!(end == "end_turn", "the bare turn ended as {end}");
        let updates = messages.iter().map(|message| &message["params"]["update"]);
        let texts = updates.filter(|update| update["sessionUpdate"] == "agent_message_chunk");
        let pieces: Vec<String> =
            texts.filter_map(|update| Some(update["content"]["text"].as_str()?.to_owned())).collect();
        check_pieces(&pieces, &script.pieces)?;
        let outcome = gembridge_core::model::Outcome::Finished(gembridge_core::model::Stop::EndTurn);
        Ok(Turned { first: first.unwrap_or(total), total, pieces, outcome })
    }
}

fn contains(line: &[u8], wanted: &[u8]) -> bool {
    memchr::memmem::find(line, wanted).is_some()
}

/// The start that our profile describes, without our guard.
fn chat_command(profile: &Profile, environment: &Environment, folder: &Path) -> anyhow::Result<Command> {
    let [state, private, cache, workspace] = ["state", "private", "cache", "workspace"].map(|name| folder.join(name));
    let launch = profile.launch(&LaunchInput {
        program: &real_gemini(),
        version: None,
        execution: Execution::Chat,
        workspace: &workspace,
        trust: Trust::Trusted,
        home: HomeOwner::Operator,
        folders: Folders { state: &state, private: &private, cache: &cache },
        environment,
        login: profile.find_login(environment, &|path| path.exists()).as_ref(),
        model: None,
        approval: ApprovalMode::Default,
        sandbox: Sandbox::Off,
    })?;
    for folder in launch.folders.iter().chain([&state, &private, &cache, &workspace]) {
        std::fs::create_dir_all(folder)?;
    }
    for file in &launch.files {
        std::fs::write(&file.path, &file.bytes)?;
    }
    let mut command = Command::new(&launch.program);
    command.args(&launch.args).env_clear().envs(&launch.environment).current_dir(&launch.cwd).stderr(Stdio::null());
    Ok(command)
}

/// Ends a CLI with the process that it started in its own place.
pub fn end(mut cli: RawAcp) {
    let processes = tree(cli.pid());
    cli.close_stdin();
    for pid in processes {
        let number = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(number) = number {
            // One that has ended already is what we want.
            rustix::process::kill_process(number, rustix::process::Signal::KILL).ok();
        }
    }
}
