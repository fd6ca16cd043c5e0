//! Tasks from their first message to their end.

use gembridge_api::a2a::A2aConfig;
use gembridge_core::driver::{AgentStop, Signal, Update};
use gembridge_core::model::{Content, Event, Stop, ToolCall, ToolCallId, ToolContent, ToolStatus};
use gembridge_core::store::MemoryStore;
use gembridge_core::test_support::{ScriptedAgents, crashed, done, text};
use serde_json::{Value, json};

use super::support::{BOTH, TestServer, Version, events, state, told};
use crate::scenarios::gateway::{Gateway, Setup};

fn echo() -> std::sync::Arc<ScriptedAgents> {
    ScriptedAgents::new(|prompted| vec![vec![text(&format!("you said {}", prompted.prompt)), done()]])
}

#[tokio::test]
async fn a_turn_ends_with_input_required_and_the_answer_in_its_message() {
    for version in BOTH {
        let gateway = Gateway::new(&echo());
        let server = TestServer::new(&gateway).await;
        let task = server.send(version, version.text("mine", "hi")).await;
        assert_eq!(state(&task), "input-required");
        assert_eq!(task["status"]["message"]["parts"][0]["text"], "you said hi");
        let said: Vec<_> =
            task["history"].as_array().unwrap().iter().map(|message| &message["parts"][0]["text"]).collect();
        assert_eq!(said, ["hi", "you said hi"]);
        assert_eq!(task["history"][0]["messageId"], "mine");
        assert_eq!(server.task(version, &task["id"]).await, task, "a task that is read is the same");
    }
}

#[tokio::test]
async fn a_stream_begins_with_the_task_and_ends_where_the_client_is_needed() {
    for version in BOTH {
        let gateway = Gateway::new(&echo());
        let server = TestServer::new(&gateway).await;
        let answer = server.stream(version, version.text("m", "hi")).await.whole().await;
        let events = events(version, &answer);
        let first = events[0].task.as_ref().expect("the task first");
        assert_eq!(first["history"][0]["parts"][0]["text"], "hi");
        let texts: String = told(&events, "text-content").iter().map(|part| part["text"].as_str().unwrap()).collect();
        assert_eq!(texts, "you said hi");
        let states: Vec<_> = events.iter().filter_map(|event| event.status.as_ref()).map(state).collect();
        assert_eq!(states.first().map(String::as_str), Some("working"));
        assert_eq!(states.last().map(String::as_str), Some("input-required"));
        if version == Version::V03 {
            let last: Vec<_> =
                events.iter().filter_map(|event| event.status.as_ref()).map(|status| status["final"] == true).collect();
            assert_eq!(last.iter().filter(|last| **last).count(), 1, "one event is the last");
            assert_eq!(last.last(), Some(&true));
        }
    }
}

#[tokio::test]
async fn a_task_goes_on_by_its_id_and_a_context_gets_another_task() {
    for version in BOTH {
        let agents = echo();
        let gateway = Gateway::new(&agents);
        let server = TestServer::new(&gateway).await;
        let first = server.send(version, version.text("a", "one")).await;
        let mut next = version.text("b", "two");
        next["taskId"] = first["id"].clone();
        let second = server.send(version, next.clone()).await;
        assert_eq!((&second["id"], &second["contextId"]), (&first["id"], &first["contextId"]));
        assert_eq!(second["history"].as_array().unwrap().len(), 4);
        let mut other = version.text("c", "three");
        other["contextId"] = first["contextId"].clone();
        let third = server.send(version, other).await;
        assert_ne!(third["id"], first["id"]);
        assert_eq!(third["contextId"], first["contextId"]);
        assert_eq!(third["history"].as_array().unwrap().len(), 2, "a task shows its own messages");
        assert_eq!(agents.prompts(0), ["one", "two", "three"], "one conversation");
        next["contextId"] = json!("another");
        let error = server.call(version, version.method("message/send"), json!({ "message": next })).await.unwrap_err();
        assert_eq!(error["code"], -32602);
    }
}

#[tokio::test]
async fn a_clients_own_name_of_a_context_is_kept() {
    let agents = echo();
    let gateway = Gateway::new(&agents);
    let server = TestServer::new(&gateway).await;
    for text in ["one", "two"] {
        let mut message = Version::V10.text("m", text);
        message["contextId"] = json!("my-thread");
        assert_eq!(server.send(Version::V10, message).await["contextId"], "my-thread");
    }
    assert_eq!(agents.prompts(0), ["one", "two"]);
}

