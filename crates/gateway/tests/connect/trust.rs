//! Who gets the key: only a listener that shows that it is the gateway.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::json;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::editor::Editor;
use crate::support::gateway::Gateway;
use crate::support::home::Home;

const TOKEN: &str = "canary-of-the-operators-token-0123456789";

/// Another program on a port of this machine, and everything that was sent to it.
struct Stranger {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<u8>>>,
}

/// What it does with what it hears.
#[derive(Clone, Copy)]
enum Manner {
    /// As a web server that has never heard of us.
    AnswersNotFound,
    Hangs,
    /// Passes everything on to the gateway at this address, and its answers back.
    Relays(SocketAddr),
}

impl Stranger {
    fn listening(manner: Manner) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let ears = Arc::clone(&heard);
        thread::spawn(move || {
            for stream in listener.incoming() {
                serve(stream.unwrap(), manner, &ears);
            }
        });
        Self { address, heard }
    }

    fn heard(&self) -> String {
        String::from_utf8_lossy(&self.heard.lock().unwrap()).into_owned()
    }
}

fn serve(mut stream: TcpStream, manner: Manner, heard: &Mutex<Vec<u8>>) {
    let mut gateway = match manner {
        Manner::Relays(address) => {
            let gateway = TcpStream::connect(address).unwrap();
            let (mut back, mut client) = (gateway.try_clone().unwrap(), stream.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut back, &mut client));
            Some(gateway)
        }
        Manner::AnswersNotFound | Manner::Hangs => None,
    };
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        heard.lock().unwrap().extend_from_slice(&buffer[..read]);
        let answered = match (manner, &mut gateway) {
            (Manner::Relays(_), Some(gateway)) => gateway.write_all(&buffer[..read]),
            (Manner::AnswersNotFound, _) => stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"),
            (Manner::Hangs, _) => return,
            (Manner::Relays(_), None) => unreachable!(),
        };
        if answered.is_err() {
            return;
        }
    }
}

/// How `connect` to this address ends, with the operator's token and these variables in its environment.
fn refused(home: &Home, args: &[&str], variables: &[(&str, &str)]) -> (i32, String) {
    let mut command = home.command(&[&["connect"], args].concat());
    command.envs(variables.iter().copied());
    Editor::start(command).code()
}

#[test]
fn f12_a_foreign_listener_on_the_port_gets_no_key() {
    let gateway = Home::for_serving().serve_with(&["--agent", "demo"], &[]);
    std::fs::write(gateway.home.path("a-key"), &gateway.key).unwrap();
    for manner in [Manner::AnswersNotFound, Manner::Hangs, Manner::Relays(gateway.address)] {
        let stranger = Stranger::listening(manner);
        let url = format!("ws://{}", stranger.address);
        for (args, variables) in [
            (vec![url.as_str()], vec![]),
            (vec![&url], vec![("BEARER_TOKEN", TOKEN)]),
            (vec![&url], vec![("GEMBRIDGE_KEY", gateway.key.as_str())]),
            (vec![&url, "--key-file", "a-key"], vec![]),
            (vec![&url, "--insecure"], vec![]),
        ] {
            let (code, said) = refused(&gateway.home, &args, &variables);
            assert_eq!((code, said.lines().count()), (1, 1), "{args:?}: {said}");
            if !matches!(manner, Manner::Hangs) {
                assert!(said.contains("did not prove to be your gateway") && said.contains("--insecure"), "{said}");
            }
        }
        let heard = stranger.heard();
        assert!(heard.starts_with("GET /acp/proof?nonce="), "{heard}");
        for secret in [&gateway.key, TOKEN, "uthorization"] {
            assert!(!heard.contains(secret), "{secret} in {heard}");
        }
    }
}

#[test]
fn f12_a_key_that_was_named_goes_to_an_unproven_listener_by_a_flag_alone() {
    let home = Home::for_serving();
    std::fs::write(home.path("a-key"), "gb-named").unwrap();
    let stranger = Stranger::listening(Manner::AnswersNotFound);
    let url = format!("ws://{}", stranger.address);
    let (code, said) = refused(&home, &[&url, "--key-file", "a-key", "--insecure"], &[]);
    assert!(code == 1 && said.contains("404"), "{said}");
    assert!(stranger.heard().contains("Bearer gb-named"), "{}", stranger.heard());
}

