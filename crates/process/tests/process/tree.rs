//! R9: whatever a child starts and ignores, and however it is ended, nothing of it is left.

use std::time::Duration;

use gembridge_process::{Child, Exit, LineReader, StopPlan, sweep};
use tokio::process::Command;

use crate::marked::{Marked, program};

/// Each prints `ready` when all of it is there.
const SHAPES: &[(&str, &str)] = &[
    ("plain", "echo ready; read line"),
    ("fork", "sleep 1000 & sleep 1000 & echo ready; wait"),
    (
        "fork-setsid",
        "setsid sleep 1000 & setsid sh -c 'sleep 1000 & sleep 1000' & (setsid sleep 1000 &) ; echo ready; wait",
    ),
    ("ignore-sigterm", "trap '' TERM HUP INT; sleep 1000 & echo ready; while :; do sleep 1000; done"),
    ("ignore-eof", "echo ready; exec sleep 1000"),
    ("stopped", "sh -c 'kill -STOP $$' & echo ready; wait"),
    ("closed-input", "exec 0<&-; echo ready; sleep 1000"),
    ("closed-output", "echo ready; exec 1>&- 2>&-; sleep 1000"),
];

async fn start(marked: &Marked, shape: &str, script: &str) -> Child {
    let mut child = marked.spawner.spawn(marked.shell(script)).await.unwrap();
    let batch = child.stdout.next_batch().await.unwrap().unwrap_or_else(|| panic!("{shape} is not ready"));
    assert_eq!(batch.iter().next(), Some(&b"ready"[..]), "{shape}");
    assert!(!marked.processes().is_empty(), "{shape}");
    child
}

async fn start_owner(marked: &Marked, shape: &str, script: &str) -> tokio::process::Child {
    let mut owner = marked.owner("own", script).spawn().unwrap();
    let mut lines = LineReader::new(owner.stdout.take().unwrap(), 1000);
    let batch = lines.next_batch().await.unwrap().unwrap_or_else(|| panic!("{shape} is not ready"));
    assert_eq!(batch.iter().next(), Some(&b"ready"[..]), "{shape}");
    assert!(!marked.processes().is_empty(), "{shape}");
    owner
}

async fn send(signal: &str, pid: u32) {
    assert!(kill(signal, pid).status().await.unwrap().success(), "kill -{signal} {pid}");
}

fn kill(signal: &str, pid: u32) -> Command {
    let mut command = program("/bin/sh");
    command.args(["-c", &format!("kill -{signal} {pid}")]);
    command
}

#[tokio::test]
async fn r9_dropping_the_handle_ends_the_tree() {
    for (shape, script) in SHAPES {
        let marked = Marked::new();
        let child = start(&marked, shape, script).await;
        let (writer, reader, watch) = (child.stdin, child.stdout, child.handle.watch());
        drop(child.handle);
        watch.ended().await;
        marked.assert_all_gone(shape).await;
        drop((writer, reader));
    }
}

#[tokio::test]
async fn r9_stop_ends_the_tree_and_waits_for_it() {
    for (shape, script) in SHAPES {
        let marked = Marked::new();
        let child = start(&marked, shape, script).await;
        child.handle.stop(StopPlan { after_eof: Duration::from_millis(50) }).await;
        assert_eq!(marked.processes(), [], "{shape}: nothing is left when stop returns");
    }
}

#[tokio::test]
async fn r9_sigterm_to_the_owner_ends_the_tree() {
    for (shape, script) in SHAPES {
        let marked = Marked::new();
        let mut owner = start_owner(&marked, shape, script).await;
        send("TERM", owner.id().unwrap()).await;
        marked.assert_all_gone(shape).await;
        owner.wait().await.unwrap();
    }
}

#[tokio::test]
async fn r9_kill_9_of_the_owner_ends_the_tree() {
    for (shape, script) in SHAPES {
        let marked = Marked::new();
        let mut owner = start_owner(&marked, shape, script).await;
        send("KILL", owner.id().unwrap()).await;
        marked.assert_all_gone(shape).await;
        owner.wait().await.unwrap();
    }
}

