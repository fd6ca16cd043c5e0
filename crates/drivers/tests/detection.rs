//! Finding agents in temporary homes: every place, in order, with the reasons and the warnings.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use gembridge_drivers::detect::{Detection, Disk, Found, FoundBy, detect};
use gembridge_drivers::profile::{AgentConfig, Environment, Profile};

struct Home {
    temp: tempfile::TempDir,
    environment: Environment,
}

impl Home {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().to_str().unwrap().to_owned();
        let environment = [("HOME", home.as_str()), ("PATH", &format!("{home}/bin-on-path:relative:"))]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        Self { temp, environment }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.temp.path().join(path)
    }

    fn file(&self, path: &str, mode: u32) -> PathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "#!/bin/true\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn program(&self, path: &str) -> PathBuf {
        self.file(path, 0o755)
    }

    fn set(&mut self, name: &str, value: impl AsRef<Path>) {
        self.environment.insert(name.to_owned(), value.as_ref().to_str().unwrap().to_owned());
    }

    fn detect(&self, agent: &str) -> Detection {
        let profile = Profile::builtin().unwrap().into_iter().find(|profile| profile.name == agent).unwrap();
        detect(&profile, &self.environment, &Disk, Path::new("/our/binary"))
    }
}

/// A name that no machine has installed, so that the fixed places outside the home cannot interfere.
fn detect_unheard_of(home: &Home) -> Detection {
    let config = AgentConfig { command: Some("unheard-of-agent".to_owned()), ..AgentConfig::default() };
    let mut profile = Profile::custom("mine", &config, &[]).unwrap();
    profile.command.variable = Some("MINE_PATH".to_owned());
    detect(&profile, &home.environment, &Disk, Path::new("/our/binary"))
}

fn found(program: &Path, by: FoundBy) -> Found {
    Found { program: program.to_owned(), by }
}

#[test]
fn path_comes_before_the_usual_places_and_each_of_those_is_looked_at() {
    let home = Home::new();
    assert_eq!(detect_unheard_of(&home).found, None);
    // From the last place to the first: each one found hides those before.
    for place in [
        ".volta/bin",
        ".nvm/versions/node/v9.0.0/bin",
        ".nvm/versions/node/v22.2.0/bin",
        ".local/share/mise/installs/node/20.1.0/bin",
        ".local/share/mise/installs/node/24.0.1/bin",
        ".local/share/mise/shims",
        ".local/bin",
        ".npm-global/bin",
    ] {
        let program = home.program(&format!("{place}/unheard-of-agent"));
        assert_eq!(detect_unheard_of(&home).found, Some(found(&program, FoundBy::UsualPlace)), "{place}");
    }
    let program = home.program("bin-on-path/unheard-of-agent");
    assert_eq!(detect_unheard_of(&home).found, Some(found(&program, FoundBy::Path)));
}

#[test]
fn managers_that_moved_are_found_by_their_variables() {
    for (variable, below) in [
        ("NVM_DIR", "versions/node/v22.0.0/bin"),
        ("VOLTA_HOME", "bin"),
        ("NPM_CONFIG_PREFIX", "bin"),
        ("PNPM_HOME", ""),
        ("HOMEBREW_PREFIX", "bin"),
    ] {
        let mut home = Home::new();
        let program = home.program(&format!("moved/{below}/unheard-of-agent"));
        assert_eq!(detect_unheard_of(&home).found, None, "{variable}");
        home.set(variable, home.at("moved"));
        assert_eq!(
            detect_unheard_of(&home).found.map(|found| found.program.canonicalize().unwrap()),
            Some(program.canonicalize().unwrap()),
            "{variable}"
        );
    }
}

#[test]
fn the_variable_names_a_path_or_a_bare_name_and_wins() {
    let mut home = Home::new();
    home.program("bin-on-path/unheard-of-agent");
    let other = home.program("elsewhere/other-agent");
    let named = || FoundBy::Variable("MINE_PATH".to_owned());
    home.set("MINE_PATH", &other);
    assert_eq!(detect_unheard_of(&home).found, Some(found(&other, named())));
    home.set("MINE_PATH", "~/elsewhere/other-agent");
    assert_eq!(detect_unheard_of(&home).found, Some(found(&other, named())));
    let bare = home.program("bin-on-path/third-agent");
    home.set("MINE_PATH", "third-agent");
    assert_eq!(detect_unheard_of(&home).found, Some(found(&bare, named())));
}