#[test]
fn f12_beyond_this_machine_nothing_goes_in_plain_text_and_the_operators_own_key_not_at_all() {
    let home = Home::for_serving();
    std::fs::create_dir_all(home.state("")).unwrap();
    std::fs::write(home.state("key"), "gb-own").unwrap();
    let named = [("GEMBRIDGE_KEY", "gb-named")];
    let own = [("BEARER_TOKEN", TOKEN)];
    for (args, variables, told) in [
        (&["ws://bridge.example.org"][..], &named[..], &["wss://", "--insecure", "plain text"][..]),
        (&["ws://192.0.2.1:9"], &named, &["wss://", "--insecure"]),
        (&["ws://bridge.example.org"], &own, &["no key for", "GEMBRIDGE_KEY", "--key-file"]),
        (&["ws://bridge.example.org", "--insecure"], &own, &["no key for"]),
        (&["wss://bridge.example.org"], &own, &["no key for"]),
        (&["wss://localhost"], &own, &["no key for"]),
        (&["wss://bridge.example.org", "--insecure"], &named, &["--ca", "certificates are always checked"]),
        (&["ws://localhost:9", "--ca", "x.pem"], &named, &["--ca", "wss://"]),
        (&["wss://localhost:9", "--ca", "x.pem"], &named, &["x.pem"]),
    ] {
        let (code, said) = refused(&home, args, variables);
        assert_eq!((code, said.lines().count()), (2, 1), "{args:?}: {said}");
        for words in told {
            assert!(said.contains(words), "{args:?} should say {words}: {said}");
        }
        assert!(!said.contains(TOKEN) && !said.contains("gb-"), "{said}");
    }
}

#[test]
fn f12_the_secret_of_the_proof_is_private_and_new_at_each_start() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut gateway = Home::for_serving().serve();
    let read = |gateway: &Gateway| std::fs::read_to_string(gateway.home.state("local-secret")).unwrap();
    let mode = std::fs::metadata(gateway.home.state("local-secret")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let first = read(&gateway);
    // A gateway that is refused the folder leaves the secret of the one that has it.
    let (code, said) = gateway.home.refused(&["--agent", "demo"]);
    assert!(code == 2 && read(&gateway) == first, "{said}");
    gateway.signal(rustix::process::Signal::TERM);
    gateway.ended();
    let gateway = gateway.into_home().serve();
    assert_ne!(read(&gateway), first);
    for query in ["", "?nonce=", "?nonce=0", "?nonce=zz", &format!("?nonce={}", "0".repeat(65))] {
        assert_eq!(gateway.ask("GET", &format!("/acp/proof{query}"), &[], None).status, 400, "{query}");
    }
    let ask = || gateway.ask("GET", &format!("/acp/proof?nonce={}", "0".repeat(64)), &[], None);
    let answer = ask();
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["proof"].as_str().map(str::len), Some(64));
    assert!(!answer.body.contains(read(&gateway).trim()));
}

/// A certificate for `localhost` and the authority that it comes from.
fn certificates(folder: &Path) {
    let at = |name: &str| folder.join(name).display().to_string();
    let openssl = |args: &[&str]| {
        let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
        let made = Command::new("openssl").args(["req", "-x509"]).args(key).args(args).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    };
    openssl(&["-subj", "/CN=an authority", "-keyout", &at("ca.key"), "-out", &at("ca.pem")]);
    let leaf = ["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"];
    let signed = ["-CA", &at("ca.pem"), "-CAkey", &at("ca.key"), "-keyout", &at("leaf.key"), "-out", &at("leaf.pem")];
    openssl(&[&["-subj", "/CN=localhost"], &leaf[..], &signed[..]].concat());
}

/// A proxy with TLS before the gateway. It ends with the runtime.
fn tls_proxy(runtime: &tokio::runtime::Runtime, folder: &Path, gateway: SocketAddr) -> SocketAddr {
    let chain = CertificateDer::pem_file_iter(folder.join("leaf.pem")).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(folder.join("leaf.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = runtime.block_on(tokio::net::TcpListener::bind(("127.0.0.1", 0))).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            connections.spawn(async move {
                // A client that does not like the certificate goes away.
                let Ok(mut client) = acceptor.accept(stream).await else { return };
                let mut server = tokio::net::TcpStream::connect(gateway).await.unwrap();
                drop(tokio::io::copy_bidirectional(&mut client, &mut server).await);
            });
        }
    });
    address
}

#[test]
fn f12_a_gateway_behind_tls_is_reached_with_the_authority_of_its_certificate_and_not_without() {
    let gateway = Home::for_serving().serve();
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let port = tls_proxy(&runtime, folder.path(), gateway.address).port();
    std::fs::write(gateway.home.path("a-key"), &gateway.key).unwrap();
    let ca = folder.path().join("ca.pem").display().to_string();
    let url = format!("wss://localhost:{port}");
    let mut editor = Editor::start(gateway.home.command(&["connect", &url, "--key-file", "a-key", "--ca", &ca]));
    editor.call("initialize", &json!({ "protocolVersion": 1 })).unwrap();
    let session = editor.new_session();
    assert!(crate::support::messages::said(&editor.turn(&session, "hello there")).contains("hello there"));
    editor.hang_up();
    assert_eq!(editor.code(), (0, String::new()));

    let (by_number, by_name) = (format!("wss://127.0.0.1:{port}"), url);
    for args in [&[by_name.as_str()][..], &[&by_number, "--ca", &ca]] {
        let (code, said) = refused(&gateway.home, args, &[("GEMBRIDGE_KEY", &gateway.key)]);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains("certificate") && said.contains("--ca FILE"), "{said}");
    }
}
