//! Every request that real clients were seen to send is understood: which of its fields have no effect, and what is refused, stands
//! in a table for each dialect.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use gembridge_api::dialect::Source;
use gembridge_api::problem::Problem;
use gembridge_api::{messages, ollama, responses};
use serde_json::Value;

/// A request as it was recorded.
struct Recorded {
    client: String,
    path: String,
    body: Bytes,
}

fn fixtures(dialect: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/clients").join(dialect)
}

fn recorded(dialect: &str) -> Vec<Recorded> {
    let mut files: Vec<PathBuf> = fs::read_dir(fixtures(dialect)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let mut requests = Vec::new();
    for file in files {
        let client = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let whole: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        for request in whole["requests"].as_array().unwrap() {
            let path = request["request"].as_str().unwrap().split('?').next().unwrap().to_owned();
            requests.push(Recorded { client: client.clone(), path, body: request["body"].to_string().into() });
        }
    }
    assert!(requests.len() > 20, "there are {} requests of {dialect}", requests.len());
    requests
}

/// What became of a request: the names of fields without effect, or why it is refused.
type Understood = Result<Vec<String>, Problem>;

fn table(dialect: &str, understand: impl Fn(&Recorded) -> Option<Understood>) -> String {
    let mut rows = String::from("| client | request | without effect | refused |\n|---|---|---|---|\n");
    for request in recorded(dialect) {
        let Some(understood) = understand(&request) else { continue };
        let (ignored, refused) = match understood {
            Ok(ignored) => (ignored.join(", "), String::new()),
            Err(problem) => (String::new(), problem.message),
        };
        let row = format!("| {} | {} | {ignored} | {refused} |\n", request.client, request.path);
        if !rows.contains(&row) {
            write!(rows, "{row}").unwrap();
        }
    }
    rows
}

/// Compares with what is written down; a difference is printed whole, to be looked at and put there.
fn assert_written(dialect: &str, table: &str) {
    let written = fs::read_to_string(fixtures(dialect).join("understood.md")).unwrap_or_default();
    assert_eq!(table, written, "fixtures/clients/{dialect}/understood.md should be\n{table}");
}

#[test]
fn every_recorded_request_of_the_messages_api_is_understood() {
    let understand = |request: &Recorded| {
        let is_served = ["POST /v1/messages", "POST /v1/messages/count_tokens"].contains(&request.path.as_str());
        let read = || -> Understood {
            let asked = messages::decode::parse(&request.body)?;
            let options = messages::decode::options(&asked)?;
            messages::decode::conversation(&asked, options.thread.as_ref(), Source(&request.body))?;
            Ok(options.ignored)
        };
        is_served.then(read)
    };
    assert_written("messages", &table("messages", understand));
}

#[test]
fn every_recorded_request_of_ollama_is_understood() {
    use ollama::decode::{self, Kinds};
    let understand = |request: &Recorded| {
        let kind = match request.path.as_str() {
            "POST /api/chat" => Kinds::Chat,
            "POST /api/generate" => Kinds::Generate,
            _ => return None,
        };
        let read = || -> Understood {
            let asked = decode::parse(&request.body)?;
            let options = decode::options(&asked, kind)?;
            match kind {
                Kinds::Chat => decode::conversation(&asked, Source(&request.body))?,
                Kinds::Generate => decode::generation(&asked, Source(&request.body))?,
            };
            Ok(options.ignored)
        };
        Some(read())
    };
    assert_written("ollama", &table("ollama", understand));
}

#[test]
fn every_recorded_request_of_the_responses_api_is_understood() {
    let understand = |request: &Recorded| Some(responses::decode::understand(&request.body));
    assert_written("responses", &table("responses", understand));
}
