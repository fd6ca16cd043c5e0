//! Results that nobody waits for, or not from this client.

use gembridge_core::session::SessionHandle;
use serde_json::json;

use super::{Client, called, idle, ids};
use crate::openai::support::server::{TestServer, chat};
use crate::openai::support::tools::FakeTools;
use crate::openai::support::{done, text};
use gembridge_core::test_support::ScriptedAgents;

const TOLD_ANEW: &str = "[User]\nhow is Paris?\n\n[Assistant]\ncalled the tool weather with {\"city\":\"Paris\"}\n\n\
                         [Tool]\nweather gave back:\nsunny";

#[tokio::test]
async fn results_for_a_turn_that_is_gone_are_told_to_a_new_session() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let mut client = Client::new("how is Paris?");
    let (answer, _waiting) = called(&server, &agents, &tools, &client).await;
    server.session(&answer.headers).await.close().await.unwrap();
    let request = client.keep(&answer).result(&ids(&answer)[0], "sunny").request();
    let (answer, ()) = tokio::join!(server.ask(&request), async {
        agents.until_prompted(1).await;
        agents.does(1, [text("It is sunny."), done()]).await;
    });
    assert_eq!(answer.text(), "It is sunny.");
    assert_eq!(agents.prompts(1), [TOLD_ANEW]);
    // And that one goes on.
    let request = client.keep(&answer).says("sure?").request();
    let (answer, ()) = tokio::join!(server.ask(&request), async {
        super::prompted(&agents, 1, 2).await;
        agents.does(1, [text("Sure."), done()]).await;
    });
    assert_eq!((answer.text(), agents.opened()), ("Sure.".into(), 2));
}

#[tokio::test]
async fn results_after_a_turn_was_cancelled_are_told_to_a_new_session() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let mut client = Client::new("how is Paris?");
    let (answer, waiting) = called(&server, &agents, &tools, &client).await;
    server.session(&answer.headers).await.cancel().await.unwrap();
    agents.until_cancelled(0).await;
    drop(waiting);
    let request = client.keep(&answer).result(&ids(&answer)[0], "sunny").request();
    let (answer, ()) = tokio::join!(server.ask(&request), async {
        agents.until_prompted(1).await;
        agents.does(1, [text("yes"), done()]).await;
    });
    assert_eq!(answer.text(), "yes");
    assert_eq!(agents.prompts(1), [TOLD_ANEW]);
}

#[tokio::test]
async fn what_is_said_behind_a_turn_that_comes_to_wait_for_results_goes_in_where_they_would() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let client = Client::new("how is Paris?");
    let request = client.request();
    let (answer, said) = tokio::join!(server.ask(&request), async {
        agents.until_prompted(0).await;
        let session = server.sessions.live().into_iter().find(SessionHandle::has_agent).expect("one is at work");
        let id = session.id().to_string();
        let pinned = [("x-session-id", id.as_str())];
        let next = Client::with("never mind", client.fields.clone()).request();
        let (said, ()) = tokio::join!(server.ask_as("ann", &pinned, &next), async {
            while server.sessions.queues().map(|(_, status)| status.waiting).sum::<usize>() == 0 {
                tokio::task::yield_now().await;
            }
            let waiting = tools.call(0, "weather", &json!({"city": "Paris"})).await;
            assert!(waiting.text().await.contains("never mind"));
            agents.does(0, [text("As you like."), done()]).await;
        });
        said
    });
    assert_eq!(answer.finish(), "tool_calls", "{}", answer.body);
    assert_eq!(said.text(), "As you like.", "{}", said.body);
    assert_eq!(agents.prompts(0), ["how is Paris?"]);
}

#[tokio::test]
async fn calls_of_another_gateway_are_told_as_what_they_were() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("ok"), done()]]);
    let server = TestServer::with_tools(&agents, &FakeTools::new()).await;
    let call = |id: &str, city: &str| {
        let arguments = json!({"city": city}).to_string();
        json!({"id": id, "type": "function", "function": {"name": "weather", "arguments": arguments}})
    };
    let request = json!({"model": "played", "messages": [
        {"role": "user", "content": "compare"},
        {"role": "assistant", "content": "", "tool_calls": [call("toolu_1", "Paris"), call("toolu_2", "Rome")]},
        {"role": "tool", "tool_call_id": "toolu_2", "content": "wet"},
        {"role": "tool", "tool_call_id": "toolu_1", "content": "dry"},
    ]});
    assert_eq!(server.ask(&request).await.text(), "ok");
    let told = "[User]\ncompare\n\n[Assistant]\ncalled the tool weather (call 1) with {\"city\":\"Paris\"}\n\
                called the tool weather (call 2) with {\"city\":\"Rome\"}\n\n\
                [Tool]\nweather (call 2) gave back:\nwet\n\n[Tool]\nweather (call 1) gave back:\ndry";
    assert_eq!(agents.prompts(0), [told]);
}

