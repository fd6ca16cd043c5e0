//! A client that comes back goes on where it was.

use serde_json::json;

use crate::support::agents::Troupe;
use crate::support::client::{said, seqs};
use crate::support::stage::Stage;
use crate::support::{done, text};

#[tokio::test]
async fn a_client_that_comes_back_with_its_last_number_misses_nothing_and_sees_nothing_twice() {
    let troupe = Troupe::silent();
    let stage = Stage::new(&troupe);
    let mut client = stage.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "count").await;
    troupe.until_prompted(1).await;
    let mut heard = String::new();
    let mut last = 0;
    for round in 0..5 {
        let pieces: Vec<_> = (0..20).map(|n| text(&format!("{round}.{n} "))).collect();
        troupe.does(0, pieces).await;
        // Somewhere in the middle of it the connection breaks.
        let wanted = last + 7;
        let messages = client.until(|message| seqs(std::slice::from_ref(message)).first() >= Some(&wanted)).await;
        heard.push_str(&said(&messages));
        last = seqs(&messages).into_iter().max().unwrap();
        drop(client);
        client = stage.attached(&session, &format!("&after={last}")).await;
    }
    troupe.does(0, [done()]).await;
    let messages = client.until(|message| message["method"] == "_gembridge/turn_ended").await;
    heard.push_str(&said(&messages));
    let expected: String = (0..5).flat_map(|round| (0..20).map(move |n| format!("{round}.{n} "))).collect();
    assert_eq!(heard, expected);
}

#[tokio::test]
async fn several_sessions_share_one_socket_without_mixing() {
    let stage = Stage::new(&Troupe::echo());
    let mut client = stage.client().await;
    let (one, two) = (client.new_session().await, client.new_session().await);
    let (first, second) = (client.prompt(&one, "1").await, client.prompt(&two, "2").await);
    client.answer(first).await.unwrap();
    client.answer(second).await.unwrap();
    client.call("$/ping", json!({})).await.unwrap();
    for (session, expected) in [(&one, "you said 1"), (&two, "you said 2")] {
        let update = client
            .find(|message| {
                message["params"]["sessionId"] == session.as_str()
                    && message["params"]["update"]["sessionUpdate"] == "agent_message_chunk"
            })
            .await;
        assert_eq!(update["params"]["update"]["content"]["text"], expected);
    }
}
