//! An agent that takes no tool servers over HTTP: what it is told to start is started here, and works.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use gembridge_testkit::Record;
use serde_json::{Value, json};

use crate::conversation::Conversation;
use crate::support::home::Home;

/// A tool server on standard streams, as the agent was told to start it.
struct Server {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    last: u64,
}

impl Server {
    fn start(told: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let mut command = Command::new(text(&told["command"]));
        command.args(told["args"].as_array().unwrap().iter().map(text)).env_clear();
        for variable in told["env"].as_array().unwrap() {
            command.env(text(&variable["name"]), text(&variable["value"]));
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, stdin, stdout: BufReader::new(stdout), last: 0 }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
    }

    fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.last += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}));
        self.last
    }

    fn answer(&mut self, id: u64) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "it ended without the answer");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                assert!(message["result"].is_object(), "{message}");
                return message["result"].clone();
            }
        }
    }
}

#[test]
fn a_tool_is_listed_and_called_through_the_shim() {
    let home = Home::for_serving();
    let record = Record::at(home.path("record"));
    let gate = home.path("gate");
    let gateway = home.with_fake(&["--without", "http", "--record", record.path().to_str().unwrap()], "").serve_fake();
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut talk = Conversation::new(&gateway, &["pick"], &format!("until {} ;; say over", gate.display()));
            // A name that is no model of the agent's would open a second session.
            talk.model = "fake";
            let call = talk.calls().remove(0);
            assert_eq!((call.name.as_str(), &call.arguments), ("pick", &json!({"n": 4})));
            talk.give(&call, "picked by hand");
            talk.text()
        });
        let opened = record.wait("a session with a tool server", |record| {
            let opened = record.messages_of("session/new").into_iter();
            opened.map(|message| message["params"]["mcpServers"].clone()).find(|servers| servers != &json!([]))
        });
        assert_eq!(opened[0]["args"], json!(["mcp-shim"]));
        let mut server = Server::start(&opened[0]);
        let hello =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let id = server.request("initialize", &hello);
        assert!(server.answer(id)["capabilities"]["tools"].is_object());
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let id = server.request("tools/list", &json!({}));
        assert_eq!(server.answer(id)["tools"][0]["name"], "pick");
        record.wait("the prompt, now that the list was read", |record| record.messages_of("session/prompt").pop());
        let id = server.request("tools/call", &json!({"name": "pick", "arguments": {"n": 4}}));
        assert_eq!(server.answer(id)["content"], json!([{"type": "text", "text": "picked by hand"}]));
        std::fs::write(&gate, "").unwrap();
        assert_eq!(client.join().unwrap(), "over");
        drop(server.stdin);
        assert!(server.child.wait().unwrap().success());
    });
}
