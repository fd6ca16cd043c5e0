//! A program that writes what a test wants, and notes what it was given.

use std::path::{Path, PathBuf};

use gembridge_drivers::profile::{AgentConfig, Driver, Profile};
use gembridge_testkit::write_script;

use crate::agent_fixture::ScriptedAgent;

/// The program `name` with a shell script in its place, run headless in a workspace. In the script `$here` is the fixture's
/// folder, `$prompt` what came on standard input and `$session` the id that an argument named.
pub fn agent(name: &str, script: &str) -> ScriptedAgent {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("workspace");
    std::fs::create_dir(&workspace).unwrap();
    let program = folder.path().join("program");
    let text = format!(
        "#!/bin/sh\nhere={}\nprintf '%s\\n' \"$*\" >> \"$here/args\"\nprompt=$(cat)\nprintf '%s\\n' \"$prompt\" >> \"$here/prompts\"\n\
         for arg in \"$@\"; do case $arg in --session-id=*|--resume=*) session=${{arg#*=}};; esac; done\n{script}\n",
        folder.path().display()
    );
    write_script(&program, &text).unwrap();
    let config = AgentConfig {
        command: Some(program.display().to_string()),
        driver: Some(Driver::Headless),
        ..AgentConfig::default()
    };
    let profile = Profile::custom(name, &config, &Profile::builtin().unwrap()).unwrap();
    ScriptedAgent::of(profile, program, Some(workspace), folder)
}

/// The lines that the program noted.
pub fn noted(folder: &Path, what: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join(what)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

pub fn recorded(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/stream-json").join(below)
}
