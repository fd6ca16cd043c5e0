//! What an operator makes of profiles, and what holds profiles and documents together.

use std::fs;
use std::path::{Path, PathBuf};

use gembridge_drivers::profile::{AgentConfig, ApprovalMode, Execution, LimitsConfig, Profile, Quirk};

use crate::{Start, builtin};

#[test]
fn an_agent_of_the_operators_own_takes_three_lines() {
    let config: AgentConfig =
        toml::from_str("command = \"my-agent\"\nargs = [\"--acp\"]\nmode = \"agent\"\nworkspace = \"/abs\"\n").unwrap();
    let profile = Profile::custom("mine", &config, &Profile::builtin().unwrap()).unwrap();
    assert_eq!(profile.command.names, ["my-agent"]);
    assert_eq!(profile.chosen.execution, Execution::Agent);
    assert_eq!(profile.chosen.workspace.as_deref(), Some(Path::new("/abs")));
    let launch = Start::with(&[]).launch(&profile).unwrap();
    assert_eq!(launch.args, ["--acp"]);
    assert_eq!(launch.mode_id, None);
    assert!(launch.files.is_empty());
}

#[test]
fn a_known_agent_can_be_changed_key_by_key() {
    let config = AgentConfig {
        command: Some("/opt/gemini".to_owned()),
        model: Some("gemini-2.5-pro".to_owned()),
        approval_mode: Some(ApprovalMode::Plan),
        limits: LimitsConfig { sessions_per_process: Some(3), ..LimitsConfig::default() },
        ..AgentConfig::default()
    };
    let profile = Profile::custom("gemini", &config, &Profile::builtin().unwrap()).unwrap();
    assert_eq!(profile.command.names, ["/opt/gemini"]);
    assert_eq!(profile.command.variable, None, "the variable does not override the operator's own word");
    assert_eq!(profile.limits.sessions_per_process, 3);
    assert_eq!(profile.limits.cancel_grace_ms, builtin("gemini").limits.cancel_grace_ms);
    assert_eq!(profile.model.default.as_deref(), Some("gemini-2.5-pro"));
    assert!(profile.has(Quirk::ModeUpdateAsText));
}

#[test]
fn a_mistake_in_the_configuration_is_one_sentence_with_the_way_out() {
    let known = Profile::builtin().unwrap();
    let error = |name: &str, text: &str| {
        let config: AgentConfig = toml::from_str(text).unwrap();
        Profile::custom(name, &config, &known).unwrap_err().to_string()
    };
    for (name, text, sentence) in [
        ("gemni", "", "agent `gemni` has no `command` and no `url`; name the program to start; did you mean `gemini`?"),
        (
            "Mine!",
            "command = \"x\"",
            "`Mine!` is not a name for an agent; use lower-case letters, digits, `-` and `_`, 1 to 64 of them",
        ),
        (
            "gemini",
            "mode = \"agent\"",
            "agent `gemini` in mode `agent` needs a folder to work in; set `workspace = \"/abs/path\"`",
        ),
        ("gemini", "workspace = \"here\"", "workspace `here` is not an absolute path; write it from `/`"),
        ("demo", "approval_mode = \"yolo\"", "agent `demo` has no approval mode `yolo`; leave it out or use `default`"),
    ] {
        assert_eq!(error(name, text), sentence);
    }
    let unknown = error("gemini", "native_tools = [\"google_search\"]");
    assert!(
        unknown.starts_with("`google_search` is not a tool of agent `gemini`; did you mean `google_web_search`?"),
        "{unknown}"
    );
}

#[test]
fn a_malformed_profile_names_its_file_its_line_and_the_key_that_was_meant() {
    for (text, sentence) in [
        (
            "title = \"x\"\ndriver = \"acp\"\n[comand]\nnames = [\"x\"]\n",
            "agents/x.toml:3: unknown key `comand`; did you mean `command`?",
        ),
        (
            "title = \"x\"\ndriver = \"acp\"\n[command]\nnames = [\"x\"]\nagrs = []\n",
            "agents/x.toml:5: unknown key `agrs`; did you mean `args`?",
        ),
        ("title = \"x\"\ndriver = \"apc\"\n", "agents/x.toml:2: unknown value `apc`; did you mean `acp`?"),
        (
            "title = \"x\"\ndriver = \"acp\"\nquirks = [\"mode-update-as-txt\"]\n",
            "agents/x.toml:3: unknown value `mode-update-as-txt`; did you mean `mode-update-as-text`?",
        ),
        (
            "title = \"x\"\ndriver = \"acp\"\n[command]\nnames = []\n",
            "agents/x.toml:4: `names` is empty exactly when `own_binary` is true; name the program",
        ),
        (
            "title = \"x\"\ndriver = \"acp\"\n[command]\nnames = [\"x\"]\n[chat]\nargs = [\"{privat}\"]\n",
            "profile `x`: `{privat}` in `{privat}` is not known; did you mean `private`?",
        ),
        (
            "title = \"x\"\ndriver = \"acp\"\n[command]\nnames = [\"x\"]\n[[chat.file]]\npath = \"{home}/.x\"\n",
            "profile `x`: file `{home}/.x` is not under `{state}` or `{private}`; a launch writes nowhere else",
        ),
        (
            "title = \"x\"\ndriver = \"acp\"\n[command]\nnames = [\"x\"]\n[[chat.file]]\npath = \"{state}/../x\"\n",
            "profile `x`: file `{state}/../x` is not under `{state}` or `{private}`; a launch writes nowhere else",
        ),
    ] {
        assert_eq!(Profile::parse("x", text, "agents/x.toml").unwrap_err().to_string(), sentence);
    }
}

#[test]
fn every_quirk_is_explained_in_the_readme_of_the_agents() {
    let readme = include_str!("../../../../agents/README.md");
    for quirk in Quirk::ALL {
        let name = format!("{quirk:?}");
        let mut kebab = String::new();
        for letter in name.chars() {
            if letter.is_uppercase() && !kebab.is_empty() {
                kebab.push('-');
            }
            kebab.extend(letter.to_lowercase());
        }
        assert!(readme.contains(&format!("`{kebab}`")), "`{kebab}` is missing in agents/README.md");
    }
}

#[test]
fn every_quirk_is_matched_by_the_code_of_a_driver() {
    let mut folders = vec![PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src/acp"))];
    let mut code = String::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("fuzz.rs") {
                let text = fs::read_to_string(path).unwrap();
                code.push_str(text.split("#[cfg(test)]").next().unwrap_or_default());
            }
        }
    }
    for quirk in Quirk::ALL {
        assert!(code.contains(&format!("Quirk::{quirk:?})")), "no driver matches on `{quirk:?}`; delete it or use it");
    }
}
