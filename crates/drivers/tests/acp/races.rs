//! What may happen in the same moment happens in every order, and each turn ends once.

use std::time::Duration;

use gembridge_core::model::{Event, Outcome, Stop};

use super::agent_fixture::ScriptedAgent;

/// A small generator, so that a failure can be run again.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

#[tokio::test]
async fn r24_a_cancel_that_races_the_last_chunk_ends_the_turn_exactly_once() {
    let fixture = ScriptedAgent::fake(&[]).limit(|limits| limits.ring_entries = 1_000_000).start();
    let mut client = fixture.session().await;
    let mut chance = Seeded(24);
    let (mut finished, mut cancelled) = (0, 0);
    for number in 0..200 {
        let turn = client.prompt(&format!("say begin-{number} ;; chunks 3 ;; say end-{number}")).await;
        client.said(&format!("begin-{number}")).await;
        for _ in 0..chance.below(6) {
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_micros(chance.below(400))).await;
        client.handle.cancel_turn(turn).await.unwrap();
        let turned = client.finish(turn).await;
        match turned.outcome {
            Outcome::Finished(Stop::EndTurn) => {
                assert_eq!(turned.text(), format!("begin-{number}chunk-0 chunk-1 chunk-2 end-{number}"));
                finished += 1;
            }
            Outcome::Cancelled => cancelled += 1,
            ref other => panic!("turn {number}: {other:?}"),
        }
        let foreign = turned.events().any(|event| match event {
            Event::Text(text) => text.to_str().starts_with("begin-") && text.to_str() != format!("begin-{number}"),
            _ => false,
        });
        assert!(!foreign, "turn {number} holds another turn's text");
        assert_eq!(client.ends_of(turn).await, 1, "turn {number}");
    }
    assert_eq!(finished + cancelled, 200);
    assert_eq!(fixture.record.starts().len(), 1, "an agent that obeys is never replaced");
    fixture.end().await;
}

#[tokio::test]
async fn r24_an_exit_that_races_the_next_prompt_ends_every_turn_exactly_once() {
    let mut plan = ScriptedAgent::fake(&[]);
    plan.setup.restart.failures = 1_000;
    plan.setup.restart.first_backoff = Duration::ZERO;
    let fixture = plan.start();
    let mut client = fixture.session().await;
    let mut turns = Vec::new();
    for _ in 0..25 {
        turns.push(client.prompt("say x ;; trail 2").await);
        turns.push(client.prompt("say y ;; exit 1").await);
        if turns.len() % 10 == 0 {
            for turn in &turns {
                client.finish(*turn).await;
            }
        }
    }
    for turn in turns {
        client.finish(turn).await;
        assert_eq!(client.ends_of(turn).await, 1);
    }
    fixture.end().await;
}

#[tokio::test]
async fn r24_an_answer_that_races_the_end_of_the_turn_is_taken_once_or_refused() {
    let fixture = ScriptedAgent::fake(&[]).start();
    let mut client = fixture.session().await;
    let mut chance = Seeded(42);
    for number in 0..60 {
        let turn = client.prompt("permission touch file").await;
        let ask = client.asked().await;
        let (cancel, answer) = (client.handle.clone(), client.answer(ask.id, ask.allow_once().unwrap()));
        let pause = chance.below(300);
        let cancelling = async {
            tokio::time::sleep(Duration::from_micros(pause)).await;
            cancel.cancel().await.unwrap();
        };
        let (answered, ()) = tokio::join!(answer, cancelling);
        let turned = client.finish(turn).await;
        let answers = turned.events().filter(|event| matches!(event, Event::Answered { .. })).count();
        assert_eq!(answers, 1, "turn {number}, answered: {answered:?}");
        assert_eq!(client.ends_of(turn).await, 1);
    }
    fixture.end().await;
}
