//! Three gateways that are one, each with a home of its own and the demo agent.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::redis_server::RedisServer;
use crate::support::gateway::Gateway;
use crate::support::home::Home;
use crate::support::http::{Answer, PATIENCE};

/// One more admin key, the same everywhere.
pub const TOKEN: &str = "canary-token-of-this-cluster-0123456789";
pub const SECRET: &str = "canary-secret-of-this-cluster-0123456789";

pub struct Three {
    pub redis: RedisServer,
    pub gateways: Vec<Gateway>,
}

impl Three {
    pub fn start() -> Self {
        let redis = RedisServer::start();
        let gateways = (0..3).map(|_| serve(home(&redis))).collect();
        Self { redis, gateways }
    }

    /// What `gembridge cluster` lists.
    pub fn nodes(&self) -> Vec<Value> {
        let listed = self.gateways[0].home.run(&["cluster", "--json"]).succeeds().json();
        listed["nodes"].as_array().unwrap().clone()
    }
}

/// A home whose gateway is one of the cluster at this Redis.
pub fn home(redis: &RedisServer) -> Home {
    let home = Home::for_serving();
    home.configure_serving(&format!(
        "[auth]\nbearer_token = '{TOKEN}'\n[cluster]\nredis = 'redis://{}'\naddress = '127.0.0.1'\nsecret = '{SECRET}'",
        redis.address
    ));
    home
}

pub fn serve(home: Home) -> Gateway {
    let mut gateway = home.serve();
    TOKEN.clone_into(&mut gateway.key);
    gateway
}

/// Looks again and again until there is something.
#[track_caller]
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "it did not come to pass: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A conversation whose client keeps the history and sends all of it each time, to whichever gateway.
#[derive(Default)]
pub struct Talk {
    pub messages: Vec<Value>,
}

impl Talk {
    #[track_caller]
    pub fn say(&mut self, gateway: &Gateway, text: &str) -> Answer {
        self.messages.push(json!({ "role": "user", "content": text }));
        let answer = gateway.complete_as(&gateway.key, &json!(self.messages), &[]);
        assert_eq!(answer.status, 200, "{} {}", answer.body, gateway.stderr());
        self.messages.push(json!({ "role": "assistant", "content": answer.text() }));
        answer
    }
}

pub fn session(answer: &Answer) -> String {
    answer.header("x-session-id").expect("a session").to_owned()
}
