//! A value that a JSON schema allows, made by rule: what the demo agent calls tools with when nobody wrote arguments.

use serde_json::{Map, Value, json};

/// Schemas may refer to themselves: so deep, and no deeper.
const DEEPEST: usize = 12;

/// Makes values for one schema, out of the words of one prompt.
pub(crate) struct Sampler<'a> {
    root: &'a Value,
    /// The word that most looks like what the prompt is about.
    topic: Option<&'a str>,
}

impl<'a> Sampler<'a> {
    pub(crate) fn new(root: &'a Value, prompt: &'a str) -> Self {
        Self { root, topic: topic(prompt) }
    }

    pub(crate) fn value(&self) -> Value {
        self.of(self.root, "value", 0)
    }

    fn of(&self, schema: &Value, name: &str, depth: usize) -> Value {
        if depth > DEEPEST {
            return Value::Null;
        }
        if let Some(target) = schema["$ref"].as_str().and_then(|path| self.root.pointer(path.strip_prefix('#')?)) {
            return self.of(target, name, depth + 1);
        }
        let given = [&schema["const"], &schema["default"], &schema["examples"][0], &schema["enum"][0]];
        if let Some(given) = given.into_iter().find(|given| !given.is_null()) {
            return given.clone();
        }
        if let Some(one) = ["anyOf", "oneOf"].iter().find_map(|key| schema[key].get(0)) {
            return self.of(one, name, depth + 1);
        }
        if let Some(all) = schema["allOf"].as_array() {
            return self.all_of(all, schema, name, depth);
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds.first().and_then(Value::as_str),
            kind => kind.as_str(),
        };
        match kind {
            Some("string") => self.text(schema, name).into(),
            Some("integer") => whole(schema).into(),
            Some("number") => number(schema),
            Some("boolean") => true.into(),
            Some("null") => Value::Null,
            Some("array") => self.list(schema, name, depth),
            Some("object") => self.object(schema, depth),
            _ if schema["properties"].is_object() => self.object(schema, depth),
            _ if depth == 0 => json!({}),
            _ => self.text(schema, name).into(),
        }
    }

    fn object(&self, schema: &Value, depth: usize) -> Value {
        let properties = schema["properties"].as_object().into_iter().flatten();
        let required = schema["required"].as_array();
        // What may be left out is, where a schema nests: it may never end otherwise.
        let wanted = |name: &str| depth < 3 || required.is_some_and(|names| names.iter().any(|known| known == name));
        let members = properties.filter(|(name, _)| wanted(name));
        Value::Object(members.map(|(name, schema)| (name.clone(), self.of(schema, name, depth + 1))).collect())
    }

    fn list(&self, schema: &Value, name: &str, depth: usize) -> Value {
        let least = schema["minItems"].as_u64().unwrap_or(1).min(16);
        let most = schema["maxItems"].as_u64().unwrap_or(u64::MAX);
        (0..least.min(most)).map(|_| self.of(&schema["items"], name, depth + 1)).collect()
    }

    fn all_of(&self, all: &[Value], schema: &Value, name: &str, depth: usize) -> Value {
        let mut joined = Map::new();
        for part in all.iter().chain(schema["properties"].is_object().then_some(schema)) {
            let mut part = part.clone();
            if let Some(part) = part.as_object_mut() {
                part.remove("allOf");
            }
            match self.of(&part, name, depth + 1) {
                Value::Object(members) => joined.extend(members),
                other if joined.is_empty() => return other,
                _ => {}
            }
        }
        Value::Object(joined)
    }

