//! Functions of the program that the agent calls.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use gembridge_sdk::schemars::{self, JsonSchema};
use gembridge_sdk::{Adapter, BuildError, ErrorKind, Phase, Tool, ToolError, ToolOrigin, ToolStatus, ToolUse};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::fixture::demo;

#[derive(Debug, Deserialize, JsonSchema)]
struct Numbers {
    a: i64,
    b: i64,
}

fn add() -> Tool {
    Tool::new("add", "Adds two numbers", |numbers: Numbers| async move { Ok(numbers.a + numbers.b) })
}

/// What came of one prompt: the text and the calls.
async fn asked(adapter: Adapter, prompt: &str) -> (String, Vec<ToolUse>) {
    let reply = adapter.evaluate(prompt).await.unwrap();
    adapter.close().await;
    (reply.text, reply.tools)
}

#[tokio::test]
async fn the_agent_calls_a_function_and_goes_on_with_its_result() {
    let (text, tools) = asked(demo().tool(add()).build().unwrap(), r#"call add {"a": 2, "b": 40}"#).await;
    assert!(text.contains("42"), "{text}");
    let [tool] = &tools[..] else { panic!("{tools:?}") };
    assert_eq!((tool.name.as_str(), tool.origin, tool.status), ("add", ToolOrigin::Program, ToolStatus::Completed));
    assert_eq!(tool.output.as_deref(), Some("42"));
}

#[tokio::test]
async fn several_calls_at_once_and_one_after_the_other_are_all_answered() {
    let parallel = r#"call add {"a": 1, "b": 1} and add {"a": 20, "b": 2}"#;
    let (text, tools) = asked(demo().tool(add()).build().unwrap(), parallel).await;
    assert!(text.contains('2') && text.contains("22"), "{text}");
    assert_eq!(tools.len(), 2);
    let counted = Arc::new(AtomicUsize::new(0));
    let calls = Arc::clone(&counted);
    let count = Tool::with_schema("count", "Counts", &json!({"type": "object"}), move |_| {
        let number = calls.fetch_add(1, Ordering::Relaxed) + 1;
        async move { Ok(format!("number {number}")) }
    });
    let (text, tools) = asked(demo().tool(count).build().unwrap(), "rounds 3 count {}").await;
    assert_eq!(counted.load(Ordering::Relaxed), 3, "{text}");
    assert_eq!(tools.len(), 3);
}

#[tokio::test]
async fn no_arguments_are_an_empty_object() {
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let kept = Arc::clone(&seen);
    let tool = Tool::with_schema("look", "Looks", &json!({"type": "object"}), move |arguments| {
        kept.lock().unwrap().push(arguments);
        async { Ok("seen".to_owned()) }
    });
    let (text, _) = asked(demo().tool(tool).build().unwrap(), "call look").await;
    assert!(text.contains("seen"), "{text}");
    assert_eq!(*seen.lock().unwrap(), [json!({})]);
}

#[tokio::test]
async fn bad_arguments_an_error_and_a_panic_are_failures_that_the_agent_is_told() {
    let fails =
        || Tool::new("fail", "Fails", |_: Numbers| async { Err::<String, _>(ToolError::failed("out of order")) });
    let panics = || {
        Tool::new("panic", "Panics", |numbers: Numbers| async move {
            assert_ne!(numbers.a, 1, "one is not allowed");
            Ok(numbers.b)
        })
    };
    let converts = || {
        Tool::new("convert", "Fails by `?`", |_: Numbers| async {
            let number: i64 = "no number".parse()?;
            Ok(number)
        })
    };
    for (tool, prompt, words, statuses) in [
        (fails(), r#"call fail {"a": 1, "b": 2}"#, "out of order", &[ToolStatus::Failed][..]),
        (panics(), r#"call panic {"a": 1, "b": 2}"#, "one is not allowed", &[ToolStatus::Failed]),
        (converts(), r#"call convert {"a": 1, "b": 2}"#, "invalid digit", &[ToolStatus::Failed]),
        // The tool server refuses the call before it reaches the function.
        (add(), r#"call add {"a": "one", "b": 2}"#, "arguments", &[]),
    ] {
        let (text, tools) = asked(demo().tool(tool).build().unwrap(), prompt).await;
        assert!(text.contains(words), "{prompt}: {text}");
        let seen: Vec<ToolStatus> = tools.iter().map(|tool| tool.status).collect();
        assert_eq!(seen, statuses, "{prompt}: {tools:?}");
    }
}

#[tokio::test]
async fn an_unknown_tool_is_an_error_for_the_agent_and_no_call_here() {
    let (text, tools) = asked(demo().tool(add()).build().unwrap(), "call no_such_tool {}").await;
    assert!(text.contains("no_such_tool"), "{text}");
    assert!(tools.is_empty(), "{tools:?}");
}

#[tokio::test]
async fn a_function_may_end_the_evaluation_with_its_own_words() {
    let stop = Tool::new("stop", "Ends it", |_: Numbers| async { Err::<(), _>(ToolError::abort("not today")) });
    let adapter = demo().tool(stop).build().unwrap();
    let error = adapter.evaluate(r#"call stop {"a": 1, "b": 2}"#).await.unwrap_err();
    assert_eq!((error.phase, &error.kind, error.message.as_str()), (Phase::Tool, &ErrorKind::Aborted, "not today"));
    adapter.close().await;
}

#[tokio::test]
async fn a_hook_adds_a_word_to_what_succeeded_and_to_nothing_else() {
    let fails = Tool::new("fail", "Fails", |_: Numbers| async { Err::<(), _>(ToolError::failed("broken")) });
    let hook = |tool: &ToolUse| Some(format!("well done, {}", tool.name));
    let adapter = demo().tool(add()).tool(fails).after_tool(hook).build().unwrap();
    let good = adapter.evaluate(r#"call add {"a": 2, "b": 3}"#).await.unwrap();
    assert!(good.text.contains('5') && good.text.contains("well done, add"), "{}", good.text);
    let bad = adapter.evaluate(r#"call fail {"a": 2, "b": 3}"#).await.unwrap();
    assert!(!bad.text.contains("well done"), "{}", bad.text);
    adapter.close().await;
}

#[test]
fn two_tools_of_one_name_are_refused() {
    let error = demo().tool(add()).tool(add()).build().unwrap_err();
    assert!(matches!(error, BuildError::SameName(_)), "{error}");
}
