//! The writer against sinks that fail and a standard error that is read back.

use std::sync::Mutex;

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

const QUIET: Stderr = Stderr { level: Level::Error, is_coloured: false };

fn line(to: Destination, text: &str) -> Line {
    Line { to, is_shown: false, bytes: format!("{text}\n").into_bytes() }
}

#[test]
fn r16_a_full_disk_is_told_once_lines_go_to_stderr_and_the_file_comes_back() {
    let all = Disk::default();
    let said = Said::default();
    let heard = Arc::clone(&said);
    let files = Files { all: Some(all.clone()), errors: None, audit: None };
    let stderr = move |text: &str| heard.lock().unwrap().push(text.to_owned());
    let mut writer = Writer::new(files, QUIET, stderr, Arc::default());
    let start = Instant::now();
    all.is_full.store(true, Ordering::Relaxed);
    writer.write(&[line(Destination::All, "first")], start);
    writer.write(&[line(Destination::All, "second")], start);
    {
        let said = said.lock().unwrap();
        assert_eq!(said.iter().filter(|line| line.contains("cannot write the log to `/var/log/x`")).count(), 1);
        assert!(said.iter().any(|line| line.contains("first")) && said.iter().any(|line| line.contains("second")));
    }
    // Space is back, but the file is left alone until its time.
    all.is_full.store(false, Ordering::Relaxed);
    writer.write(&[line(Destination::All, "third")], start + RETRY / 2);
    assert!(all.lines.lock().unwrap().is_empty());
    writer.write(&[line(Destination::All, "fourth")], start + RETRY);
    assert!(all.lines.lock().unwrap()[0].contains("fourth"));
    assert!(said.lock().unwrap().iter().any(|line| line.contains("again")));
}

#[test]
fn a_line_that_standard_error_shows_anyway_is_not_repeated_there() {
    let all = Disk::default();
    all.is_full.store(true, Ordering::Relaxed);
    let said = Said::default();
    let heard = Arc::clone(&said);
    let files = Files { all: Some(all), errors: None, audit: None };
    let stderr = move |text: &str| heard.lock().unwrap().push(text.to_owned());
    let mut writer = Writer::new(files, QUIET, stderr, Arc::default());
    let shown = Line { is_shown: true, ..line(Destination::All, "once") };
    writer.write(&[shown, line(Destination::Stderr, "once")], Instant::now());
    assert_eq!(said.lock().unwrap().concat().matches("once\n").count(), 1);
}

#[test]
fn r16_a_writer_that_is_stuck_blocks_nobody_and_drops_are_counted() {
    let (release, wait) = sync_channel::<()>(0);
    let wait = Mutex::new(wait);
    let said = Said::default();
    let heard = Arc::clone(&said);
    let stuck = move |text: &str| {
        // Waits for the test at every line; once the test has let go, at none.
        wait.lock().unwrap().recv().unwrap_or_default();
        heard.lock().unwrap().push(text.to_owned());
    };
    let stderr = Stderr { level: Level::Debug, is_coloured: false };
    let (sender, log) = Writer::start(Files::<Disk> { all: None, errors: None, audit: None }, stderr, stuck).unwrap();
    for _ in 0..QUEUE + 100 {
        sender.send(line(Destination::Stderr, "flood"));
    }
    let dropped = sender.dropped.load(Ordering::Relaxed);
    // One line may be in the writer's hands.
    assert!((99..=100).contains(&dropped), "{dropped} were dropped");
    drop(release);
    log.finish();
    let said = said.lock().unwrap();
    assert!(said.iter().any(|line| line.contains(&format!("{dropped} log lines were dropped"))));
}
