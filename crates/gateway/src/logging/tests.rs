//! Which destination gets which line, through the whole subscriber.

use std::fs;

use super::*;

struct Started {
    folder: tempfile::TempDir,
    plan: Plan,
}

impl Started {
    fn new(level: Level) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| Some(folder.path().join(name));
        let plan = Plan {
            level,
            stderr_level: Level::Error,
            is_coloured: false,
            file: path("all"),
            errors_file: path("errors"),
            rotate_at: u64::MAX,
            audit: path("audit"),
        };
        Self { folder, plan }
    }

    /// Logs, with the level changed to `then` in between, and gives the lines of the three files.
    fn log(&self, first: impl FnOnce(), then: Level, second: impl FnOnce()) -> [Vec<String>; 3] {
        let open = |path: &Option<PathBuf>| path.clone().map(|path| RotatingFile::new(path, u64::MAX));
        let Plan { file, errors_file, audit, .. } = &self.plan;
        let files = Files { all: open(file), errors: open(errors_file), audit: open(audit) };
        let stderr = Stderr { level: self.plan.stderr_level, is_coloured: false };
        let (sender, log) = Writer::start(files, stderr, |_| {}).unwrap();
        let (gate, handle) = reload::Layer::new(Gate(self.plan.level));
        let subscriber = tracing_subscriber::registry().with(gate).with(layers(&self.plan, &sender));
        tracing::subscriber::with_default(subscriber, || {
            first();
            handle.reload(Gate(then)).unwrap();
            second();
        });
        log.finish();
        ["all", "errors", "audit"].map(|name| {
            let text = fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
            text.lines().map(str::to_owned).collect()
        })
    }
}

#[test]
fn the_errors_file_gets_errors_only() {
    let [all, errors, _] = Started::new(Level::Debug).log(
        || {
            tracing::debug!(target: "gembridge::app", "x");
            tracing::info!(target: "gembridge::app", "x");
            tracing::warn!(target: "gembridge::app", "x");
            tracing::error!(target: "gembridge::app", "x");
        },
        Level::Debug,
        || {},
    );
    assert_eq!(all.len(), 4);
    assert_eq!(errors.len(), 1);
    assert!(errors[0].contains(r#""level":"error""#));
}

#[test]
fn s33_the_audit_gets_its_own_records_and_the_log_only_their_warnings() {
    let [all, _, audit] = Started::new(Level::Info).log(
        || {
            tracing::info!(target: "gembridge::request", "x");
            tracing::info!(target: AUDIT, "x");
            tracing::warn!(target: AUDIT, "x");
        },
        Level::Info,
        || {},
    );
    assert_eq!(audit.len(), 2);
    assert_eq!(all.len(), 2);
}

#[test]
fn the_level_changes_while_running_and_other_crates_stay_at_warnings() {
    let log = || {
        tracing::debug!(target: "gembridge::app", "ours");
        tracing::debug!(target: "hyper", "theirs");
        tracing::warn!(target: "hyper", "theirs");
        tracing::warn!(target: "rmcp::service", "excited");
    };
    let [all, ..] = Started::new(Level::Info).log(log, Level::Debug, log);
    let targets: Vec<_> = all
        .iter()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["target"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(targets, ["hyper", "gembridge::app", "hyper", "rmcp::service"]);
}
