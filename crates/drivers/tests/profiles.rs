//! The profiles that ship, and what an operator can make of them: argv, environment and files as snapshots of data.

use std::fs;
use std::path::{Path, PathBuf};

use gembridge_drivers::profile::{
    AgentConfig, ApprovalMode, Environment, Execution, Folders, HomeOwner, Launch, LaunchInput, LimitsConfig,
    LoginFound, Profile, Quirk, Sandbox, Trust, Version,
};

fn builtin(name: &str) -> Profile {
    Profile::builtin().unwrap().into_iter().find(|profile| profile.name == name).unwrap()
}

fn environment(variables: &[(&str, &str)]) -> Environment {
    variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

struct Start {
    environment: Environment,
    execution: Execution,
    trust: Trust,
    home: HomeOwner,
    version: Option<Version>,
    model: Option<&'static str>,
    approval: ApprovalMode,
    sandbox: Sandbox,
    program: &'static str,
    login_files: bool,
}

impl Start {
    fn with(variables: &[(&str, &str)]) -> Self {
        let mut environment = environment(&[("PATH", "/usr/bin"), ("HOME", "/home/ann")]);
        environment.extend(self::environment(variables));
        Self {
            environment,
            execution: Execution::Chat,
            trust: Trust::Trusted,
            home: HomeOwner::Operator,
            version: Some(Version::new(0, 61, 0)),
            model: None,
            approval: ApprovalMode::Default,
            sandbox: Sandbox::Off,
            program: "/usr/bin/agent",
            login_files: false,
        }
    }

    fn login(&self, profile: &Profile) -> Option<LoginFound> {
        profile.find_login(&self.environment, &|_| self.login_files)
    }

    fn launch(&self, profile: &Profile) -> Result<Launch, gembridge_drivers::profile::ProfileError> {
        profile.launch(&LaunchInput {
            program: Path::new(self.program),
            version: self.version,
            execution: self.execution,
            workspace: Path::new("/ws"),
            trust: self.trust,
            home: self.home,
            folders: Folders { state: Path::new("/state"), private: Path::new("/private"), cache: Path::new("/cache") },
            environment: &self.environment,
            login: self.login(profile).as_ref(),
            model: self.model,
            approval: self.approval,
            sandbox: self.sandbox,
        })
    }
}

fn file<'a>(launch: &'a Launch, path: &str) -> Option<&'a str> {
    let found = launch.files.iter().find(|file| file.path == Path::new(path))?;
    Some(std::str::from_utf8(&found.bytes).unwrap())
}

/// Variables by which operators name folders and files of their own, whatever the agent.
const OPERATORS_OWN: [&str; 10] = [
    "CLAUDE_CONFIG_DIR",
    "CLOUDSDK_CONFIG",
    "CODEX_HOME",
    "OPENCODE_CONFIG_DIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "OPENCODE_CONFIG",
];

#[test]
fn f14_no_variable_of_a_guests_agent_names_a_folder_of_the_operators() {
    let variables = OPERATORS_OWN.map(|name| (name, "/home/ann/own"));
    for profile in Profile::builtin().unwrap() {
        let launch = Start { home: HomeOwner::Guest, ..Start::with(&variables) }.launch(&profile).unwrap();
        for variable in ["HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"] {
            let folder = Path::new(launch.environment.get(variable).unwrap());
            assert!(folder.starts_with("/state"), "{}: {variable}={}", profile.name, folder.display());
            assert!(launch.folders.iter().any(|made| made == folder), "{}: {variable} is not made", profile.name);
        }
        let of_operator = launch.environment.iter().filter(|(_, value)| value.contains("/home/ann"));
        for (name, value) in of_operator {
            // What the profile says that it reads: credentials and settings that are named for serving others.
            assert!(profile.fence.read_variables.contains(name), "{}: {name}={value}", profile.name);
            assert!(launch.reach.readable.iter().any(|path| path == Path::new(value)), "{}: {name}", profile.name);
        }
    }
}

