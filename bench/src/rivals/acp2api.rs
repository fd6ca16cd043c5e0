//! acp2api, the `OpenAI` server over ACP agents in Node.js, as `scripts/setup bench` installs it, before the demo agent.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use tempfile::TempDir;

use super::{end, free_port, wait_for};
use crate::gateway::built;
use crate::house::search_path;
use crate::http::Target;
use crate::measure;

pub struct Acp2Api {
    process: Child,
    pub target: Target,
    _folder: TempDir,
}

/// Its defaults, but for how much may happen at once, as for the gateway.
const SESSIONS: u32 = 2_048;

impl Acp2Api {
    /// What stands in its way is a sentence of the report, not the end of a run.
    pub fn start() -> anyhow::Result<Self> {
        let program = PathBuf::from(".cache/acp2api/node_modules/acp2api/bin/acp2api.js").canonicalize();
        let program = program.context("not installed; `scripts/setup bench` does it")?;
        let agent = built("gembridge-demo-agent")?;
        let folder = tempfile::tempdir()?;
        let port = free_port()?;
        let config = folder.path().join("acp2api.yaml");
        std::fs::write(
            &config,
            format!(
                "server:\n  host: 127.0.0.1\n  port: {port}\n  cwd: ./work\n  maxSessions: {SESSIONS}\n  \
                 maxConversations: {SESSIONS}\nagents:\n  - name: demo\n    type: general\n    command: {}\n",
                agent.display()
            ),
        )?;
        let mut command = Command::new("node");
        command.arg(program).arg("--config").arg(&config);
        command.env_clear().env("PATH", search_path()?).env("HOME", folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = command.spawn().context("`node` did not start")?;
        let up = wait_for(port, &mut process, Duration::from_secs(30));
        let target = Target { address: ([127, 0, 0, 1], port).into(), key: "none".to_owned() };
        let acp2api = Self { process, target, _folder: folder };
        up.map(|()| acp2api)
    }

    /// CPU time of the server alone, without its agent.
    pub fn cpu(&self) -> anyhow::Result<Duration> {
        measure::process_cpu(self.process.id())
    }
}

impl Drop for Acp2Api {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}
