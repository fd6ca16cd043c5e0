//! Every way out of the jail that is known, tried; and a race against the one that looks at names.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{Jail, JailError, JailLimits};

struct TestJail {
    _temp: TempDir,
    root: PathBuf,
    outside: PathBuf,
    jail: Jail,
}

fn place() -> TestJail {
    let temp = TempDir::new().unwrap();
    let root = temp.path().join("ws");
    let outside = temp.path().join("ws-evil");
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(root.join("in.txt"), "one\ntwo\r\nthree\nfour").unwrap();
    fs::write(outside.join("secret"), "foreign").unwrap();
    let jail = Jail::open(&root, JailLimits { file_bytes: 1000, ..JailLimits::default() }).unwrap();
    TestJail { _temp: temp, root, outside, jail }
}

fn kind(error: &JailError) -> &'static str {
    match error {
        JailError::Outside(_) => "outside",
        JailError::Symlink(_) => "symlink",
        JailError::NotAFile(_) => "not a file",
        JailError::Missing(_) => "missing",
        JailError::Denied(_) => "denied",
        JailError::TooLarge { .. } => "too large",
        JailError::NotText(_) => "not text",
        JailError::Io { .. } => "io",
    }
}

#[test]
fn a_file_is_read_whole_or_by_lines() {
    let place = place();
    let absolute = place.root.join("in.txt");
    for (line, limit, text) in [
        (None, None, "one\ntwo\r\nthree\nfour"),
        (Some(2), None, "two\r\nthree\nfour"),
        (Some(2), Some(2), "two\r\nthree\n"),
        (None, Some(1), "one\n"),
        (Some(0), Some(1), "one\n"),
        (Some(4), Some(9), "four"),
        (Some(5), None, ""),
        (Some(1), Some(0), ""),
    ] {
        assert_eq!(place.jail.read_text("in.txt", line, limit).unwrap(), text, "{line:?} {limit:?}");
        assert_eq!(place.jail.read_text(absolute.to_str().unwrap(), line, limit).unwrap(), text);
    }
}

#[test]
fn a_root_behind_a_link_is_reached_by_both_of_its_names() {
    let place = place();
    let alias = place.outside.join("alias");
    symlink(&place.root, &alias).unwrap();
    let jail = Jail::open(&alias, JailLimits::default()).unwrap();
    for root in [&alias, &place.root] {
        assert!(jail.read_text(root.join("in.txt").to_str().unwrap(), None, None).is_ok());
    }
}

