//! `config show` and `config schema`.

use std::fs;

use serde_json::Value;

use crate::support::home::Home;
use crate::support::run::Ran;

fn value<'a>(shown: &'a Value, key: &str) -> &'a Value {
    let values = shown["values"].as_array().unwrap();
    values.iter().find(|value| value["key"] == key).unwrap_or_else(|| panic!("{key} is not shown"))
}

#[test]
fn every_value_is_shown_with_its_origin() {
    let home = Home::new()
        .with_config("gembridge.toml", "[turn]\nidle = 30\n[server]\nport = 1\n")
        .with_config(".env", "GEMINI_PORT=7\n");
    let shown =
        home.run_with(&["--log-level", "debug", "config", "show", "--json"], &[("PORT", "2")]).succeeds().json();
    for (key, expected, kind) in [
        ("server.host", "127.0.0.1".into(), "default"),
        ("server.port", 2.into(), "environment"),
        ("server.acp_port", 7.into(), "dot_env"),
        ("turn.idle", Value::from("30s"), "file"),
        ("turn.total", "10m".into(), "default"),
        ("log.level", "debug".into(), "flag"),
    ] {
        let value = value(&shown, key);
        assert_eq!((&value["value"], value["origin"]["kind"].as_str()), (&expected, Some(kind)), "{key}");
    }
    assert_eq!(value(&shown, "turn.idle")["origin"]["line"], 2);

    let text = home.run_with(&["config", "show"], &[("PORT", "2")]).succeeds().stdout;
    assert!(text.lines().any(|line| line.starts_with("server.port ") && line.ends_with("environment PORT")), "{text}");
}

#[test]
fn s16_a_secret_is_never_shown() {
    let home = Home::new().with_config("gembridge.toml", "[auth]\nbearer_token = 'canary-file'\n");
    for variables in [
        &[][..],
        &[("BEARER_TOKEN", "canary-shell"), ("GEMINI_API_KEY", "canary-key"), ("GEMBRIDGE_TOKEN", "canary-x")],
    ] {
        for args in
            [&["config", "show"][..], &["config", "show", "--json"], &["--log-level", "debug", "config", "show"]]
        {
            let ran = home.run_with(args, variables).succeeds();
            assert!(ran.stdout.contains("[redacted]"), "{}", ran.stdout);
            assert!(!format!("{}{}", ran.stdout, ran.stderr).contains("canary"), "{}{}", ran.stdout, ran.stderr);
        }
    }
}

#[test]
fn s20_files_of_a_project_change_nothing_and_are_never_opened() {
    let home = Home::new();
    let project = home.path("project");
    for folder in [".gemini", ".config/gembridge"] {
        fs::create_dir_all(project.join(folder)).unwrap();
    }
    let shown = |home: &Home| -> Ran { home.run_in(&project, &["config", "show", "--json"]).succeeds() };
    let before = shown(&home).stdout;
    for file in [
        "gembridge.toml",
        ".env",
        "models.json",
        "trust.toml",
        ".gemini/settings.json",
        ".config/gembridge/gembridge.toml",
    ] {
        // Whoever opened one would fail: none of them is valid, and a pipe that nobody writes hangs its reader.
        fs::write(project.join(file), "[server]\nport = 'hostile'\n=\n").unwrap();
    }
    let after = shown(&home);
    assert_eq!((after.stdout.as_str(), after.stderr.as_str()), (before.as_str(), ""));
    for file in ["gembridge.toml", ".env"] {
        fs::remove_file(project.join(file)).unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, project.join(file), mode).unwrap();
    }
    assert_eq!(shown(&home).stdout, before);
}

#[test]
fn f18_a_pipe_or_a_device_in_the_place_of_the_settings_is_named_and_holds_up_no_start() {
    let home = Home::new();
    fs::create_dir_all(home.config("")).unwrap();
    for file in ["gembridge.toml", ".env"] {
        let path = home.config(file);
        let named = format!("{file}` is not a regular file");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
        home.run(&["serve", "--agent", "demo"]).refused(2, &named);
        fs::remove_file(&path).unwrap();
        // Whoever read it would never come to its end.
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        home.run(&["serve", "--agent", "demo"]).refused(2, &named);
        fs::remove_file(&path).unwrap();
    }
    home.run(&["--config", "/dev/zero", "config", "show"]).refused(2, "`/dev/zero` is not a regular file");
}

#[test]
fn a_named_file_is_read_instead() {
    let home = Home::new().with_config("gembridge.toml", "[server]\nport = 1\n");
    fs::write(home.path("other.toml"), "[server]\nport = 2\n").unwrap();
    let shown = home.run(&["config", "show", "--json", "--config", "other.toml"]).succeeds().json();
    assert_eq!(value(&shown, "server.port")["value"], 2);
    home.run(&["--config", "missing.toml", "config", "show"]).refused(2, "cannot read `missing.toml`: no such file");
}

#[test]
fn the_schema_describes_every_section() {
    let schema = Home::new().run(&["config", "schema"]).succeeds().json();
    for section in ["default", "server", "auth", "limits", "turn", "permissions", "log", "models", "agents"] {
        assert!(schema["properties"][section].is_object(), "{section} is missing");
    }
    assert_eq!(schema["additionalProperties"], false);
}

#[test]
fn a_misspelt_variable_is_a_warning() {
    let ran = Home::new().run_with(&["config", "show"], &[("GEMBRIDGE_SERVER_PROT", "1")]).succeeds();
    assert!(ran.stderr.contains("did you mean `GEMBRIDGE_SERVER_PORT`?"), "{}", ran.stderr);
}
