//! What a call that waits for its client costs in memory. A program of its own, so that no other test is counted.

#![cfg(target_os = "linux")]
#![expect(dead_code, reason = "what is shared with the tests of behaviour is used in whole there")]

#[path = "behaviour/support/follow.rs"]
mod follow;
#[path = "behaviour/support/store.rs"]
mod store;
#[path = "behaviour/support/tools.rs"]
mod tools;
#[path = "behaviour/support/test_sessions.rs"]
mod test_sessions;

use gembridge_core::session::SessionHandle;

use crate::follow::Reader;
use crate::test_sessions::TestSessions;
use crate::tools::{Call, FakePlace};

const SESSIONS: usize = 160;
const CALLS_OF_EACH: usize = 64;
const BOUND: usize = 4 << 10;

#[tokio::test(start_paused = true)]
async fn ten_thousand_calls_that_wait_cost_less_than_four_kilobytes_each() {
    let mut test = TestSessions::running(SESSIONS, 0);
    let mut stages = Vec::new();
    for _ in 0..SESSIONS {
        stages.push(test.with_tools(&["look"]).await);
    }
    let before = resident_bytes();
    let mut waiting: Vec<Call> = Vec::with_capacity(SESSIONS * CALLS_OF_EACH);
    for (session, _agent, place) in &mut stages {
        park(session, place, &test, &mut waiting).await;
    }
    let each = resident_bytes().saturating_sub(before) / waiting.len();
    assert_eq!(waiting.len(), SESSIONS * CALLS_OF_EACH);
    assert!(waiting.iter_mut().all(Call::is_waiting));
    assert!(each < BOUND, "{each} bytes for each call that waits");
}

async fn park(session: &SessionHandle, place: &mut FakePlace, test: &TestSessions, waiting: &mut Vec<Call>) {
    for _ in 0..CALLS_OF_EACH {
        waiting.push(place.calls("look", "{}").await);
    }
    let parked = Reader::of(session, &test.store).await.until_parked().await;
    assert_eq!(parked.len(), CALLS_OF_EACH);
}

/// By the kernel's account, in whole pages.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("the kernel tells about this process");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("it tells what is in memory");
    let kilobytes = line.split_whitespace().nth(1).and_then(|number| number.parse::<usize>().ok());
    kilobytes.expect("it is a number") << 10
}