#[test]
fn f14_a_guests_login_comes_by_variables_alone() {
    let everywhere = |_: &Path| true;
    let opencode = builtin("opencode");
    let with_key = environment(&[("HOME", "/home/ann"), ("ANTHROPIC_API_KEY", "k")]);
    assert!(opencode.find_login(&with_key, &everywhere).unwrap().personal, "the operator's own file comes first");
    let guests = opencode.find_guest_login(&with_key).unwrap();
    assert_eq!((guests.kind.as_str(), guests.personal), ("api-key", false));
    let claude = builtin("claude");
    assert_eq!(claude.find_guest_login(&environment(&[("HOME", "/home/ann")])), None);
    assert!(claude.find_guest_login(&environment(&[("CLAUDE_CODE_OAUTH_TOKEN", "k")])).unwrap().personal);
}

#[test]
fn a_login_file_is_looked_for_where_a_variable_moved_it() {
    let moved = environment(&[("HOME", "/home/ann"), ("XDG_DATA_HOME", "/data")]);
    let found = builtin("opencode").find_login(&moved, &|path| path == Path::new("/data/opencode/auth.json")).unwrap();
    assert_eq!((found.personal, found.source.as_str()), (true, "`$XDG_DATA_HOME/opencode/auth.json`"));
    // Codex is not given the variable, so that it moves nothing.
    let found = builtin("codex").find_login(&moved, &|path| path == Path::new("/home/ann/.codex/auth.json")).unwrap();
    assert_eq!(found.source, "`~/.codex/auth.json`");
}

#[test]
fn what_a_guests_process_reaches_comes_from_the_profile_and_the_operator() {
    let variables = [("GOOGLE_APPLICATION_CREDENTIALS", "/etc/vertex.json"), ("SSL_CERT_DIR", "/a/certs:/b/certs")];
    let config = AgentConfig {
        guest_read: vec!["/srv/{models}".into()],
        guest_write: vec!["/srv/scratch".into()],
        ..AgentConfig::default()
    };
    let gemini = Profile::custom("gemini", &config, &Profile::builtin().unwrap()).unwrap();
    let launch = Start { home: HomeOwner::Guest, ..Start::with(&variables) }.launch(&gemini).unwrap();
    let readable: Vec<_> = launch.reach.readable.iter().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(readable, ["/etc/vertex.json", "/a/certs", "/b/certs", "/srv/{models}"]);
    assert_eq!(launch.reach.writable, [Path::new("/srv/scratch")]);
    let launch = Start::with(&[("CLAUDE_CODE_EXECUTABLE", "/opt/claude")]).launch(&builtin("claude")).unwrap();
    assert_eq!(launch.reach.programs, [Path::new("/opt/claude")]);
    let relative = AgentConfig { guest_read: vec!["models".into()], ..AgentConfig::default() };
    let error = Profile::custom("gemini", &relative, &Profile::builtin().unwrap()).unwrap_err().to_string();
    assert!(error.contains("`models` of `guest_read`"), "{error}");
}

#[test]
fn without_a_fence_only_agents_that_reach_no_file_serve_guests() {
    let profiles = Profile::builtin().unwrap();
    let reach_none =
        profiles.iter().filter(|profile| profile.tools.reach_no_file()).map(|profile| profile.name.as_str());
    assert_eq!(reach_none.collect::<Vec<_>>(), ["gemini", "demo"]);
    let config = AgentConfig { command: Some("mine".to_owned()), ..AgentConfig::default() };
    assert!(!Profile::custom("mine", &config, &[]).unwrap().tools.reach_no_file(), "nobody has looked");
}

#[test]
fn every_profile_that_ships_is_read_and_starts_in_both_executions() {
    let profiles = Profile::builtin().unwrap();
    let names: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
    assert_eq!(names, ["gemini", "claude", "codex", "opencode", "qwen", "goose", "demo"]);
    for profile in &profiles {
        for execution in [Execution::Chat, Execution::Agent] {
            let start = Start { execution, ..Start::with(&[("GEMINI_API_KEY", "k"), ("OPENAI_API_KEY", "k")]) };
            let launch = start.launch(profile).unwrap();
            assert_eq!(launch.cwd, Path::new("/ws"), "{}", profile.name);
            assert!(launch.args.iter().all(|arg| !arg.contains('{')), "{}: {:?}", profile.name, launch.args);
        }
    }
}

