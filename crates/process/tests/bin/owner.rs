//! A process that owns children, for tests that kill the owner or measure it apart from the test runner.
//!
//! `process-test-owner <task> <guard> <mark> [script]`; children carry `TEST_MARK=<mark>`.

use std::fmt::Display;
use std::fs;
use std::io::Write as _;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use gembridge_process::{
    CommandSpec, Environment, GuardProgram, LineError, SpawnError, Spawner, StopPlan, guard, startup,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

struct Task {
    spawner: Spawner,
    mark: String,
    script: String,
}

fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|first| first == guard::COMMAND) {
        return guard::main(std::env::args_os().skip(2));
    }
    startup::protect_process().unwrap();
    own()
}

#[tokio::main(flavor = "current_thread")]
async fn own() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [task, guard, mark, rest @ ..] = &args[..] else {
        eprintln!("usage: process-test-owner TASK GUARD MARK [SCRIPT]");
        return ExitCode::from(2);
    };
    let guard = if guard == "self" { GuardProgram::this_binary() } else { GuardProgram::at(guard) };
    let spawner = Spawner::new(guard).unwrap();
    let owner = Task { spawner, mark: mark.clone(), script: rest.first().cloned().unwrap_or_default() };
    match task.as_str() {
        "own" => owner.own().await,
        "run-twice" => owner.run_twice().await,
        "huge-line" => owner.huge_line().await,
        "cycles" => owner.cycles().await,
        "write-past-the-limit" => write_past_the_limit(),
        "spawn-from-a-large-heap" => owner.spawn_from_a_large_heap().await,
        unknown => panic!("unknown task `{unknown}`"),
    }
    ExitCode::SUCCESS
}

impl Task {
    fn shell(&self, script: &str) -> CommandSpec {
        self.command("/bin/sh").args(["-c", script])
    }

    fn command(&self, program: &str) -> CommandSpec {
        let env = Environment::default().with("PATH", "/usr/bin:/bin").with("TEST_MARK", &self.mark);
        CommandSpec::new(program, env)
    }

    /// Holds one child until it is killed itself; passes on what the child prints.
    async fn own(&self) {
        let mut child = self.spawner.spawn(self.shell(&self.script)).await.unwrap();
        while let Some(batch) = child.stdout.next_batch().await.unwrap() {
            for line in &batch {
                println!("{}", String::from_utf8_lossy(line));
            }
        }
        println!("{}", child.handle.wait().await);
        std::future::pending::<()>().await;
    }

    /// Runs two children to their ends.
    async fn run_twice(&self) {
        for _ in 0..2 {
            let child = self.spawner.spawn(self.shell(&self.script)).await.unwrap();
            println!("{}", child.handle.wait().await);
        }
        self.spawner.shut_down().await;
    }

    /// Reads a line of 300 MB and prints how much this process grew.
    async fn huge_line(&self) {
        let before = peak_memory();
        let script = "yes xxxxxxxxxxxxxxx | tr -d '\\n' | head -c 300000000";
        let mut child = self.spawner.spawn(self.shell(script)).await.unwrap();
        let error = child.stdout.next_batch().await.unwrap_err();
        assert!(matches!(error, LineError::TooLong { limit: 10_000_000, .. }), "{error}");
        child.handle.end();
        child.handle.watch().ended().await;
        report("rise", peak_memory() - before);
    }

