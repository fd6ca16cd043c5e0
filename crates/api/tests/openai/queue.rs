//! The line before an agent.

use gembridge_core::fair::FairLimits;
use serde_json::json;

use crate::support::agents::Troupe;
use crate::support::stage::{Setting, Stage, chat_with};
use crate::support::{done, text};

fn setting(running: usize, waiting: usize) -> Setting {
    let mut setting = Setting::default();
    setting.config.queue = FairLimits { running, waiting, ..FairLimits::default() };
    setting
}

#[tokio::test]
async fn r19_exactly_the_surplus_is_refused() {
    let troupe = Troupe::new(|_| vec![vec![text("a")]]);
    let stage = Stage::with(&[("played", &troupe)], setting(2, 3)).await;
    let request = chat_with(&[("user", "hi")], json!({"stream": true}));
    let mut running = Vec::new();
    for _ in 0..2 {
        running.push(stage.stream(&request).await);
    }
    let release = async {
        let status = || stage.app.queues().next().unwrap().1;
        while status().waiting < 3 {
            tokio::task::yield_now().await;
        }
        let refused = stage.stream(&request).await.whole().await;
        assert_eq!(refused.error().0, 429);
        assert_eq!(refused.json()["error"]["code"], "queue_full");
        assert!(refused.header("retry-after").is_some());
        for agent in 0..5 {
            troupe.until_prompted(agent).await;
            troupe.does(agent, [done()]).await;
        }
    };
    let waiting = async { tokio::join!(stage.stream(&request), stage.stream(&request), stage.stream(&request)) };
    let ((first, second, third), ()) = tokio::join!(waiting, release);
    for stream in [first, second, third].into_iter().chain(running) {
        assert_eq!(stream.whole().await.streamed(0), "a");
    }
    assert_eq!(troupe.opened(), 5);
}

#[tokio::test]
async fn the_places_of_a_request_are_free_when_its_answers_are_over() {
    let troupe = Troupe::new(|_| vec![vec![text("a"), done()]]);
    let stage = Stage::with(&[("played", &troupe)], setting(2, 0)).await;
    for _ in 0..3 {
        let answer = stage.ask(&chat_with(&[("user", "hi")], json!({"n": 2}))).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    assert_eq!(stage.app.queues().next().unwrap().1.running, 0);
}
