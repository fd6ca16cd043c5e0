//! Half a minute of everything at once: crashes, errors, noise, clients that leave. Nothing may pile up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::support::gateway::Gateway;
use crate::support::home::Home;
use crate::support::http::PATIENCE;

/// `GEMBRIDGE_SOAK=long` when it is built: ten minutes.
const LENGTH: Duration =
    if option_env!("GEMBRIDGE_SOAK").is_some() { Duration::from_mins(10) } else { Duration::from_secs(30) };
const CLIENTS: u64 = 4;

/// A xorshift generator: the same faults in the same order for each client, run after run.
struct Dice(u64);

impl Dice {
    fn throw(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

fn one_request(gateway: &Gateway, dice: &mut Dice) {
    // Crashes are rare: after a few of them nothing is started for a while, and nothing would happen.
    match dice.throw(60) {
        0 => drop(gateway.complete("say a ;; exit 3")),
        1 => drop(gateway.complete("abort")),
        2..=6 => drop(gateway.complete("error -32603 broken")),
        7..=11 => drop(gateway.complete("raw {broken ;; raw [] ;; say noise ;; stderr words")),
        12..=16 => {
            // Gone in the middle of the answer.
            let mut stream = gateway.stream("chunks 50 delay 20");
            drop(stream.next());
        }
        17..=21 => drop(gateway.stream("say wait ;; wait-cancel")),
        22..=26 => drop(gateway.stream("burst 200 size 500").rest()),
        27..=31 => {
            drop(gateway.ask("POST", "/v1/chat/completions", &[("content-type", "application/json")], Some("{}")));
        }
        32..=36 => drop(gateway.complete("permission rm x")),
        37..=41 => {
            // A request that never comes to its end.
            let mut connection = gateway.connect();
            drop(connection.send("POST", "/v1/chat/completions", &[("content-length", "100")], None));
        }
        _ => drop(gateway.complete("say fine").text()),
    }
}

#[derive(Debug)]
struct Footprint {
    resident_kb: u64,
    descriptors: usize,
    threads: usize,
}

fn footprint(gateway: &Gateway) -> Footprint {
    let pid = gateway.pid();
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    Footprint { resident_kb: gembridge_testkit::rss_kb(pid), descriptors: gembridge_testkit::open_fds(pid), threads }
}

/// Bytes of all sessions, and of the database of their records.
fn stored(gateway: &Gateway) -> u64 {
    let (mut bytes, mut folders) = (0, vec![gateway.home.state("sessions")]);
    while let Some(folder) = folders.pop() {
        // What is listed may be deleted by the time that it is looked at.
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
                Ok(metadata) => bytes += metadata.len(),
                Err(_) => {}
            }
        }
    }
    bytes
}

#[test]
fn r23_half_a_minute_of_faults_leaves_nothing_behind() {
    let mut gateway =
        Home::for_serving().with_fake(&[], "limits.idle_sessions = 8\nsessions.keep_mb = 1\n").serve_fake();
    let requests = AtomicU64::new(0);
    let began = Instant::now();
    let (warm_up, whole) = (LENGTH / 3, LENGTH);
    let run_until = |end: Duration, seed: u64| {
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (gateway, requests) = (&gateway, &requests);
                scope.spawn(move || {
                    let mut dice = Dice(seed * 1_000 + client + 1);
                    while began.elapsed() < end {
                        one_request(gateway, &mut dice);
                        requests.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
    };
    run_until(warm_up, 1);
    let warm = footprint(&gateway);
    run_until(whole, 2);
    let ran = requests.load(Ordering::Relaxed);
    assert!(ran > 100, "the soak hardly ran: {ran} requests");

    // Every request ended, exactly once: only the one that asks is active.
    gateway.wait_for("the end of all requests", |gateway| {
        gateway.get("/metrics").body.contains("gembridge_active_requests 1\n").then_some(())
    });
    gateway.wait_for("an end of all zombies", |gateway| {
        gembridge_testkit::zombies_of(gateway.pid()).is_empty().then_some(())
    });
    // What waits for its next message holds a few of each, more or fewer at any moment; thousands of requests that
    // leaked anything each would be far above these bounds.
    let is_calm = |now: &Footprint| {
        now.descriptors <= warm.descriptors + 250
            && now.threads <= warm.threads + 8
            && now.resident_kb <= warm.resident_kb * 3 / 2 + (16 << 10)
    };
    let deadline = Instant::now() + PATIENCE;
    while !is_calm(&footprint(&gateway)) {
        let now = footprint(&gateway);
        assert!(Instant::now() < deadline, "{ran} requests left {now:?}; it was {warm:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
    // Sessions that nobody has open are kept up to the bound, those of thousands of requests are not.
    gateway.wait_for("a store within its bounds", |gateway| (stored(gateway) < 8 << 20).then_some(()));
    // The circuit may be open after so many crashes; it closes by itself.
    gateway.wait_for("an answer after the storm", |gateway| (gateway.complete("say calm").status == 200).then_some(()));
    gateway.signal(rustix::process::Signal::TERM);
    assert!(gateway.ended().success());
}
