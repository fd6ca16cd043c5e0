//! `LiteLLM`'s proxy as `scripts/setup bench` installs it, before the bare server of this binary.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use tempfile::TempDir;

use super::{end, free_port, wait_for};
use crate::house::search_path;
use crate::http::Target;
use crate::measure;

pub struct LiteLlm {
    process: Child,
    pub target: Target,
    _folder: TempDir,
}

const KEY: &str = "sk-benchmark";

impl LiteLlm {
    /// What stands in its way is a sentence of the report, not the end of a run.
    pub fn before(upstream: SocketAddr) -> anyhow::Result<Self> {
        let program = PathBuf::from(".cache/bench-venv/bin/litellm").canonicalize();
        let program = program.context("not installed; `scripts/setup bench` does it")?;
        let folder = tempfile::tempdir()?;
        let port = free_port()?;
        let config = folder.path().join("config.yaml");
        std::fs::write(
            &config,
            format!(
                "model_list:\n  - model_name: demo\n    litellm_params:\n      model: openai/demo\n      \
                 api_base: http://{upstream}/v1\n      api_key: none\nlitellm_settings:\n  telemetry: false\n\
                 general_settings:\n  master_key: {KEY}\n"
            ),
        )?;
        let mut command = Command::new(program);
        command.arg("--config").arg(&config).args(["--host", "127.0.0.1", "--port", &port.to_string()]);
        // It must not ask the network for prices.
        command.env_clear().env("PATH", search_path()?).env("HOME", folder.path());
        command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True").env("LITELLM_LOG", "ERROR");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = command.spawn()?;
        let up = wait_for(port, &mut process, Duration::from_secs(90));
        let target = Target { address: ([127, 0, 0, 1], port).into(), key: KEY.to_owned() };
        let litellm = Self { process, target, _folder: folder };
        up.map(|()| litellm)
    }

    pub fn cpu(&self) -> anyhow::Result<Duration> {
        measure::tree(self.process.id()).into_iter().map(measure::process_cpu).sum()
    }
}

impl Drop for LiteLlm {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}
