//! What profiles leave to the agents of guests: variables, logins, files.

use std::path::Path;

use gembridge_drivers::profile::{AgentConfig, HomeOwner, Profile};

use crate::{Start, builtin, environment};

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
