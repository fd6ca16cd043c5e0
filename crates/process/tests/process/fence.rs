//! A confined child: what it reads is what was named, whatever its user may.

use std::fs;
use std::path::{Path, PathBuf};

use gembridge_process::sandbox::{Support, support};
use gembridge_process::{Reads, Sandbox, SpawnError};

use super::marked::{Marked, program};
use super::start::output;

/// What a script prints when it runs confined to its folder and these paths.
async fn confined(marked: &Marked, folder: &Path, readable: &[&Path], script: &str) -> Vec<String> {
    let readable = readable.iter().map(|path| (*path).to_owned()).collect();
    let sandbox = Sandbox { reads: Reads::Only(readable), writable: vec![folder.to_owned()] };
    let child = marked.spawner.spawn(marked.shell(script).cwd(folder).sandbox(sandbox)).await.unwrap();
    output(child).await.0
}

/// A line `read PATH` or `refused PATH` for each path, as the shell's own `read` finds it.
fn try_each(paths: &[PathBuf]) -> String {
    let each = paths.iter().map(|path| {
        format!("{{ head -c 1 {0} >/dev/null 2>&1 && echo read {0}; }} || echo refused {0};", path.display())
    });
    each.collect()
}

#[tokio::test]
async fn fence_confined_child_reads_its_folders_and_what_was_named_and_nothing_else() {
    assert!(support().confines(), "these tests need Linux 6.2 with Landlock");
    let marked = Marked::new();
    let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for folder in [&own, &other] {
        fs::write(folder.path().join("file"), "x").unwrap();
        fs::create_dir(folder.path().join("named")).unwrap();
        fs::write(folder.path().join("named/file"), "x").unwrap();
    }
    std::os::unix::fs::symlink(other.path().join("file"), own.path().join("link")).unwrap();
    let named = other.path().join("named");
    let refused = [other.path().join("file"), own.path().join("link"), "/etc/shadow".into()];
    let refused = [&refused[..], &["/dev/tty".into(), "/dev/pts/0".into(), "/dev/mem".into()]].concat();
    let read = [own.path().join("file"), named.join("file"), "/etc/passwd".into(), "/etc/hosts".into()];
    let read = [&read[..], &["/proc/self/maps".into(), "/proc/self/environ".into(), "/dev/urandom".into()]].concat();
    let lines = confined(&marked, own.path(), &[&named], &try_each(&[&refused[..], &read].concat())).await;
    let expected: Vec<String> = refused.iter().map(|path| format!("refused {}", path.display())).collect();
    let expected = expected.into_iter().chain(read.iter().map(|path| format!("read {}", path.display())));
    assert_eq!(lines, expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn fence_confined_child_writes_to_its_folder_only_and_makes_no_devices() {
    let marked = Marked::new();
    let (own, named) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(named.path().join("there"), "old").unwrap();
    let script = format!(
        "echo x > new && mkdir sub && mv new sub/new && cat sub/new; mknod null c 1 3 2>/dev/null || echo no device; \
         echo x > {0}/new || echo new refused; echo x > {0}/there || echo write refused; \
         rm {0}/there || echo remove refused; cat {0}/there; echo; echo gone > /dev/null && echo null ok",
        named.path().display()
    );
    let lines = confined(&marked, own.path(), &[named.path()], &script).await;
    let expected = ["x", "no device", "new refused", "write refused", "remove refused", "old", "null ok"];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn fence_confined_child_neither_looks_into_other_processes_nor_signals_them() {
    let marked = Marked::new();
    let own = tempfile::tempdir().unwrap();
    let mut other = program("sleep");
    let other = other.arg("600").env("SECRET", "canary").current_dir("/").kill_on_drop(true);
    let mut other = other.stdin(std::process::Stdio::null()).spawn().unwrap();
    let pid = other.id().unwrap();
    let script = format!(
        "cd /proc/{pid}; for file in environ mem maps auxv fd/0 cwd/etc/hosts root/etc/hosts exe; do \
         head -c 1 $file >/dev/null 2>&1 && echo read $file; done; \
         readlink cwd exe fd/0; kill -0 {pid} 2>/dev/null && echo may be signalled; kill {pid} 2>/dev/null; \
         grep CapEff /proc/self/status | cut -f 2; sh -c 'head -c 1 /proc/self/maps > /dev/null && echo own maps'"
    );
    let lines = confined(&marked, own.path(), &[], &script).await;
    let signals = if support() == Support::Full { vec![] } else { vec!["may be signalled"] };
    assert_eq!(lines, [&signals[..], &["0000000000000000", "own maps"]].concat());
    if support() == Support::Full {
        assert_eq!(other.try_wait().unwrap(), None, "the other process lives on");
    }
    other.kill().await.unwrap();
}

#[tokio::test]
async fn fence_program_that_was_not_named_is_not_executed() {
    let marked = Marked::new();
    let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tool = other.path().join("tool");
    super::marked::copy("/bin/echo", &tool).await;
    let command = || marked.command(&tool).args(["hello"]);
    let sandbox = |readable: Vec<PathBuf>| Sandbox { reads: Reads::Only(readable), writable: vec![own.path().into()] };
    let error = marked.spawner.spawn(command().sandbox(sandbox(vec![]))).await.unwrap_err();
    assert!(matches!(error, SpawnError::NotExecutable { .. }), "{error}");
    let named = vec![tool.clone(), "/no/such/path".into(), tool.join("below-a-file")];
    let child = marked.spawner.spawn(command().sandbox(sandbox(named))).await.unwrap();
    assert_eq!(output(child).await.0, ["hello"]);
}
