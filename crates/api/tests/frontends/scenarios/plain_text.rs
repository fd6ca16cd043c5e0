//! The dialect that exists for these tests alone, as its client speaks it.

mod dialect;

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::api::{Answered, Ask, Called, Failed, HttpApi, Said};
use super::gateway::Gateway;
use crate::openai::support::http::{Stream, post};

pub struct PlainText {
    address: SocketAddr,
    _server: JoinSet<()>,
}

impl HttpApi for PlainText {
    async fn serve(gateway: &Gateway) -> Self {
        let (address, server) = dialect::serve(Arc::clone(&gateway.exchanges)).await;
        Self { address, _server: server }
    }

    async fn send(&self, ask: &Ask) -> Stream {
        let mut lines = Vec::new();
        for said in &ask.messages {
            match said {
                Said::User(text) => lines.push(format!("user: {text}")),
                Said::Image(data) => lines.push(format!("image image/png: {data}")),
                Said::Assistant(text) => lines.push(format!("assistant: {text}")),
                Said::Called(calls) => {
                    lines.extend(
                        calls.iter().map(|call| format!("called {} {}: {}", call.id, call.tool, call.arguments)),
                    );
                }
                Said::Result { id, text } => lines.push(format!("result {id}: {text}")),
            }
        }
        let tools = ask.tools.join(",");
        let mut headers = vec![("x-tools", tools.as_str())];
        if ask.json {
            headers.push(("x-json", "1"));
        }
        post(self.address, "/plain", &headers, lines.join("\n")).await
    }

    fn read(&self, status: u16, body: &str) -> Answered {
        let mut answered = Answered::default();
        if status != 200 {
            return Answered { failed: Some(Failed::new(status, body)), ..answered };
        }
        for line in body.lines() {
            let (kind, rest) = line.split_once(' ').expect("a kind");
            match kind {
                "text" => answered.text += rest,
                "thought" => answered.thoughts += rest,
                "end" => answered.finish += rest,
                "error" => answered.failed = Some(Failed::new(status, rest)),
                "call" => {
                    let mut words = rest.splitn(3, ' ').map(str::to_owned);
                    let mut next = || words.next().expect("three words");
                    answered.calls.push(Called { id: next(), tool: next(), arguments: next() });
                }
                other => panic!("`{other}` is no kind of line"),
            }
        }
        answered
    }
}
