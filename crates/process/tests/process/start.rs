//! How children start, what they find, and how they end.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use gembridge_process::sandbox::{Support, support};
use gembridge_process::{Child, CommandSpec, Environment, Exit, Priority, Sandbox, SpawnError, StopPlan};

use crate::marked::{GUARD, Marked, copy, program};

pub async fn output(mut child: Child) -> (Vec<String>, Exit) {
    let mut lines = Vec::new();
    while let Some(batch) = child.stdout.next_batch().await.unwrap() {
        lines.extend(batch.iter().map(|line| String::from_utf8_lossy(line).into_owned()));
    }
    (lines, child.handle.wait().await)
}

#[tokio::test]
async fn a_line_goes_in_and_comes_out() {
    let marked = Marked::new();
    let mut child = marked.spawner.spawn(marked.command("cat")).await.unwrap();
    child.stdin.write_line("hello").await.unwrap();
    let batch = child.stdout.next_batch().await.unwrap().unwrap();
    assert_eq!(batch.iter().collect::<Vec<_>>(), [b"hello"]);
    let lines: Vec<_> = (0..3000).map(|number| number.to_string().into()).collect();
    child.stdin.write_lines(&lines).await.unwrap();
    child.stdin.close();
    let (echoed, exit) = output(child).await;
    assert_eq!(echoed.len(), 3000);
    assert_eq!(echoed[2999], "2999");
    assert_eq!(exit, Exit::Code(0));
}

#[tokio::test]
async fn exit_codes_and_signals_come_through_the_guard() {
    let marked = Marked::new();
    let cases = [
        ("exit 0", Exit::Code(0)),
        ("exit 3", Exit::Code(3)),
        ("exit 255", Exit::Code(255)),
        ("kill -TERM $$", Exit::Signal(15)),
        ("kill -KILL $$", Exit::Signal(9)),
        ("kill -SEGV $$", Exit::Signal(11)),
        ("kill -INT $$", Exit::Signal(2)),
    ];
    for (script, expected) in cases {
        let child = marked.spawner.spawn(marked.shell(script)).await.unwrap();
        assert_eq!(child.handle.wait().await, expected, "{script}");
        assert_eq!(child.handle.watch().ended().await, expected, "{script}");
    }
    // The same to whoever runs the guard by hand.
    for (script, expected) in cases {
        let status = program(GUARD).args(["guard", "--", "/bin/sh", "-c", script]).status().await.unwrap();
        assert_eq!(Exit::from(status), expected, "{script}");
    }
}

#[tokio::test]
async fn the_end_of_a_child_is_seen_by_many_and_by_those_who_come_late() {
    let marked = Marked::new();
    let mut child = marked.spawner.spawn(marked.shell("read line; exit 7")).await.unwrap();
    let (first, second) = (child.handle.watch(), child.handle.watch());
    assert_eq!(first.exit(), None);
    child.stdin.write_line("go").await.unwrap();
    let (one, two) = tokio::join!(first.wait(), second.ended());
    assert_eq!((one, two), (Exit::Code(7), Exit::Code(7)));
    drop(child);
    assert_eq!(first.wait().await, Exit::Code(7));
    assert_eq!(first.exit(), Some(Exit::Code(7)));
}

#[tokio::test]
async fn why_a_child_did_not_start_is_said_in_types_and_words() {
    let marked = Marked::new();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, mode| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let plain = file("plain", "text", 0o644);
    let odd = folder.path().join("odd");
    copy(file("odd.text", "#!/no/such/interpreter\n", 0o755), &odd).await;

    let error = |spec: CommandSpec| {
        let spawner = marked.spawner.clone();
        async move { spawner.spawn(spec).await.unwrap_err() }
    };
    let missing = error(marked.command("no-such-program-anywhere")).await;
    assert!(matches!(missing, SpawnError::NotFound { .. }), "{missing}");
    assert_eq!(missing.to_string(), "`no-such-program-anywhere` was not found; install it or give its full path");
    for program in [&plain, &odd, &folder.path().to_owned()] {
        let refused = error(marked.command(program)).await;
        assert!(matches!(refused, SpawnError::NotExecutable { .. }), "{program:?}: {refused}");
    }
    let nowhere = error(marked.command("true").cwd("/no/such/folder")).await;
    assert!(matches!(nowhere, SpawnError::Cwd { .. }), "{nowhere}");
    assert!(nowhere.to_string().contains("`/no/such/folder`"), "{nowhere}");
    let nul = error(marked.command("true").args(["a\0b"])).await;
    assert!(matches!(nul, SpawnError::Guard { .. }), "{nul}");
    marked.spawner.shut_down().await;
    assert_eq!(marked.spawner.living(), 0);
    assert_eq!(marked.processes(), []);
}

