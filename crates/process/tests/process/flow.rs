//! What goes through the pipes: floods, huge lines, deaf children, and 500 lives in a row.

use std::time::Duration;

use gembridge_process::{Begun, LineError, WriteError};

use crate::marked::Marked;

fn reported(output: &[u8], what: &str) -> u64 {
    let text = String::from_utf8_lossy(output);
    let line = text.lines().find_map(|line| line.strip_prefix(what)).unwrap_or_else(|| panic!("no `{what}`: {text}"));
    line.trim().parse().unwrap()
}

#[tokio::test]
async fn r6_a_line_of_300_mb_costs_less_than_16_mb_and_ends_the_child() {
    let marked = Marked::new();
    let run = marked.owner("huge-line", "").output().await.unwrap();
    let rise = reported(&run.stdout, "rise");
    assert!(rise < 16_000_000, "{rise} bytes");
    marked.assert_all_gone("a huge line").await;
}

#[tokio::test]
async fn r10_r11_500_lives_leave_no_zombie_and_no_descriptor() {
    let marked = Marked::new();
    let run = marked.owner("cycles", "").output().await.unwrap();
    assert!(run.status.success(), "{run:?}");
    for what in ["zombies", "leaked", "living"] {
        assert_eq!(reported(&run.stdout, what), 0, "{what}");
    }
    marked.assert_all_gone("500 cycles").await;
}

#[tokio::test]
async fn a_line_that_is_too_long_comes_after_the_lines_before_it() {
    let marked = Marked::new();
    let mut spec = marked.shell("echo one; echo two; head -c 5000 /dev/zero; sleep 1000");
    spec.limits.line = 1000;
    let mut child = marked.spawner.spawn(spec).await.unwrap();
    let mut lines = Vec::new();
    let error = loop {
        match child.stdout.next_batch().await {
            Ok(batch) => lines.extend(batch.unwrap()),
            Err(error) => break error,
        }
    };
    assert_eq!(lines, ["one", "two"]);
    assert!(matches!(error, LineError::TooLong { limit: 1000, .. }), "{error}");
}

#[tokio::test]
async fn r7b_a_flood_of_stderr_neither_blocks_the_child_nor_is_kept() {
    let marked = Marked::new();
    let script = "yes 0123456789abcdef | head -c 17000000 >&2; echo last words >&2; echo done";
    let mut child = marked.spawner.spawn(marked.shell(script)).await.unwrap();
    let batch = child.stdout.next_batch().await.unwrap().unwrap();
    assert_eq!(batch.iter().collect::<Vec<_>>(), [b"done"]);
    child.handle.watch().ended().await;
    assert_eq!(child.stderr.total_bytes(), 17_000_000 + 11);
    let tail = child.stderr.tail();
    assert!(tail.ends_with("last words\\n") && tail.len() < 20_000, "{} bytes", tail.len());
    assert_eq!(child.stderr.lines().last().unwrap(), "last words");
}

#[tokio::test]
async fn r7c_a_child_that_does_not_read_is_given_up_after_the_deadline() {
    let marked = Marked::new();
    let mut spec = marked.shell("exec sleep 1000");
    spec.limits.write = Duration::from_millis(200);
    let mut child = marked.spawner.spawn(spec).await.unwrap();
    let line = bytes::Bytes::from(vec![b'x'; 4 << 20]);
    assert!(matches!(child.stdin.write_line(line).await, Err(WriteError::Deadline(_))));
    assert!(matches!(child.stdin.write_line("more").await, Err(WriteError::Torn)), "half a line is on its way");
}

#[tokio::test]
async fn a_write_that_was_dropped_half_way_is_not_continued_by_another_line() {
    let marked = Marked::new();
    let mut child = marked.spawner.spawn(marked.shell("exec sleep 1000")).await.unwrap();
    let line = bytes::Bytes::from(vec![b'x'; 4 << 20]);
    let dropped = tokio::time::timeout(Duration::from_millis(50), child.stdin.write_line(line)).await;
    assert!(dropped.is_err());
    assert!(matches!(child.stdin.write_line("more").await, Err(WriteError::Torn)));
}

#[tokio::test]
async fn a_line_that_was_begun_is_finished_before_the_next() {
    let marked = Marked::new();
    let mut child = marked.spawner.spawn(marked.shell("read first; echo $first; exec wc -lc")).await.unwrap();
    assert_eq!(child.stdin.begin_line(&"at once".into()).unwrap(), Begun::Whole);
    let batch = child.stdout.next_batch().await.unwrap().unwrap();
    assert_eq!(batch.iter().collect::<Vec<_>>(), [b"at once"]);

    let long = bytes::Bytes::from(vec![b'x'; 4 << 20]);
    assert_eq!(child.stdin.begin_line(&long).unwrap(), Begun::InPart);
    assert!(matches!(child.stdin.begin_line(&"too soon".into()), Err(WriteError::Torn)));
    child.stdin.write_lines(&["after".into(), "last".into()]).await.unwrap();
    child.stdin.close();
    let batch = child.stdout.next_batch().await.unwrap().unwrap();
    let counted = String::from_utf8_lossy(batch.iter().next().unwrap()).into_owned();
    let counts: Vec<usize> = counted.split_whitespace().map(|count| count.parse().unwrap()).collect();
    assert_eq!(counts, [3, (4 << 20) + "\nafter\nlast\n".len()]);
}

#[tokio::test]
async fn writing_to_a_child_that_is_gone_or_closed_is_an_error_and_not_a_death() {
    let marked = Marked::new();
    let mut child = marked.spawner.spawn(marked.shell("exit 0")).await.unwrap();
    child.handle.watch().ended().await;
    assert!(matches!(child.stdin.write_line("hello").await, Err(WriteError::Gone)));

    let mut child = marked.spawner.spawn(marked.shell("cat")).await.unwrap();
    child.stdin.close();
    assert!(matches!(child.stdin.write_line("hello").await, Err(WriteError::Gone)));
    assert!(child.handle.wait().await.is_success());
}

#[tokio::test]
async fn what_a_child_writes_to_its_own_input_does_no_harm() {
    let marked = Marked::new();
    // Its input is a socket that its guard reports over.
    let script = "yes 'started 1' | head -n 100000 >&0 & sleep 0.2; read line; echo got $line; exit 6";
    let mut child = marked.spawner.spawn(marked.shell(script)).await.unwrap();
    let pid = child.handle.pid();
    child.stdin.write_line("this").await.unwrap();
    let batch = child.stdout.next_batch().await.unwrap().unwrap();
    assert_eq!(batch.iter().next(), Some(&b"got this"[..]));
    assert_eq!(child.handle.watch().ended().await.to_string(), "exit code 6");
    assert_eq!(child.handle.pid(), pid);
}
