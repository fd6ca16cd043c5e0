//! What profiles make of the agents that ship: argv, environment and files as snapshots of data.

use std::path::Path;

use gembridge_drivers::profile::{AgentConfig, ApprovalMode, Execution, Launch, Profile, Sandbox, Trust, Version};

use crate::{Start, builtin, file};

#[test]
fn every_profile_that_ships_is_read_and_starts_in_both_executions() {
    let profiles = Profile::builtin().unwrap();
    let names: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
    assert_eq!(names, ["gemini", "claude", "codex", "opencode", "qwen", "goose", "gemini-a2a", "demo"]);
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