#[tokio::test]
async fn r9_kill_9_of_the_guard_ends_the_tree() {
    for (shape, script) in SHAPES {
        let marked = Marked::new();
        let child = start(&marked, shape, script).await;
        send("KILL", child.handle.guard_pid()).await;
        assert_eq!(child.handle.watch().ended().await, Exit::Signal(9), "{shape}");
        marked.assert_all_gone(shape).await;
    }
}

#[tokio::test]
async fn r9_sigterm_to_the_guard_ends_the_tree() {
    for (shape, script) in SHAPES {
        let marked = Marked::new();
        let child = start(&marked, shape, script).await;
        send("TERM", child.handle.guard_pid()).await;
        child.handle.watch().ended().await;
        assert_eq!(marked.processes(), [], "{shape}");
    }
}

#[tokio::test]
async fn r9_shutting_down_the_spawner_ends_every_tree() {
    let marked = Marked::new();
    let mut children = Vec::new();
    for (shape, script) in SHAPES {
        children.push(start(&marked, shape, script).await);
    }
    assert_eq!(marked.spawner.living(), SHAPES.len());
    marked.spawner.shut_down().await;
    assert_eq!(marked.spawner.living(), 0);
    assert_eq!(marked.processes(), []);
}

#[tokio::test]
async fn what_a_child_leaves_behind_goes_when_it_exits() {
    let marked = Marked::new();
    let script = "trap '' TERM; setsid sleep 1000 & sleep 1000 & exit 3";
    let child = marked.spawner.spawn(marked.shell(script)).await.unwrap();
    assert_eq!(child.handle.wait().await, Exit::Code(3));
    assert_eq!(child.handle.watch().ended().await, Exit::Code(3));
    assert_eq!(marked.processes(), []);
}

#[tokio::test]
async fn the_end_of_the_main_process_is_known_before_the_tree_is_gone() {
    let marked = Marked::new();
    let mut spec = marked.shell("trap '' TERM; sleep 1000 & exit 4");
    // Longer than this test may take: the exit must not wait for the leftovers.
    spec.limits.grace = Duration::from_mins(10);
    let child = marked.spawner.spawn(spec).await.unwrap();
    assert_eq!(child.handle.wait().await, Exit::Code(4));
    assert_ne!(marked.processes(), []);
    // The leftovers were asked to end when it did: a further request cuts their grace short.
    send("TERM", child.handle.guard_pid()).await;
    child.handle.watch().ended().await;
    marked.assert_all_gone("a second request").await;
}

#[tokio::test]
async fn a_child_that_ends_at_the_end_of_its_input_is_not_hurried() {
    let marked = Marked::new();
    let script = "trap 'echo terminated; exit 9' TERM; echo ready; read line; exit 5";
    let child = start(&marked, "polite", script).await;
    let exit = child.handle.stop(StopPlan { after_eof: Duration::from_secs(30) }).await;
    assert_eq!(exit, Exit::Code(5));
}

#[tokio::test]
async fn a_tree_that_keeps_forking_is_ended() {
    let marked = Marked::new();
    let script = "trap '' TERM; echo ready; while :; do (setsid sleep 1000 &) ; done";
    let child = start(&marked, "forking", script).await;
    drop(child);
    marked.assert_all_gone("drop").await;
}

#[tokio::test]
async fn the_sweep_spares_the_runs_that_are_alive_and_ends_the_dead() {
    let marked = Marked::new();
    let (shape, script) = SHAPES[4];
    let living = start(&marked, shape, script).await;

    // A child whose guard and owner died together, as after the kernel ran out of memory.
    let orphaned = Marked::new();
    let script = "setsid setsid sleep 1000 & echo ready; sleep 1000";
    let mut owner = start_owner(&orphaned, "orphan", script).await;
    let guard = orphaned.processes().into_iter().find(|(_, line)| line.contains(" guard ")).unwrap();
    let both = format!("kill -STOP {0}; kill -9 {1}; kill -9 {0}", guard.0, owner.id().unwrap());
    assert!(program("/bin/sh").args(["-c", &both]).status().await.unwrap().success());
    owner.wait().await.unwrap();
    assert_ne!(orphaned.processes(), [], "nobody is left to end it");

    tokio::task::spawn_blocking(sweep).await.unwrap().unwrap();
    orphaned.assert_all_gone("the sweep").await;
    assert_eq!(living.handle.watch().exit(), None, "a living run is not touched");
    assert_ne!(marked.processes(), []);
}
