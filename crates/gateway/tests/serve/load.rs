//! Many clients at once, clients that leave, and lines that are full.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use crate::support::gateway::{post, read_lines, said};
use crate::support::home::Home;
use crate::support::http::{Connection, End, Events};

const CLIENTS: usize = 200;

#[test]
fn r12_two_hundred_streams_at_once_all_arrive_whole_and_none_waits_much_longer() {
    let gateway = Home::for_serving().serve();
    let everybody = Barrier::new(CLIENTS);
    let mut times: Vec<Duration> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    everybody.wait();
                    let began = Instant::now();
                    let mut stream = gateway.stream("slow 50 100");
                    assert_eq!(stream.status, 200);
                    let (text, end) = stream.rest();
                    assert_eq!((text.split_whitespace().count(), end), (50, End::Done));
                    began.elapsed()
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    let resident = gembridge_testkit::rss_kb(gateway.pid());
    assert!(resident < 200 << 10, "{resident} kB");
    times.sort();
    let (median, slowest) = (times[CLIENTS / 2], times[CLIENTS - 1]);
    // Whoever had to wait for others to end would need many times as long; the rest is for a busy machine.
    assert!(slowest <= 4 * median, "median {median:?}, slowest {slowest:?}");
}

/// Far more than wait for a process by default, and more than run at once.
#[test]
fn r27_a_burst_of_new_conversations_waits_where_the_limits_allow_it() {
    const BURST: usize = 150;
    let limits = "limits.turns = 100\nlimits.queue = 1000\nlimits.idle_sessions = 100\n";
    let gateway = Home::for_serving().with_fake(&[], limits);
    let gateway = gateway.with_more_settings("[agents.fake.limits]\nsessions_per_process = 50\n").serve_fake();
    let everybody = Barrier::new(BURST);
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let ask = || {
            everybody.wait();
            gateway.complete("say here ;; sleep 200").status
        };
        let clients: Vec<_> = (0..BURST).map(|_| scope.spawn(ask)).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    assert_eq!(statuses, [200; BURST]);
}

#[test]
fn r11_with_64_descriptors_a_hundred_streams_are_served_or_told_and_the_gateway_goes_on() {
    let mut gateway = Home::for_serving().with_fake(&[], "").serve_fake_within(64);
    let streams: Vec<_> = (0..100).map(|_| gateway.stream("say here ;; sleep 3000")).collect();
    let served = streams.iter().filter(|stream| stream.status == 200).count();
    let told = streams.iter().filter(|stream| stream.status == 503).count();
    assert!(served >= 1, "agents start though clients would take everything");
    assert_eq!(served + told, 100);
    gateway.wait_for("health, while there is no room", |gateway| (gateway.get("/health").status == 200).then_some(()));
    drop(streams);
    // Each leaves a session that waits: those of before make room.
    for _ in 0..10 {
        gateway.wait_for("room again", |gateway| (gateway.complete("say again").status == 200).then_some(()));
    }
}

#[test]
fn r11_a_session_that_finds_no_descriptor_is_told_to_come_back() {
    let mut gateway = Home::for_serving().with_fake(&[], "").serve_fake();
    let pid = Pid::from_raw(gateway.pid().cast_signed()).unwrap();
    let mut connection = gateway.connect();
    let ask = |connection: &mut Connection| {
        let body = serde_json::json!({ "model": "fake", "messages": said("say here") });
        post(connection, &gateway.key, &body, &[]);
        connection.answer().unwrap()
    };
    assert_eq!(ask(&mut connection).status, 200);
    let before = getrlimit(Resource::Nofile);
    let none = Rlimit { current: Some(3), maximum: before.maximum };
    let allowed = prlimit(Some(pid), Resource::Nofile, none).unwrap();
    // What the driver has opened ahead is used up first.
    let mut told = 0;
    for _ in 0..10 {
        let answer = ask(&mut connection);
        if answer.status != 200 {
            assert_eq!(answer.status, 503, "{}", answer.body);
            assert!(answer.header("retry-after").is_some(), "{}", answer.body);
            told += 1;
        }
    }
    assert!(told > 0);
    prlimit(Some(pid), Resource::Nofile, allowed).unwrap();
    gateway.wait_for("descriptors again", |gateway| (gateway.complete("say again").status == 200).then_some(()));
}

