//! A running gateway.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::home::Home;
use super::http::{Answer, Connection, Events, PATIENCE};

impl Home {
    /// A gateway that does not come up: its exit code and what it says.
    pub fn refused(&self, args: &[&str]) -> (i32, String) {
        let output = self.command(&[&["serve"], any_port_unless_named(args), args].concat()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "nothing is announced");
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    pub fn serve(self) -> Gateway {
        self.serve_with(&["--agent", "demo"], &[])
    }

    pub fn serve_fake(self) -> Gateway {
        self.serve_with(&["--agent", "fake"], &[])
    }

    pub fn serve_with(self, args: &[&str], variables: &[(&str, &str)]) -> Gateway {
        let mut command = self.command(&[&["serve"], any_port_unless_named(args), args].concat());
        command.envs(variables.iter().copied());
        self.started_by(&mut command)
    }

    /// The fake agent, with so many descriptors and no way to more.
    pub fn serve_fake_within(self, descriptors: u32) -> Gateway {
        let gateway = self.command(&[]);
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", &format!("ulimit -n {descriptors} && exec \"$0\" \"$@\"")])
            .arg(gateway.get_program())
            .args(["serve", "--port", "0", "--agent", "fake"])
            .env_clear()
            .envs(gateway.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .current_dir(self.folder())
            .stdin(Stdio::null());
        self.started_by(&mut shell)
    }

    fn started_by(self, command: &mut Command) -> Gateway {
        let output = |name: &str| fs::File::create(self.path(name)).unwrap();
        let child = command.stdout(output("stdout")).stderr(output("stderr")).spawn().unwrap();
        let mut gateway =
            Gateway { home: self, child, address: SocketAddr::from(([0, 0, 0, 0], 0)), key: String::new() };
        let banner = gateway.wait_for("the banner", |gateway| {
            let said = gateway.stdout();
            said.contains("/docs\n").then_some(said)
        });
        let address = banner.lines().next().and_then(|line| line.split("http://").nth(1));
        gateway.address = address.and_then(|address| address.parse().ok()).expect("the first line has the address");
        let key = fs::read_to_string(gateway.home.state("key")).unwrap_or_default();
        key.trim().clone_into(&mut gateway.key);
        gateway
    }
}

fn any_port_unless_named(args: &[&str]) -> &'static [&'static str] {
    if args.contains(&"--port") { &[] } else { &["--port", "0"] }
}

pub struct Gateway {
    pub home: Home,
    child: Child,
    pub address: SocketAddr,
    /// The admin's key of the first run.
    pub key: String,
}

impl Gateway {
    /// What it leaves behind once it has ended.
    pub fn into_home(mut self) -> Home {
        std::mem::replace(&mut self.home, Home::new())
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn stdout(&self) -> String {
        fs::read_to_string(self.home.path("stdout")).unwrap()
    }

    pub fn stderr(&self) -> String {
        fs::read_to_string(self.home.path("stderr")).unwrap()
    }

    pub fn connect(&self) -> Connection {
        Connection::open(self.address).unwrap()
    }

    /// One request with the admin's key.
    pub fn get(&self, path: &str) -> Answer {
        self.get_as(&self.key, path)
    }

    pub fn get_as(&self, key: &str, path: &str) -> Answer {
        self.ask("GET", path, &[("authorization", &format!("Bearer {key}"))], None)
    }

    pub fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&str>) -> Answer {
        let mut connection = self.connect();
        connection.send(method, path, headers, body).unwrap();
        connection.answer().unwrap()
    }

    /// A whole completion of one message.
    pub fn complete(&self, prompt: &str) -> Answer {
        self.complete_as(&self.key, &said(prompt), &[])
    }

    pub fn complete_as(&self, key: &str, messages: &Value, headers: &[(&str, &str)]) -> Answer {
        let mut connection = self.connect();
        post(&mut connection, key, &json!({ "model": "default", "messages": messages }), headers);
        connection.answer().unwrap()
    }

    /// A streamed completion of one message; its head has come.
    pub fn stream(&self, prompt: &str) -> Events {
        self.stream_as(&self.key, prompt)
    }

    pub fn stream_as(&self, key: &str, prompt: &str) -> Events {
        let mut connection = self.connect();
        post(&mut connection, key, &json!({ "model": "default", "stream": true, "messages": said(prompt) }), &[]);
        Events::begin(connection).unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits until the process has ended.
    pub fn ended(&mut self) -> ExitStatus {
        self.wait_for("the end of the process", |gateway| gateway.child.try_wait().unwrap())
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Looks again and again until there is something.
    #[track_caller]
    pub fn wait_for<T>(&mut self, what: &str, mut look: impl FnMut(&mut Self) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            assert!(Instant::now() < deadline, "{what} did not come: {}", self.stderr());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Everything that was written into files of the state folder.
    pub fn state_text(&self) -> String {
        let mut all = String::new();
        let mut folders = vec![self.home.state("")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    all.push_str(&String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()));
                }
            }
        }
        all
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // Its guards end the agents.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Sends a request for a completion.
pub fn post(connection: &mut Connection, key: &str, body: &Value, headers: &[(&str, &str)]) {
    let authorization = format!("Bearer {key}");
    let own = [("authorization", authorization.as_str()), ("content-type", "application/json")];
    connection.send("POST", "/v1/chat/completions", &[&own, headers].concat(), Some(&body.to_string())).unwrap();
}

/// A conversation of one message.
pub fn said(prompt: &str) -> Value {
    json!([{ "role": "user", "content": prompt }])
}

pub fn read_lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}
