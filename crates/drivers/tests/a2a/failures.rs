//! Every way in which a server can fail, and that the session lives on afterwards.

use std::time::Duration;

use gembridge_core::model::FailureKind;
use gembridge_drivers::profile::{AgentConfig, Profile};
use gembridge_drivers::setup::Audience;
use gembridge_testkit::a2a_server::{FakeA2aServer, Manner, Version};

use crate::agent_fixture::{AgentFixture, Turned};
use crate::remote::{VERSIONS, agent, server};

/// A turn that fails, and one after it that does not.
async fn failed(fixture: &AgentFixture, prompt: &str) -> Turned {
    let mut client = fixture.session().await;
    let turn = client.prompt(prompt).await;
    let turned = client.finish(turn).await;
    assert_eq!(client.ends_of(turn).await, 1, "{prompt}");
    assert!(client.turn("hello").await.finished().ends_with("hello"), "{prompt}");
    turned
}

#[tokio::test]
async fn each_fault_has_its_kind_and_the_next_turn_works() {
    for version in VERSIONS {
        let server = server(version, Manner::Coder).await;
        let fixture = agent(&server.url()).start();
        for (prompt, kind, said) in [
            ("status 500", FailureKind::Refused { code: 500 }, "HTTP status 500"),
            ("half", FailureKind::Crashed, "broke off"),
            ("early", FailureKind::Crashed, "ended before its task"),
            ("garbage", FailureKind::Protocol, "cannot be read"),
            ("refuse", FailureKind::UnknownModel { code: -32603 }, "is not found"),
            ("fail", FailureKind::Refused { code: 0 }, "the disk is full"),
        ] {
            let turned = failed(&fixture, prompt).await;
            let failure = turned.failed_as(kind);
            assert!(failure.message.contains(said), "{version:?} {prompt}: {failure}");
        }
        fixture.end().await;
    }
}

#[tokio::test]
async fn a_server_that_falls_silent_is_left_by_the_deadline_of_the_turn_and_its_task_cancelled() {
    let server = server(Version::V03, Manner::Coder).await;
    let fixture = agent(&server.url()).limit(|limits| limits.idle = Duration::from_millis(200)).start();
    let mut client = fixture.session().await;
    let turn = client.prompt("hang").await;
    client.finish(turn).await.failed_as(FailureKind::TimedOut);
    assert_eq!(client.ends_of(turn).await, 1);
    assert_eq!(server.called("tasks/cancel", 1).await["params"]["id"], "task-1");
    fixture.end().await;
}

#[tokio::test]
async fn the_body_of_an_error_is_told_without_its_keys() {
    let server = server(Version::V03, Manner::Coder).await;
    let fixture = agent(&server.url()).start();
    let turned = failed(&fixture, "status 500").await;
    let message = &turned.failure().message;
    assert!(message.contains("broken") && message.contains("[redacted]") && !message.contains("sk-0123"), "{message}");
    fixture.end().await;
}

#[tokio::test]
async fn a_server_that_is_not_there_or_wants_a_key_says_so() {
    let address = {
        let gone = server(Version::V03, Manner::Coder).await;
        gone.url()
    };
    let fixture = agent(&address).start();
    let turned = fixture.session().await.turn("hello").await;
    let failure = turned.failure();
    assert!(matches!(failure.kind, FailureKind::Unavailable { .. }), "{failure:?}");
    assert!(failure.message.contains(&address), "{failure}");
    fixture.end().await;
    let locked = FakeA2aServer::start_with(Version::V10, Manner::Coder, Some("a-key-of-the-operator")).await.unwrap();
    let fixture = agent(&locked.url()).start();
    fixture.session().await.turn("hello").await.failed_as(FailureKind::NeedsLogin);
    fixture.end().await;
}

#[tokio::test]
async fn guests_are_refused_by_name() {
    let server = server(Version::V03, Manner::Coder).await;
    let mut plan = agent(&server.url());
    plan.setup.audience = Audience::Guests;
    let fixture = plan.start();
    fixture.session().await.turn("hello").await.failed_as(FailureKind::Forbidden);
    assert_eq!(server.requests().len(), 0, "the server was not asked");
    fixture.end().await;
}

#[test]
fn an_address_that_cannot_be_one_is_refused_when_it_is_read() {
    let of = |config: &AgentConfig| Profile::custom("remote", config, &[]).map_err(|error| error.to_string());
    let at = |url: &str| of(&AgentConfig { url: Some(url.to_owned()), ..AgentConfig::default() });
    assert_eq!(at("http://127.0.0.1:9/a2a").unwrap().driver.as_str(), "a2a");
    for (url, said) in [
        ("ftp://host/", "neither `http://`"),
        ("127.0.0.1:9", "neither `http://`"),
        ("http://me:secret@host/", "`key_variable`"),
        ("not an address", "cannot be read"),
    ] {
        let error = at(url).unwrap_err();
        assert!(error.contains(said), "{url}: {error}");
    }
    let both =
        AgentConfig { url: Some("http://h".to_owned()), command: Some("agent".to_owned()), ..AgentConfig::default() };
    assert!(of(&both).unwrap_err().contains("name one of them"));
    let key = AgentConfig {
        command: Some("agent".to_owned()),
        key_variable: Some("KEY".to_owned()),
        ..AgentConfig::default()
    };
    assert!(of(&key).unwrap_err().contains("no `url`"));
}
