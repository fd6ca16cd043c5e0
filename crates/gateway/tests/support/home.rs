//! A home of its own for the binary, with an environment built from empty.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gembridge_testkit::process_table::wait_until_gone;
use gembridge_testkit::{Record, fake_agent_path, processes_with_tag};
use serde_json::json;
use tempfile::TempDir;

use super::run::{PATIENCE, Ran, Running};

pub struct Home {
    root: TempDir,
    /// Of the processes of the fake agent, where it was given one.
    tag: String,
}

impl Home {
    /// Without any settings.
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        // Not part of the path, or everything that knows the path would carry it.
        let tag = format!("tag{}", root.path().file_name().unwrap().to_str().unwrap());
        for folder in [".config/gembridge", "empty"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        Self { root, tag }
    }

    /// With settings that let a test ask a gateway as often as it likes.
    pub fn for_serving() -> Self {
        let home = Self::new();
        home.configure_serving("");
        home
    }

    /// With the fake agent in these modes as the default agent, tagged and recorded.
    pub fn with_modes(modes: &str) -> Self {
        Self::configured(modes, "")
    }

    /// The same with more lines in the agent's section, or after it, in which `{home}` is the folder.
    pub fn configured(modes: &str, more: &str) -> Self {
        let home = Self::new();
        fs::create_dir(home.path("workspace")).unwrap();
        let agent = fake_agent_path();
        let more = more.replace("{home}", home.root.path().to_str().unwrap());
        let record = home.record();
        let args = ["--mode", modes, "--tag", &home.tag, "--record", record.path().to_str().unwrap()];
        home.configure(&format!(
            "[default]\nagent = 'fake'\n[agents.fake]\ncommand = '{}'\nargs = {args:?}\n{more}",
            agent.display()
        ));
        home
    }

    /// The fake agent as the agent `fake` of a gateway. What it records for a guest goes to the folder `records`.
    pub fn with_fake(self, args: &[&str], further: &str) -> Self {
        let program = fake_agent_path();
        let args = json!(args);
        let records = self.path("records");
        fs::create_dir_all(&records).unwrap();
        self.configure_serving(&format!(
            "{further}\n[agents.fake]\ncommand = {:?}\nargs = {args}\nguest_write = [{:?}]\n",
            program.to_str().unwrap(),
            records.to_str().unwrap()
        ));
        self
    }

    /// Adds to the settings.
    pub fn with_more_settings(self, further: &str) -> Self {
        let path = self.config("gembridge.toml");
        let settings = fs::read_to_string(&path).unwrap_or_default();
        fs::write(path, format!("{settings}\n{further}")).unwrap();
        self
    }

    pub fn configure(&self, settings: &str) {
        fs::write(self.config("gembridge.toml"), settings).unwrap();
    }

    /// Settings that let a test ask as often as it likes, and these.
    pub fn configure_serving(&self, further: &str) {
        self.configure(&format!("limits.requests = 10000000\nlimits.refused = 10000000\n{further}\n"));
    }

    pub fn with_config(self, file: &str, text: &str) -> Self {
        fs::write(self.config(file), text).unwrap();
        self
    }

    pub fn folder(&self) -> &Path {
        self.root.path()
    }

    pub fn config(&self, file: &str) -> PathBuf {
        self.path(".config/gembridge").join(file)
    }

    pub fn state(&self, file: &str) -> PathBuf {
        self.state_folder().join(file)
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.root.path().join(below)
    }

    /// What the agent received.
    pub fn record(&self) -> Record {
        Record::at(self.path("record"))
    }

    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// The agent, its guard and whatever they started.
    pub fn processes(&self) -> Vec<u32> {
        processes_with_tag(&self.tag)
    }

    pub fn state_folder(&self) -> PathBuf {
        self.path(".local/state/gembridge")
    }

    /// What is left of private folders of runs.
    pub fn private_folders(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.state("runs")) else { return Vec::new() };
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    #[track_caller]
    pub fn is_deserted(&self) {
        let left = wait_until_gone(&self.tag, PATIENCE);
        let commands: Vec<_> = left.iter().map(|pid| command_line(*pid)).collect();
        assert!(left.is_empty(), "still alive after {PATIENCE:?}: {commands:?}");
    }

    /// The command with an environment built from empty, ready for more of it.
    pub fn command(&self, args: &[&str]) -> Command {
        self.dress(Command::new(env!("CARGO_BIN_EXE_gembridge")), args)
    }

    /// The same through a shell that does something first and then becomes the command.
    pub fn command_after(&self, preparation: &str, args: &[&str]) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &format!("{preparation}; exec \"$@\""), "sh", env!("CARGO_BIN_EXE_gembridge")]);
        self.dress(command, args)
    }

    fn dress(&self, mut command: Command, args: &[&str]) -> Command {
        command.args(args).env_clear().env("HOME", self.root.path()).env("PATH", self.path("empty"));
        command.current_dir(self.root.path()).stdin(Stdio::null());
        command
    }

    pub fn start(&self, args: &[&str]) -> Running {
        Running::start(self.command(args))
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        self.start(args).ends()
    }

    pub fn run_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Ran {
        let mut command = self.command(args);
        command.envs(variables.iter().copied());
        Running::start(command).ends()
    }

    pub fn run_in(&self, folder: &Path, args: &[&str]) -> Ran {
        let mut command = self.command(args);
        command.current_dir(folder);
        Running::start(command).ends()
    }

    /// What a command that succeeds prints.
    #[track_caller]
    pub fn stdout_of(&self, args: &[&str]) -> String {
        self.run(args).succeeds().stdout
    }

    /// A new key of this name.
    pub fn key(&self, name: &str) -> String {
        self.stdout_of(&["keys", "create", name]).trim().to_owned()
    }
}

fn command_line(pid: u32) -> String {
    let bytes = fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}
