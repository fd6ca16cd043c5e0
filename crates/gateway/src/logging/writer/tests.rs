//! The writer against sinks that fail and a standard error that is read back.

use std::sync::Mutex;

use super::super::record::sample;
use super::*;

/// A disk that can be full.
#[derive(Clone, Default)]
struct Disk {
    lines: Arc<Mutex<Vec<String>>>,
    is_full: Arc<std::sync::atomic::AtomicBool>,
}

impl Sink for Disk {
    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        if self.is_full.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.lines.lock().unwrap().push(String::from_utf8_lossy(line).into_owned());
        Ok(())
    }

    fn name(&self) -> String {
        "/var/log/x".to_owned()
    }
}

type Said = Arc<Mutex<Vec<String>>>;

fn writer(all: &Disk, errors: &Disk, level: Level) -> (Writer<Disk, impl Fn(&str) + Send + 'static>, Said) {
    let said = Said::default();
    let ear = Arc::clone(&said);
    let guarded = |disk: &Disk, wants| Some(Guarded { sink: disk.clone(), wants, state: Health::Good });
    let writer = Writer {
        files: [guarded(all, Wants::Log(Level::Debug)), guarded(errors, Wants::Log(Level::Error)), None],
        stderr: Stderr { level, is_coloured: false },
        write_stderr: move |text: &str| ear.lock().unwrap().push(text.to_owned()),
        dropped: Arc::default(),
        reported: 0,
    };
    (writer, said)
}

#[test]
fn the_errors_file_gets_errors_only() {
    let (all, errors) = (Disk::default(), Disk::default());
    let (mut writer, _) = writer(&all, &errors, Level::Error);
    for level in [Level::Debug, Level::Info, Level::Warn, Level::Error] {
        writer.write(&[sample(level, "x")], Instant::now());
    }
    assert_eq!(all.lines.lock().unwrap().len(), 4);
    let errors = errors.lines.lock().unwrap();
    assert_eq!(errors.len(), 1);
    assert!(errors[0].contains(r#""level":"error""#));
}

#[test]
fn s33_the_audit_gets_its_own_records_and_the_log_only_their_warnings() {
    let (all, errors) = (Disk::default(), Disk::default());
    let (mut writer, said) = writer(&all, &errors, Level::Debug);
    let audit = Disk::default();
    writer.files[2] = Some(Guarded { sink: audit.clone(), wants: Wants::Audit, state: Health::Good });
    for (target, level) in [("gembridge::request", Level::Info), (AUDIT, Level::Info), (AUDIT, Level::Warn)] {
        writer.write(&[Record { target, ..sample(level, "x") }], Instant::now());
    }
    assert_eq!(audit.lines.lock().unwrap().len(), 2);
    assert_eq!(all.lines.lock().unwrap().len(), 2);
    assert_eq!(said.lock().unwrap().len(), 2);
}

#[test]
fn r16_a_full_disk_is_told_once_lines_go_to_stderr_and_the_file_comes_back() {
    let (all, errors) = (Disk::default(), Disk::default());
    let (mut writer, said) = writer(&all, &errors, Level::Error);
    let start = Instant::now();
    all.is_full.store(true, Ordering::Relaxed);
    writer.write(&[sample(Level::Info, "first")], start);
    writer.write(&[sample(Level::Info, "second")], start);
    {
        let said = said.lock().unwrap();
        assert_eq!(said.iter().filter(|line| line.contains("cannot write the log to `/var/log/x`")).count(), 1);
        assert!(said.iter().any(|line| line.contains("first")) && said.iter().any(|line| line.contains("second")));
    }
    // Space is back, but the file is left alone until its time.
    all.is_full.store(false, Ordering::Relaxed);
    writer.write(&[sample(Level::Info, "third")], start + RETRY / 2);
    assert!(all.lines.lock().unwrap().is_empty());
    writer.write(&[sample(Level::Info, "fourth")], start + RETRY);
    assert!(all.lines.lock().unwrap()[0].contains("fourth"));
    assert!(said.lock().unwrap().iter().any(|line| line.contains("again")));
}

#[test]
fn r16_a_writer_that_is_stuck_blocks_nobody_and_drops_are_counted() {
    let (release, wait) = sync_channel::<()>(0);
    let wait = Mutex::new(wait);
    let said = Said::default();
    let ear = Arc::clone(&said);
    let stuck = move |text: &str| {
        // Waits for the test at every line; once the test has let go, at none.
        wait.lock().unwrap().recv().unwrap_or_default();
        ear.lock().unwrap().push(text.to_owned());
    };
    let stderr = Stderr { level: Level::Debug, is_coloured: false };
    let (sender, log) = Writer::start(Files::<Disk> { all: None, errors: None, audit: None }, stderr, stuck).unwrap();
    for _ in 0..QUEUE + 100 {
        sender.send(sample(Level::Info, "flood"));
    }
    let dropped = sender.dropped.load(Ordering::Relaxed);
    // One record may be in the writer's hands.
    assert!((99..=100).contains(&dropped), "{dropped} were dropped");
    drop(release);
    log.finish();
    let said = said.lock().unwrap();
    assert!(said.iter().any(|line| line.contains(&format!("{dropped} log lines were dropped"))));
}
