//! Which session a history finds.

use gembridge_core::model::{Failure, FailureKind, Stop};
use serde_json::json;

use crate::openai::support::server::{Dialogue, ServerSetup, TestServer, chat, chat_with};
use crate::openai::support::{done, stopped, text};
use gembridge_core::test_support::ScriptedAgents;

/// Answers every prompt with its last line in capitals.
fn shouting() -> std::sync::Arc<ScriptedAgents> {
    ScriptedAgents::new(|scene| {
        let answer = scene.prompt.lines().last().unwrap_or_default().to_uppercase();
        vec![vec![text(&answer[..answer.len() / 2])], vec![text(&answer[answer.len() / 2..]), done()]]
    })
}

#[tokio::test]
async fn twenty_turns_are_one_session_of_the_agent() {
    let agents = shouting();
    let server = TestServer::new(&agents).await;
    let mut dialogue = Dialogue(vec![json!({"role": "system", "content": "be loud"})]);
    let mut sessions = Vec::new();
    for turn in 0..20 {
        let mut request = dialogue.user(&format!("say {turn}"));
        request["stream"] = json!(turn % 2 == 0);
        let answer = server.stream(&request).await.whole().await;
        let said = if turn % 2 == 0 { answer.streamed(0) } else { answer.text() };
        assert_eq!(said, format!("SAY {turn}"));
        sessions.push(answer.header("x-session-id").unwrap().to_owned());
        dialogue.assistant(&said);
    }
    assert_eq!(agents.opened(), 1);
    assert!(sessions.iter().all(|session| *session == sessions[0]));
    let prompts = agents.prompts(0);
    assert_eq!(prompts[0], "[System]\nbe loud\n\n[User]\nsay 0");
    assert_eq!(prompts[19], "say 19");
}

#[tokio::test]
async fn a_first_message_goes_out_as_it_is() {
    let agents = shouting();
    let server = TestServer::new(&agents).await;
    server.ask(&chat(&[("user", "[User] just this")])).await.text();
    assert_eq!(agents.prompts(0), ["[User] just this"]);
}

#[tokio::test]
async fn an_edited_history_gets_a_session_that_knows_the_edit() {
    let agents = shouting();
    let server = TestServer::new(&agents).await;
    server.ask(&chat(&[("user", "one")])).await.text();
    let edited = [("user", "uno"), ("assistant", "ONE"), ("user", "two")];
    assert_eq!(server.ask(&chat(&edited)).await.text(), "TWO");
    assert_eq!(agents.opened(), 2);
    assert_eq!(agents.prompts(1), ["[User]\nuno\n\n[Assistant]\nONE\n\n[User]\ntwo"]);
    // The first is still there for who did not edit.
    let unedited = [("user", "one"), ("assistant", "ONE"), ("user", "two")];
    assert_eq!(server.ask(&chat(&unedited)).await.text(), "TWO");
    assert_eq!(agents.opened(), 2);
}

#[tokio::test]
async fn space_around_an_answer_is_no_edit() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("\n a\nb \n"), done()]]);
    let server = TestServer::new(&agents).await;
    server.ask(&chat(&[("user", "one")])).await.text();
    let request = json!({"model": "played", "messages": [
        {"role": "user", "content": [{"type": "text", "text": "one"}]},
        {"role": "assistant", "content": "a\nb", "refusal": null, "tool_calls": null},
        {"role": "user", "content": "two"},
    ]});
    server.ask(&request).await.text();
    assert_eq!(agents.opened(), 1);
    assert_eq!(agents.prompts(0), ["one", "two"]);
}

#[tokio::test]
async fn two_clients_with_one_history_do_not_share_a_session_once_they_part() {
    let agents = shouting();
    let server = TestServer::new(&agents).await;
    server.ask(&chat(&[("user", "one")])).await.text();
    let history = [("user", "one"), ("assistant", "ONE")];
    let with = |last: &'static str| chat(&[history[0], history[1], ("user", last)]);
    assert_eq!(server.ask(&with("left")).await.text(), "LEFT");
    assert_eq!(server.ask(&with("right")).await.text(), "RIGHT");
    assert_eq!(agents.opened(), 2);
    assert_eq!(agents.prompts(0), ["one", "left"]);
    assert_eq!(agents.prompts(1), ["[User]\none\n\n[Assistant]\nONE\n\n[User]\nright"]);
    // Both go on, each in its own.
    for (middle, answer) in [("left", "LEFT"), ("right", "RIGHT")] {
        let request = chat(&[history[0], history[1], ("user", middle), ("assistant", answer), ("user", "on")]);
        assert_eq!(server.ask(&request).await.text(), "ON");
    }
    assert_eq!(agents.opened(), 2);
}