#[tokio::test]
async fn a_client_that_does_not_wait_gets_the_task_at_once_and_reads_it_later() {
    for version in BOTH {
        let agents = ScriptedAgents::new(|_| vec![vec![text("half")]]);
        let gateway = Gateway::new(&agents);
        let server = TestServer::new(&gateway).await;
        let configuration = match version {
            Version::V03 => json!({ "blocking": false }),
            Version::V10 => json!({ "returnImmediately": true }),
        };
        let params = json!({ "message": version.text("m", "hi"), "configuration": configuration });
        let result = server.call(version, version.method("message/send"), params).await.unwrap();
        let id = version.task(&result)["id"].clone();
        assert!(["submitted", "working"].contains(&state(version.task(&result)).as_str()));
        agents.until_prompted(0).await;
        let mut followed = server.open(version, "ann", version.method("tasks/resubscribe"), json!({ "id": id })).await;
        followed.until("half").await;
        agents.does(0, [text(" and half"), done()]).await;
        let seen = match version {
            Version::V03 => followed.until("input-required").await,
            Version::V10 => followed.until("INPUT_REQUIRED").await,
        };
        assert!(seen.lines().next().unwrap().contains("history"), "the task comes first");
        let task = server.task(version, &id).await;
        assert_eq!(task["status"]["message"]["parts"][0]["text"], "half and half");
    }
}

#[tokio::test]
async fn a_subscription_of_the_newer_version_lasts_until_the_task_is_over() {
    let agents = echo();
    let gateway = Gateway::new(&agents);
    let config = A2aConfig { keep_alive: std::time::Duration::from_millis(20), ..A2aConfig::default() };
    let server = TestServer::with(&gateway, config).await;
    let id = server.send(Version::V10, Version::V10.text("m", "one")).await["id"].clone();
    let mut followed = server.open(Version::V10, "ann", "SubscribeToTask", json!({ "id": id })).await;
    followed.until("you said one").await;
    let mut more = Version::V10.text("n", "two");
    more["taskId"] = id.clone();
    server.send(Version::V10, more).await;
    followed.until("you said two").await;
    // Silence is filled.
    followed.until(": keep-alive\n\n").await;
    server.call(Version::V10, "CancelTask", json!({ "id": id })).await.unwrap();
    let answer = followed.whole().await;
    let last = answer.body.lines().rfind(|line| line.starts_with("data: ")).unwrap();
    assert!(last.contains("TASK_STATE_CANCELED"), "{last}");
}

#[tokio::test]
async fn an_agent_says_by_its_stop_reason_that_a_task_is_complete_or_that_there_is_none() {
    let stopped = |reason: &str| Signal::Done { stop: AgentStop::Stopped(Stop::Other(reason.into())), usage: None };
    let agents = ScriptedAgents::new(move |prompted| vec![vec![text("so"), stopped(&prompted.prompt)]]);
    for version in BOTH {
        let gateway = Gateway::new(&agents);
        let server = TestServer::new(&gateway).await;
        let task = server.send(version, version.text("m", "completed")).await;
        assert_eq!(state(&task), "completed");
        let params = json!({ "message": version.text("m", "message") });
        let answer = server.call(version, version.method("message/send"), params).await.unwrap();
        let message = if version == Version::V10 { &answer["message"] } else { &answer };
        assert_eq!(message["parts"][0]["text"], "so", "{answer}");
        assert!(message["messageId"].is_string() && message.get("status").is_none());
    }
}

#[tokio::test]
async fn r8_a_task_survives_the_socket_of_its_client() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("half")]]);
    let gateway = Gateway::new(&agents);
    let server = TestServer::new(&gateway).await;
    let mut stream = server.stream(Version::V03, Version::V03.text("m", "hi")).await;
    let begun = stream.until("half").await.to_owned();
    drop(stream);
    let first: Value = serde_json::from_str(begun.lines().next().unwrap().strip_prefix("data: ").unwrap()).unwrap();
    agents.does(0, [text(" and half"), done()]).await;
    let id = &first["result"]["id"];
    let followed = server.open(Version::V03, "ann", "tasks/resubscribe", json!({ "id": id })).await.whole().await;
    assert!(followed.body.contains("input-required"), "{}", followed.body);
    assert_eq!(server.task(Version::V03, id).await["status"]["message"]["parts"][0]["text"], "half and half");
}