#[tokio::test]
async fn s15_a_child_finds_the_given_environment_and_folder_and_nothing_else() {
    let marked = Marked::new();
    let source =
        BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into()), ("AWS_SECRET_ACCESS_KEY".into(), "x".into())]);
    let folder = tempfile::tempdir().unwrap();
    let env = Environment::from_empty(&source, &["LISTED"]).with("GIVEN", "a b\nc");
    let spec =
        CommandSpec::new("/bin/sh", env).args(["-c", "tr '\\0' ';' < /proc/self/environ; echo; pwd; umask; ulimit -c"]);
    let spec = spec.cwd(folder.path());
    let (lines, _) = output(marked.spawner.spawn(spec).await.unwrap()).await;
    let environment = lines[..2].join("\n");
    let tag = format!("GEMBRIDGE_RUN={}", marked.spawner.run_tag());
    let mut variables: Vec<&str> = environment.split_terminator(';').collect();
    variables.sort_unstable();
    // `sh` itself exports the folder.
    variables.retain(|variable| !variable.starts_with("PWD="));
    let [run, rest @ ..] = &variables[..] else { panic!("{variables:?}") };
    assert!(run.starts_with(&tag), "{run}");
    assert_eq!(rest, ["GIVEN=a b\nc", "NO_COLOR=1", "PATH=/usr/bin:/bin", "TERM=dumb"]);
    assert_eq!(lines[2..], [folder.path().to_str().unwrap(), "0077", "0"]);
}

#[tokio::test]
async fn a_child_that_works_for_a_person_makes_files_as_that_person_would() {
    let marked = Marked::new();
    let (lines, _) = output(marked.spawner.spawn(marked.shell("umask").umask(Some(0o022))).await.unwrap()).await;
    assert_eq!(lines, ["0022"]);
}

#[tokio::test]
async fn a_child_of_lower_priority_stands_behind_its_owner_and_its_guard_does_not() {
    // The nineteenth field; a program's name has no blanks here.
    let nice = |stat: &str| stat.split(' ').nth(18).and_then(|field| field.parse::<i32>().ok());
    let own = nice(&std::fs::read_to_string("/proc/self/stat").unwrap()).unwrap();
    let marked = Marked::new();
    let script = "cat /proc/self/stat /proc/$PPID/stat; cat /proc/self/autogroup 2>/dev/null; true";
    let spec = marked.shell(script).priority(Priority::Lowered(3));
    let (lines, _) = output(marked.spawner.spawn(spec).await.unwrap()).await;
    assert_eq!(nice(&lines[0]), Some((own + 3).min(19)), "{lines:?}");
    assert_eq!(nice(&lines[1]), Some(own), "its guard acts at once: {lines:?}");
    // A kernel that groups processes by session compares sessions, not processes.
    if let Some(session) = lines.get(2).filter(|line| !line.is_empty()) {
        assert!(session.ends_with("nice 3"), "{session}");
    }
}

