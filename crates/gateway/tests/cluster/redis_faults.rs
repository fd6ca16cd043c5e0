//! R15: what goes on without Redis, what says so, and that everything comes back by itself.

use rustix::process::Signal;

use crate::gateways::{Three, eventually, session};
use crate::support::gateway::said;

/// What is at hand goes on; what must be asked for is refused, with when to try again.
fn is_cut_off(three: &Three, id: &str) {
    let [a, b, _] = &three.gateways[..] else { unreachable!() };
    let pin = [("x-session-id", id)];
    let own = a.complete_as(&a.key, &said("count"), &pin);
    assert_eq!(own.status, 200, "{}", own.body);
    for (gateway, headers) in [(b, &pin[..]), (a, &[])] {
        let answer = gateway.complete_as(&gateway.key, &said("count"), headers);
        assert_eq!(answer.status, 503, "{}", answer.body);
        assert!(answer.header("retry-after").is_some(), "{:?}", answer.headers);
    }
}

fn is_whole_again(three: &Three, id: &str) {
    let b = &three.gateways[1];
    let pin = [("x-session-id", id)];
    eventually("the session is found again", || {
        let answer = b.complete_as(&b.key, &said("count"), &pin);
        (answer.status == 200).then(|| assert_eq!(session(&answer), id))
    });
    eventually("sessions begin again", || (three.gateways[0].complete("count").status == 200).then_some(()));
}

#[test]
fn r15_redis_is_killed_and_comes_back_empty() {
    let mut three = Three::start();
    let id = session(&three.gateways[0].complete("count"));
    three.redis.kill();
    is_cut_off(&three, &id);
    three.redis.run();
    is_whole_again(&three, &id);
    eventually("all gateways are listed", || (three.nodes().len() == 3).then_some(()));
    // One connection of each gateway, and this one.
    assert!(three.redis.count("total_connections_received") < 100, "no storm of connections");
}

#[test]
fn r15_redis_stands_still_and_goes_on() {
    let three = Three::start();
    let id = session(&three.gateways[0].complete("count"));
    three.redis.signal(Signal::STOP);
    // The first to ask waits for its deadline.
    is_cut_off(&three, &id);
    is_cut_off(&three, &id);
    three.redis.signal(Signal::CONT);
    is_whole_again(&three, &id);
}

#[test]
fn r15_redis_is_full_and_has_room_again() {
    let three = Three::start();
    let id = session(&three.gateways[0].complete("count"));
    three.redis.ask("CONFIG SET maxmemory 1");
    let a = &three.gateways[0];
    let own = a.complete_as(&a.key, &said("count"), &[("x-session-id", &id)]);
    assert_eq!(own.status, 200, "{}", own.body);
    let refused = a.complete("count");
    assert_eq!(refused.status, 503, "{}", refused.body);
    assert!(refused.header("retry-after").is_some());
    three.redis.ask("CONFIG SET maxmemory 0");
    is_whole_again(&three, &id);
}

#[test]
fn r15_connections_that_are_cut_are_opened_again() {
    let three = Three::start();
    let id = session(&three.gateways[0].complete("count"));
    three.redis.ask("CLIENT KILL TYPE normal SKIPME yes");
    is_whole_again(&three, &id);
}
