//! Random interleavings of what agents and clients do: no gap, no double, one answer.

use gembridge_core::model::AskId;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::acp::support::agents;
use crate::acp::support::client::{Client, seqs};
use crate::acp::support::server::TestServer;
use crate::acp::support::{asks, done, text};

#[derive(Clone, Debug)]
enum Move {
    /// The agent says so many pieces at once.
    Say(u8),
    /// The agent asks.
    Ask,
    /// A client comes, or comes back with its last number.
    Attach(u8),
    /// A client's connection breaks.
    Drop(u8),
    /// A client answers every question that it has seen.
    Answer(u8),
    /// A client takes in so many messages.
    Read(u8, u8),
}

const CLIENTS: usize = 3;

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        3 => (1..20_u8).prop_map(Move::Say),
        1 => Just(Move::Ask),
        2 => any::<u8>().prop_map(Move::Attach),
        1 => any::<u8>().prop_map(Move::Drop),
        2 => any::<u8>().prop_map(Move::Answer),
        2 => (any::<u8>(), 1..12_u8).prop_map(|(who, many)| Move::Read(who, many)),
    ];
    prop::collection::vec(one, 1..40)
}

/// What one client has seen over all its connections.
#[derive(Default)]
struct Reader {
    client: Option<Client>,
    seen: Vec<u64>,
    questions: Vec<Value>,
    resolved: Vec<u64>,
}

impl Reader {
    fn last(&self) -> u64 {
        self.seen.last().copied().unwrap_or(0)
    }

    fn note(&mut self, message: &Value) {
        if message["method"] == "session/request_permission" {
            // Questions are put again after a replay; they are no entries of their own.
            self.questions.push(message.clone());
            let seq = message["params"]["_meta"]["gembridge"]["seq"].as_u64().unwrap();
            if seq == self.last() + 1 {
                self.seen.push(seq);
            }
            return;
        }
        if message["method"] == "_gembridge/request_resolved" {
            self.resolved.push(message["params"]["ask"].as_u64().unwrap());
        }
        let seq = seqs(std::slice::from_ref(message));
        self.seen.extend(seq);
    }

    async fn attach(&mut self, server: &TestServer, session: &str) {
        if self.client.is_none() {
            let after = self.last();
            self.questions.clear();
            self.client = Some(server.attached(session, &format!("&after={after}")).await);
        }
    }

    async fn answer(&mut self) {
        let Some(client) = &mut self.client else { return };
        for question in self.questions.drain(..) {
            let yes = json!({ "outcome": { "outcome": "selected", "optionId": "yes" } });
            client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": yes })).await;
        }
    }

    async fn read_to_end(&mut self) {
        let Some(mut client) = self.client.take() else { return };
        loop {
            let message = client.next().await;
            self.note(&message);
            if message["method"] == "_gembridge/turn_ended" {
                return;
            }
        }
    }
}

async fn play(moves: Vec<Move>) {
    let agents = agents::silent();
    let server = TestServer::new(&agents);
    let handle = server.foreign_session("ann").await;
    let session = handle.id().to_string();
    server.prompt(&handle, "go").await;
    agents.until_prompts(0, 1).await;
    let mut readers: Vec<Reader> = (0..CLIENTS).map(|_| Reader::default()).collect();
    let mut asked = 0;
    for step in moves {
        let of = |who: u8| usize::from(who) % CLIENTS;
        match step {
            Move::Say(many) => agents.does(0, (0..many).map(|n| text(&format!("{n} ")))).await,
            Move::Ask => {
                asked += 1;
                agents.does(0, [asks(asked)]).await;
            }
            Move::Attach(who) => readers[of(who)].attach(&server, &session).await,
            Move::Drop(who) => readers[of(who)].client = None,
            Move::Answer(who) => readers[of(who)].answer().await,
            Move::Read(who, many) => {
                let reader = &mut readers[of(who)];
                if let Some(mut client) = reader.client.take() {
                    // A ping marks how far there is something to read.
                    let id = client.request("$/ping", json!({})).await;
                    for _ in 0..many {
                        let message = client.next().await;
                        if message["id"] == id {
                            break;
                        }
                        reader.note(&message);
                    }
                    reader.client = Some(client);
                }
            }
        }
    }
    for reader in &mut readers {
        reader.attach(&server, &session).await;
    }
    // Whoever is there answers what is open, as it is put again.
    agents.does(0, [done()]).await;
    let mut all = Vec::new();
    for reader in &mut readers {
        reader.read_to_end().await;
        all.push((reader.seen.clone(), reader.resolved.clone()));
    }
    let answers = agents.answers(0);
    for ask in 1..=asked {
        let given = answers.iter().filter(|(id, _)| *id == AskId(ask)).count();
        assert_eq!(given, 1, "question {ask} of {answers:?}");
    }
    let last = all.iter().filter_map(|(seen, _)| seen.last()).max().copied().unwrap();
    for (seen, resolved) in all {
        // A question that was seen only when it was put again is the one entry that may be missing.
        let missing: Vec<u64> = (1..=last).filter(|seq| !seen.contains(seq)).collect();
        assert!(missing.len() as u64 <= asked, "{missing:?} of {last} were never shown");
        assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "out of order or twice: {seen:?}");
        let mut sorted = resolved.clone();
        sorted.dedup();
        assert_eq!(sorted.len() as u64, asked, "each question was settled once for each: {resolved:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_interleaving_leaves_no_gap_and_no_double_and_one_answer(moves in moves()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(play(moves));
    }
}
