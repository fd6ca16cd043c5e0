//! What one key's agent has of another's, and of the operator's.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::Value;

use crate::gateway::{Gateway, Home, said};

/// What the agent of a key was started with.
fn surroundings(gateway: &Gateway, key: &str) -> Value {
    let answer = gateway.complete_as(key, &said("env"), &[]);
    assert_eq!(answer.status, 200, "{}", answer.body);
    serde_json::from_str(&answer.text()).unwrap()
}

fn home_of(surroundings: &Value) -> PathBuf {
    surroundings["env"]["HOME"].as_str().unwrap().into()
}

/// Every file below a folder; folders alone are not counted.
fn files_in(folder: &std::path::Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_in(&path) } else { vec![path] }).collect()
}

#[test]
fn s18_two_keys_share_no_process_no_home_and_no_folder() {
    let gateway = Home::new().with_fake(&[], "").serve_fake();
    let operators = surroundings(&gateway, &gateway.key);
    assert_eq!(home_of(&operators), gateway.home.path(""), "the operator's agent is at home");
    let (ann, bob) = (gateway.home.key("ann"), gateway.home.key("bob"));
    let (of_ann, of_bob) = (surroundings(&gateway, &ann), surroundings(&gateway, &bob));
    for (one, other) in [(&of_ann, &of_bob), (&of_ann, &operators), (&of_bob, &operators)] {
        assert_ne!(home_of(one), home_of(other));
        for what in ["TMPDIR", "HOME"] {
            assert_ne!(one["env"][what], other["env"][what], "{what}");
        }
        assert_ne!(one["cwd"], other["cwd"]);
    }
    for home in [home_of(&of_ann), home_of(&of_bob)] {
        assert_eq!(std::fs::metadata(&home).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(files_in(&home), Vec::<PathBuf>::new(), "nothing of the operator's is in it");
    }
}

#[test]
fn s18_a_workspace_is_open_to_the_operator_alone_and_the_refusal_says_why() {
    let home = Home::new();
    let workspace = home.path("project");
    std::fs::create_dir(&workspace).unwrap();
    let program = gembridge_testkit::fake_agent_path();
    home.configure(&format!("[agents.fake]\ncommand = {program:?}\nmode = 'agent'\nworkspace = {workspace:?}\n"));
    let gateway = home.serve_fake();
    let ann = gateway.home.key("ann");
    assert_eq!(surroundings(&gateway, &gateway.key)["cwd"], workspace.to_str().unwrap());
    let refused = gateway.complete_as(&ann, &said("env"), &[]);
    assert_eq!((refused.status, refused.code().as_str()), (403, "forbidden"), "{}", refused.body);
    let told = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(told.contains("workspace") && told.contains("admin key"), "{told}");
    assert!(!told.contains(workspace.to_str().unwrap()), "nor where it is: {told}");
}
