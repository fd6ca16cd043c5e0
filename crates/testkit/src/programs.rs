//! Where the programs lie that tests start: our fakes next to the test executable, the real CLI in `tests/node`.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// The program `fake-agent`. `make test` builds the whole workspace first; under `cargo test -p other-crate` the first
/// call builds it.
pub fn fake_agent_path() -> PathBuf {
    program("fake-agent")
}

/// The program `fake-gemini-api`, found the same way.
pub fn fake_gemini_api_path() -> PathBuf {
    program("fake-gemini-api")
}

/// The real Gemini CLI, pinned by `tests/node/package-lock.json`.
pub fn real_gemini() -> PathBuf {
    let path = repository().join("tests/node/node_modules/.bin/gemini");
    assert!(path.exists(), "the Gemini CLI is not at `{}`: run `make test`, which installs it", path.display());
    path
}

fn program(name: &str) -> PathBuf {
    let path = target_folder().join(name);
    build_once();
    assert!(path.exists(), "`{}` is missing: run `cargo build -p gembridge-testkit --bins`", path.display());
    path
}

/// Builds the fakes unless `make test` says it has. Cargo does nothing when they are fresh, and a stale fake would test
/// something else than the source says.
fn build_once() {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        if env::var_os("GEMBRIDGE_TESTKIT_BUILT").is_some() {
            return;
        }
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
