//! What the gateway says of itself.

use gembridge_core::test_support::ScriptedAgents;
use serde_json::json;

use super::support::{TestServer, Version};
use crate::scenarios::gateway::Gateway;

#[tokio::test]
async fn one_card_serves_clients_of_both_versions_and_each_has_one_of_its_own() {
    let server = TestServer::new(&Gateway::new(&ScriptedAgents::new(|_| vec![]))).await;
    let both = server.get("/.well-known/agent-card.json").await.json();
    assert_eq!(both["url"], "http://localhost/a2a");
    assert_eq!((&both["protocolVersion"], &both["preferredTransport"]), (&json!("0.3.0"), &json!("JSONRPC")));
    let interfaces: Vec<_> =
        both["supportedInterfaces"].as_array().unwrap().iter().map(|at| at["protocolVersion"].clone()).collect();
    assert_eq!(interfaces, ["1.0", "1.0", "0.3"]);
    let new = server.get("/a2a/v1/.well-known/agent-card.json").await.json();
    assert!(new.get("url").is_none() && new.get("security").is_none(), "{new}");
    assert_eq!(new["securitySchemes"]["bearer"], json!({ "httpAuthSecurityScheme": { "scheme": "Bearer" } }));
    let old = server.get("/a2a/v0.3/.well-known/agent-card.json").await.json();
    assert!(old.get("supportedInterfaces").is_none(), "{old}");
    assert_eq!(old["securitySchemes"]["bearer"], json!({ "type": "http", "scheme": "bearer" }));
}

#[tokio::test]
async fn a_card_may_be_kept_and_the_extended_one_names_the_agents() {
    let server = TestServer::new(&Gateway::new(&ScriptedAgents::new(|_| vec![]))).await;
    let card = server.get("/.well-known/agent-card.json").await;
    assert_eq!(card.header("cache-control"), Some("public, max-age=300"));
    assert!(card.header("etag").is_some() && card.header("last-modified").is_some());
    assert!(!card.body.contains("Played agent"), "the public card names no agent");
    for (version, method) in
        [(Version::V03, "agent/getAuthenticatedExtendedCard"), (Version::V10, "GetExtendedAgentCard")]
    {
        let card = server.call(version, method, json!({})).await.unwrap();
        assert!(card["skills"].to_string().contains("Played agent"), "{card}");
    }
}