#[tokio::test]
async fn a_cancelled_task_is_over_whether_it_ran_or_waited() {
    for version in BOTH {
        let agents =
            ScriptedAgents::new(|prompted| if prompted.prompt == "stay" { vec![] } else { vec![vec![done()]] });
        let gateway = Gateway::new(&agents);
        let server = TestServer::new(&gateway).await;
        let cancel = version.method("tasks/cancel");
        let idle = server.send(version, version.text("m", "hi")).await["id"].clone();
        let mut stream = server.stream(version, version.text("m", "stay")).await;
        let begun = stream.until("\n\n").await.to_owned();
        let begun: Value = serde_json::from_str(begun.lines().next().unwrap().strip_prefix("data: ").unwrap()).unwrap();
        agents.until_prompted(1).await;
        let running = version.task(&begun["result"])["id"].clone();
        for id in [idle, running] {
            let task = server.call(version, cancel, json!({ "id": id })).await.unwrap();
            assert_eq!(state(&task), "canceled");
            assert_eq!(state(&server.task(version, &id).await), "canceled");
            let again = server.call(version, cancel, json!({ "id": id })).await.unwrap_err();
            assert_eq!(again["code"], -32002);
            let mut more = version.text("n", "more");
            more["taskId"] = id.clone();
            let refused =
                server.call(version, version.method("message/send"), json!({ "message": more })).await.unwrap_err();
            assert_eq!(refused["code"], -32004);
            let subscribe =
                server.call(version, version.method("tasks/resubscribe"), json!({ "id": id })).await.unwrap_err();
            assert_eq!(subscribe["code"], -32004);
        }
        let events = events(version, &stream.whole().await);
        assert_eq!(state(events.last().unwrap().status.as_ref().unwrap()), "canceled");
    }
}

#[tokio::test]
async fn a_failed_turn_fails_its_task_with_a_reason_and_the_context_goes_on() {
    let agents = ScriptedAgents::new(|prompted| {
        let died = || Signal::Lost(crashed("the agent died"));
        if prompted.prompt.contains("again") {
            vec![vec![text("well"), done()]]
        } else {
            vec![vec![text("half"), died()]]
        }
    });
    let gateway = Gateway::new(&agents);
    let server = TestServer::new(&gateway).await;
    let task = server.send(Version::V03, Version::V03.text("m", "hi")).await;
    assert_eq!(task["status"]["state"], "failed");
    assert!(task["status"]["message"]["parts"][0]["text"].as_str().unwrap().contains("the agent died"));
    let mut again = Version::V03.text("n", "again");
    again["contextId"] = task["contextId"].clone();
    assert_eq!(server.send(Version::V03, again).await["status"]["state"], "input-required");
}

#[tokio::test]
async fn s11_a_task_of_another_key_is_not_there() {
    for version in BOTH {
        let gateway = Gateway::new(&echo());
        let server = TestServer::new(&gateway).await;
        let id = server.send(version, version.text("m", "hi")).await["id"].clone();
        let mut message = version.text("n", "more");
        message["taskId"] = id.clone();
        let calls = [
            ("tasks/get", json!({ "id": id })),
            ("tasks/cancel", json!({ "id": id })),
            ("tasks/resubscribe", json!({ "id": id })),
            ("message/send", json!({ "message": message })),
            ("message/stream", json!({ "message": message })),
        ];
        for (method, params) in calls {
            let error = server.call_as(version, "bob", version.method(method), params).await.unwrap_err();
            assert_eq!(error["code"], -32001, "{method}");
        }
        let list = server.call_as(version, "bob", version.method("tasks/list"), json!({})).await.unwrap();
        assert_eq!((&list["tasks"], &list["totalSize"]), (&json!([]), &json!(0)));
    }
}

