//! One list of scenarios over every front end. A new one adds one [`Api`], or an [`HttpApi`](api::HttpApi) where its clients
//! keep their own history, and a module at the end of this file.

mod a2a;
mod acp;
mod api;
pub mod gateway;
mod messages;
mod ollama;
mod openai;
mod plain_text;
mod responses;

use gembridge_core::admission::AdmissionLimits;
use gembridge_core::driver::Signal;
use gembridge_core::model::{Answer, Content, PromptAbilities};
use gembridge_core::store::MemoryStore;
use gembridge_core::test_support::{ScriptedAgents, crashed, done, text, thought};
use serde_json::json;

use self::a2a::A2a;
use self::acp::Acp;
use self::api::{Api, Ask, FailedKind, Questions, Said};
use self::gateway::{Gateway, Setup};
use self::messages::Messages;
use self::ollama::Ollama;
use self::openai::OpenAi;
use self::plain_text::PlainText;
use self::responses::ResponsesApi;
use crate::acp::support::asks;
use crate::openai::support::tools::FakeTools;

fn user(text: &'static str) -> Ask {
    Ask { messages: vec![Said::User(text)], ..Ask::default() }
}

async fn answers_what_was_asked<A: Api>() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("hel"), text("lo"), done()]]);
    let gateway = Gateway::new(&agents);
    let answered = A::new(&gateway).await.ask(&user("hi")).await;
    assert_eq!((answered.text.as_str(), answered.finish.as_str(), answered.failed), ("hello", "stop", None));
    assert_eq!(agents.prompts(0), ["hi"]);
}

async fn thoughts_are_apart_from_the_text<A: Api>() {
    let agents = ScriptedAgents::new(|_| vec![vec![thought("hm"), text("yes"), done()]]);
    let gateway = Gateway::new(&agents);
    let answered = A::new(&gateway).await.ask(&user("hi")).await;
    assert_eq!((answered.thoughts.as_str(), answered.text.as_str()), ("hm", "yes"));
}

async fn a_history_goes_on_in_its_session<A: Api>() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a"), done()]]);
    let gateway = Gateway::new(&agents);
    let api = A::new(&gateway).await;
    api.ask(&user("one")).await;
    let messages = vec![Said::User("one"), Said::Assistant("a"), Said::User("two")];
    assert_eq!(api.ask(&Ask { messages, ..Ask::default() }).await.text, "a");
    assert_eq!(agents.prompts(0), ["one", "two"], "the agent hears what is new");
}

async fn a_tool_round_goes_through_one_turn<A: Api>() {
    let (agents, tools) = (ScriptedAgents::new(|_| vec![]), FakeTools::new());
    let gateway = Gateway::with_tools(&agents, &tools);
    let api = A::new(&gateway).await;
    let first = Ask { tools: vec!["weather"], ..user("how is Paris?") };
    let (answered, waiting) = tokio::join!(api.ask(&first), async {
        agents.until_prompted(0).await;
        tools.call(0, "weather", &json!({"city": "Paris"})).await
    });
    assert_eq!((answered.finish.as_str(), answered.calls.len()), ("tool_calls", 1));
    assert_eq!(answered.calls[0].tool, "weather");
    let id = answered.calls[0].id.clone();
    let result = Said::Result { id, text: "sunny" };
    let messages = vec![Said::User("how is Paris?"), Said::Called(answered.calls), result];
    let second = Ask { messages, tools: vec!["weather"], ..Ask::default() };
    let (answered, ()) = tokio::join!(api.ask(&second), async {
        assert_eq!(waiting.text().await, "sunny");
        agents.does(0, [text("It is sunny."), done()]).await;
    });
    assert_eq!((answered.text.as_str(), answered.finish.as_str()), ("It is sunny.", "stop"));
    assert_eq!(agents.prompts(0), ["how is Paris?"], "nothing was told twice");
}

async fn calls_at_once_come_in_one_answer<A: Api>() {
    let (agents, tools) = (ScriptedAgents::new(|_| vec![]), FakeTools::new());
    let gateway = Gateway::with_calls_at_once(&agents, &tools);
    let api = A::new(&gateway).await;
    let ask = Ask { tools: vec!["weather", "time"], ..user("compare") };
    let (answered, _waiting) = tokio::join!(api.ask(&ask), async {
        agents.until_prompted(0).await;
        let one = tools.call(0, "weather", &json!({})).await;
        (one, tools.call(0, "time", &json!({})).await)
    });
    let names: Vec<&str> = answered.calls.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(names, ["weather", "time"]);
}

