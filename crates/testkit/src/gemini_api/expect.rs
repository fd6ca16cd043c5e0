//! What a script expects of a request: which functions are declared, and what those that were called have returned.

use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// Just these functions, each with a schema that holds at least this.
    #[serde(default)]
    declared: Option<Map<String, Value>>,
    /// Part of what each call since the prompt has returned, in order.
    #[serde(default)]
    returned: Option<Vec<String>>,
}

impl Expectation {
    /// What is not as expected; `since` is the conversation from the prompt on.
    pub fn unmet(&self, request: &Value, since: &[Value]) -> Option<String> {
        let declared = self.declared.as_ref().and_then(|expected| undeclared(expected, request));
        declared.or_else(|| self.returned.as_ref().and_then(|expected| unreturned(expected, since)))
    }
}

/// The functions that a request declares, with the schemas of their arguments.
pub fn declarations(request: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let tools = request["tools"].as_array().into_iter().flatten();
    let declared = tools.flat_map(|tool| tool["functionDeclarations"].as_array().into_iter().flatten());
    declared.filter_map(|declaration| {
        let schema = declaration.get("parametersJsonSchema").unwrap_or(&declaration["parameters"]);
        Some((declaration["name"].as_str()?, schema))
    })
}

fn undeclared(expected: &Map<String, Value>, request: &Value) -> Option<String> {
    let mut found: Vec<_> = declarations(request).map(|(name, _)| name).collect();
    let mut names: Vec<_> = expected.keys().map(String::as_str).collect();
    found.sort_unstable();
    names.sort_unstable();
    if found != names {
        return Some(format!("the functions {names:?} should be declared, and {found:?} are"));
    }
    let other = declarations(request).find(|(name, schema)| !holds(schema, &expected[*name]))?;
    Some(format!("the schema of `{}` should hold {}, and is {}", other.0, expected[other.0], other.1))
}

fn unreturned(expected: &[String], since: &[Value]) -> Option<String> {
    let parts = since.iter().flat_map(|content| content["parts"].as_array().into_iter().flatten());
    let returned: Vec<_> = parts.filter_map(|part| part.get("functionResponse")).map(ToString::to_string).collect();
    let as_expected = returned.len() == expected.len()
        && returned.iter().zip(expected).all(|(returned, part)| returned.contains(part.as_str()));
    (!as_expected).then(|| format!("the functions should have returned {expected:?}, and returned {returned:?}"))
}

/// Whether `value` has all that `part` has, at any depth.
fn holds(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::Object(value), Value::Object(part)) => {
            part.iter().all(|(key, part)| value.get(key).is_some_and(|value| holds(value, part)))
        }
        _ => value == part,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn unmet(expected: Value) -> Option<String> {
        let schema = json!({"type": "object", "properties": {"city": {"type": "string"}, "extra": {}}});
        let request = json!({"tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": schema}]}]});
        let since = [
            json!({"role": "user", "parts": [{"text": "go"}]}),
            json!({"role": "user", "parts": [{"functionResponse": {"response": {"output": "12 degrees"}}}]}),
        ];
        serde_json::from_value::<Expectation>(expected).unwrap().unmet(&request, &since)
    }

    #[test]
    fn a_request_that_holds_what_is_expected_is_taken() {
        let city = json!({"properties": {"city": {"type": "string"}}});
        assert_eq!(unmet(json!({"declared": {"f": city}, "returned": ["12 deg"]})), None);
        assert_eq!(unmet(json!({})), None);
    }

    #[test]
    fn what_is_missing_is_named() {
        for (expected, says) in [
            (json!({"declared": {}}), "[] should be declared, and [\"f\"]"),
            (json!({"declared": {"g": {}}}), "[\"g\"] should be declared"),
            (json!({"declared": {"f": {"required": ["city"]}}}), "the schema of `f`"),
            (json!({"returned": []}), "12 degrees"),
            (json!({"returned": ["13"]}), "12 degrees"),
        ] {
            let sentence = unmet(expected.clone()).unwrap_or_default();
            assert!(sentence.contains(says), "{expected}: {sentence}");
        }
    }
}
