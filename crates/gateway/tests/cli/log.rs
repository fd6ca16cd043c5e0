//! The log of the binary: where it goes, and what it never stops.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::home::Home;

/// Something that logs one warning.
const WARNING: (&str, &str) = ("GEMBRIDGE_SERVER_PROT", "1");

#[test]
fn a_log_file_gets_json_lines_and_is_private() {
    let home = Home::new();
    let path = home.path("log");
    let ran = home.run_with(&["config", "show"], &[WARNING, ("LOG_FILE", path.to_str().unwrap())]).succeeds();
    assert!(ran.stderr.contains("warn  variable `GEMBRIDGE_SERVER_PROT`"), "{}", ran.stderr);
    let line: serde_json::Value = serde_json::from_str(fs::read_to_string(&path).unwrap().trim_end()).unwrap();
    assert_eq!(line["level"], "warn");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_relative_log_file_lies_where_the_program_was_started() {
    let home = Home::new();
    home.run_with(&["config", "show"], &[WARNING, ("LOG_FILE", "here.log")]).succeeds();
    assert!(home.path("here.log").exists());
}

#[test]
fn a_log_file_of_two_megabytes_is_renamed_at_the_start() {
    let home = Home::new();
    let path = home.path("log");
    fs::write(&path, vec![b'\n'; 2 << 20]).unwrap();
    home.run_with(&["config", "show"], &[WARNING, ("LOG_FILE", path.to_str().unwrap())]).succeeds();
    assert_eq!(fs::metadata(home.path("log.old")).unwrap().len(), 2 << 20);
    assert!(fs::metadata(&path).unwrap().len() < 1000);
}

#[test]
fn r16_a_log_that_cannot_be_written_stops_nothing() {
    let home = Home::new();
    for path in [home.path("missing/log"), "/dev/full".into(), home.path("empty")] {
        let ran = home.run_with(&["config", "show"], &[WARNING, ("LOG_FILE", path.to_str().unwrap())]).succeeds();
        assert!(ran.stdout.contains("server.port"));
        assert_eq!(ran.stderr.matches("cannot write the log to").count(), 1, "{}", ran.stderr);
        assert!(ran.stderr.contains("GEMBRIDGE_SERVER_PROT"), "{}", ran.stderr);
    }
}

#[test]
fn the_level_decides_what_is_told_and_quiet_leaves_only_errors() {
    let home = Home::new();
    let told = |args: &[&str], level: &str| home.run_with(args, &[WARNING, ("LOG_LEVEL", level)]).succeeds().stderr;
    assert!(told(&["config", "show"], "warn").contains("PROT"));
    assert_eq!(told(&["config", "show"], "error"), "");
    assert_eq!(told(&["--quiet", "config", "show"], "warn"), "");
    home.run_with(&["config", "show"], &[("LOG_LEVEL", "loud")])
        .refused(2, "variable `LOG_LEVEL`: unknown variant `loud`");
}
