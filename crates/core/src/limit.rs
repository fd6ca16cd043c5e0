//! Every bound of a session, with its default. What happens at each bound stands beside it.

use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// No sign of life for this long ends the turn: cancel, grace, then the agent's process.
    pub idle: Duration,
    /// A turn that takes longer ends likewise; results of a client's tools begin this time anew. Both clocks stand still while
    /// the turn waits for a person or a tool.
    pub turn: Duration,
    /// How long a cancelled agent may take to say so before its session is given up.
    pub cancel_grace: Duration,
    /// How long updates may trail the agent's "done" before the turn counts as ended.
    pub quiet: Duration,
    /// A question waits this long for the people who are there to answer it; then it is answered with no.
    pub answer: Duration,
    /// The same while no client is there that could answer it.
    pub answer_alone: Duration,
    /// Calls of a client's tools that wait at once in a turn; one more is answered as failed at once.
    pub parked_calls: usize,
    /// A call whose result does not come for this long is answered as failed, and the turn goes on.
    pub tool_result: Duration,
    /// How long after a call others may follow it before the client is told that the agent waits for all of them.
    pub gather: Duration,
    /// How long a prompt waits for the agent to read the list of a client's tools; then it goes out all the same.
    pub tools_ready: Duration,
    /// A session that nobody uses or watches for this long leaves the memory; its log stays.
    pub keep: Duration,
    /// Prompts that wait behind a running turn; one more is refused as busy.
    pub queued_prompts: usize,
    /// Bytes of the prompts that wait there together; a prompt beyond that is refused likewise, unless none waits.
    pub queued_bytes: usize,
    /// Questions open at once; one more is answered with no at once.
    pub open_asks: usize,
    /// Entries kept in memory; older ones are read from the store.
    pub ring_entries: usize,
    /// Bytes kept in memory; reached before `ring_entries` by large frames and by a long answer. Little, since what a
    /// thousand sessions keep is slow to allocate and to free.
    pub ring_bytes: usize,
    /// Batches that a follower may be behind; then it is dropped and comes back with the last number it saw.
    pub follower_batches: usize,
    /// Bytes that a follower may be behind; reached before `follower_batches` by a flood.
    pub follower_bytes: usize,
    /// How long a follower that asked to slow the agent down may hold it; then it is dropped.
    pub follower_stall: Duration,
    /// Bytes that the agent may send in one turn; more ends the turn.
    pub turn_bytes: u64,
    /// About how many bytes of what was said an agent is told that takes a session over; older turns are left out.
    pub recap_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            idle: Duration::from_mins(2),
            turn: Duration::from_mins(10),
            cancel_grace: Duration::from_secs(5),
            quiet: Duration::ZERO,
            answer: Duration::from_mins(15),
            answer_alone: Duration::from_secs(5),
            parked_calls: 64,
            tool_result: Duration::from_secs(590),
            gather: Duration::from_millis(25),
            tools_ready: Duration::from_secs(10),
            keep: Duration::from_hours(1),
            queued_prompts: 16,
            queued_bytes: 32 << 20,
            open_asks: 64,
            ring_entries: 2_000,
            ring_bytes: 256 << 10,
            follower_batches: 256,
            follower_bytes: 8 << 20,
            follower_stall: Duration::from_secs(30),
            turn_bytes: 256 << 20,
            recap_bytes: 400_000,
        }
    }
}