async fn a_wrong_form_is_repaired_before_the_client_sees_it<A: Api>() {
    let agents = ScriptedAgents::new(|prompted| {
        let said = if prompted.prompt.contains("was not used") { r#"{"a":1}"# } else { "well" };
        vec![vec![text(said), done()]]
    });
    let gateway = Gateway::new(&agents);
    let answered = A::new(&gateway).await.ask(&Ask { json: true, ..user("an object") }).await;
    assert_eq!((answered.text.as_str(), answered.finish.as_str()), (r#"{"a":1}"#, "stop"));
}

async fn pieces_come_as_they_are_said<A: Api>() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("hel")]]);
    let gateway = Gateway::new(&agents);
    let api = A::new(&gateway).await;
    let answered = api.ask_until(&user("hi"), "hel", agents.does(0, [text("lo"), done()])).await;
    assert_eq!((answered.text.as_str(), answered.finish.as_str()), ("hello", "stop"));
}

async fn an_image_reaches_the_agent<A: Api>() {
    let abilities = PromptAbilities { image: true, ..PromptAbilities::default() };
    let agents = ScriptedAgents::new(|_| vec![vec![text("a cat"), done()]]).with_abilities(abilities);
    let gateway = Gateway::new(&agents);
    let messages = vec![Said::User("what is this?"), Said::Image("iVBORw0=")];
    let answered = A::new(&gateway).await.ask(&Ask { messages, ..Ask::default() }).await;
    assert_eq!((answered.text.as_str(), answered.failed), ("a cat", None));
    let image = Content::Image { mime: "image/png".into(), data: "iVBORw0=".into(), uri: None };
    let blocks = agents.last_blocks(0);
    assert!(blocks.contains(&image), "{blocks:?}");
    assert_eq!(blocks.iter().filter(|block| matches!(block, Content::Image { .. })).count(), 1);
}

async fn a_permission_is_asked_of_the_client_or_refused<A: Api>() {
    let agents = ScriptedAgents::new(|_| vec![]);
    let gateway = Gateway::new(&agents);
    let api = A::new(&gateway).await;
    let (ask, answer) = (user("clean up"), |agents: &ScriptedAgents| agents.answers(0).pop());
    let (answered, ()) = tokio::join!(api.ask(&ask), async {
        agents.until_prompted(0).await;
        agents.does(0, [asks(1)]).await;
        agents.until("an answer", |agents| answer(agents).is_some()).await;
        agents.does(0, [text("as you like"), done()]).await;
    });
    let expected = match A::QUESTIONS {
        Questions::ForTheClient => "yes",
        Questions::ForNobody => "no",
    };
    assert_eq!(answer(&agents).map(|(_, answer)| answer), Some(Answer::Option(expected.into())));
    assert_eq!((answered.text.as_str(), answered.finish.as_str()), ("as you like", "stop"));
}

async fn a_client_that_cancels_ends_its_turn<A: Api>() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a")]]);
    let gateway = Gateway::new(&agents);
    A::new(&gateway).await.ask_and_cancel(&user("hi"), &agents).await;
    agents.until_cancelled(0).await;
}

async fn a_turn_that_is_cancelled_elsewhere_is_not_told_as_a_good_end<A: Api>() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("half")]]);
    let gateway = Gateway::new(&agents);
    let api = A::new(&gateway).await;
    let ask = user("hi");
    let (answered, ()) = tokio::join!(api.ask(&ask), async {
        agents.until_prompted(0).await;
        for session in gateway.sessions.live() {
            session.cancel().await.expect("the session is there");
        }
    });
    let told = answered.failed.map_or(answered.finish, |failed| failed.told);
    assert!(told.contains("cancelled"), "{told}");
}

async fn an_agent_that_dies_in_the_middle_is_told_behind_what_came<A: Api>() {
    let agents = ScriptedAgents::new(move |_| vec![vec![text("half"), Signal::Lost(crashed("the agent died"))]]);
    let gateway = Gateway::new(&agents);
    let answered = A::new(&gateway).await.ask(&user("hi")).await;
    let failed = answered.failed.expect("the client is told");
    assert!(failed.kind == FailedKind::Other && failed.told.contains("the agent died"), "{failed:?}");
    // A whole answer is an error and nothing else.
    assert!(["half", ""].contains(&answered.text.as_str()), "{}", answered.text);
    assert_eq!(answered.finish, "");
}

