//! Where the programs lie that tests start: our fakes next to the test executable, the real CLI in `tests/node`.

use std::{
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

/// The program `fake-agent`. `make test` builds the whole workspace first; under `cargo test -p other-crate` the first
/// call builds it if it is missing, so after a change to this crate build it yourself.
pub fn fake_agent_path() -> PathBuf {
    program("fake-agent")
}

/// The program `fake-gemini-api`, found the same way.
pub fn fake_gemini_api_path() -> PathBuf {
    program("fake-gemini-api")
}

/// The real Gemini CLI, pinned by `tests/node/package-lock.json` like all that follow.
pub fn real_gemini() -> PathBuf {
    installed(".bin/gemini")
}

/// The real adapter of Claude Code, which brings Claude Code.
pub fn real_claude() -> PathBuf {
    installed(".bin/claude-agent-acp")
}

/// The real adapter of Codex, which brings Codex.
pub fn real_codex() -> PathBuf {
    installed(".bin/codex-acp")
}

/// The real OpenCode, in the build that runs on any machine of its kind.
pub fn real_opencode() -> PathBuf {
    installed("opencode-linux-x64-baseline/bin/opencode")
}

/// The real Claude Code, which the adapter brings along.
pub fn real_claude_code() -> PathBuf {
    installed("@anthropic-ai/claude-agent-sdk-linux-x64/claude")
}

/// The real Codex CLI, which its adapter brings along.
pub fn real_codex_cli() -> PathBuf {
    installed(".bin/codex")
}

/// The real Qwen Code.
pub fn real_qwen() -> PathBuf {
    installed(".bin/qwen")
}

/// The real A2A server of Gemini CLI, pinned in `scripts/setup`.
pub fn real_gemini_a2a_server() -> PathBuf {
    let path = repository().join(".cache/gemini-cli-a2a-server/package/dist/a2a-server.mjs");
    assert!(path.exists(), "`{}` does not exist; run `scripts/setup tests`, which fetches it", path.display());
    path
}

/// A file below `tests/node/node_modules`.
fn installed(below: &str) -> PathBuf {
    let path = repository().join("tests/node/node_modules").join(below);
    assert!(path.exists(), "`{}` does not exist; run `scripts/setup tests`, which installs it", path.display());
    path
}

/// `gemini --acp` for a private home and a fake API, in the environment that a gateway would give it: nothing of ours
/// but `PATH`. Writes the home's `settings.json`.
pub fn gemini_command(home: &Path, api_url: &str) -> io::Result<Command> {
    let settings = serde_json::json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"sessionRetention": {"enabled": false}, "maxAttempts": 1},
        "tools": {"shell": {"enableInteractiveShell": false}},
    });
    fs::create_dir_all(home.join(".gemini"))?;
    fs::write(home.join(".gemini/settings.json"), settings.to_string())?;
    let mut command = Command::new(real_gemini());
    command.arg("--acp").env_clear().envs(env::var_os("PATH").map(|path| ("PATH", path)));
    command.env("HOME", home).env("GEMINI_CLI_HOME", home).env("TMPDIR", home).env("TERM", "dumb").env("NO_COLOR", "1");
    command.env("GEMINI_CLI_NO_RELAUNCH", "1").env("GEMINI_CLI_TRUST_WORKSPACE", "true");
    command.env("GEMINI_API_KEY", "fake-key").env("GOOGLE_GEMINI_BASE_URL", api_url);
    Ok(command)
}

/// `claude-agent-acp` for a private home and a fake model, in the environment that a gateway would give it.
pub fn claude_command(home: &Path, model_url: &str) -> Command {
    let mut command = agent_command(&real_claude(), home);
    command.env("CLAUDE_CONFIG_DIR", home).env("ANTHROPIC_API_KEY", "fake-key").env("ANTHROPIC_BASE_URL", model_url);
    command
}

