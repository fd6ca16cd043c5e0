//! The files that operators are told to install, in the programs that they are for.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::gateway::Gateway;
use crate::support::home::Home;
use crate::support::http::PATIENCE;

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const HOST: &str = "bridge.example.org";

fn ops(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ops").join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn run(program: &str, args: &[&str]) -> Output {
    let ran = Command::new(program).args(args).env_clear().env("PATH", PATH).output();
    ran.unwrap_or_else(|error| panic!("{program}: {error}; `scripts/setup tests` installs it"))
}

#[test]
fn systemd_understands_every_line_of_the_unit() {
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("gembridge.service");
    fs::write(&unit, ops("gembridge.service").replace("/usr/local/bin/gembridge", env!("CARGO_BIN_EXE_gembridge")))
        .unwrap();
    let verified = run("systemd-analyze", &["verify", "--man=no", unit.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&verified.stderr);
    // It also looks at what the unit asks for, which is this machine's own.
    let about_ours: Vec<_> = said.lines().filter(|line| line.contains("gembridge.service")).collect();
    assert!(verified.status.success() && about_ours.is_empty(), "{said}");
}

/// How much of the system the unit leaves open to the service, by systemd's own measure: 0 is nothing, 10 is all.
#[test]
fn the_unit_leaves_little_of_the_system_open() {
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("gembridge.service");
    fs::write(&unit, ops("gembridge.service")).unwrap();
    let said = run("systemd-analyze", &["security", "--offline=true", "--no-pager", unit.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let overall = said.lines().find(|line| line.contains("Overall exposure level")).unwrap_or_else(|| panic!("{said}"));
    let level = overall.split_whitespace().find_map(|word| word.parse::<f64>().ok()).unwrap();
    println!("{overall}");
    assert!(level <= 3.0, "{said}");
    // Landlock fences the agents in, and Node.js writes the code that it runs.
    let unit = ops("gembridge.service");
    let lines: Vec<_> = unit.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(lines.iter().any(|line| line.starts_with("SystemCallFilter=") && line.contains("landlock_restrict_self")));
    assert!(!lines.iter().any(|line| line.starts_with("MemoryDenyWriteExecute=")));
}

/// nginx with the documented settings; sockets in a folder stand for its ports, and a certificate of our own for the real one.
struct Nginx {
    folder: tempfile::TempDir,
    child: Child,
}

impl Nginx {
    fn before(gateway: &Gateway) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let subject = format!("/CN={HOST}");
        let new = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", &subject];
        let made = run("openssl", &[&new[..], &["-keyout", &at("key.pem"), "-out", &at("certificate.pem")]].concat());
        assert!(made.status.success(), "{made:?}");
        let replaced = [
            ("listen 80;", format!("listen unix:{};", at("http"))),
            ("listen 443 ssl http2;", format!("listen unix:{} ssl http2;", at("https"))),
            ("127.0.0.1:11434", gateway.address.to_string()),
            ("/etc/letsencrypt/live/bridge.example.org/fullchain.pem", at("certificate.pem")),
            ("/etc/letsencrypt/live/bridge.example.org/privkey.pem", at("key.pem")),
        ];
        let mut ours = ops("nginx.conf");
        for (from, to) in replaced {
            assert!(ours.contains(from), "{from}");
            ours = ours.replace(from, &to);
        }
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {};\n", at(kind)))
            .concat();
        let whole = format!(
            "daemon off;\nmaster_process off;\npid {};\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n\
             {temporary}{ours}\n}}\n",
            at("pid")
        );
        fs::write(folder.path().join("nginx.conf"), whole).unwrap();
        let settings = at("nginx.conf");
        let checked = run("nginx", &["-t", "-q", "-e", "stderr", "-c", &settings]);
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
        let child = Command::new("nginx")
            .args(["-e", "stderr", "-c", &settings])
            .env_clear()
            .env("PATH", PATH)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let nginx = Self { folder, child };
        let deadline = Instant::now() + PATIENCE;
        while std::os::unix::net::UnixStream::connect(nginx.socket("https")).is_err() {
            assert!(Instant::now() < deadline, "nginx did not come up");
            std::thread::sleep(Duration::from_millis(20));
        }
        nginx
    }

    fn socket(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What curl prints of an answer, its head included.
    fn curl(&self, socket: &str, path: &str, args: &[&str]) -> String {
        let scheme = socket;
        let socket = self.socket(socket);
        let url = format!("{scheme}://{HOST}{path}");
        let own =
            ["--silent", "--insecure", "--include", "--max-time", "60", "--unix-socket", socket.to_str().unwrap()];
        let ran = run("curl", &[&own[..], args, &[&url]].concat());
        String::from_utf8_lossy(&ran.stdout).into_owned()
    }

    /// The status line of an answer that does not end by itself.
    fn status_line(&self, path: &str, args: &[&str]) -> String {
        let (socket, url) = (self.socket("https"), format!("https://{HOST}{path}"));
        // What it prints of the answer itself may wait for more of it.
        let own = ["--silent", "--insecure", "--verbose", "--max-time", "60", "--unix-socket"];
        let mut curl = Command::new("curl")
            .args(own)
            .arg(socket)
            .args(args)
            .arg(&url)
            .env_clear()
            .env("PATH", PATH)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let told = BufReader::new(curl.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut answered = told.filter_map(|line| Some(line.strip_prefix("< ")?.to_owned()));
        let line = answered.next().unwrap_or_else(|| "no answer".to_owned());
        curl.kill().unwrap();
        curl.wait().unwrap();
        line
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn nginx_passes_streams_and_sockets_on_and_keeps_the_metrics_inside() {
    let mut gateway = Home::for_serving().serve_with(&["--agent", "demo", "--behind-proxy", "--allow-host", HOST], &[]);
    let nginx = Nginx::before(&gateway);
    let key = format!("authorization: Bearer {}", gateway.key);
    let body = r#"{"model":"demo","stream":true,"messages":[{"role":"user","content":"hello"}]}"#;
    let asked = ["-H", &key, "-H", "content-type: application/json", "-d", body];
    let streamed = nginx.curl("https", "/v1/chat/completions", &asked);
    assert!(streamed.starts_with("HTTP/2 200") && streamed.contains("data: [DONE]"), "{streamed}");
    assert!(nginx.curl("https", "/v1/models", &[]).starts_with("HTTP/2 401"), "a key is asked for");
    assert!(nginx.curl("https", "/metrics", &["-H", &key]).starts_with("HTTP/2 403"));
    let moved = nginx.curl("http", "/docs", &[]);
    assert!(moved.starts_with("HTTP/1.1 301") && moved.contains("https://bridge.example.org/docs"), "{moved}");

    let upgrade = ["connection: upgrade", "upgrade: websocket", "sec-websocket-version: 13"];
    let mut asked = vec!["--http1.1", "-H", &key, "-H", "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=="];
    asked.extend(upgrade.iter().flat_map(|header| ["-H", header]));
    let upgraded = nginx.status_line("/acp", &asked);
    assert!(upgraded.starts_with("HTTP/1.1 101"), "{upgraded}");

    // The chat page that came through nginx says where it is from.
    let origin = format!("https://{HOST}");
    let header = format!("origin: {origin}");
    asked.extend(["-H", &header]);
    let stranger = nginx.status_line("/acp", &asked);
    assert!(stranger.starts_with("HTTP/1.1 403"), "{stranger}");
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/deployment.md")).unwrap();
    let allowing = ["origins", "allow", &origin];
    assert!(page.contains(&format!("\ngembridge {}\n", allowing.join(" "))), "the page says how it is allowed");
    gateway.home.stdout_of(&allowing);
    gateway.wait_for("the allowed origin", |_| {
        nginx.status_line("/acp", &asked).starts_with("HTTP/1.1 101").then_some(())
    });
}

#[test]
fn nginx_does_not_let_a_client_say_which_host_it_asked_for() {
    let gateway = Home::for_serving().serve_with(&["--agent", "demo", "--behind-proxy", "--allow-host", HOST], &[]);
    let nginx = Nginx::before(&gateway);
    let key = format!("authorization: Bearer {}", gateway.key);
    let ask = |host: &str, forwarded: &str| {
        let (host, forwarded) = (format!("host: {host}"), format!("x-forwarded-host: {forwarded}"));
        nginx.curl("https", "/v1/models", &["-H", &key, "-H", &host, "-H", &forwarded])
    };
    let honest = ask(HOST, "evil.example");
    assert!(honest.starts_with("HTTP/2 200"), "{honest}");
    let forged = ask("evil.example", HOST);
    assert!(forged.starts_with("HTTP/2 403"), "{forged}");
}
