//! Every line that the banner and the documents tell people to type, typed.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::gateway::Gateway;
use crate::support::home::Home;

/// Runs a line in a shell as a person would, with nothing but the address changed.
fn typed(gateway: &Gateway, line: &str) -> Output {
    let line = line.replace("http://localhost:11434", &format!("http://{}", gateway.address));
    Command::new("/bin/sh")
        .args(["-c", &line])
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", gateway.home.path(""))
        .env("GEMBRIDGE_KEY", &gateway.key)
        .output()
        .unwrap()
}

#[track_caller]
fn works(gateway: &Gateway, line: &str) -> String {
    // Without progress, and with an exit code for an HTTP error.
    let ran = typed(gateway, &line.replacen("curl ", "curl --silent --show-error --fail-with-body ", 1));
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{line}\n{said}\n{}", String::from_utf8_lossy(&ran.stderr));
    said
}

/// The shell blocks of a document.
fn shell_blocks(document: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{document}: {error}"));
    let blocks = text.split("\n```sh\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    blocks.map(str::to_owned).collect()
}

#[test]
fn the_line_of_the_banner_works_as_it_is_printed() {
    let gateway = Home::for_serving().serve();
    let banner = gateway.stdout();
    let line = banner.lines().find_map(|line| line.strip_prefix("try     ")).expect("a line to try");
    assert!(works(&gateway, line).contains("chat.completion"));
}

#[test]
fn the_line_of_the_banner_works_for_whoever_brought_a_token() {
    for variable in ["BEARER_TOKEN", "GEMBRIDGE_AUTH_BEARER_TOKEN"] {
        let token = "token-of-the-operator";
        let gateway = Home::for_serving().serve_with(&["--agent", "demo"], &[(variable, token)]);
        let banner = gateway.stdout();
        let line = banner.lines().find_map(|line| line.strip_prefix("try     ")).expect("a line to try");
        assert!(line.contains(&format!("${variable}")) && !banner.contains(token), "{banner}");
        let ran = Command::new("/bin/sh")
            .args(["-c", &line.replacen("curl ", "curl --silent --fail-with-body ", 1)])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env(variable, token)
            .output()
            .unwrap();
        assert!(String::from_utf8_lossy(&ran.stdout).contains("chat.completion"), "{ran:?}");
    }
}

#[test]
fn every_curl_line_of_the_documents_works_as_it_is_printed() {
    let gateway = Home::for_serving().serve();
    let mut lines = 0;
    for document in ["README.md", "docs/openai.md"] {
        for block in shell_blocks(document).iter().filter(|block| block.trim_start().starts_with("curl ")) {
            let said = works(&gateway, block);
            assert!(!said.is_empty(), "{block}");
            if block.contains("\"stream\": true") {
                assert!(said.starts_with("data: ") && said.trim_end().ends_with("data: [DONE]"), "{said}");
            }
            lines += 1;
        }
    }
    assert!(lines >= 4, "{lines} lines were found");
    let exported = shell_blocks("docs/openai.md").into_iter().find(|block| block.starts_with("export ")).unwrap();
    let shown = typed(&gateway, &format!("{exported}\necho $GEMBRIDGE_KEY"));
    assert_eq!(String::from_utf8_lossy(&shown.stdout).trim(), gateway.key);
}