#[test]
fn gemini_in_chat_gets_a_private_home_no_tools_of_its_own_and_a_short_system_prompt() {
    let launch = Start::with(&[("GEMINI_API_KEY", "secret")]).launch(&builtin("gemini")).unwrap();
    assert_eq!(
        launch.args,
        [
            "--acp",
            "--model=gemini-3.8-flash",
            "--policy=/private/policy.toml",
            "--extensions=none",
            "--allowed-mcp-server-names=host-tools"
        ]
    );
    for (name, value) in [
        ("GEMINI_API_KEY", "secret"),
        ("GEMINI_CLI_NO_RELAUNCH", "1"),
        ("GEMINI_CLI_HOME", "/state"),
        ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
        ("GEMINI_SYSTEM_MD", "/private/system.md"),
        ("NODE_COMPILE_CACHE", "/cache/node"),
        ("HOME", "/home/ann"),
        ("TMPDIR", "/private/tmp"),
        ("TERM", "dumb"),
    ] {
        assert_eq!(launch.environment.get(name).map(String::as_str), Some(value), "{name}");
    }
    let settings: serde_json::Value =
        serde_json::from_str(file(&launch, "/state/.gemini/settings.json").unwrap()).unwrap();
    assert_eq!(settings["security"]["auth"]["selectedType"], "gemini-api-key");
    assert_eq!(settings["general"]["sessionRetention"]["enabled"], false);
    assert_eq!(settings["tools"]["shell"]["enableInteractiveShell"], false);

    let rules = policy(&launch);
    let denied = denied_tools(&rules);
    assert!(
        ["run_shell_command", "write_file", "google_web_search"]
            .iter()
            .all(|tool| denied.contains(&(*tool).to_owned()))
    );
    assert!(rules.iter().all(|rule| rule.contains_key("toolName")), "a rule without `toolName` voids the whole file");
    assert!(launch.folders.contains(&Path::new("/private/tmp").to_owned()));
    assert!(launch.folders.contains(&Path::new("/state/.gemini").to_owned()));
}

fn policy(launch: &Launch) -> Vec<toml::Table> {
    let policy: toml::Table = file(launch, "/private/policy.toml").unwrap().parse().unwrap();
    policy["rule"].as_array().unwrap().iter().map(|rule| rule.as_table().unwrap().clone()).collect()
}

fn denied_tools(rules: &[toml::Table]) -> Vec<String> {
    let denied = rules.iter().filter(|rule| rule["decision"].as_str() == Some("deny"));
    let names = denied.flat_map(|rule| rule["toolName"].as_array().unwrap().clone());
    names.map(|name| name.as_str().unwrap().to_owned()).collect()
}