    fn text(&self, schema: &Value, name: &str) -> String {
        let mut text = match schema["format"].as_str() {
            Some("date") => "2026-01-31".to_owned(),
            Some("date-time") => "2026-01-31T12:00:00Z".to_owned(),
            Some("time") => "12:00:00Z".to_owned(),
            Some("email") => "demo@example.org".to_owned(),
            Some("uri" | "url") => "https://example.org/".to_owned(),
            Some("uuid") => "00000000-0000-4000-8000-000000000000".to_owned(),
            _ => self.topic.unwrap_or(name).to_owned(),
        };
        let least =
            schema["minLength"].as_u64().and_then(|length| usize::try_from(length).ok()).unwrap_or(0).min(4_096);
        while text.chars().count() < least {
            text.push('.');
        }
        match schema["maxLength"].as_u64().and_then(|length| usize::try_from(length).ok()) {
            Some(most) => text.chars().take(most).collect(),
            None => text,
        }
    }
}

fn whole(schema: &Value) -> i64 {
    let least = schema["minimum"].as_i64().or(schema["exclusiveMinimum"].as_i64().map(|bound| bound + 1));
    let most = schema["maximum"].as_i64().or(schema["exclusiveMaximum"].as_i64().map(|bound| bound - 1));
    let step = schema["multipleOf"].as_i64().filter(|step| *step > 0).unwrap_or(1);
    let wished = 1.max(least.unwrap_or(1)).min(most.unwrap_or(i64::MAX));
    let stepped = wished.div_euclid(step) * step;
    if least.is_some_and(|least| stepped < least) { stepped + step } else { stepped }
}

fn number(schema: &Value) -> Value {
    match (schema["minimum"].as_f64(), schema["maximum"].as_f64()) {
        (Some(least), Some(most)) => json!(f64::midpoint(least, most)),
        (Some(least), None) => json!(least + 1.0),
        (None, Some(most)) => json!(most - 1.0),
        (None, None) => json!(1.5),
    }
}

/// A name in the prompt: the first word with a capital letter that does not begin a sentence.
fn topic(prompt: &str) -> Option<&str> {
    let mut begins = true;
    for word in prompt.split_whitespace() {
        let bare = word.trim_matches(|letter: char| !letter.is_alphanumeric());
        if !begins && bare.chars().count() > 1 && bare.starts_with(char::is_uppercase) {
            return Some(bare);
        }
        begins = word.ends_with(['.', '!', '?', ':', ']']);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(schema: &Value, prompt: &str) -> Value {
        Sampler::new(schema, prompt).value()
    }

    #[test]
    fn a_name_in_the_prompt_becomes_the_text() {
        let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
        assert_eq!(sample(&schema, "What is the weather in Oslo?"), json!({"city": "Oslo"}));
        assert_eq!(sample(&schema, "what is it like? Tell me."), json!({"city": "city"}));
    }

    #[test]
    fn bounds_choices_and_references_are_kept() {
        let schema = json!({
            "type": "object",
            "properties": {
                "level": {"enum": ["low", "high"]},
                "count": {"type": "integer", "minimum": 7, "multipleOf": 5},
                "share": {"type": "number", "minimum": 0, "maximum": 1},
                "sure": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}, "minItems": 2},
                "day": {"type": ["string", "null"], "format": "date"},
                "next": {"$ref": "#/$defs/step"},
                "either": {"anyOf": [{"type": "null"}, {"type": "string"}]},
            },
            "$defs": {"step": {"type": "object", "properties": {"what": {"type": "string", "maxLength": 2}}}},
        });
        let expected = json!({
            "level": "low", "count": 10, "share": 0.5, "sure": true, "tags": ["tags", "tags"], "day": "2026-01-31",
            "next": {"what": "wh"}, "either": null,
        });
        assert_eq!(sample(&schema, ""), expected);
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schema = json!({
            "$defs": {"node": {"type": "object", "properties": {
                "name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            }, "required": ["name"]}},
            "$ref": "#/$defs/node",
        });
        let made = sample(&schema, "");
        assert_eq!(made["name"], "name");
        assert_eq!(made["children"][0]["name"], "name");
    }

    #[test]
    fn a_schema_that_asks_for_nothing_gets_an_object() {
        assert_eq!(sample(&json!({}), "Ask Ada"), json!({}));
        assert_eq!(sample(&json!({"type": "object"}), ""), json!({}));
    }
}