async fn a_conversation_goes_on_after_a_restart<A: Api>() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a"), done()]]);
    let store = MemoryStore::new();
    let gateway = Gateway::with(&agents, Setup { store: store.clone(), ..Setup::default() });
    let api = A::new(&gateway).await;
    assert_eq!(api.ask(&user("one")).await.text, "a");
    gateway.sessions.shutdown().await;
    let before = agents.opened();

    let gateway = Gateway::with(&agents, Setup { store, ..Setup::default() });
    let messages = vec![Said::User("one"), Said::Assistant("a"), Said::User("two")];
    let answered = api.reconnect(&gateway).await.ask(&Ask { messages, ..Ask::default() }).await;
    assert_eq!((answered.text.as_str(), answered.failed), ("a", None));
    let told: Vec<String> = (before..agents.opened()).flat_map(|agent| agents.prompts(agent)).collect();
    assert_eq!(told, ["[User]\none\n\n[Assistant]\na\n\n[User]\ntwo"], "the new agent hears what was said");
}

async fn a_full_queue_is_refused<A: Api>() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a")]]);
    let admission = AdmissionLimits { running: 1, waiting: 0, ..AdmissionLimits::default() };
    let gateway = Gateway::with(&agents, Setup { admission, ..Setup::default() });
    let api = A::new(&gateway).await;
    let (first, second) = (user("long"), user("me too"));
    let (first, ()) = tokio::join!(api.ask(&first), async {
        agents.until_prompted(0).await;
        let refused = api.ask(&second).await.failed.expect("it is refused");
        assert_eq!(refused.kind, FailedKind::Busy, "{}", refused.told);
        agents.does(0, [done()]).await;
    });
    assert_eq!((first.text.as_str(), first.failed), ("a", None));
}

/// A list of scenarios, to be run with one API after the other.
macro_rules! list {
    ($d:tt $name:ident: $($scenario:ident),* $(,)?) => {
        macro_rules! $name {
            ($d api:ty) => {
                $(#[tokio::test]
                async fn $scenario() {
                    super::$scenario::<$d api>().await;
                })*
            };
        }
    };
}

list!($ every_api:
    answers_what_was_asked,
    thoughts_are_apart_from_the_text,
    a_history_goes_on_in_its_session,
    an_image_reaches_the_agent,
    a_permission_is_asked_of_the_client_or_refused,
    a_client_that_cancels_ends_its_turn,
    a_turn_that_is_cancelled_elsewhere_is_not_told_as_a_good_end,
    an_agent_that_dies_in_the_middle_is_told_behind_what_came,
    a_conversation_goes_on_after_a_restart,
    a_full_queue_is_refused,
);

list!($ apis_that_stream: pieces_come_as_they_are_said);

list!($ apis_with_client_tools:
    a_tool_round_goes_through_one_turn,
    calls_at_once_come_in_one_answer,
    a_wrong_form_is_repaired_before_the_client_sees_it,
);

// A task asks for no form of its answers.
list!($ apis_with_tools_of_a_task: a_tool_round_goes_through_one_turn, calls_at_once_come_in_one_answer);

mod openai_whole {
    every_api!(super::OpenAi<false>);
    apis_with_client_tools!(super::OpenAi<false>);
}

mod openai_stream {
    every_api!(super::OpenAi<true>);
    apis_that_stream!(super::OpenAi<true>);
    apis_with_client_tools!(super::OpenAi<true>);
}

mod messages_whole {
    every_api!(super::Messages<false>);
    apis_with_client_tools!(super::Messages<false>);
}

mod messages_stream {
    every_api!(super::Messages<true>);
    apis_that_stream!(super::Messages<true>);
    apis_with_client_tools!(super::Messages<true>);
}

mod ollama_whole {
    every_api!(super::Ollama<false>);
    apis_with_client_tools!(super::Ollama<false>);
}

mod ollama_stream {
    every_api!(super::Ollama<true>);
    apis_that_stream!(super::Ollama<true>);
    apis_with_client_tools!(super::Ollama<true>);
}

mod responses_whole {
    every_api!(super::ResponsesApi<false>);
    apis_with_client_tools!(super::ResponsesApi<false>);
}

mod responses_stream {
    every_api!(super::ResponsesApi<true>);
    apis_that_stream!(super::ResponsesApi<true>);
    apis_with_client_tools!(super::ResponsesApi<true>);
}

mod plain_text_api {
    every_api!(super::PlainText);
    apis_that_stream!(super::PlainText);
    apis_with_client_tools!(super::PlainText);
}

mod acp_websocket {
    every_api!(super::Acp);
    apis_that_stream!(super::Acp);
}

mod a2a_03 {
    every_api!(super::A2a<false>);
    apis_that_stream!(super::A2a<false>);
    apis_with_tools_of_a_task!(super::A2a<false>);
}

mod a2a_10 {
    every_api!(super::A2a<true>);
    apis_that_stream!(super::A2a<true>);
    apis_with_tools_of_a_task!(super::A2a<true>);
}