#[tokio::test]
async fn two_clients_at_once_do_not_meet_in_one_session() {
    let agents =
        ScriptedAgents::new(|scene| if scene.prompt == "one" { vec![vec![text("ONE"), done()]] } else { vec![] });
    let server = TestServer::new(&agents).await;
    server.ask(&chat(&[("user", "one")])).await.text();
    let request = chat(&[("user", "one"), ("assistant", "ONE"), ("user", "two")]);
    let (first, second, ()) = tokio::join!(server.ask(&request), server.ask(&request), async {
        agents.until("both prompts", |agents| agents.prompts(0).len() == 2 && agents.prompts(1).len() == 1).await;
        agents.does(0, [text("from the first"), done()]).await;
        agents.does(1, [text("from the second"), done()]).await;
    });
    let mut texts = [first.text(), second.text()];
    texts.sort();
    assert_eq!(texts, ["from the first", "from the second"]);
}

#[tokio::test]
async fn the_same_request_again_gets_a_fresh_answer() {
    let agents = shouting();
    let server = TestServer::new(&agents).await;
    server.ask(&chat(&[("user", "one")])).await.text();
    let request = chat(&[("user", "one"), ("assistant", "ONE"), ("user", "two")]);
    assert_eq!(server.ask(&request).await.text(), "TWO");
    assert_eq!(server.ask(&request).await.text(), "TWO");
    assert_eq!(agents.prompts(0), ["one", "two"], "the first session was not asked twice");
    assert_eq!(agents.prompts(1), ["[User]\none\n\n[Assistant]\nONE\n\n[User]\ntwo"]);
}

#[tokio::test]
async fn a_session_whose_agent_died_is_replaced_by_one_that_hears_everything() {
    let agents = shouting();
    let server = TestServer::new(&agents).await;
    server.ask(&chat(&[("user", "one")])).await.text();
    agents.kill(0);
    let request = chat(&[("user", "one"), ("assistant", "ONE"), ("user", "two")]);
    assert_eq!(server.ask(&request).await.text(), "TWO");
    let told = (1..agents.opened()).flat_map(|agent| agents.prompts(agent)).collect::<Vec<_>>();
    assert_eq!(told, ["[User]\none\n\n[Assistant]\nONE\n\n[User]\ntwo"]);
}

#[tokio::test]
async fn a_session_that_its_agent_remembers_goes_on() {
    let agents = shouting();
    agents.resume();
    let server = TestServer::new(&agents).await;
    let first = server.ask(&chat(&[("user", "one")])).await;
    agents.kill(0);
    let request = chat(&[("user", "one"), ("assistant", "ONE"), ("user", "two")]);
    let second = server.ask(&request).await;
    assert_eq!(second.text(), "TWO");
    assert_eq!(agents.prompts(1), ["two"]);
    assert_eq!(first.header("x-session-id"), second.header("x-session-id"));
}

#[tokio::test]
async fn a_session_that_was_closed_is_replaced() {
    let agents = shouting();
    let server = TestServer::new(&agents).await;
    server.ask(&chat(&[("user", "one")])).await.text();
    for handle in server.sessions.live() {
        handle.close().await.unwrap();
    }
    let request = chat(&[("user", "one"), ("assistant", "ONE"), ("user", "two")]);
    assert_eq!(server.ask(&request).await.text(), "TWO");
    let last = agents.opened() - 1;
    assert_eq!(agents.prompts(last), ["[User]\none\n\n[Assistant]\nONE\n\n[User]\ntwo"]);
}

#[tokio::test]
async fn a_session_that_another_face_went_on_with_does_not_match() {
    let agents = shouting();
    let server = TestServer::new(&agents).await;
    let first = server.ask(&chat(&[("user", "one")])).await;
    let handle = server.session(&first.headers).await;
    let by = gembridge_core::model::ClientId(99);
    handle.prompt(gembridge_core::model::Prompt::text("by hand"), by).await.unwrap();
    let request = chat(&[("user", "one"), ("assistant", "ONE"), ("user", "two")]);
    assert_eq!(server.ask(&request).await.text(), "TWO");
    assert_eq!(agents.prompts(0), ["one", "by hand"]);
    assert_eq!(agents.prompts(1), ["[User]\none\n\n[Assistant]\nONE\n\n[User]\ntwo"]);
}