#[test]
fn r8_a_client_that_leaves_cancels_its_turn() {
    let home = Home::for_serving();
    let record = home.path("record");
    let mut gateway = home.with_fake(&["--record", record.to_str().unwrap()], "").serve_fake();
    let mut stream = gateway.stream("say hello ;; wait-cancel");
    stream.until("hello");
    drop(stream);
    let cancelled = |_: &mut crate::support::gateway::Gateway| {
        read_lines(&record).iter().any(|line| line["recv"]["method"] == "session/cancel").then_some(())
    };
    gateway.wait_for("the cancel", cancelled);
    gateway.wait_for("the end of the request", |gateway| {
        gateway.get("/metrics").body.contains("gembridge_active_requests 1\n").then_some(())
    });
    assert_eq!(gateway.complete("say next").text(), "next");
}

#[test]
fn r19_a_line_that_is_full_refuses_exactly_those_that_are_too_many() {
    let home = Home::for_serving();
    let gate = home.path("gate");
    let prompt = format!("until {} ;; say done", gate.display());
    let mut gateway = home.with_fake(&[], "limits.turns = 1\nlimits.queue = 4\n").serve_fake();
    let (running, waiting, too_many) = (1, 4, 5);
    let mut connections = Vec::new();
    for place in 0..running + waiting {
        let mut connection = gateway.connect();
        let body = serde_json::json!({ "model": "fake", "stream": true, "messages": said(&prompt) });
        post(&mut connection, &gateway.key, &body, &[]);
        connections.push(connection);
        // One after the other, so that it is known who waits.
        gateway.wait_for("the request in its line", |gateway| {
            let metrics = gateway.get("/metrics").body;
            metrics.contains(&format!("gembridge_active_requests {}\n", place + 2)).then_some(())
        });
    }
    gateway.wait_for("a full line", |gateway| {
        gateway.get("/metrics").body.contains("gembridge_queue_depth{agent=\"fake\"} 4\n").then_some(())
    });
    for _ in 0..too_many {
        let refused = gateway.complete(&prompt);
        assert_eq!((refused.status, refused.code().as_str()), (429, "queue_full"));
        assert!(refused.header("retry-after").is_some());
    }
    // A waiter that leaves makes room for another.
    drop(connections.pop());
    gateway.wait_for("room in the line", |gateway| {
        gateway.get("/metrics").body.contains("gembridge_queue_depth{agent=\"fake\"} 3\n").then_some(())
    });
    let mut late = gateway.connect();
    let body = serde_json::json!({ "model": "fake", "stream": true, "messages": said(&prompt) });
    post(&mut late, &gateway.key, &body, &[]);
    connections.push(late);
    std::fs::write(&gate, "").unwrap();
    for connection in connections {
        let mut events = Events::begin(connection).unwrap();
        assert_eq!((events.status, events.rest()), (200, ("done".to_owned(), End::Done)));
    }
}

#[test]
fn sessions_that_wait_are_cleared_so_that_new_ones_find_room() {
    let settings = "limits.sessions = 24\nlimits.idle_sessions = 4\n";
    let mut gateway = Home::for_serving().with_fake(&[], settings).serve_fake();
    for round in 0..60 {
        let answer = gateway.complete(&format!("say {round}"));
        // The table may be full for a moment between two looks.
        if answer.status != 200 {
            assert_eq!(answer.status, 429, "{}", answer.body);
            gateway.wait_for("room", |gateway| (gateway.complete("say room").status == 200).then_some(()));
        }
    }
}
