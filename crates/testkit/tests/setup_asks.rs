//! `scripts/setup` becomes root only by the word of a person.
#![expect(clippy::disallowed_methods, reason = "a test of a script starts it")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder of programs that stand in for the real ones: an ordinary user, and a `sudo` that leaves a mark.
fn programs(folder: &Path, uid: u32) -> PathBuf {
    let mark = folder.join("mark");
    let note = format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\n", mark.display());
    for (name, text) in [("id", format!("#!/bin/sh\necho {uid}\n")), ("sudo", note.clone()), ("apt-get", note)] {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    mark
}

fn setup(folder: &Path) -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/setup");
    let mut command = Command::new("bash");
    command.arg(script).args(["debian", "a-package"]).stdin(Stdio::null());
    command.env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
    command
}

#[test]
fn without_a_terminal_nobody_becomes_root_and_the_command_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let mark = programs(folder.path(), 1000);
    let output = setup(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("sudo apt-get install a-package"), "{said}");
    assert!(!mark.exists(), "{}", fs::read_to_string(mark).unwrap_or_default());
}

#[test]
fn root_is_asked_for_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mark = programs(folder.path(), 0);
    let output = setup(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let ran = fs::read_to_string(mark).unwrap();
    assert!(ran.contains("apt-get install") && !ran.contains("sudo"), "{ran}");
}

#[test]
fn on_a_terminal_a_person_decides() {
    for (answer, agrees) in [("y", true), ("", false), ("n", false)] {
        let folder = tempfile::tempdir().unwrap();
        let mark = programs(folder.path(), 1000);
        // `script` gives it a terminal.
        let setup = setup(folder.path());
        let line = format!("bash '{}' debian a-package", setup.get_args().next().unwrap().display());
        let mut terminal = Command::new("script");
        terminal.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        terminal.env("PATH", format!("{}:/usr/bin:/bin", folder.path().display()));
        terminal.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = terminal.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), format!("{answer}\n").as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("a-package") && said.contains("[y/N]"), "{said}");
        assert_eq!((output.status.success(), mark.exists()), (agrees, agrees), "{answer:?}: {said}");
    }
}
