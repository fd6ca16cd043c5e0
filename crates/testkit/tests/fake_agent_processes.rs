//! The fake agent's life and its offspring, seen in the process table.

use std::{fs, time::Duration};

use gembridge_testkit::{
    Record, open_fds,
    process_table::{children_of, is_alive, peak_rss_kb, session_of, threads, wait_until_gone},
    processes_with_tag, pss_kb,
    raw_acp::RawAcp,
    record::Event,
    rss_kb, zombies_of,
};
use rustix::process::{Pid, Signal, kill_process};

/// A tag nobody else uses; whatever still carries it at the end of the test is killed.
struct Tag(String);

impl Tag {
    fn new(name: &str) -> Self {
        Self(format!("{name}-{}-{:?}", std::process::id(), std::time::Instant::now()).replace([' ', '{', '}'], ""))
    }
}

impl Drop for Tag {
    fn drop(&mut self) {
        for pid in processes_with_tag(&self.0) {
            signal(pid, Signal::KILL);
        }
    }
}

fn pid_of(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
}

fn signal(pid: u32, signal: Signal) {
    // It may be gone already.
    kill_process(pid_of(pid), signal).ok();
}

fn start(tag: &Tag, modes: &str) -> RawAcp {
    let mut agent = RawAcp::fake(&["--mode", modes, "--tag", &tag.0]);
    agent.initialize();
    agent
}

#[test]
fn an_agent_ends_with_its_stdin_and_by_a_signal() {
    let tag = Tag::new("plain");
    let mut agent = start(&tag, "ok");
    agent.close_stdin();
    assert_eq!(agent.wait().code(), Some(0));
    let mut agent = start(&tag, "ok");
    signal(agent.pid(), Signal::TERM);
    assert_eq!(agent.wait().code(), None);
    assert_eq!(wait_until_gone(&tag.0, Duration::from_mins(1)), Vec::<u32>::new());
}

#[test]
fn ignore_sigterm_goes_on_serving() {
    let tag = Tag::new("stubborn");
    let mut agent = start(&tag, "ignore-sigterm");
    for polite in [Signal::TERM, Signal::INT, Signal::HUP] {
        signal(agent.pid(), polite);
    }
    let session = agent.open_session("/");
    assert_eq!(agent.prompt(&session, "say still here").text(), "still here");
}

#[test]
fn ignore_eof_outlives_its_stdin() {
    let tag = Tag::new("deaf");
    let folder = tempfile::tempdir().unwrap();
    let record = Record::at(folder.path().join("record"));
    let mut agent =
        RawAcp::fake(&["--mode", "ignore-eof", "--tag", &tag.0, "--record", record.path().to_str().unwrap()]);
    agent.initialize();
    agent.close_stdin();
    record.wait("eof", |record| record.entries().into_iter().find(|entry| entry.event == Event::Eof));
    assert_eq!(agent.line_within(Duration::from_millis(100)), None);
    assert!(is_alive(agent.pid()));
}

#[test]
fn fork_leaves_a_child_in_the_agents_session() {
    let tag = Tag::new("fork");
    let agent = start(&tag, "fork");
    let children = children_of(agent.pid());
    assert_eq!(children.len(), 1);
    assert_eq!(processes_with_tag(&tag.0).len(), 2);
    assert_eq!(session_of(children[0]), session_of(agent.pid()));
    drop(agent);
    assert!(is_alive(children[0]), "the child died with its parent");
}

#[test]
fn fork_setsid_leaves_a_session_leader_and_a_daemon() {
    let tag = Tag::new("setsid");
    let mut agent = start(&tag, "fork-setsid,ignore-sigterm,ignore-eof");
    let offspring = || processes_with_tag(&tag.0).into_iter().filter(|pid| *pid != agent.pid()).collect::<Vec<u32>>();
    // The daemon may run before the process that started it has ended.
    while offspring().len() > 2 {
        std::thread::yield_now();
    }
    let offspring = offspring();
    assert_eq!(offspring.len(), 2, "a session leader and a daemon");
    for pid in &offspring {
        assert_eq!(session_of(*pid), Some(*pid), "{pid} has no session of its own");
        signal(*pid, Signal::TERM);
    }
    assert_eq!(children_of(agent.pid()).len(), 1, "the daemon is still a child");
    agent.close_stdin();
    drop(agent);
    assert!(offspring.iter().all(|pid| is_alive(*pid)), "offspring heeded a polite signal");
}

#[test]
fn zombies_memory_and_descriptors_are_seen() {
    let tag = Tag::new("zombie");
    let mut agent = start(&tag, "ok");
    let pid = agent.pid();
    assert!(open_fds(pid) >= 3);
    assert!(threads(pid) >= 1);
    assert!(rss_kb(pid) > 0 && pss_kb(pid) > 0 && peak_rss_kb(pid) >= rss_kb(pid));
    signal(pid, Signal::KILL);
    while is_alive(pid) {
        std::thread::yield_now();
    }
    assert!(zombies_of(std::process::id()).contains(&pid));
    assert!(!processes_with_tag(&tag.0).contains(&pid), "a zombie is not alive");
    agent.wait();
    assert!(!zombies_of(std::process::id()).contains(&pid));
    assert_eq!((open_fds(pid), rss_kb(pid), pss_kb(pid)), (0, 0, 0));
}

#[test]
fn the_record_tells_starts_messages_and_noise_of_all_processes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record");
    let record = Record::at(&path);
    assert!(record.entries().is_empty());
    for _ in 0..2 {
        let mut agent = RawAcp::fake(&["--record", path.to_str().unwrap()]);
        agent.initialize();
        let session = agent.open_session("/");
        agent.prompt(&session, "say hello");
    }
    assert_eq!(record.wait_for_start(2)[1..], ["--record", path.to_str().unwrap()]);
    assert_eq!(record.wait_for("session/prompt", 2)["params"]["prompt"][0]["text"], "say hello");
    assert_eq!(record.wait_for_message(4)["method"], "initialize");
    assert_eq!(record.messages().len(), 6);
    fs::write(&path, "{\"pid\":1,\"noise\":\"huh\"}\n{\"pid\":1,\"re").unwrap();
    assert_eq!(record.entries().len(), 1, "half a line is left for later");
}