#[test]
fn a_variable_that_names_nothing_executable_is_a_warning_and_the_search_goes_on() {
    let mut home = Home::new();
    let program = home.program("bin-on-path/unheard-of-agent");
    let plain = home.file("elsewhere/plain", 0o644);
    let values = [
        plain.clone(),
        home.at("elsewhere"),
        home.at("missing"),
        PathBuf::from("no-such-agent"),
        PathBuf::from("./unheard-of-agent"),
    ];
    for value in values {
        home.set("MINE_PATH", &value);
        let detection = detect_unheard_of(&home);
        assert_eq!(detection.found, Some(found(&program, FoundBy::Path)), "{}", value.display());
        let expected =
            format!("`MINE_PATH` names `{}`, which is not an executable file; looking elsewhere", value.display());
        assert_eq!(detection.warnings, [expected]);
    }
    home.set("MINE_PATH", "");
    assert!(detect_unheard_of(&home).warnings.is_empty());
}

#[test]
fn a_relative_entry_of_path_is_not_searched() {
    let mut home = Home::new();
    home.environment.insert("PATH".to_owned(), ".:crates:".to_owned());
    assert_eq!(detect_unheard_of(&home).found, None);
}

#[test]
fn an_absolute_command_is_taken_as_it_is_or_missed_with_a_warning() {
    let home = Home::new();
    let program = home.program("opt/agent");
    let custom = |command: &Path| {
        let config = AgentConfig { command: Some(command.to_str().unwrap().to_owned()), ..AgentConfig::default() };
        Profile::custom("mine", &config, &[]).unwrap()
    };
    let detection = detect(&custom(&program), &home.environment, &Disk, Path::new("/our/binary"));
    assert_eq!(detection.found, Some(found(&program, FoundBy::Command)));
    let missing = home.at("opt/missing");
    let detection = detect(&custom(&missing), &home.environment, &Disk, Path::new("/our/binary"));
    assert_eq!(detection.found, None);
    assert_eq!(detection.warnings.len(), 1);
    let sentence = detection.missing(&custom(&missing)).unwrap();
    assert!(sentence.starts_with("agent `mine`: `"), "{sentence}");
}

#[test]
fn the_demo_agent_is_our_own_binary_and_always_there() {
    let detection = Home::new().detect("demo");
    assert_eq!(detection.found, Some(found(Path::new("/our/binary"), FoundBy::OwnBinary)));
    assert_eq!(detection.login.unwrap().kind, "none");
}

#[test]
fn gemini_is_found_by_its_own_variable_and_its_login_by_names_only() {
    let mut home = Home::new();
    let program = home.program("opt/gemini");
    home.set("GEMINI_CLI_PATH", &program);
    let detection = home.detect("gemini");
    assert_eq!(detection.found, Some(found(&program, FoundBy::Variable("GEMINI_CLI_PATH".to_owned()))));
    assert_eq!(detection.login, None);
    // A login file that nobody may read is still seen: it is never opened.
    home.file(".gemini/oauth_creds.json", 0o000);
    let login = home.detect("gemini").login.unwrap();
    assert_eq!((login.kind.as_str(), login.source.as_str()), ("oauth-personal", "`~/.gemini/oauth_creds.json`"));
    assert!(login.personal && login.advice.is_some());
    home.set("GEMINI_API_KEY", "secret-canary");
    let detection = home.detect("gemini");
    assert_eq!(detection.login.as_ref().unwrap().source, "`GEMINI_API_KEY`");
    assert!(!format!("{detection:?}").contains("secret-canary"));
}

#[test]
fn a_missing_agent_is_a_sentence_with_the_way_out() {
    let home = Home::new();
    let mut profile = Profile::builtin().unwrap().into_iter().find(|profile| profile.name == "gemini").unwrap();
    profile.command.names = vec!["unheard-of-agent".to_owned()];
    let detection = detect(&profile, &home.environment, &Disk, Path::new("/our/binary"));
    assert_eq!(
        detection.missing(&profile).unwrap(),
        "agent `gemini`: `unheard-of-agent` was not found; run `npm i -g @google/gemini-cli`"
    );
}
