//! The binary in a home of its own, with an environment built from empty.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

pub struct Home {
    root: TempDir,
}

/// What a finished run left.
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Home {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join(".config/gembridge")).unwrap();
        fs::create_dir(root.path().join("empty")).unwrap();
        Self { root }
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.root.path().join(below)
    }

    pub fn config(&self, file: &str) -> PathBuf {
        self.path(".config/gembridge").join(file)
    }

    pub fn with_config(self, file: &str, text: &str) -> Self {
        fs::write(self.config(file), text).unwrap();
        self
    }

    /// The command, ready for more variables.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gembridge"));
        command
            .args(args)
            .env_clear()
            .env("HOME", self.root.path())
            .env("PATH", self.path("empty"))
            .current_dir(self.root.path())
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::from(self.command(args).output().unwrap())
    }

    pub fn run_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Ran {
        Ran::from(self.command(args).envs(variables.iter().copied()).output().unwrap())
    }

    pub fn run_in(&self, folder: &Path, args: &[&str]) -> Ran {
        Ran::from(self.command(args).current_dir(folder).output().unwrap())
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("ended by a signal"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    #[track_caller]
    pub fn succeeds(self) -> Self {
        assert_eq!(self.code, 0, "stderr: {}", self.stderr);
        self
    }

    /// Refused with one sentence of ours and nothing on standard output.
    #[track_caller]
    pub fn refused(self, code: i32, sentence: &str) -> Self {
        assert_eq!((self.code, self.stdout.as_str()), (code, ""), "stderr: {}", self.stderr);
        assert!(self.stderr.starts_with("gembridge: ") && self.stderr.contains(sentence), "{}", self.stderr);
        assert_eq!(self.stderr.lines().count(), 1, "{}", self.stderr);
        self
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap()
    }
}
