//! What an agent reads of the tools, and when it is told to read again.

use rmcp::model::JsonObject;

use crate::agent::{Agent, Told, bridge, endpoint, offer, soon, tool};
use gembridge_core::tool_host::{Offer, ToolHost};

#[tokio::test]
async fn an_offer_is_read_when_the_agent_has_listed_it() {
    let bridge = bridge().await;
    let mut endpoint = bridge.open().unwrap();
    let mut read = endpoint.list.offer(offer(&["one", "two"]));
    let agent = Agent::connect(&endpoint).await;
    assert!(tokio::time::timeout(std::time::Duration::from_millis(50), &mut read).await.is_err(), "nobody read it yet");
    assert_eq!(agent.tools().await, ["one", "two"]);
    soon(read).await;
    bridge.shutdown().await;
}

#[tokio::test]
async fn a_new_offer_is_told_to_its_own_agent_only_and_read_by_it() {
    let bridge = bridge().await;
    let mut ours = endpoint(&bridge, &["before"]);
    let theirs = endpoint(&bridge, &["before"]);
    let (mut agent, mut other) = (Agent::connect(&ours).await, Agent::connect(&theirs).await);
    assert_eq!((agent.tools().await, other.tools().await), (vec!["before".to_owned()], vec!["before".to_owned()]));

    let read = ours.list.offer(offer(&["after"]));
    assert_eq!(soon(agent.told.recv()).await, Some(Told::ListChanged));
    assert_eq!(agent.tools().await, ["after"]);
    soon(read).await;
    assert_eq!(other.tools().await, ["before"]);
    assert!(other.told.try_recv().is_err(), "the other agent was told of a list that is not its own");
    bridge.shutdown().await;
}

#[tokio::test]
async fn an_older_list_does_not_count_as_the_newest() {
    let bridge = bridge().await;
    let mut endpoint = bridge.open().unwrap();
    let agent = Agent::connect(&endpoint).await;
    let first = endpoint.list.offer(offer(&["one"]));
    assert_eq!(agent.tools().await, ["one"]);
    soon(first).await;
    let mut second = endpoint.list.offer(Offer::default());
    assert!(tokio::time::timeout(std::time::Duration::from_millis(50), &mut second).await.is_err());
    assert!(agent.tools().await.is_empty());
    soon(second).await;
    bridge.shutdown().await;
}

#[tokio::test]
async fn a_schema_arrives_with_every_key_in_its_order() {
    let written = r##"{"type":"object","properties":{"z":{"type":"string","minLength":1,"x-unknown":{"b":1,"a":[null,1.5]}},"a":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}},"required":["z","a"],"additionalProperties":false,"$defs":{"n":{"type":"number"}}}"##;
    let bridge = bridge().await;
    let mut endpoint = bridge.open().unwrap();
    drop(endpoint.list.offer(Offer { tools: [tool("t", written)].into(), format: None }));
    let agent = Agent::connect(&endpoint).await;
    let listed = soon(agent.client.list_all_tools()).await.unwrap();
    assert_eq!(serde_json::to_string::<JsonObject>(&listed[0].input_schema).unwrap(), written);
    bridge.shutdown().await;
}