#[test]
fn native_tools_that_the_operator_names_are_allowed_and_not_denied() {
    let config = AgentConfig {
        native_tools: vec!["google_web_search".to_owned(), "web_fetch".to_owned()],
        ..AgentConfig::default()
    };
    let profile = Profile::custom("gemini", &config, &Profile::builtin().unwrap()).unwrap();
    let rules = policy(&Start::with(&[("GEMINI_API_KEY", "k")]).launch(&profile).unwrap());
    assert!(!denied_tools(&rules).iter().any(|tool| tool == "web_fetch" || tool == "google_web_search"));
    let allowed =
        rules.iter().find(|rule| rule["toolName"].is_array() && rule["decision"].as_str() == Some("allow")).unwrap();
    assert_eq!(allowed["toolName"].to_string(), r#"["google_web_search", "web_fetch"]"#);

    let all = AgentConfig { native_tools: profile.tools.native.clone(), ..AgentConfig::default() };
    let profile = Profile::custom("gemini", &all, &Profile::builtin().unwrap()).unwrap();
    let rules = policy(&Start::with(&[("GEMINI_API_KEY", "k")]).launch(&profile).unwrap());
    assert!(rules.iter().all(|rule| rule["decision"].as_str() == Some("allow")), "no empty deny rule");
}

#[test]
fn the_agent_execution_denies_nothing_and_keeps_the_system_prompt() {
    let start = Start { execution: Execution::Agent, ..Start::with(&[("GEMINI_API_KEY", "k")]) };
    let launch = start.launch(&builtin("gemini")).unwrap();
    assert!(denied_tools(&policy(&launch)).is_empty());
    assert!(!launch.environment.contains_key("GEMINI_SYSTEM_MD"));
}

#[test]
fn old_versions_get_the_flag_that_they_know_and_an_unknown_version_counts_as_new() {
    for (version, flag) in [
        (Some(Version::new(0, 11, 3)), "--experimental-acp"),
        (Some(Version::new(0, 33, 9)), "--experimental-acp"),
        (Some(Version::new(0, 34, 0)), "--acp"),
        (None, "--acp"),
    ] {
        let launch = Start { version, ..Start::with(&[]) }.launch(&builtin("gemini")).unwrap();
        assert_eq!(launch.args[0], flag, "{version:?}");
    }
}

#[test]
fn the_login_is_told_from_names_and_vertex_keeps_the_home_for_its_credentials() {
    let gemini = builtin("gemini");
    for (variables, login_files, kind) in [
        (&[("GEMINI_API_KEY", "k")][..], true, Some("gemini-api-key")),
        (&[("GOOGLE_API_KEY", "k")][..], false, Some("vertex-ai")),
        (&[("GOOGLE_GENAI_USE_VERTEXAI", "True"), ("GEMINI_API_KEY", "k")][..], false, Some("vertex-ai")),
        (
            &[("GOOGLE_APPLICATION_CREDENTIALS", "/f"), ("GOOGLE_CLOUD_PROJECT", "p"), ("GOOGLE_CLOUD_LOCATION", "l")]
                [..],
            false,
            Some("vertex-ai"),
        ),
        (&[("GEMINI_API_KEY", "")][..], true, Some("oauth-personal")),
        (&[][..], true, Some("oauth-personal")),
        (&[][..], false, None),
    ] {
        let found = Start { login_files, ..Start::with(variables) }.login(&gemini);
        assert_eq!(found.as_ref().map(|login| login.kind.as_str()), kind, "{variables:?}");
        assert!(
            found
                .is_none_or(|login| !login.source.contains("=k") && login.personal == (login.kind == "oauth-personal"))
        );
    }
    let launch = Start::with(&[("GOOGLE_GENAI_USE_VERTEXAI", "true")]).launch(&gemini).unwrap();
    assert_eq!(launch.environment["HOME"], "/home/ann");
    assert!(file(&launch, "/state/.gemini/settings.json").unwrap().contains("\"vertex-ai\""));
}

#[test]
fn a_login_that_lives_in_the_home_keeps_that_home_and_writes_nothing_there() {
    let launch = Start { login_files: true, ..Start::with(&[]) }.launch(&builtin("gemini")).unwrap();
    assert!(!launch.environment.contains_key("GEMINI_CLI_HOME"));
    assert!(launch.files.iter().all(|file| file.path.starts_with("/private")), "{:?}", launch.files);
}

#[test]
fn nothing_but_named_variables_reaches_the_child() {
    let canaries =
        [("GEMBRIDGE_TOKEN", "x"), ("AWS_SECRET_ACCESS_KEY", "x"), ("REDIS_URL", "x"), ("NODE_OPTIONS", "x")];
    for profile in Profile::builtin().unwrap() {
        let launch = Start::with(&canaries).launch(&profile).unwrap();
        for (name, _) in canaries {
            assert!(!launch.environment.contains_key(name), "{name} reached {}", profile.name);
        }
    }
    let config = AgentConfig { env: vec!["REDIS_URL".to_owned()], ..AgentConfig::default() };
    let profile = Profile::custom("demo", &config, &Profile::builtin().unwrap()).unwrap();
    assert_eq!(Start::with(&canaries).launch(&profile).unwrap().environment["REDIS_URL"], "x");
}

#[test]
fn a_program_outside_path_brings_its_own_folder() {
    let gemini = builtin("gemini");
    let start = Start { program: "/home/ann/.nvm/versions/node/v22.1.0/bin/gemini", ..Start::with(&[]) };
    assert_eq!(start.launch(&gemini).unwrap().environment["PATH"], "/home/ann/.nvm/versions/node/v22.1.0/bin:/usr/bin");
    assert_eq!(Start::with(&[]).launch(&gemini).unwrap().environment["PATH"], "/usr/bin");
}

#[test]
fn privileged_modes_and_trust_are_for_trusted_folders_only() {
    let gemini = builtin("gemini");
    for (approval, trust, mode) in [
        (ApprovalMode::Default, Trust::Untrusted, Some("default")),
        (ApprovalMode::Plan, Trust::Untrusted, Some("plan")),
        (ApprovalMode::AutoEdit, Trust::Trusted, Some("autoEdit")),
        (ApprovalMode::Yolo, Trust::Trusted, Some("yolo")),
        (ApprovalMode::Yolo, Trust::Untrusted, None),
        (ApprovalMode::AutoEdit, Trust::Untrusted, None),
    ] {
        let launch = Start { trust, approval, ..Start::with(&[]) }.launch(&gemini);
        match mode {
            Some(mode) => {
                let launch = launch.unwrap();
                assert_eq!(launch.mode_id.as_deref(), Some(mode));
                assert_eq!(launch.environment.contains_key("GEMINI_CLI_TRUST_WORKSPACE"), trust == Trust::Trusted);
            }
            None => assert!(launch.unwrap_err().to_string().contains("needs a trusted workspace")),
        }
    }
}

#[test]
fn a_model_is_one_argument_and_a_strange_name_is_refused() {
    let gemini = builtin("gemini");
    let launch = Start { model: Some("gemini-2.5-pro"), ..Start::with(&[]) }.launch(&gemini).unwrap();
    assert!(launch.args.contains(&"--model=gemini-2.5-pro".to_owned()));
    for model in ["--yolo", "a b", "x;touch pwn", "$(x)", "", "a\nb", "ü"] {
        let error = Start { model: Some(model), ..Start::with(&[]) }.launch(&gemini).unwrap_err();
        assert!(error.to_string().contains("is not a model name"), "{model}: {error}");
    }
}

#[test]
fn each_agent_is_as_lean_in_chat_as_it_can_be_made() {
    let chat = |name: &str| {
        Start::with(&[("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")]).launch(&builtin(name)).unwrap()
    };
    assert_eq!(chat("claude").session_meta["disableBuiltInTools"], true);
    let opencode: serde_json::Value =
        serde_json::from_str(&chat("opencode").environment["OPENCODE_CONFIG_CONTENT"]).unwrap();
    assert_eq!(opencode["tools"], serde_json::json!({"*": false, "host-tools_*": true}));
    let qwen = chat("qwen");
    assert!(qwen.args.iter().any(|arg| arg.starts_with("--exclude-tools=agent,ask_user_question,")), "{:?}", qwen.args);
    assert_eq!(chat("codex").environment["INITIAL_AGENT_MODE"], "read-only");
    assert_eq!(chat("goose").environment["GOOSE_MODE"], "chat");
    let start = Start { execution: Execution::Agent, ..Start::with(&[("ANTHROPIC_API_KEY", "k")]) };
    assert!(start.launch(&builtin("claude")).unwrap().session_meta.is_empty());
}

#[test]
fn a_model_that_goes_over_the_protocol_may_have_any_name() {
    let launch = Start { model: Some("gpt-6.1-sol[low]"), ..Start::with(&[]) }.launch(&builtin("codex")).unwrap();
    assert_eq!(launch.model.as_deref(), Some("gpt-6.1-sol[low]"));
    assert!(launch.args.is_empty());
}

#[test]
fn the_sandbox_of_the_agent_is_a_flag_or_a_sentence() {
    let with_sandbox = || Start { sandbox: Sandbox::OfTheAgent, ..Start::with(&[]) };
    assert!(with_sandbox().launch(&builtin("gemini")).unwrap().args.contains(&"--sandbox".to_owned()));
    let error = with_sandbox().launch(&builtin("demo")).unwrap_err().to_string();
    assert_eq!(error, "agent `demo` has no sandbox of its own; leave `sandbox` out");
}

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
        ("gemni", "", "agent `gemni` has no `command`; name the program to start; did you mean `gemini`?"),
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
    let readme = include_str!("../../../agents/README.md");
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