#[tokio::test]
async fn a_turn_that_failed_leaves_no_session_behind_that_matches() {
    let agents = ScriptedAgents::new(|scene| match scene.prompt.as_str() {
        "two" => vec![vec![
            text("half an ans"),
            gembridge_core::driver::Signal::Failed(Failure::new(FailureKind::Refused { code: 1 }, "no")),
        ]],
        _ => vec![vec![text("ONE"), done()]],
    });
    let server = TestServer::new(&agents).await;
    server.ask(&chat(&[("user", "one")])).await.text();
    let request = chat(&[("user", "one"), ("assistant", "ONE"), ("user", "two")]);
    assert_eq!(server.ask(&request).await.status, 502);
    let again = server.ask(&request).await;
    assert_eq!(again.text(), "ONE");
    assert_eq!(agents.opened(), 2);
}

#[tokio::test]
async fn a_full_context_ends_with_length_and_the_next_request_folds() {
    let agents = ScriptedAgents::new(|scene| match scene.prompt.as_str() {
        "one" => vec![vec![text("ON"), stopped(Stop::MaxTokens)]],
        "again" => vec![vec![gembridge_core::driver::Signal::Failed(Failure::new(
            FailureKind::ContextFull { code: 400 },
            "the input token count exceeds the maximum number of tokens allowed",
        ))]],
        _ => vec![vec![text("fine"), done()]],
    });
    let server = TestServer::new(&agents).await;
    let full = server.ask(&chat(&[("user", "one")])).await;
    assert_eq!((full.text(), full.finish()), ("ON".into(), "length".into()));
    let request = chat(&[("user", "one"), ("assistant", "ON"), ("user", "two")]);
    assert_eq!(server.ask(&request).await.text(), "fine");
    assert_eq!(agents.prompts(1), ["[User]\none\n\n[Assistant]\nON\n\n[User]\ntwo"]);
    assert_eq!(server.ask(&chat(&[("user", "again")])).await.finish(), "length");
}

#[tokio::test]
async fn nobody_meets_the_session_of_another_principal() {
    let agents = shouting();
    let server = TestServer::new(&agents).await;
    let first = server.ask_as("ann", &[], &chat(&[("user", "one")])).await;
    let request = chat(&[("user", "one"), ("assistant", "ONE"), ("user", "two")]);
    assert_eq!(server.ask_as("bob", &[], &request).await.text(), "TWO");
    assert_eq!(agents.opened(), 2);
    assert_eq!(agents.spec(1).principal.as_str(), "bob");
    let session = first.header("x-session-id").unwrap();
    let pinned = server.ask_as("bob", &[("x-session-id", session)], &request).await;
    let unknown = server.ask_as("bob", &[("x-session-id", "0198b3f0-0000-7000-8000-000000000000")], &request).await;
    assert_eq!(pinned.error(), (404, "not_found_error".into(), String::new()));
    assert_eq!(unknown.error(), pinned.error());
    assert_eq!(server.ask_as("ann", &[], &request).await.text(), "TWO");
    assert_eq!(agents.opened(), 2, "it is still ann's");
}

#[tokio::test]
async fn a_session_that_is_named_goes_on_whatever_the_history() {
    let agents = shouting();
    let server = TestServer::new(&agents).await;
    let first = server.ask(&chat(&[("user", "one")])).await;
    let session = first.header("x-session-id").unwrap();
    let pin = [("x-session-id", session)];
    assert_eq!(server.ask_as("ann", &pin, &chat(&[("user", "two")])).await.text(), "TWO");
    let matching = chat(&[("user", "one"), ("assistant", "ONE"), ("user", "three")]);
    assert_eq!(server.ask_as("ann", &pin, &matching).await.text(), "THREE");
    assert_eq!(agents.prompts(0), ["one", "two", "three"]);
    // What the session holds is known to nobody now: without the name the history gets another one.
    assert_eq!(server.ask(&matching).await.text(), "THREE");
    assert_eq!(agents.opened(), 2);
}

#[tokio::test]
async fn a_named_session_whose_agent_is_gone_hears_what_was_said_in_it() {
    let agents = shouting();
    let server = TestServer::new(&agents).await;
    let first = server.ask(&chat(&[("system", "be loud"), ("user", "one")])).await;
    let session = first.header("x-session-id").unwrap();
    let pin = [("x-session-id", session)];
    server.session(&first.headers).await.close().await.unwrap();
    let second = server.ask_as("ann", &pin, &chat(&[("user", "two")])).await;
    assert_eq!((second.text().as_str(), second.header("x-session-id")), ("TWO", Some(session)));
    assert_eq!(second.header("x-gembridge-left-out"), None);
    let one = "[System]\nbe loud\n\n[User]\none\n\n[Assistant]\nONE";
    assert_eq!(agents.prompts(1), [format!("{one}\n\n[User]\ntwo")]);
    // It has heard that once, and the next one hears it again.
    server.ask_as("ann", &pin, &chat(&[("user", "three")])).await.text();
    assert_eq!(agents.prompts(1)[1], "three");
    agents.kill(1);
    let whole = [("user", "one"), ("assistant", "ONE"), ("user", "two"), ("assistant", "TWO"), ("user", "four")];
    assert_eq!(server.ask_as("ann", &pin, &chat(&whole)).await.text(), "FOUR");
    let told =
        format!("{one}\n\n[User]\ntwo\n\n[Assistant]\nTWO\n\n[User]\nthree\n\n[Assistant]\nTHREE\n\n[User]\nfour");
    assert_eq!(agents.prompts(2), [told]);
}

