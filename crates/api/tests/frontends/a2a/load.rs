//! Many tasks: at once, and one after the other. The numbers are such that the test takes seconds; docs/a2a.md has those of
//! a long run.

use std::collections::HashMap;
use std::sync::Arc;

use gembridge_api::a2a::A2aConfig;
use gembridge_core::test_support::{ScriptedAgents, done, text};
use serde_json::json;
use tokio::task::JoinSet;

use super::support::{TestServer, Version, events, state};
use crate::scenarios::gateway::Gateway;

const AT_ONCE: usize = 200;
const LISTED: usize = 100;

#[tokio::test]
async fn tasks_in_flight_together_each_end_once_and_the_list_stays_bounded() {
    let agents = ScriptedAgents::new(|prompted| vec![vec![text(&format!("you said {}", prompted.prompt)), done()]]);
    let gateway = Gateway::new(&agents);
    let config = A2aConfig { listed: LISTED, ..A2aConfig::default() };
    let server = Arc::new(TestServer::with(&gateway, config).await);
    let mut streams = JoinSet::new();
    for number in 0..AT_ONCE {
        let server = Arc::clone(&server);
        streams.spawn(async move {
            let said = format!("number {number}");
            let answer = server.stream(Version::V03, Version::V03.text("m", &said)).await.whole().await;
            let events = events(Version::V03, &answer);
            let id = events[0].task.as_ref().expect("the task first")["id"].as_str().unwrap().to_owned();
            let ends = events.iter().filter_map(|event| event.status.as_ref()).filter(|status| status["final"] == true);
            let ends: Vec<_> = ends.map(state).collect();
            assert_eq!(ends, ["input-required"], "{said}");
            (id, said)
        });
    }
    let mut tasks = HashMap::new();
    while let Some(ended) = streams.join_next().await {
        let (id, said) = ended.unwrap();
        assert!(tasks.insert(id, said).is_none(), "each stream has a task of its own");
    }
    assert_eq!(tasks.len(), AT_ONCE);
    let listed = server.call(Version::V03, "tasks/list", json!({ "pageSize": 100 })).await.unwrap();
    assert_eq!(listed["totalSize"], LISTED, "the oldest left the list");
    for (id, said) in &tasks {
        let task = server.task(Version::V03, &json!(id)).await;
        assert_eq!(task["status"]["message"]["parts"][0]["text"], format!("you said {said}"), "and is found by its id");
    }
}
