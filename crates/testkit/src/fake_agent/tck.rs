//! What the A2A conformance suite expects of an agent: the id of a message says what shall become of it.

use serde_json::{Value, json};

use super::{mode::Mode, options::Options};

/// Beginnings of ids, the longer ones first, and the script that each stands for.
const SCRIPTS: [(&str, &[&str]); 15] = [
    ("tck-complete-task", &["say Hello from TCK", COMPLETED]),
    ("tck-artifact-text", &[TEXT, COMPLETED]),
    ("tck-artifact-file-url", &[URL, COMPLETED]),
    ("tck-artifact-file", &[FILE, COMPLETED]),
    ("tck-artifact-data", &[DATA, COMPLETED]),
    ("tck-message-response", &["say Direct message response", "stop message"]),
    ("tck-input-required", &["say What else?"]),
    ("tck-reject-task", &["stop refusal"]),
    ("tck-stream-002", &[COMPLETED]),
    ("tck-stream-artifact-file", &[FILE, COMPLETED]),
    ("tck-stream-artifact-chunked", &[TEXT, TEXT, COMPLETED]),
    ("tck-stream", &[TEXT, COMPLETED]),
    // Longer than the suite looks at it.
    ("test-resubscribe-message-id", &["say working", "sleep 6000", COMPLETED]),
    ("tck-history", &["say noted"]),
    ("tck-multi", &["say noted"]),
];

const COMPLETED: &str = "stop completed";
const TEXT: &str = r#"content {"type":"resource","resource":{"uri":"file:///text","mimeType":"text/plain","text":"Generated text content"}}"#;
const FILE: &str =
    r#"content {"type":"resource","resource":{"uri":"file:///output.txt","mimeType":"text/plain","blob":"aGVsbG8="}}"#;
const URL: &str = r#"content {"type":"resource_link","uri":"https://example.com/output.txt","name":"output.txt","mimeType":"text/plain"}"#;
const DATA: &str = r#"content {"type":"resource","resource":{"uri":"file:///data","mimeType":"application/json","text":"{\"key\":\"value\",\"count\":42}"}}"#;

/// The prompt of a request, or the script that its id stands for.
pub fn prompt(options: &Options, params: &Value) -> Value {
    let id = params["_meta"]["gembridge"]["messageId"].as_str().unwrap_or_default();
    let script = SCRIPTS.iter().find(|(beginning, _)| id.starts_with(beginning));
    match script {
        Some((_, steps)) if options.modes.contains(&Mode::A2aTck) => {
            json!([{"type": "text", "text": steps.join("\n")}])
        }
        _ => params["prompt"].clone(),
    }
}