/// `codex-acp` likewise. Its home names the fake model: the variable `OPENAI_BASE_URL` alone does not move it.
pub fn codex_command(home: &Path, model_url: &str) -> io::Result<Command> {
    fs::create_dir_all(home)?;
    fs::write(home.join("config.toml"), codex_settings(model_url))?;
    let mut command = agent_command(&real_codex(), home);
    command.env("CODEX_HOME", home).env("OPENAI_API_KEY", "fake-key").env("INITIAL_AGENT_MODE", "read-only");
    Ok(command)
}

/// `config.toml` of a Codex that asks a fake model.
pub fn codex_settings(model_url: &str) -> String {
    format!(
        "model = 'gpt-5.5'\nmodel_provider = 'fake'\n[model_providers.fake]\nname = 'fake'\nbase_url = '{model_url}'\n\
         wire_api = 'responses'\nenv_key = 'OPENAI_API_KEY'\n"
    )
}

/// `opencode acp` likewise.
pub fn opencode_command(home: &Path, model_url: &str) -> io::Result<Command> {
    fs::create_dir_all(home)?;
    let config = home.join("opencode.json");
    fs::write(&config, opencode_settings(model_url))?;
    let mut command = agent_command(&real_opencode(), home);
    command.arg("acp").env("OPENCODE_CONFIG", config).env("OPENCODE_DISABLE_AUTOUPDATE", "1");
    Ok(command)
}

/// `opencode.json` of an OpenCode that asks a fake model.
pub fn opencode_settings(model_url: &str) -> String {
    let options = serde_json::json!({"baseURL": model_url, "apiKey": "fake-key"});
    let provider = serde_json::json!({"npm": "@ai-sdk/openai-compatible", "name": "Fake", "options": options,
        "models": {"m": {"name": "m"}}});
    serde_json::json!({"provider": {"fake": provider}, "model": "fake/m", "small_model": "fake/m"}).to_string()
}

fn agent_command(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs(env::var_os("PATH").map(|path| ("PATH", path)));
    command.env("HOME", home).env("TMPDIR", home).env("TERM", "dumb").env("NO_COLOR", "1");
    command
}

/// Writes a script that can be run at once. A shell writes it: were it open here for writing, whatever a test beside this
/// one starts in that moment would hold it open too, and a program that is open for writing does not run.
pub fn write_script(path: &Path, text: &str) -> io::Result<()> {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut child = shell.spawn()?;
    // Dropped after the write, which is the end of what the shell reads.
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(text.as_bytes())?;
    }
    if child.wait()?.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("`{}` was not written", path.display())))
    }
}

fn program(name: &str) -> PathBuf {
    let path = target_folder().join(name);
    if !path.exists() {
        build_once();
    }
    assert!(path.exists(), "`{}` is missing: run `cargo build -p gembridge-testkit --bins`", path.display());
    path
}

/// Only for what is missing: a build that replaces a program while another test starts it would make that test fail.
fn build_once() {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["build", "--quiet", "-p", "gembridge-testkit", "--bins", "--target-dir"]);
        command.arg(target_folder().parent().unwrap_or(Path::new("target"))).current_dir(repository());
        if target_folder().ends_with("release") {
            command.arg("--release");
        }
        let built = command.status().is_ok_and(|status| status.success());
        assert!(built, "the fakes could not be built: run `cargo build -p gembridge-testkit --bins` and see why");
    });
}

/// A test executable lies in `target/PROFILE/deps`, a bench driver or program in `target/PROFILE`.
fn target_folder() -> PathBuf {
    let executable = env::current_exe().unwrap_or_default();
    let folder = executable.parent().unwrap_or(Path::new("."));
    let in_deps = folder.ends_with("deps") || folder.ends_with("examples");
    if in_deps { folder.parent().unwrap_or(folder).to_owned() } else { folder.to_owned() }
}

fn repository() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder.ancestors().nth(2).unwrap_or(crate_folder).to_owned()
}
