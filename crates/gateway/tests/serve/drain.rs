//! SIGTERM: no new work, running turns end, then everything is gone.

use std::net::TcpStream;

use rustix::process::Signal;

use crate::support::gateway::Gateway;
use crate::support::home::Home;
use crate::support::http::{Connection, End};

/// A connection that was there before; it answers once per request.
fn ready(connection: &mut Connection) -> std::io::Result<u16> {
    connection.send("GET", "/readyz", &[], None)?;
    Ok(connection.answer()?.status)
}

fn agents_of(gateway: &Gateway) -> usize {
    let tag = gateway.home.path("");
    gembridge_testkit::processes_with_tag(tag.to_str().unwrap()).iter().filter(|pid| **pid != gateway.pid()).count()
}

#[test]
fn r13_twenty_streams_end_whole_while_new_work_is_refused() {
    let mut gateway = Home::for_serving().serve();
    let mut streams: Vec<_> = (0..20).map(|_| gateway.stream("slow 100 100")).collect();
    for stream in &mut streams {
        assert_eq!(stream.status, 200);
        stream.until(" ");
    }
    gateway.signal(Signal::TERM);
    gateway.wait_for("a closed listener", |gateway| TcpStream::connect(gateway.address).is_err().then_some(()));
    assert!(gateway.is_running(), "running turns go on");
    for stream in &mut streams {
        let (_, end) = stream.rest();
        assert_eq!(end, End::Done);
    }
    assert!(gateway.ended().success());
    gateway.wait_for("the end of the agents", |gateway| (agents_of(gateway) == 0).then_some(()));
}

#[test]
fn r13_readiness_is_gone_at_once_for_whoever_is_still_connected() {
    let home = Home::for_serving();
    let gate = home.path("gate");
    let prompt = format!("say begun ;; until {} ;; say done", gate.display());
    let mut gateway = home.with_fake(&[], "").serve_fake();
    let mut streams: Vec<_> = (0..20).map(|_| gateway.stream(&prompt)).collect();
    for stream in &mut streams {
        stream.until("begun");
    }
    // They are accepted in their order: an answer to the last one says that the others were.
    let (mut silent, mut late, mut asked) = (gateway.connect(), gateway.connect(), gateway.connect());
    assert_eq!(ready(&mut asked).unwrap(), 200);
    gateway.signal(Signal::TERM);
    gateway.wait_for("a closed listener", |gateway| TcpStream::connect(gateway.address).is_err().then_some(()));
    // Idle ones stay as long as there is somebody to wait for, and are told each time.
    for probe in [&mut asked, &mut silent] {
        assert_eq!(ready(probe).unwrap(), 503);
        assert_eq!(ready(probe).unwrap(), 503);
    }
    late.send("GET", "/v1/models", &[], None).unwrap();
    let refused = late.answer().unwrap();
    assert_eq!(refused.status, 503);
    let number = refused.header("x-request-id").unwrap();
    gateway.wait_for("its record", |gateway| {
        gateway.stderr().lines().any(|line| line.contains("request refused") && line.contains(number)).then_some(())
    });
    std::fs::write(&gate, "").unwrap();
    for stream in &mut streams {
        assert_eq!(stream.rest(), ("done".to_owned(), End::Done));
    }
    assert!(gateway.ended().success());
    assert!(ready(&mut asked).is_err(), "they go when everybody is done");
}

#[test]
fn r13_turns_that_take_longer_are_cut_with_a_word_and_the_exit_is_clean() {
    let home = Home::for_serving();
    home.configure_serving("[server]\ndrain = '1s'\n");
    let mut gateway = home.serve();
    let mut stream = gateway.stream("slow 3000 100");
    stream.until(" ");
    gateway.signal(Signal::TERM);
    let (_, end) = stream.rest();
    assert_eq!(end, End::Error("unavailable".to_owned()), "the client is told");
    assert!(gateway.ended().success());
    gateway.wait_for("the end of the agents", |gateway| (agents_of(gateway) == 0).then_some(()));
}

#[test]
fn r13_a_second_signal_is_immediate_and_leaves_no_process() {
    let home = Home::for_serving();
    // Longer than anybody waits here for the end of the process.
    home.configure_serving("[server]\ndrain = '10m'\n");
    let mut gateway = home.serve();
    let mut stream = gateway.stream("slow 30000 100");
    stream.until(" ");
    gateway.signal(Signal::TERM);
    gateway.wait_for("the drain", |gateway| gateway.stderr().contains("draining").then_some(()));
    gateway.signal(Signal::TERM);
    gateway.ended();
    gateway.wait_for("the end of the agents", |gateway| (agents_of(gateway) == 0).then_some(()));
}
