//! What the tests of this dialect say, and read.

use serde_json::{Value, json};

use crate::openai::support::http::{Answer, post, request};
use crate::openai::support::server::TestServer;

/// A request with this input and more fields.
pub fn asking(input: impl Into<Value>, fields: Value) -> Value {
    let mut request = json!({ "model": "played", "input": input.into() });
    let Value::Object(more) = fields else { panic!("an object") };
    request.as_object_mut().unwrap().extend(more);
    request
}

pub async fn create(server: &TestServer, request: &Value) -> Answer {
    post(server.address, "/v1/responses", &[], request.to_string()).await.whole().await
}

/// The response to a request that is answered.
pub async fn response(server: &TestServer, request: &Value) -> Value {
    let answer = create(server, request).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()
}

/// What else there is of a response: `method` and the path below `/v1/`.
pub async fn call(server: &TestServer, method: &str, path: &str) -> Answer {
    request(server.address, method, &format!("/v1/{path}"), &[]).await
}

/// All text of a response.
pub fn text_of(response: &Value) -> String {
    let items = response["output"].as_array().expect("items");
    items.iter().filter_map(|item| item["content"][0]["text"].as_str()).collect()
}

/// The only call of a response.
pub fn call_of(response: &Value) -> Value {
    let mut calls = response["output"].as_array().expect("items").iter().filter(|item| !item["call_id"].is_null());
    let call = calls.next().unwrap_or_else(|| panic!("{response}"));
    assert!(calls.next().is_none(), "{response}");
    call.clone()
}

/// The events of a stream.
pub fn events(stream: &str) -> Vec<Value> {
    let data = stream.split("\n\n").filter_map(|event| event.split_once("\ndata: "));
    data.map(|(kind, data)| {
        let event: Value = serde_json::from_str(data).expect("JSON");
        assert_eq!(kind.strip_prefix("event: "), event["type"].as_str(), "the line names the type");
        event
    })
    .collect()
}