#[tokio::test]
async fn files_and_the_output_of_tools_are_artifacts_apart_from_the_text() {
    let document = |text: &str| {
        let content = Content::Document { uri: "file:///notes.txt".into(), mime: None, text: text.into() };
        Signal::Update(Update::ours(Event::Content(content)))
    };
    let image = Content::Image { mime: "image/png".into(), data: "AAAA".into(), uri: None };
    let mut tool = ToolCall::update(ToolCallId::new("call-1"));
    tool.name = Some("search".into());
    tool.status = Some(ToolStatus::Completed);
    tool.content = Some(vec![ToolContent::Content(Content::text("found"))]);
    let updates =
        [Event::ToolCall(Box::new(tool)), Event::Content(image)].map(|event| Signal::Update(Update::ours(event)));
    let script = [vec![document("one "), document("two")], updates.to_vec(), vec![text("look"), done()]].concat();
    let agents = ScriptedAgents::new(move |_| vec![script.clone()]);
    for version in BOTH {
        let gateway = Gateway::new(&agents);
        let server = TestServer::new(&gateway).await;
        let answer = server.stream(version, version.text("m", "hi")).await.whole().await;
        let events = events(version, &answer);
        let told: Vec<_> = events.iter().filter_map(|event| event.artifact.as_ref()).collect();
        assert_eq!(told.iter().map(|update| update["append"] == true).collect::<Vec<_>>(), [false, true, false, false]);
        let task = server.task(version, &events[0].task.as_ref().unwrap()["id"]).await;
        let artifacts = task["artifacts"].as_array().unwrap();
        assert_eq!(
            artifacts.iter().map(|artifact| artifact["parts"].as_array().unwrap().len()).collect::<Vec<_>>(),
            [2, 1, 1]
        );
        assert_eq!((&artifacts[0]["name"], &artifacts[0]["parts"][1]["text"]), (&json!("notes.txt"), &json!("two")));
        assert_eq!(
            (&artifacts[1]["artifactId"], &artifacts[1]["parts"][0]["text"]),
            (&json!("tool-call-1-output"), &json!("found"))
        );
        assert_eq!(task["status"]["message"]["parts"][0]["text"], "look");
    }
}

#[tokio::test]
async fn tasks_are_listed_newest_first_and_page_by_page() {
    for version in BOTH {
        let gateway = Gateway::new(&echo());
        let server = TestServer::new(&gateway).await;
        let mut ids = Vec::new();
        for text in ["one", "two", "three"] {
            ids.insert(0, server.send(version, version.text("m", text)).await["id"].clone());
        }
        let list = version.method("tasks/list");
        let page = server.call(version, list, json!({ "pageSize": 2 })).await.unwrap();
        let listed =
            |page: &Value| page["tasks"].as_array().unwrap().iter().map(|task| task["id"].clone()).collect::<Vec<_>>();
        assert_eq!((listed(&page), &page["totalSize"]), (ids[..2].to_vec(), &json!(3)));
        assert!(page["tasks"][0].get("artifacts").is_none(), "artifacts are left out unless asked for");
        let next = json!({ "pageSize": 2, "pageToken": page["nextPageToken"] });
        let rest = server.call(version, list, next).await.unwrap();
        assert_eq!((listed(&rest), &rest["nextPageToken"]), (ids[2..].to_vec(), &json!("")));
        for wrong in [
            json!({ "pageSize": 0 }),
            json!({ "pageSize": 101 }),
            json!({ "pageToken": "x" }),
            json!({ "status": "odd" }),
        ] {
            assert_eq!(server.call(version, list, wrong).await.unwrap_err()["code"], -32602);
        }
    }
}

#[tokio::test]
async fn s26_a_page_of_long_tasks_is_full_before_it_takes_the_memory() {
    let gateway = Gateway::new(&ScriptedAgents::new(|_| vec![vec![text(&"x".repeat(3 << 20)), done()]]));
    let server = TestServer::new(&gateway).await;
    for message in ["a", "b", "c", "d"] {
        server.send(Version::V10, Version::V10.text(message, "hi")).await;
    }
    let (mut token, mut pages) = (json!(""), Vec::new());
    loop {
        let list = json!({ "pageSize": 100, "historyLength": 10, "pageToken": token });
        let list = if token == "" { json!({ "pageSize": 100, "historyLength": 10 }) } else { list };
        let page = server.call(Version::V10, Version::V10.method("tasks/list"), list).await.unwrap();
        pages.push(page["tasks"].as_array().unwrap().len());
        token = page["nextPageToken"].clone();
        if token == "" {
            break;
        }
    }
    assert_eq!(pages.iter().sum::<usize>(), 4);
    assert!(pages.len() > 1, "{pages:?}");
}

#[tokio::test]
async fn finished_tasks_are_read_after_a_restart() {
    for version in BOTH {
        let agents = echo();
        let store = MemoryStore::new();
        let gateway = Gateway::with(&agents, Setup { store: store.clone(), ..Setup::default() });
        let task = TestServer::new(&gateway).await.send(version, version.text("m", "hi")).await;
        gateway.sessions.shutdown().await;
        let gateway = Gateway::with(&agents, Setup { store, ..Setup::default() });
        let server = TestServer::new(&gateway).await;
        assert_eq!(server.task(version, &task["id"]).await, task);
    }
}
