//! A home of its own, in which the fake agent is the default.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gembridge_testkit::process_table::wait_until_gone;
use gembridge_testkit::{Record, fake_agent_path, processes_with_tag};
use tempfile::TempDir;

use crate::running::{PATIENCE, Ran, Running};

pub struct Home {
    root: TempDir,
    tag: String,
}

impl Home {
    /// With the fake agent in these modes.
    pub fn new(modes: &str) -> Self {
        Self::configured(modes, "")
    }

    /// With more lines in the agent's section, or after it, in which `{home}` is the folder.
    pub fn configured(modes: &str, more: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        // Not part of the path, or everything that knows the path would carry it.
        let tag = format!("tag{}", root.path().file_name().unwrap().to_str().unwrap());
        let home = Self { root, tag };
        for folder in [".config/gembridge", "empty", "workspace"] {
            fs::create_dir_all(home.path(folder)).unwrap();
        }
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

    pub fn configure(&self, settings: &str) {
        fs::write(self.path(".config/gembridge/gembridge.toml"), settings).unwrap();
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

    pub fn state(&self) -> PathBuf {
        self.path(".local/state/gembridge")
    }

    /// What is left of private folders of runs.
    pub fn private_folders(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.state().join("runs")) else { return Vec::new() };
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
}

fn command_line(pid: u32) -> String {
    let bytes = fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}