#[tokio::test]
async fn a_history_that_is_that_of_the_named_session_is_told_as_the_client_tells_it() {
    let agents = shouting();
    let server = TestServer::new(&agents).await;
    let first = server.ask(&chat(&[("system", "be loud"), ("user", "one")])).await;
    let pin = [("x-session-id", first.header("x-session-id").unwrap())];
    agents.kill(0);
    let whole = [("system", "be loud"), ("user", "one"), ("assistant", "ONE"), ("user", "two")];
    assert_eq!(server.ask_as("ann", &pin, &chat(&whole)).await.text(), "TWO");
    let told = (1..agents.opened()).flat_map(|agent| agents.prompts(agent)).collect::<Vec<_>>();
    assert_eq!(told, ["[System]\nbe loud\n\n[User]\none\n\n[Assistant]\nONE\n\n[User]\ntwo"]);
}

#[tokio::test]
async fn what_a_named_session_does_not_tell_its_new_agent_is_counted() {
    let agents = shouting();
    let mut setting = ServerSetup::default();
    setting.limits.recap_bytes = 150;
    let server = TestServer::with(&[("played", &agents)], setting).await;
    let first = server.ask(&chat(&[("user", &"x".repeat(100))])).await;
    let pin = [("x-session-id", first.header("x-session-id").unwrap())];
    server.ask_as("ann", &pin, &chat(&[("user", "two")])).await.text();
    server.session(&first.headers).await.close().await.unwrap();
    for is_streamed in [false, true] {
        let request = chat_with(&[("user", "three")], json!({"stream": is_streamed}));
        let answer = server.ask_as("ann", &pin, &request).await;
        assert_eq!(answer.header("x-gembridge-left-out"), (!is_streamed).then_some("2"));
    }
    assert_eq!(agents.prompts(1), ["[User]\ntwo\n\n[Assistant]\nTWO\n\n[User]\nthree", "three"]);
}

#[tokio::test]
async fn another_programs_session_header_is_a_label_and_names_no_session() {
    let agents = shouting();
    let server = TestServer::new(&agents).await;
    let foreign = ["ses_6f1e2d3c4b5a", "0d0f3c1e-2a5b-4c6d-8e7f-90a1b2c3d4e5", "0198b3f00000700080000000000000000", ""];
    for label in foreign {
        let answer = server.ask_as("ann", &[("x-session-id", label)], &chat(&[("user", "one")])).await;
        assert_eq!(answer.text(), "ONE", "{label}");
        assert_ne!(answer.header("x-session-id"), Some(label), "ours is told all the same");
    }
    let first = server.ask(&chat(&[("user", "one")])).await;
    let pins = [("x-session-id", foreign[0]), ("x-session-id", first.header("x-session-id").unwrap())];
    let second = server.ask_as("ann", &pins, &chat(&[("user", "two")])).await;
    assert_eq!(second.header("x-session-id"), first.header("x-session-id"), "a label beside it changes nothing");
}

#[tokio::test]
async fn a_request_names_one_session_and_gets_one_answer_from_it() {
    let agents = shouting();
    let server = TestServer::new(&agents).await;
    let first = server.ask(&chat(&[("user", "one")])).await;
    let session = first.header("x-session-id").unwrap();
    let (pin, other) = (("x-session-id", session), ("x-session-id", "0198b3f0-0000-7000-8000-000000000000"));
    let several = chat_with(&[("user", "two")], json!({"n": 2}));
    let refused = server.ask_as("ann", &[pin], &several).await;
    assert_eq!(refused.error(), (400, "invalid_request_error".into(), "n".into()));
    let refused = server.ask_as("ann", &[pin, other], &chat(&[("user", "two")])).await;
    assert_eq!(refused.error(), (400, "invalid_request_error".into(), "x-session-id".into()));
    let twice = server.ask_as("ann", &[pin, pin], &chat(&[("user", "two")])).await;
    assert_eq!(twice.text(), "TWO");
    assert_eq!(agents.prompts(0), ["one", "two"]);
}

