//! Precedence and sources, over real files in a folder of the test's own.

use std::fs;

use super::*;

struct Fixture {
    root: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let fixture = Self { root: tempfile::tempdir().unwrap() };
        fs::create_dir_all(fixture.config_folder()).unwrap();
        fixture
    }

    fn config_folder(&self) -> PathBuf {
        self.root.path().join("config/gembridge")
    }

    fn with(self, file: &str, text: &str) -> Self {
        fs::write(self.config_folder().join(file), text).unwrap();
        self
    }

    fn load(&self, variables: &[(&str, &str)], flags: Vec<Flag>) -> Result<Config, ConfigError> {
        let own = [
            ("HOME".to_owned(), self.root.path().to_string_lossy().into_owned()),
            ("XDG_CONFIG_HOME".to_owned(), self.root.path().join("config").to_string_lossy().into_owned()),
        ];
        let given = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let environment = Environment::default().or(given).or(own);
        Config::load(Sources { environment, file: None, flags })
    }
}

fn port_of(config: &Config) -> (u16, String) {
    (config.settings.server.port.0, config.source(&Key::dotted("server.port")).to_string())
}

#[test]
fn each_layer_wins_over_the_one_below_and_says_so() {
    let fixture = Fixture::new();
    let config = fixture.load(&[], Vec::new()).unwrap();
    assert_eq!(port_of(&config), (11434, "default".to_owned()));

    let fixture = fixture.with("gembridge.toml", "[server]\n# mine\nport = 1\n");
    let file = fixture.config_folder().join("gembridge.toml");
    assert_eq!(port_of(&fixture.load(&[], Vec::new()).unwrap()), (1, format!("{}:3", file.display())));

    let fixture = fixture.with(".env", "\nGEMBRIDGE_SERVER_PORT=2\n");
    let dotenv = fixture.config_folder().join(".env");
    let expected = format!("{}:2 GEMBRIDGE_SERVER_PORT", dotenv.display());
    assert_eq!(port_of(&fixture.load(&[], Vec::new()).unwrap()), (2, expected));

    let config = fixture.load(&[("PORT", "3")], Vec::new()).unwrap();
    assert_eq!(port_of(&config), (3, "environment PORT".to_owned()));

    let flag = Flag { name: "--port", key: Key::dotted("server.port"), value: "4".to_owned() };
    let config = fixture.load(&[("PORT", "3")], vec![flag]).unwrap();
    assert_eq!(port_of(&config), (4, "flag --port".to_owned()));
}

#[test]
fn the_dotenv_also_fills_in_variables_for_agents() {
    let fixture = Fixture::new().with(".env", "GEMINI_API_KEY=from-file\nOTHER=from-file\n");
    let config = fixture.load(&[("GEMINI_API_KEY", "from-shell")], Vec::new()).unwrap();
    assert_eq!(config.environment.get("GEMINI_API_KEY"), Some("from-shell"));
    assert_eq!(config.environment.get("OTHER"), Some("from-file"));
}

#[test]
fn a_wrong_value_names_its_variable_its_line_or_its_flag() {
    let message = |result: Result<Config, ConfigError>| result.err().expect("was accepted").to_string();
    let fixture = Fixture::new();
    assert_eq!(
        message(fixture.load(&[("PORT", "http")], Vec::new())),
        "variable `PORT`: `http` is not a port from 0 to 65535; change it or unset it"
    );
    assert!(
        message(fixture.load(&[("GEMINI_CLI_TIMEOUT", "30s")], Vec::new())).contains("not a number of milliseconds")
    );
    assert!(message(fixture.load(&[("GEMINI_APPROVAL_MODE", "wild")], Vec::new())).contains("`auto_edit`"));
    let flag = Flag { name: "--timeout", key: Key::dotted("turn.total"), value: "0".to_owned() };
    assert!(message(fixture.load(&[], vec![flag])).starts_with("flag `--timeout`: `0` is not a duration"));
    let fixture = fixture.with(".env", "A=b\nPORT=http\n");
    assert!(message(fixture.load(&[], Vec::new())).contains(".env` line 2: `PORT`: `http` is not a port"));
}

#[test]
fn s16_a_wrong_secret_is_not_repeated() {
    let fixture = Fixture::new().with("gembridge.toml", "[auth]\nbearer_token = 4711\n");
    let message = fixture.load(&[], Vec::new()).err().unwrap().to_string();
    assert!(message.contains("line 2: `auth.bearer_token`: expected a quoted string"), "{message}");
}

#[test]
fn secrets_are_redacted_wherever_values_are_shown() {
    let text = "[auth]\nbearer_token = 'canary'\n";
    let config = Fixture::new().with("gembridge.toml", text).load(&[], Vec::new()).unwrap();
    for shown in [show::text(&config), show::json(&config).to_string(), format!("{:?}", config.settings)] {
        assert!(!shown.contains("canary") && shown.contains("[redacted]"), "{shown}");
    }
}

#[test]
fn the_models_file_maps_models_below_the_settings_file() {
    let fixture = Fixture::new()
        .with("models.json", r#"{"gpt-4": "gemini-2.5-pro", "gpt-3.5-turbo": "gemini-2.5-flash"}"#)
        .with("gembridge.toml", "[models]\n\"gpt-4\" = 'other'\n");
    let config = fixture.load(&[], Vec::new()).unwrap();
    assert_eq!(config.settings.models["gpt-4"].as_str(), "other");
    assert_eq!(config.settings.models["gpt-3.5-turbo"].as_str(), "gemini-2.5-flash");
    assert!(config.warnings.is_empty());
}

#[test]
fn an_invalid_models_file_is_a_warning_and_the_defaults_apply() {
    for broken in ["[]", "{", r#"{"a": "--yolo"}"#, r#"{"a": 1}"#] {
        let config = Fixture::new().with("models.json", broken).load(&[], Vec::new()).unwrap();
        assert!(config.settings.models.is_empty());
        assert!(config.warnings[0].contains("models.json` is passed over"), "{:?}", config.warnings);
    }
}

#[test]
fn a_named_file_must_exist() {
    let environment = Environment::from([("HOME", "/nonexistent")]);
    let sources = Sources { environment, file: Some("/nonexistent/x.toml".into()), flags: Vec::new() };
    let message = Config::load(sources).err().unwrap().to_string();
    assert!(message.starts_with("cannot read `/nonexistent/x.toml`: no such file"), "{message}");
}

#[test]
fn every_key_of_the_file_can_be_loaded_and_is_shown_with_its_line() {
    let text = "default.agent = 'mine'\n[limits]\nbody = '1MB'\nwindow = 30\n[permissions.workspaces]\n'/w' = 'allow'\n[agents.mine]\ncommand = '/bin/x'\nargs = ['--acp']\nmode = 'agent'\nworkspace = '/w'\nmodel = 'm'\napproval_mode = 'auto_edit'\nenv = ['API_KEY']\n";
    let config = Fixture::new().with("gembridge.toml", text).load(&[], Vec::new()).unwrap();
    let shown = show::json(&config);
    let from_file =
        shown["values"].as_array().unwrap().iter().filter(|value| value["origin"]["kind"] == "file").count();
    assert_eq!(from_file, text.lines().filter(|line| line.contains(" = ")).count());
}
