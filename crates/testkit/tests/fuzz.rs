//! The fuzz harness finds what is there to be found.

use std::fs;
use std::path::Path;
use std::time::Duration;

use gembridge_testkit::fuzz::{Finding, Fuzz, Report, Why, beginning, signature};

const BUDGET: Duration = Duration::from_mins(2);
const LONGEST: Duration = Duration::from_secs(2);

fn run(folder: &Path, budget: Duration, target: impl Fn(&[u8]) -> u64 + Send + 'static) -> Result<Report, Finding> {
    fs::create_dir_all(folder.join("corpus")).unwrap();
    fs::write(folder.join("corpus/seed"), r#"{"id":1,"method":"a"}"#).unwrap();
    Fuzz::named("self").words(&["needle"]).within(folder, budget, LONGEST).run(target)
}

#[test]
fn a_target_that_panics_is_found_and_its_input_kept() {
    let folder = tempfile::tempdir().unwrap();
    let found = run(folder.path(), BUDGET, |input| {
        assert!(!input.windows(6).any(|part| part == b"needle"), "met the needle");
        signature(&input.len())
    });
    let found = found.unwrap_err();
    assert!(matches!(&found.why, Why::Panicked(text) if text == "met the needle"), "{found}");
    assert_eq!(fs::read(&found.file).unwrap(), found.input);
    assert!(found.to_string().contains(found.file.to_str().unwrap()));
}

#[test]
fn a_number_that_no_reader_holds_is_tried() {
    let folder = tempfile::tempdir().unwrap();
    let found = run(folder.path(), BUDGET, |input| {
        if let Ok(value) = serde_json::from_slice::<&serde_json::value::RawValue>(input) {
            let value = serde_json::to_value(value).expect("what JSON allows a value holds");
            return signature(&value["id"].is_number());
        }
        0
    });
    assert!(matches!(&found.unwrap_err().why, Why::Panicked(text) if text.contains("out of range")));
}

#[test]
fn a_target_that_hangs_is_found_and_its_input_kept() {
    let folder = tempfile::tempdir().unwrap();
    let found = run(folder.path(), BUDGET, |input| {
        while input.len() > 40 {
            std::thread::park();
        }
        signature(&input.len())
    });
    let found = found.unwrap_err();
    assert!(matches!(found.why, Why::Hangs(_)), "{found}");
    assert!(found.input.len() > 40 && fs::read(&found.file).unwrap() == found.input);
}

#[test]
fn the_beginning_of_a_long_value_is_short() {
    assert_eq!(beginning(&Some(1)), "Some(1)");
    let long = beginning(&"ä".repeat(1_000));
    assert_eq!(long.chars().count(), 24);
}

#[test]
fn a_sound_target_runs_to_the_end_of_its_time_and_tells_how_much() {
    let folder = tempfile::tempdir().unwrap();
    let report = run(folder.path(), Duration::from_millis(200), |input| signature(&input.first())).unwrap();
    assert!(report.inputs > 100 && report.signatures > 10 && report.took >= Duration::from_millis(200), "{report}");
    assert!(report.to_string().contains("inputs in"));
    assert!(!folder.path().join("findings").exists());
}
