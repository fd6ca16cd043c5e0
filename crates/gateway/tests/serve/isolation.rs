//! What one key's agent has of another's, and of the operator's.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::gateway::{Gateway, said};
use crate::support::home::Home;

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
    let gateway = Home::for_serving().with_fake(&[], "").serve_fake();
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
fn f6_agents_of_guests_stand_behind_the_operators_on_a_busy_processor() {
    // The nineteenth field; the program's name has no blanks.
    let nice = |gateway: &Gateway, key: &str| -> i32 {
        let answer = gateway.complete_as(key, &said("shell read -r line < /proc/self/stat; echo \"$line\""), &[]);
        let text = answer.text();
        let fields = text.trim().strip_prefix("shell: ").unwrap_or_default();
        fields.split(' ').nth(18).and_then(|nice| nice.parse().ok()).unwrap_or_else(|| panic!("{text}"))
    };
    for (settings, steps) in [("", 5), ("guests.nice = 0\n", 0)] {
        let gateway = Home::new().with_fake(&[], settings).serve_fake();
        let ann = gateway.home.key("ann");
        let of_operator = nice(&gateway, &gateway.key);
        assert_eq!(nice(&gateway, &ann), (of_operator + steps).min(19), "{settings}");
    }
}

#[test]
fn s18_a_workspace_is_open_to_the_operator_alone_and_the_refusal_says_why() {
    let home = Home::for_serving();
    let workspace = home.path("project");
    std::fs::create_dir(&workspace).unwrap();
    let program = gembridge_testkit::fake_agent_path();
    home.configure_serving(&format!(
        "[agents.fake]\ncommand = {program:?}\nmode = 'agent'\nworkspace = {workspace:?}\n"
    ));
    let gateway = home.serve_fake();
    let ann = gateway.home.key("ann");
    assert_eq!(surroundings(&gateway, &gateway.key)["cwd"], workspace.to_str().unwrap());
    let refused = gateway.complete_as(&ann, &said("env"), &[]);
    assert_eq!((refused.status, refused.code().as_str()), (403, "forbidden"), "{}", refused.body);
    let told = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(told.contains("workspace") && told.contains("admin key"), "{told}");
    assert!(!told.contains(workspace.to_str().unwrap()), "nor where it is: {told}");
}

#[test]
fn fence_guests_agent_reads_no_key_no_log_and_nothing_of_the_gateways_process() {
    let gateway = Home::for_serving().with_fake(&[], "").serve_fake();
    let (ann, bob) = (gateway.home.key("ann"), gateway.home.key("bob"));
    let of_bob = surroundings(&gateway, &bob);
    let secrets = [
        gateway.home.state("key"),
        gateway.home.state(""),
        gateway.home.config("keys.toml"),
        gateway.home.config("gembridge.toml"),
        home_of(&of_bob),
        of_bob["cwd"].as_str().unwrap().into(),
        format!("/proc/{}/environ", gateway.pid()).into(),
        format!("/proc/{}/cwd/", gateway.pid()).into(),
        "/etc/shadow".into(),
    ];
    let script: Vec<_> = secrets.iter().map(|path| format!("open {}", path.display())).collect();
    let kill = format!("shell kill -9 {} && echo done", gateway.pid());
    let answer = gateway.complete_as(&ann, &said(&format!("{}\n{kill}", script.join("\n"))), &[]);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let told = answer.text();
    for path in &secrets {
        assert!(told.contains(&format!("open {}: refused", path.display())), "{}: {told}", path.display());
    }
    assert!(!told.contains(&gateway.key) && !told.ends_with("done"), "{told}");
    let operators = gateway.complete_as(&gateway.key, &said(&script[0]), &[]);
    assert!(operators.text().contains(&gateway.key), "the operator's own agent reads what the operator may");
}

#[test]
fn fence_turned_off_leaves_guests_only_agents_that_have_no_way_to_a_file() {
    let gateway = Home::for_serving().with_fake(&[], "guests.fence = false").serve_fake();
    let ann = gateway.home.key("ann");
    let refused = gateway.complete_as(&ann, &said("env"), &[]);
    assert_eq!((refused.status, refused.code().as_str()), (403, "forbidden"), "{}", refused.body);
    let told = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(told.contains("cannot be kept from the operator's files"), "{told}");
    assert_eq!(surroundings(&gateway, &gateway.key)["cwd"].as_str().map(|cwd| cwd.contains("runs")), Some(true));

    let home = Home::for_serving();
    home.configure_serving("guests.fence = false");
    let gateway = home.serve();
    let ann = gateway.home.key("ann");
    assert_eq!(gateway.complete_as(&ann, &said("hello"), &[]).status, 200, "the demo agent opens no file");
}

#[test]
fn fence_leaves_the_demo_agent_what_it_needs_for_a_guest() {
    let gateway = Home::for_serving().serve();
    let ann = gateway.home.key("ann");
    assert_eq!(gateway.complete_as(&ann, &said("hello"), &[]).status, 200);
}
