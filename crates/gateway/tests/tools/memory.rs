//! What the model of a real agent hears of a conversation whose turns did not all come to their end.

use gembridge_testkit::gemini_api::FakeGemini;
use serde_json::json;

use crate::real_agents::{gemini, runtime};
use crate::support::gateway::post;

#[test]
fn the_gemini_cli_hears_again_what_it_forgot_with_a_turn_that_was_cut() {
    let runtime = runtime();
    let api = runtime.block_on(FakeGemini::start()).unwrap();
    let gateway = gemini(&api);
    let ask = |body: serde_json::Value, headers: &[(&str, &str)]| {
        let mut connection = gateway.connect();
        post(&mut connection, &gateway.key, &body, headers);
        connection.answer().unwrap()
    };
    // The model goes on for ever, so that the turn cannot end before it is cut.
    let script = json!({"calls": [[{"text": "eight letters and more"}, {"stall": true}]]});
    let system = json!({"role": "system", "content": "speak like a sailor"});
    let asked = json!({"role": "user", "content": format!("tell of whales SCRIPT:{script}:END")});
    let cut = ask(json!({"model": "gemini", "messages": [system, asked], "max_tokens": 2}), &[]);
    assert_eq!(cut.json()["choices"][0]["finish_reason"], "length", "{}", cut.body);
    let session = cut.header("x-session-id").expect("the session is named");
    let more = json!({"model": "gemini", "messages": [{"role": "user", "content": "and of squids"}]});
    assert_eq!(ask(more, &[("x-session-id", session)]).status, 200);
    let heard = api.model_calls().pop().unwrap().body["contents"].to_string();
    let places =
        ["speak like a sailor", "tell of whales", "eight letters", "and of squids"].map(|said| heard.find(said));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{heard}");
}
