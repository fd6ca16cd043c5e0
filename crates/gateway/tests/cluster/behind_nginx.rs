//! Real clients through a stock balancer that sends each request to the next gateway.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

use crate::gateways::{Talk, Three, eventually, session};
use crate::support::gateway::Gateway;
use crate::support::script::Script;

struct Nginx {
    child: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl Nginx {
    /// Round robin, as nginx does it by itself.
    fn before(gateways: &[Gateway]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let servers: String =
            gateways.iter().fold(String::new(), |all, gateway| all + "server " + &gateway.address.to_string() + ";");
        // A worker of root would give its rights up and then not reach its own folder.
        let user = if geteuid().is_root() { "user root;" } else { "" };
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .iter()
            .fold(String::new(), |all, kind| all + kind + "_temp_path " + kind + ";");
        let settings = format!(
            "daemon off; {user} worker_processes 1; pid nginx.pid; error_log stderr crit;
            events {{ worker_connections 512; }}
            http {{
                access_log off; {temporary} client_max_body_size 16m;
                map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}
                upstream gembridge {{ {servers} keepalive 16; }}
                server {{
                    listen {address};
                    location / {{
                        proxy_pass http://gembridge; proxy_http_version 1.1; proxy_buffering off;
                        proxy_set_header Host $http_host;
                        proxy_set_header Upgrade $http_upgrade;
                        proxy_set_header Connection $connection_upgrade;
                    }}
                }}
            }}"
        );
        let config = folder.path().join("nginx.conf");
        fs::write(&config, settings).unwrap();
        let program = ["/usr/sbin/nginx", "/usr/bin/nginx"].into_iter().find(|path| Path::new(path).exists());
        let child = Command::new(program.expect("nginx is installed by `scripts/setup`"))
            .arg("-p")
            .arg(folder.path())
            .arg("-c")
            .arg(&config)
            .args(["-e", "stderr"])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        eventually("nginx listens", || TcpStream::connect(address).ok());
        Self { child, address, _folder: folder }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // The master takes its worker along if it is asked.
        let pid = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        kill_process(pid, Signal::TERM).ok();
        drop(self.child.wait());
    }
}

/// The cluster as its clients see it: the first gateway's address is the balancer's.
fn balanced() -> (Nginx, Three) {
    let mut three = Three::start();
    let nginx = Nginx::before(&three.gateways);
    three.gateways[0].address = nginx.address;
    (nginx, three)
}

#[test]
fn twenty_turns_through_a_balancer_are_one_session() {
    let (_nginx, three) = balanced();
    let mut talk = Talk::default();
    let mut sessions = Vec::new();
    for turn in 1..=20 {
        let answer = talk.say(&three.gateways[0], "count");
        assert_eq!(answer.text(), format!("This is turn {turn} of the session."));
        sessions.push(session(&answer));
    }
    sessions.dedup();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
}

#[test]
fn the_libraries_of_openai_work_through_a_balancer() {
    let (_nginx, three) = balanced();
    for script in ["openai_chat.py", "openai_tools.py"] {
        Script::python(script).succeeds(&three.gateways[0], "demo");
    }
    for script in ["openai-chat.mjs", "openai-tools.mjs"] {
        Script::node(script).succeeds(&three.gateways[0], "demo");
    }
}

#[test]
fn the_library_of_ollama_works_through_a_balancer() {
    let (_nginx, three) = balanced();
    Script::python("ollama_chat.py").succeeds(&three.gateways[0], "demo");
}

#[test]
fn the_library_of_anthropic_works_through_a_balancer() {
    let (_nginx, three) = balanced();
    Script::python("anthropic_messages.py").succeeds(&three.gateways[0], "demo");
}
