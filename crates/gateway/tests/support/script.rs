//! A program in Python or JavaScript that tries something on a gateway, and says how it went.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::gateway::Gateway;

pub struct Script {
    command: Command,
}

impl Script {
    /// Node.js as the clients run on it.
    pub fn node_program() -> PathBuf {
        node()
    }

    /// A file of `tests/clients/python`.
    pub fn python(file: &str) -> Self {
        let mut script = Self::of(python());
        script.command.arg(clients().join("python").join(file)).env("PYTHONDONTWRITEBYTECODE", "1");
        script
    }

    /// A file of `tests/clients/python` that needs LiteLLM, which lives apart from the other clients.
    pub fn litellm(file: &str) -> Self {
        let mut script = Self::of(python_in("venv-litellm"));
        script.command.arg(clients().join("python").join(file)).env("PYTHONDONTWRITEBYTECODE", "1");
        script
    }

    /// A file of `tests/clients/node`.
    pub fn node(file: &str) -> Self {
        let mut script = Self::of(node());
        script.command.arg(clients().join("node").join(file));
        script
    }

    /// A few lines of Python.
    pub fn python_text(text: &str) -> Self {
        let mut script = Self::of(python());
        script.command.args(["-c", text]);
        script
    }

    /// A few lines of a JavaScript module.
    pub fn node_text(text: &str) -> Self {
        let mut script = Self::of(node());
        // The packages are looked for where the program is said to lie.
        script.command.args(["--input-type=module", "--eval", text]).current_dir(clients().join("node"));
        script
    }

    /// Proxies and settings of whoever runs the tests stay out.
    fn of(program: PathBuf) -> Self {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", env::var_os("PATH").unwrap_or_default()).env("PYTHONUTF8", "1");
        Self { command }
    }

    /// Runs it against a gateway, and fails with what it said.
    #[track_caller]
    pub fn succeeds(mut self, gateway: &Gateway, agent: &str) -> String {
        let output = self
            .command
            .env("GEMBRIDGE_URL", format!("http://{}", gateway.address))
            .env("GEMBRIDGE_KEY", &gateway.key)
            .env("GEMBRIDGE_AGENT", agent)
            .env("GEMBRIDGE_PROGRAM", env!("CARGO_BIN_EXE_gembridge"))
            .env("HOME", gateway.home.path(""))
            .output()
            .unwrap();
        let Output { status, stdout, stderr } = output;
        let (said, complained) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        let log = gateway.stderr();
        let complaints: Vec<_> = log.lines().filter(|line| !line.contains(" info ")).collect();
        let last = log.lines().last().unwrap_or_default();
        assert!(status.success(), "{status}\n{said}\n{complained}\nthe gateway complains: {complaints:#?}\n{last}");
        said.into_owned()
    }
}

fn clients() -> PathBuf {
    repository().join("tests/clients")
}

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn python() -> PathBuf {
    python_in("venv")
}

fn python_in(environment: &str) -> PathBuf {
    let path = repository().join(".cache").join(environment).join("bin/python");
    assert!(path.exists(), "the clients in Python are not at `{}`: run `make test`", path.display());
    path
}

/// The one that came as a package, or the machine's own.
fn node() -> PathBuf {
    let packages = clients().join("node/node_modules");
    assert!(packages.exists(), "the clients in JavaScript are not at `{}`: run `make test`", packages.display());
    let versions = ["x64", "arm64"].map(|kind| packages.join(format!("node-linux-{kind}/bin/node")));
    versions.into_iter().find(|path| path.exists()).unwrap_or_else(|| OsString::from("node").into())
}
