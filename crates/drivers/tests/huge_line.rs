//! One test in a process of its own, since it measures the process.

#[expect(dead_code, reason = "the fixture serves many tests, this one needs a part")]
#[path = "support/agent_fixture.rs"]
mod agent_fixture;

use agent_fixture::ScriptedAgent;
use gembridge_core::model::FailureKind;
use gembridge_testkit::process_table::peak_rss_kb;

#[tokio::test]
async fn r6_a_line_of_300_mb_costs_less_than_16_mb_fails_the_turn_and_ends_the_agent() {
    let fixture = ScriptedAgent::fake(&["--mode", "hugeline:300M,ignore-sigterm"]).start();
    let mut client = fixture.session().await;
    client.handle.wake().await.unwrap();
    let own = std::process::id();
    let before = peak_rss_kb(own);
    let turned = client.turn("say never").await;
    let rise = peak_rss_kb(own) - before;
    let failure = turned.failed_as(FailureKind::Protocol);
    assert!(failure.message.contains("longer than"), "{failure}");
    assert!(rise < 16 << 10, "the peak rose by {rise} kB");
    fixture.deserted().await;
    assert_eq!(turned.text(), "");
    fixture.end().await;
}
