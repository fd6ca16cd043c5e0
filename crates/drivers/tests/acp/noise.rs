//! Agents that write what is no message, or write messages twice, late or to nobody.

use gembridge_core::model::{FailureKind, Outcome};

use super::agent_fixture::ScriptedAgent;

/// The text of two turns of an agent in this mode.
async fn two_turns(mode: &str) -> [String; 2] {
    let fixture = ScriptedAgent::fake(&["--mode", mode]).start();
    let mut client = fixture.session().await;
    let first = client.turn("say one ;; say two").await.finished();
    let second = client.turn("say three").await.finished();
    fixture.end().await;
    [first, second]
}

#[tokio::test]
async fn how_long_a_line_may_be_is_for_the_operator_to_say() {
    let mut plan = ScriptedAgent::fake(&["--mode", "hugeline:40000"]);
    plan.setup.line = 50_000;
    let fixture = plan.start();
    fixture.session().await.turn("say heard").await.finished();
    fixture.end().await;

    let mut plan = ScriptedAgent::fake(&["--mode", "hugeline:40000"]);
    plan.setup.line = 30_000;
    let fixture = plan.start();
    let turned = fixture.session().await.turn("say never").await;
    let failure = turned.failed_as(FailureKind::Protocol);
    assert!(failure.message.contains("longer than 30000 bytes"), "{failure}");
    fixture.end().await;
}

#[tokio::test]
async fn r4_banners_between_the_messages_are_passed_over() {
    assert_eq!(two_turns("banner").await, ["onetwo", "three"]);
}

#[tokio::test]
async fn r4_garbage_between_the_messages_is_passed_over() {
    assert_eq!(two_turns("garbage").await, ["onetwo", "three"]);
}

#[tokio::test]
async fn r4_a_batch_is_no_message_of_this_protocol() {
    assert_eq!(two_turns("batch").await, ["onetwo", "three"]);
}

#[tokio::test]
async fn r4_bytes_that_are_no_utf8_are_neither_the_end_nor_the_loss_of_a_text() {
    let bad = "bad-\u{fffd}-utf8 ";
    let [first, second] = two_turns("badutf8").await;
    // One more stands before what the agent says at the start of the session.
    assert!(first.ends_with(&format!("{bad}one{bad}two")), "{first}");
    assert_eq!(second, format!("{bad}three"));
}

#[tokio::test]
async fn r4_all_kinds_of_noise_at_once() {
    let fixture = ScriptedAgent::fake(&["--mode", "banner,garbage,batch,dup-reply,unknown-id"]).start();
    let mut client = fixture.session().await;
    for number in 0..20 {
        let word = format!("word-{number}");
        assert_eq!(client.turn(&format!("say {word}")).await.finished(), word);
    }
    fixture.end().await;
}

#[tokio::test]
async fn r5_half_a_line_at_the_end_is_noise_and_the_turn_is_interrupted() {
    let fixture = ScriptedAgent::fake(&["--mode", "halfline"]).start();
    let turned = fixture.session().await.turn("anything").await;
    assert_eq!(turned.text(), "chunk-0 ");
    turned.failed_as(FailureKind::Crashed);
    fixture.end().await;
}

#[tokio::test]
async fn a_response_that_comes_twice_ends_its_turn_once_and_never_the_next_one() {
    let fixture = ScriptedAgent::fake(&["--mode", "dup-reply"]).start();
    let mut client = fixture.session().await;
    let (gate, until) = fixture.gate("go");
    let first = client.prompt("say first").await;
    let second = client.prompt(&format!("say second ;; until {until} ;; say end")).await;
    assert_eq!(client.finish(first).await.finished(), "first");
    client.said("second").await;
    std::fs::write(gate, "").unwrap();
    assert_eq!(client.finish(second).await.finished(), "secondend");
    assert_eq!((client.ends_of(first).await, client.ends_of(second).await), (1, 1));
    fixture.end().await;
}

#[tokio::test]
async fn responses_to_requests_that_nobody_made_change_nothing() {
    assert_eq!(two_turns("unknown-id").await, ["onetwo", "three"]);
}

#[tokio::test]
async fn a_response_that_comes_late_after_a_cancel_ends_its_own_turn_only() {
    let fixture = ScriptedAgent::fake(&["--mode", "late-reply:300"]).start();
    let mut client = fixture.session().await;
    let cancelled = client.prompt("say mine ;; wait-cancel").await;
    client.said("mine").await;
    client.handle.cancel().await.unwrap();
    let next = client.prompt("say next").await;
    let turned = client.finish(cancelled).await;
    assert_eq!((turned.text().as_str(), &turned.outcome), ("mine", &Outcome::Cancelled));
    assert_eq!(client.finish(next).await.finished(), "next");
    assert_eq!((client.ends_of(cancelled).await, client.ends_of(next).await), (1, 1));
    assert_eq!(fixture.record.starts().len(), 1, "it obeyed in time");
    fixture.end().await;
}

#[tokio::test]
async fn an_agent_that_calls_a_cancel_an_error_is_understood() {
    let fixture = ScriptedAgent::fake(&["--quirk", "error-on-cancel"]).start();
    let mut client = fixture.session().await;
    let turn = client.prompt("say begun ;; wait-cancel").await;
    client.said("begun").await;
    client.handle.cancel().await.unwrap();
    assert_eq!(client.finish(turn).await.outcome, Outcome::Cancelled);
    fixture.end().await;
}

#[tokio::test]
async fn r7b_a_flood_on_stderr_neither_blocks_the_agent_nor_is_remembered() {
    let fixture = ScriptedAgent::fake(&["--mode", "stderr-flood:16M"]).start();
    let mut client = fixture.session().await;
    assert_eq!(client.turn("say through").await.finished(), "through");
    let turned = client.turn("exit 4").await;
    let tail = turned.failed_as(FailureKind::Crashed).stderr_tail.clone().unwrap_or_default();
    let last = tail.lines().last().unwrap_or_default();
    assert!(last.contains("this line is one of very many on stderr"), "{last}");
    assert!(tail.len() < 64 << 10, "{} bytes", tail.len());
    fixture.end().await;
}

#[tokio::test]
async fn f15_a_request_of_the_agent_is_answered_under_any_id() {
    let fixture = ScriptedAgent::fake(&[]).start();
    let mut client = fixture.session().await;
    for request in [
        r#"raw {"jsonrpc":"2.0","id":1e400,"method":"no/such_method"}"#,
        r#"raw {"jsonrpc":"2.0","id":-1e400,"method":"fs/read_text_file","params":{"sessionId":"none"}}"#,
    ] {
        assert_eq!(client.turn(&format!("{request} ;; say one")).await.finished(), "one");
    }
    assert_eq!(client.turn("say two").await.finished(), "two", "the same agent goes on");
    fixture.end().await;
}