#[tokio::test]
async fn s15_a_child_has_three_descriptors_even_if_its_owner_inherited_more() {
    let marked = Marked::new();
    let script = "ls /proc/self/fd | tr '\\n' ' '; echo";
    let own = format!("exec 7</etc/passwd 9</etc/passwd; exec \"$0\" own {GUARD} {} \"$1\"", marked.mark);
    let mut owner = program("/bin/sh");
    owner.args(["-c", &own, env!("CARGO_BIN_EXE_process-test-owner"), script]);
    let mut owner = owner.stdout(std::process::Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = gembridge_process::LineReader::new(owner.stdout.take().unwrap(), 1000);
    let batch = lines.next_batch().await.unwrap().unwrap();
    // `ls` lists the folder through a fourth one of its own.
    assert_eq!(batch.iter().next(), Some(&b"0 1 2 3 "[..]));
}

#[tokio::test]
async fn signals_that_the_owner_ignores_are_back_to_normal_in_the_child() {
    let marked = Marked::new();
    let script = "grep -E 'SigIgn|SigBlk' /proc/self/status";
    let own = format!("trap '' HUP INT TERM USR1 XFSZ PIPE; exec \"$0\" own {GUARD} {} \"$1\"", marked.mark);
    let mut owner = program("/bin/sh");
    owner.args(["-c", &own, env!("CARGO_BIN_EXE_process-test-owner"), script]);
    let mut owner = owner.stdout(std::process::Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = gembridge_process::LineReader::new(owner.stdout.take().unwrap(), 1000);
    let mut seen = Vec::new();
    while seen.len() < 2 {
        seen.extend(lines.next_batch().await.unwrap().unwrap());
    }
    for line in &seen[..2] {
        let text = String::from_utf8_lossy(line);
        let signals = u64::from_str_radix(text.split_ascii_whitespace().last().unwrap(), 16).unwrap();
        // The C library keeps signals 32 and 33 for itself.
        assert_eq!(signals & 0x7fff_ffff, 0, "{text}");
    }
    owner.kill().await.unwrap();
}

#[tokio::test]
async fn s21_a_fenced_child_writes_to_its_folders_and_nowhere_else() {
    let marked = Marked::new();
    let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(outside.path().join("there"), "old").unwrap();
    let script = format!(
        "cd {}; echo x > new && mkdir sub && mv new sub/new && rm -r sub && echo inside ok; \
         echo x > {out}/new || echo new refused; echo x > {out}/there || echo write refused; \
         rm {out}/there || echo remove refused; mkdir {out}/sub || echo mkdir refused; \
         cat {out}/there; echo; echo gone > /dev/null && echo null ok",
        inside.path().display(),
        out = outside.path().display(),
    );
    let fenced =
        marked.shell(&script).sandbox(Sandbox { writable: vec![inside.path().to_owned()], ..Sandbox::default() });
    let spawned = marked.spawner.spawn(fenced).await;
    if support() == Support::Unavailable {
        assert!(matches!(spawned, Err(SpawnError::Sandbox { .. })), "without Landlock a fence is refused, not skipped");
        return;
    }
    let child = spawned.unwrap();
    let stderr = child.stderr.clone();
    let watch = child.handle.watch();
    let (lines, _) = output(child).await;
    let expected = ["inside ok", "new refused", "write refused", "remove refused", "mkdir refused", "old", "null ok"];
    assert_eq!(lines, expected);
    watch.ended().await;
    assert!(stderr.tail().contains("Permission denied"), "{}", stderr.tail());

    let nowhere =
        marked.command("true").sandbox(Sandbox { writable: vec!["/no/such/folder".into()], ..Sandbox::default() });
    let error = marked.spawner.spawn(nowhere).await.unwrap_err();
    assert!(matches!(error, SpawnError::Sandbox { .. }), "{error}");
    assert!(error.to_string().contains("`/no/such/folder`"), "{error}");
}

#[tokio::test]
async fn a_guard_that_is_not_there_is_said_so() {
    use gembridge_process::{GuardProgram, Spawner};
    let marked = Marked::new();
    let spawner = Spawner::new(GuardProgram::at("/no/such/guard")).unwrap();
    let error = spawner.spawn(marked.command("true")).await.unwrap_err();
    assert!(matches!(error, SpawnError::Guard { .. }), "{error}");
    let spawner = Spawner::new(GuardProgram::at("/bin/false")).unwrap();
    let error = spawner.spawn(marked.command("true")).await.unwrap_err();
    assert!(matches!(error, SpawnError::GuardEnded { exit: Exit::Code(1), .. }), "{error}");
}

#[tokio::test]
async fn a_binary_guards_its_children_with_itself_even_after_it_was_replaced_on_disk() {
    let marked = Marked::new();
    let folder = tempfile::tempdir().unwrap();
    let binary = folder.path().join("owner");
    copy(env!("CARGO_BIN_EXE_process-test-owner"), &binary).await;
    let replace = format!("rm {0} && echo other > {0}; exit 3", binary.display());
    let mut owner = program(binary.to_str().unwrap());
    let run = owner.args(["run-twice", "self", &marked.mark, &replace]).output().await.unwrap();
    assert_eq!(run.stdout, b"exit code 3\nexit code 3\n", "{run:?}");
}

#[tokio::test]
async fn s15_an_owner_hides_its_environment_from_its_children_and_still_guards_them() {
    let marked = Marked::new();
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let binary = folder.path().join("owner");
    copy(env!("CARGO_BIN_EXE_process-test-owner"), &binary).await;
    // The shell's parent is the guard, and the guard's parent is the owner.
    let script = "owner=$(awk '/^PPid/ {print $2}' /proc/$PPID/status); cat /proc/$owner/environ; exit $?";
    // Nothing is hidden from root.
    let mut owner = if rustix::process::geteuid().is_root() {
        let mut owner = program("setpriv");
        owner.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&binary);
        owner
    } else {
        program(binary.to_str().unwrap())
    };
    let run = owner.args(["run-twice", "self", &marked.mark, script]).output().await.unwrap();
    assert_eq!(run.stdout, b"exit code 1\nexit code 1\n", "{run:?}");
}

#[tokio::test]
async fn r16_a_full_disk_and_a_closed_pipe_are_errors_to_a_protected_owner() {
    let marked = Marked::new();
    let run = marked.owner("write-past-the-limit", "").output().await.unwrap();
    assert_eq!(String::from_utf8_lossy(&run.stdout), "file file too large\npipe broken pipe\n", "{run:?}");
}

#[tokio::test]
async fn the_owner_spawns_without_a_fork() {
    let marked = Marked::new();
    let run = marked.owner("spawn-from-a-large-heap", "").output().await.unwrap();
    let output = String::from_utf8(run.stdout).unwrap();
    let faults = |after: &str| -> u64 {
        let line = output.lines().find_map(|line| line.strip_prefix(after)).unwrap_or_else(|| panic!("{output}"));
        line.trim().parse().unwrap()
    };
    let (spawn, fork) = (faults("faults-after-spawn"), faults("faults-after-fork"));
    assert!(fork >= 100, "the counterexample forks: {output}");
    assert!(spawn * 4 < fork, "a spawn leaves the owner's pages alone: {output}");
    marked.assert_all_gone("the measurement").await;
}

#[tokio::test]
async fn no_process_between_the_owner_and_the_command_forks() {
    let marked = Marked::new();
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let mut traced = program("strace");
    traced.args(["-f", "-e", "trace=clone,clone3,fork,vfork", "-o"]).arg(&trace);
    traced.args([env!("CARGO_BIN_EXE_process-test-owner"), "run-twice", GUARD, &marked.mark, "exit 0"]);
    let run = match traced.output().await {
        Ok(run) => run,
        // The page-fault measurement above holds the same line everywhere.
        Err(error) => return assert_eq!(error.kind(), std::io::ErrorKind::NotFound),
    };
    assert_eq!(run.stdout, b"exit code 0\nexit code 0\n", "{run:?}");
    let trace = fs::read_to_string(trace).unwrap();
    let calls: Vec<&str> =
        trace.lines().filter(|line| ["clone(", "clone3(", "fork("].iter().any(|call| line.contains(call))).collect();
    let spawns = calls.iter().filter(|line| line.contains("CLONE_VFORK") && line.contains("CLONE_VM")).count();
    assert!(spawns >= 4, "the guard and its launch stage: {calls:?}");
    for call in calls {
        assert!(call.contains("CLONE_VFORK") || call.contains("CLONE_THREAD"), "a fork: {call}");
    }
    marked.assert_all_gone("tracing").await;
}

#[tokio::test]
async fn a_guard_is_small_and_the_memory_of_a_tree_is_known() {
    let marked = Marked::new();
    let script = "head -c 64m /dev/zero | tail -c 64m | (echo ready; sleep 1000)";
    let mut child = marked.spawner.spawn(marked.shell(script)).await.unwrap();
    child.stdout.next_batch().await.unwrap().unwrap();
    let memory = child.handle.memory().await.unwrap();
    assert!(memory.processes >= 3, "{memory:?}");
    assert!(memory.pss > 0 && memory.pss <= memory.rss, "{memory:?}");

    let status = fs::read_to_string(format!("/proc/{}/status", child.handle.guard_pid())).unwrap();
    let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    let kilobytes: u64 = own.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < 1024, "a guard's own memory: {kilobytes} kB");
    child.handle.stop(StopPlan { after_eof: std::time::Duration::ZERO }).await;
    marked.assert_all_gone("stop").await;
}