    /// 500 children that end in every way there is; nothing of them may be left.
    async fn cycles(&self) {
        let folder = tempfile_folder();
        let not_executable = format!("{folder}/plain");
        fs::write(&not_executable, "text").unwrap();
        let before = open_descriptors();
        for cycle in 0..100 {
            let child = self.spawner.spawn(self.command("true")).await.unwrap();
            assert!(child.handle.wait().await.is_success());

            drop(self.spawner.spawn(self.shell("sleep 1000 & wait")).await.unwrap());

            let missing = self.spawner.spawn(self.command("/no/such/program")).await;
            assert!(matches!(missing, Err(SpawnError::NotFound { .. })));

            let refused = self.spawner.spawn(self.command(&not_executable)).await;
            assert!(matches!(refused, Err(SpawnError::NotExecutable { .. })), "{refused:?}");

            let abandoned = self.spawner.spawn(self.shell("exec sleep 1000"));
            let moment = Duration::from_micros(cycle * 20);
            drop(tokio::time::timeout(moment, abandoned).await);
        }
        self.starve().await;
        self.spawner.shut_down().await;
        fs::remove_dir_all(folder).unwrap();
        report("zombies", zombies());
        report("leaked", open_descriptors() - before);
        report("living", self.spawner.living());
    }

    /// No descriptor left: a typed error, and all well when there are some again.
    async fn starve(&self) {
        let enough = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(8), ..enough }).unwrap();
        let starved = self.spawner.spawn(self.command("true")).await;
        setrlimit(Resource::Nofile, enough).unwrap();
        assert!(matches!(starved, Err(SpawnError::Guard { .. })), "{starved:?}");
        let fed = self.spawner.spawn(self.command("true")).await.unwrap();
        assert!(fed.handle.stop(StopPlan::default()).await.is_success());
    }

    /// After a fork the parent's pages are write-protected: writing them again faults, page by page. After `posix_spawn`
    /// they are as before. A command that the standard library can only fork for shows that the measure works.
    async fn spawn_from_a_large_heap(&self) {
        let mut heap = vec![1_u8; 256 << 20];
        let settle = rewrite(&mut heap);
        let child = self.spawner.spawn(self.shell("sleep 1000").cwd("/")).await.unwrap();
        report("faults-after-spawn", rewrite(&mut heap).saturating_sub(settle));
        child.handle.end();
        child.handle.watch().ended().await;

        rewrite(&mut heap);
        #[expect(clippy::disallowed_methods, reason = "the counterexample must not go through a guard")]
        let forked = Command::new("true").env("PATH", "/usr/bin:/bin").stdin(Stdio::null()).spawn();
        report("faults-after-fork", rewrite(&mut heap));
        assert!(forked.unwrap().wait().unwrap().success());
    }
}

/// A full disk and a reader that left are errors to handle, not signals to die of.
fn write_past_the_limit() {
    let mut file = tempfile_in_memory();
    setrlimit(Resource::Fsize, Rlimit { current: Some(10), maximum: Some(10) }).unwrap();
    report("file", file.write(b"0123456789").and_then(|_| file.write(b"more")).unwrap_err().kind());
    let (read, mut write) = std::io::pipe().unwrap();
    drop(read);
    report("pipe", write.write(b"more").unwrap_err().kind());
}

fn tempfile_in_memory() -> fs::File {
    rustix::fs::memfd_create("limited", rustix::fs::MemfdFlags::CLOEXEC).unwrap().into()
}

fn report(what: &str, value: impl Display) {
    println!("{what} {value}");
}

/// Writes to every page; returns how many faults that took.
fn rewrite(heap: &mut [u8]) -> u64 {
    let before = minor_faults();
    for page in heap.chunks_mut(4096) {
        page[0] = page[0].wrapping_add(1);
    }
    minor_faults() - before
}

fn minor_faults() -> u64 {
    let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    fields.split_ascii_whitespace().nth(7).unwrap().parse().unwrap()
}

/// In bytes, ever since this process began.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_ascii_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

fn open_descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

fn zombies() -> usize {
    let me = std::process::id().to_string();
    let is_mine = |stat: &str| {
        let mut fields = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace();
        fields.next() == Some("Z") && fields.next() == Some(&me)
    };
    let stats =
        fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("stat")).ok());
    stats.filter(|stat| is_mine(stat)).count()
}

fn tempfile_folder() -> String {
    let folder = std::env::temp_dir().join(format!("process-test-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    folder.to_str().unwrap().to_owned()
}
