//! Keys and origins that are made or removed at one gateway hold at all of them.

use rustix::process::Signal;

use crate::gateways::{SECRET, eventually};
use crate::redis_server::RedisServer;
use crate::support::gateway::Gateway;
use crate::support::home::Home;
use crate::support::http::End;

fn home(redis: &RedisServer) -> Home {
    let home = Home::for_serving();
    home.configure_serving(&format!(
        "[cluster]\nredis = 'redis://{}'\naddress = '127.0.0.1'\nsecret = '{SECRET}'",
        redis.address
    ));
    home
}

/// A gateway whose first run made the operator's key, and one that came later and has that key too.
fn two(redis: &RedisServer) -> (Gateway, Gateway) {
    let first = home(redis).serve();
    eventually("the first key is shared", || (redis.ask("HLEN gembridge:list:keys").contains(":1")).then_some(()));
    let mut second = home(redis).serve();
    assert_eq!(second.key, "", "it makes no key of its own");
    first.key.clone_into(&mut second.key);
    (first, second)
}

fn status(gateway: &Gateway, key: &str) -> u16 {
    gateway.get_as(key, "/v1/models").status
}

#[test]
fn s6_a_key_is_good_everywhere_and_its_end_ends_its_streams_everywhere() {
    let redis = RedisServer::start();
    let (first, second) = two(&redis);
    assert_eq!(status(&second, &first.key), 200);
    let ann = second.home.key("ann");
    eventually("the key is good at the other gateway", || (status(&first, &ann) == 200).then_some(()));
    let mut stream = first.stream_as(&ann, "slow 1000 100 ms");
    assert_eq!(stream.status, 200);
    second.home.stdout_of(&["keys", "revoke", "ann"]);
    // The connection is closed; the turn may end first, and say so.
    let end = stream.rest().1;
    assert!(end == End::Cut || end == End::Error("unavailable".to_owned()), "the open stream ends: {end:?}");
    assert_eq!(status(&first, &ann), 401);
    // Redis knows names and digests, and no key.
    let held = redis.ask("HVALS gembridge:list:keys");
    assert!(held.contains("admin") && !held.contains(&ann) && !held.contains(&first.key), "{held}");

    second.home.stdout_of(&["origins", "allow", "https://app.example.org"]);
    eventually("the origin is allowed at the other gateway", || {
        first.home.stdout_of(&["origins", "list"]).contains("https://app.example.org").then_some(())
    });
    second.home.stdout_of(&["origins", "remove", "https://app.example.org"]);
    eventually("and not any more", || {
        (!first.home.stdout_of(&["origins", "list"]).contains("https://app.example.org")).then_some(())
    });
}

#[test]
fn s6_a_gateway_that_was_away_learns_what_was_made_and_what_was_revoked() {
    let redis = RedisServer::start();
    let (mut first, second) = two(&redis);
    let [ann, bob] = ["ann", "bob"].map(|name| second.home.key(name));
    for key in [&ann, &bob] {
        eventually("the key is good at the other gateway", || (status(&first, key) == 200).then_some(()));
    }
    first.signal(Signal::TERM);
    assert!(first.ended().success(), "{}", first.stderr());
    let away = first.into_home();
    second.home.stdout_of(&["keys", "revoke", "ann"]);
    let carl = second.home.key("carl");
    // Meanwhile somebody revokes one where no gateway runs.
    away.stdout_of(&["keys", "revoke", "bob"]);
    let first = away.serve();
    eventually("one is revoked, the other is good", || {
        ((status(&first, &ann), status(&first, &carl)) == (401, 200)).then_some(())
    });
    eventually("what was revoked here is revoked there", || (status(&second, &bob) == 401).then_some(()));
}

#[test]
fn s7_an_entry_that_the_cluster_did_not_sign_is_no_key() {
    let redis = RedisServer::start();
    let (first, second) = two(&redis);
    let forged = format!(
        r#"{{\"created\":\"2026-01-02T03:04:05Z\",\"digest\":\"{}\",\"name\":\"mallory\",\"rank\":\"admin\"}}"#,
        "0".repeat(64)
    );
    redis.ask(&format!("HSET gembridge:list:keys {} \"{forged}\"", "1".repeat(64)));
    let ann = second.home.key("ann");
    eventually("the list was read again", || (status(&first, &ann) == 200).then_some(()));
    let listed = first.home.stdout_of(&["keys", "list"]);
    assert!(listed.contains("ann") && !listed.contains("mallory"), "{listed}");
    assert!(first.stderr().contains("not signed"), "{}", first.stderr());
}