#[test]
fn reads_that_lead_outside_are_refused() {
    let place = place();
    let TestJail { root, outside, jail, .. } = &place;
    symlink(outside.join("secret"), root.join("link")).unwrap();
    symlink("in.txt", root.join("inner-link")).unwrap();
    symlink(outside, root.join("dir-link")).unwrap();
    symlink("sub", root.join("inner-dir-link")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    fs::write(root.join("sub/x"), "x").unwrap();
    let sibling = outside.join("secret");
    for (path, refusal) in [
        ("../ws-evil/secret", "outside"),
        ("sub/../../ws-evil/secret", "outside"),
        (sibling.to_str().unwrap(), "outside"),
        ("/etc/passwd", "outside"),
        ("/proc/self/environ", "outside"),
        ("link", "symlink"),
        ("inner-link", "symlink"),
        ("dir-link/secret", "symlink"),
        ("inner-dir-link/x", "symlink"),
        ("loop", "symlink"),
        ("", "outside"),
        (".", "not a file"),
        ("sub", "not a file"),
        ("in.txt/x", "not a file"),
        ("nothing", "missing"),
        ("nothing/x", "missing"),
        ("a\0b", "outside"),
    ] {
        let error = jail.read_text(path, None, None).unwrap_err();
        assert_eq!(kind(&error), refusal, "{path:?}: {error}");
    }
}

#[test]
fn writes_that_lead_outside_are_refused_and_leave_nothing_there() {
    let place = place();
    let TestJail { root, outside, jail, .. } = &place;
    symlink(outside.join("secret"), root.join("link")).unwrap();
    symlink(outside.join("dangling"), root.join("dangling")).unwrap();
    symlink(outside, root.join("dir-link")).unwrap();
    let sibling = outside.join("new");
    for (path, refusal) in [
        ("../ws-evil/new", "outside"),
        (sibling.to_str().unwrap(), "outside"),
        ("link", "symlink"),
        ("dangling", "symlink"),
        ("dir-link/new", "symlink"),
        ("sub", "not a file"),
        ("in.txt/new", "not a file"),
        (".", "not a file"),
    ] {
        let error = jail.write_text(path, "x").unwrap_err();
        assert_eq!(kind(&error), refusal, "{path:?}: {error}");
    }
    assert_eq!(fs::read_dir(outside).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "foreign");
}

#[test]
fn pipes_and_devices_are_refused_without_hanging() {
    let place = place();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, place.root.join("pipe"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    std::os::unix::net::UnixListener::bind(place.root.join("socket")).unwrap();
    for path in ["pipe", "socket"] {
        assert_eq!(kind(&place.jail.read_text(path, None, None).unwrap_err()), "not a file", "{path}");
        assert_eq!(kind(&place.jail.write_text(path, "x").unwrap_err()), "not a file", "{path}");
    }
    let devices = Jail::open(std::path::Path::new("/dev"), JailLimits::default()).unwrap();
    for path in ["/dev/zero", "/dev/null", "/dev/tty"] {
        assert!(devices.read_text(path, None, None).is_err(), "{path}");
        assert!(devices.write_text(path, "x").is_err(), "{path}");
    }
}

#[test]
fn a_file_over_the_limit_or_not_text_is_refused() {
    let place = place();
    fs::write(place.root.join("big"), "x".repeat(1001)).unwrap();
    fs::write(place.root.join("fits"), "x".repeat(1000)).unwrap();
    fs::write(place.root.join("binary"), [0xff, 0xfe]).unwrap();
    assert_eq!(kind(&place.jail.read_text("big", Some(1), Some(1)).unwrap_err()), "too large");
    assert_eq!(place.jail.read_text("fits", None, None).unwrap().len(), 1000);
    assert_eq!(kind(&place.jail.read_text("binary", None, None).unwrap_err()), "not text");
    assert_eq!(kind(&place.jail.write_text("big2", &"x".repeat(1001)).unwrap_err()), "too large");
    assert!(!place.root.join("big2").exists());
}

#[test]
fn a_write_creates_its_folders_replaces_whole_and_keeps_permissions() {
    let place = place();
    let TestJail { root, jail, .. } = &place;
    jail.write_text("new/deep/file.txt", "héllo").unwrap();
    assert_eq!(fs::read_to_string(root.join("new/deep/file.txt")).unwrap(), "héllo");
    fs::set_permissions(root.join("in.txt"), fs::Permissions::from_mode(0o750)).unwrap();
    jail.write_text(root.join("in.txt").to_str().unwrap(), "short").unwrap();
    assert_eq!(fs::read_to_string(root.join("in.txt")).unwrap(), "short");
    assert_eq!(fs::metadata(root.join("in.txt")).unwrap().permissions().mode() & 0o777, 0o750);
    fs::set_permissions(root.join("in.txt"), fs::Permissions::from_mode(0o444)).unwrap();
    assert_eq!(kind(&jail.write_text("in.txt", "x").unwrap_err()), "denied");
    let leftovers: Vec<_> = fs::read_dir(root)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(".tmp"))
        .collect();
    assert!(leftovers.is_empty());
}

#[test]
fn the_root_must_be_a_folder_and_not_the_whole_disk() {
    for root in ["/", "relative", "/no/such/folder", "/.."] {
        assert!(Jail::open(std::path::Path::new(root), JailLimits::default()).is_err(), "{root}");
    }
}

#[test]
fn a_message_shows_a_path_without_its_control_characters() {
    let error = place().jail.read_text("../\u{1b}[31m\n", None, None).unwrap_err().to_string();
    assert_eq!(error, "`../\\u{1b}[31m\\n` is not inside the workspace; use a path below it, without `..`");
}

#[test]
fn consent_is_needed_for_what_steers_programs_and_for_what_is_outside() {
    let place = place();
    for (path, needed) in [(".git/config", true), ("src/main.rs", false), ("../x", true), ("/etc/passwd", true)] {
        assert_eq!(place.jail.needs_consent(path), needed, "{path}");
    }
}

#[test]
fn a_folder_for_a_command_is_inside_and_no_link() {
    let place = place();
    symlink(&place.outside, place.root.join("dir-link")).unwrap();
    let real = place.root.canonicalize().unwrap();
    assert_eq!(place.jail.folder(None).unwrap(), real);
    assert_eq!(place.jail.folder(Some("sub")).unwrap(), real.join("sub"));
    for path in ["dir-link", "..", "/etc", "in.txt", "missing"] {
        assert!(place.jail.folder(Some(path)).is_err(), "{path}");
    }
}

#[test]
fn a_folder_that_flips_to_a_link_during_reads_never_gives_a_foreign_byte() {
    let place = place();
    let TestJail { root, outside, jail, .. } = &place;
    fs::write(root.join("sub/secret"), "ours").unwrap();
    symlink(outside, root.join("to-outside")).unwrap();
    let stop = AtomicBool::new(false);
    let flips = AtomicU64::new(0);
    let (mut ours, mut refused) = (0_u64, 0_u64);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                fs::rename(root.join("sub"), root.join("aside")).unwrap();
                fs::rename(root.join("to-outside"), root.join("sub")).unwrap();
                flips.fetch_add(1, Ordering::Relaxed);
                std::thread::yield_now();
                fs::rename(root.join("sub"), root.join("to-outside")).unwrap();
                fs::rename(root.join("aside"), root.join("sub")).unwrap();
                std::thread::yield_now();
            }
        });
        let deadline = Instant::now() + Duration::from_mins(1);
        while (ours + refused < 10_000 || ours == 0 || refused == 0) && Instant::now() < deadline {
            match jail.read_text("sub/secret", None, None) {
                Ok(text) if text == "ours" => ours += 1,
                Ok(text) => {
                    stop.store(true, Ordering::Relaxed);
                    panic!("a foreign byte: `{text}`");
                }
                Err(_) => refused += 1,
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(ours + refused >= 10_000 && ours > 0 && refused > 0, "{ours} ours, {refused} refused");
    assert!(flips.load(Ordering::Relaxed) > 0);
}

#[test]
fn new_files_and_folders_are_as_open_as_the_person_makes_them() {
    let folder = tempfile::tempdir().unwrap();
    let limits = JailLimits { umask: 0o022, ..JailLimits::default() };
    let jail = Jail::open(folder.path(), limits).unwrap();
    jail.write_text("a/b/new.txt", "x").unwrap();
    let mode = |path: &str| fs::metadata(folder.path().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("a"), mode("a/b"), mode("a/b/new.txt")), (0o755, 0o755, 0o644));
}