#[tokio::test]
async fn s11_a_call_of_another_key_looks_like_one_that_never_was() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let mut client = Client::new("how is Paris?");
    let (answer, waiting) = called(&server, &agents, &tools, &client).await;
    let request = client.keep(&answer).result(&ids(&answer)[0], "sunny").request();
    let (stolen, ()) = tokio::join!(server.ask_as("bob", &[], &request), async {
        agents.until_prompted(1).await;
        agents.does(1, [text("for bob"), done()]).await;
    });
    assert_eq!(stolen.text(), "for bob");
    assert_ne!(stolen.header("x-session-id"), answer.header("x-session-id"));
    // The call still waits for its owner.
    let (answer, ()) = tokio::join!(server.ask(&request), async {
        assert_eq!(waiting.text().await, "sunny");
        agents.does(0, [text("for ann"), done()]).await;
    });
    assert_eq!(answer.text(), "for ann");
}

#[tokio::test]
async fn a_result_of_no_call_is_refused_by_name() {
    let server = TestServer::with_tools(&idle(), &FakeTools::new()).await;
    let calls = json!([{"id": "call_a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]);
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "x"});
    let user = json!({"role": "user", "content": "hi"});
    let calling = json!({"role": "assistant", "tool_calls": calls});
    let answer = json!({"role": "assistant", "content": "well"});
    for (messages, param) in [
        (json!([user, result("call_a")]), "messages[1].tool_call_id"),
        (json!([user, answer, result("call_a")]), "messages[2].tool_call_id"),
        (json!([user, calling, result("call_b")]), "messages[2].tool_call_id"),
        (json!([user, calling, result("call_a"), result("call_a")]), "messages[3].tool_call_id"),
        (json!([user, calling, {"role": "tool", "content": "x"}]), "messages[2].tool_call_id"),
        (json!([user, calling, {"role": "function", "name": "f", "content": "x"}]), "messages[2].name"),
    ] {
        let mut request = chat(&[]);
        request["messages"] = messages.clone();
        let refused = server.ask(&request).await;
        assert_eq!(refused.error(), (400, "invalid_request_error".into(), param.into()), "{}", refused.body);
    }
}

#[tokio::test]
async fn the_same_results_are_answered_again_from_before_what_is_in_memory() {
    let (agents, tools) = (idle(), FakeTools::new());
    let mut setting = crate::openai::support::server::ServerSetup {
        tools: Some(std::sync::Arc::clone(&tools)),
        ..Default::default()
    };
    setting.limits.ring_entries = 8;
    let server = TestServer::with(&[("played", &agents)], setting).await;
    let mut client = Client::new("how is Paris?");
    let (answer, waiting) = called(&server, &agents, &tools, &client).await;
    let request = client.keep(&answer).result(&ids(&answer)[0], "sunny").request();
    let words = (0..100).map(|number: u8| [number.to_string(), " ".into()].concat()).collect::<String>();
    let (answer, ()) = tokio::join!(server.ask(&request), async {
        assert_eq!(waiting.text().await, "sunny");
        for number in 0..100 {
            agents.does(0, [text(&format!("{number} "))]).await;
        }
        agents.does(0, [done()]).await;
    });
    assert_eq!(answer.text(), words);
    assert_eq!(server.ask(&request).await.text(), words);
}

#[tokio::test]
async fn a_client_that_leaves_while_its_results_are_answered_cancels_the_turn() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let mut client = Client::new("how is Paris?");
    let (answer, waiting) = called(&server, &agents, &tools, &client).await;
    let request = client.keep(&answer).result(&ids(&answer)[0], "sunny").request();
    tokio::select! {
        _ = server.ask(&request) => panic!("nobody answers"),
        told = waiting.text() => assert_eq!(told, "sunny"),
    }
    agents.until_cancelled(0).await;
}

#[tokio::test]
async fn an_image_that_a_tool_gave_back_does_not_keep_an_agent_that_takes_none_from_answering() {
    let (agents, tools) = (ScriptedAgents::new(|_| vec![vec![text("a cat"), done()]]), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0="}});
    let function = json!({"name": "look", "arguments": "{}"});
    let call = json!({"id": "call_elsewhere", "type": "function", "function": function});
    let messages = json!([
        {"role": "user", "content": "what is it?"},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_elsewhere", "content": [{"type": "text", "text": "see"}, image]},
    ]);
    let answer = server.ask(&json!({"model": "played", "messages": messages})).await;
    assert_eq!(answer.text(), "a cat", "{}", answer.body);
    let told = &agents.prompts(0)[0];
    assert!(told.contains("look gave back:\nsee") && told.ends_with("cannot be shown here)"), "{told}");
}