#[tokio::test]
async fn a_history_that_does_not_fit_loses_its_oldest_messages_and_says_so() {
    let agents = shouting();
    let mut setting = ServerSetup::default();
    setting.exchange.history_budget = 200;
    let server = TestServer::with(&[("played", &agents)], setting).await;
    let long = "x".repeat(100);
    let answer = server
        .ask(&chat(&[
            ("system", "rules"),
            ("user", &long),
            ("assistant", &long),
            ("user", "newer"),
            ("assistant", "NEWER"),
            ("user", "newest"),
        ]))
        .await;
    assert_eq!(answer.text(), "NEWEST");
    assert_eq!(answer.header("x-gembridge-left-out"), Some("2"));
    assert_eq!(agents.prompts(0), ["[System]\nrules\n\n[User]\nnewer\n\n[Assistant]\nNEWER\n\n[User]\nnewest"]);
    // A message that is larger than the budget still goes out whole.
    let huge = "y".repeat(1_000);
    let answer = server.ask(&chat(&[("system", "rules"), ("user", "a"), ("assistant", "b"), ("user", &huge)])).await;
    assert_eq!(answer.header("x-gembridge-left-out"), Some("2"));
    assert_eq!(agents.prompts(1), [format!("[System]\nrules\n\n[User]\n{huge}")]);
    // And a history that fits says nothing.
    let answer = server.ask(&chat(&[("user", "a"), ("assistant", "b"), ("user", "c")])).await;
    assert_eq!(answer.header("x-gembridge-left-out"), None);
}

#[tokio::test]
async fn one_of_several_answers_can_be_gone_on_with() {
    let agents = ScriptedAgents::new(|scene| vec![vec![text(&format!("from {}", scene.agent)), done()]]);
    let server = TestServer::new(&agents).await;
    let first = server.ask(&chat_with(&[("user", "one")], json!({"n": 2}))).await;
    let chosen = first.json()["choices"][1]["message"]["content"].as_str().unwrap().to_owned();
    let second = server.ask(&chat(&[("user", "one"), ("assistant", &chosen), ("user", "two")])).await;
    assert_eq!(second.text(), chosen);
    assert_eq!(agents.opened(), 2);
}

#[tokio::test]
async fn several_answers_name_the_session_of_the_first() {
    let agents = ScriptedAgents::new(|scene| vec![vec![text(&format!("from {}", scene.agent)), done()]]);
    let server = TestServer::new(&agents).await;
    for is_streamed in [false, true] {
        let request = chat_with(&[("user", "one")], json!({"n": 3, "stream": is_streamed}));
        let answer = server.ask(&request).await;
        let first = if is_streamed {
            answer.streamed(0)
        } else {
            answer.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
        };
        let pin = [("x-session-id", answer.header("x-session-id").unwrap())];
        assert_eq!(server.ask_as("ann", &pin, &chat(&[("user", "two")])).await.text(), first);
    }
}

#[tokio::test]
async fn what_is_new_and_not_the_users_keeps_its_speaker() {
    let agents = shouting();
    let server = TestServer::new(&agents).await;
    server.ask(&chat(&[("user", "one")])).await.text();
    let request = chat(&[("user", "one"), ("assistant", "ONE"), ("system", "be brief"), ("user", "two")]);
    server.ask(&request).await.text();
    assert_eq!(agents.prompts(0), ["one", "[System]\nbe brief\n\n[User]\ntwo"]);
    // Several messages of the user go as they are.
    let request = chat(&[("user", "one"), ("assistant", "ONE"), ("user", "x"), ("user", "y")]);
    server.ask(&request).await.text();
    assert_eq!(agents.opened(), 2, "the history before `be brief` is gone");
}

#[tokio::test]
async fn sessions_made_ahead_are_used_and_leave_nothing_behind() {
    let agents = shouting();
    let server = TestServer::new(&agents).await;
    let list = async || server.sessions.list(&gembridge_core::session::Viewer::Admin, 100).await.unwrap().len();
    for turn in 0..5 {
        assert_eq!(server.ask(&chat(&[("user", "one")])).await.text(), "ONE");
        assert_eq!(agents.opened(), turn + 1, "a session in which nothing was said has no agent");
    }
    assert!((5..=7).contains(&list().await));
    server.exchanges.settle().await;
    assert_eq!(list().await, 5);
    assert_eq!(server.ask(&chat(&[("user", "one")])).await.text(), "ONE");
}
