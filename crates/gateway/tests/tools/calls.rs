//! What a client and an agent do with calls, on the demo agent.

use serde_json::json;

use crate::conversation::Conversation;
use crate::support::home::Home;

/// The calls come one by one within milliseconds; on a loaded machine they may be told in more than one round.
#[test]
fn three_calls_at_once_may_be_answered_in_reverse() {
    let gateway = Home::for_serving().serve();
    let mut talk = Conversation::new(&gateway, &["pick"], r#"call pick {"n":1} and pick {"n":2} and pick {"n":3}"#);
    let mut numbers = Vec::new();
    while numbers.len() < 3 {
        for call in talk.calls().iter().rev() {
            talk.give(call, format!("picked {}", call.arguments["n"]));
            numbers.push(call.arguments["n"].as_u64().unwrap());
        }
    }
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3], "each was told once");
    let told = "Tool `pick` answered: picked 1\nTool `pick` answered: picked 2\nTool `pick` answered: picked 3\n";
    assert_eq!(talk.text(), told, "each result reached its own call");
}

#[test]
fn calls_that_are_answered_in_part_are_asked_for_again() {
    let gateway = Home::for_serving().serve();
    let mut talk = Conversation::new(&gateway, &["pick"], r#"call pick {"n":1} and pick {"n":2}"#);
    let calls = talk.calls();
    talk.give(calls.last().unwrap(), "second");
    // The other one of a round of two, or the call that a loaded machine told later.
    let left = talk.calls();
    assert_eq!(left.len(), 1);
    assert!(calls.len() == 1 || left[0].id == calls[0].id, "{calls:?} {left:?}");
    talk.give(&left[0], "first");
    let text = talk.text();
    assert!(text.contains("first") && text.contains("second"), "{text}");
}

#[test]
fn twenty_five_rounds_are_one_turn_of_the_agent() {
    let gateway = Home::for_serving().serve();
    let mut talk = Conversation::new(&gateway, &["pick"], r#"rounds 25 pick {"n":7}"#);
    for round in 1..=25 {
        let calls = talk.calls();
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0].arguments, json!({"n": 7, "round": round}));
        talk.give(&calls[0], format!("result {round}"));
    }
    assert_eq!(talk.text(), "25 rounds, and in the last one: Tool `pick` answered: result 25");
    talk.say("count");
    assert_eq!(talk.text(), "This is turn 2 of the session.", "all rounds were the first");
}

#[test]
fn a_result_of_five_megabytes_arrives_whole() {
    let gateway = Home::for_serving().serve();
    let mut talk = Conversation::new(&gateway, &["pick"], r#"call pick {"n":1}"#);
    let call = talk.calls().remove(0);
    talk.give(&call, format!("begin{}end", "x".repeat(5 << 20)));
    let text = talk.text();
    assert!(text.contains("begin") && text.contains("end (5242888 bytes)"), "{text}");
}

#[test]
fn an_image_reaches_the_agent_as_one() {
    let gateway = Home::for_serving().serve();
    let mut talk = Conversation::new(&gateway, &["pick"], r#"call pick {"n":1}"#);
    let call = talk.calls().remove(0);
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}});
    talk.give(&call, json!([{"type": "text", "text": "look"}, image]));
    assert!(talk.text().contains("look\n[image (image/png), 12 characters]"));
}

#[test]
fn the_same_results_sent_twice_get_the_same_answer() {
    let gateway = Home::for_serving().serve();
    let mut talk = Conversation::new(&gateway, &["pick"], r#"call pick {"n":1}"#);
    let call = talk.calls().remove(0);
    talk.give(&call, "once");
    let (first, again) = (talk.answer().text(), talk.answer().text());
    assert!(first.contains("answered: once"), "{first}");
    assert_eq!(first, again);
}

#[test]
fn a_result_for_a_call_that_nobody_made_is_refused_by_name() {
    let gateway = Home::for_serving().serve();
    let mut talk = Conversation::new(&gateway, &["pick"], r#"call pick {"n":1}"#);
    let mut call = talk.calls().remove(0);
    call.id = "call_nobody_made_this".to_owned();
    talk.give(&call, "stray");
    let refused = talk.answer();
    assert_eq!(refused.status, 400, "{}", refused.body);
    assert!(refused.body.contains("call_nobody_made_this"), "{}", refused.body);
}

#[test]
fn another_set_of_tools_is_offered_in_the_same_session() {
    let gateway = Home::for_serving().serve();
    let mut talk = Conversation::new(&gateway, &["pick"], r#"call pick {"n":1}"#);
    let call = talk.calls().remove(0);
    talk.give(&call, "one");
    talk.text();
    let mut other = Conversation::new(&gateway, &["choose"], "");
    other.messages = talk.messages.clone();
    other.say(r#"call choose {"n":2}"#);
    let call = other.calls().remove(0);
    assert_eq!(call.name, "choose");
    other.give(&call, "two");
    assert!(other.text().contains("two"));
    other.say("count");
    assert_eq!(other.text(), "This is turn 3 of the session.");
}

#[test]
fn clients_with_tools_of_the_same_name_never_mix() {
    let gateway = Home::for_serving().serve();
    let others = gateway.home.key("others");
    std::thread::scope(|scope| {
        for client in 0..8 {
            let key = if client % 2 == 0 { &gateway.key } else { &others };
            let gateway = &gateway;
            scope.spawn(move || {
                let mut talk =
                    Conversation::with_key(gateway, key, &["pick"], &format!(r#"rounds 3 pick {{"n":{client}}}"#));
                for round in 1..=3 {
                    let call = talk.calls().remove(0);
                    assert_eq!(call.arguments, json!({"n": client, "round": round}));
                    talk.give(&call, format!("for {client} in {round}"));
                }
                let text = talk.text();
                assert!(text.ends_with(&format!("answered: for {client} in 3")), "{text}");
            });
        }
    });
}

#[test]
fn s11_the_call_of_another_key_is_not_there() {
    let gateway = Home::for_serving().serve();
    let stranger = gateway.home.key("stranger");
    let mut talk = Conversation::new(&gateway, &["pick"], r#"call pick {"n":1}"#);
    let call = talk.calls().remove(0);
    let mut thief = Conversation::with_key(&gateway, &stranger, &["pick"], "");
    thief.messages = talk.messages.clone();
    thief.give(&call, "stolen");
    thief.answer();
    talk.give(&call, "mine");
    assert!(talk.text().contains("answered: mine"), "it still waited for its own client");
}
