//! How much work the check of an answer can be, estimated before it is done: a schema of a few lines that refers to
//! itself can take longer than the world stands, and the validator cannot be stopped.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Steps of a check, about a second of them at worst.
const MOST_STEPS: u64 = 20_000_000;
/// How far a check may go down in the schema, so that it does not run out of stack.
const DEEPEST: usize = 400;
/// An answer of this height is what every schema must be able to check.
const USUAL_HEIGHT: usize = 4;

/// Why an answer is not checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooMuch {
    #[error("too many of its references lead to the same place; refer less often, or less deep")]
    Work,
    #[error("it refers to something that is not in it; refer to `#` or `#/$defs/…`")]
    Reference,
    #[error("a part of it has a `$id` of its own; only the whole may have one")]
    Identity,
}

/// Whether usual answers can be checked against the schema.
pub fn of_schema(schema: &Value) -> Result<(), TooMuch> {
    steps(schema, USUAL_HEIGHT).map(drop)
}

/// Whether this answer can be checked against the schema.
pub fn of_answer(schema: &Value, answer: &Value) -> Result<(), TooMuch> {
    let (height, nodes) = size(answer);
    let steps = steps(schema, height)?;
    if steps.saturating_mul(nodes) > MOST_STEPS { Err(TooMuch::Work) } else { Ok(()) }
}

/// How often the schema is looked at for one place of an answer and all that it stands in.
fn steps(schema: &Value, height: usize) -> Result<u64, TooMuch> {
    let mut scales = Scales { root: schema, anchors: HashMap::new(), weighed: HashMap::new() };
    scales.index(schema, 0)?;
    scales.weigh(schema, height, 0)
}

/// The height of a value, and how many values are in it.
fn size(value: &Value) -> (usize, u64) {
    let sum = |sizes: &mut dyn Iterator<Item = &Value>| {
        let (mut height, mut nodes) = (0, 1);
        for (inner_height, inner_nodes) in sizes.map(size) {
            height = height.max(inner_height + 1);
            nodes += inner_nodes;
        }
        (height, nodes)
    };
    match value {
        Value::Object(fields) => sum(&mut fields.values()),
        Value::Array(items) => sum(&mut items.iter()),
        _ => (0, 1),
    }
}

/// What applies a schema, and to what.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Applies {
    /// To the place itself.
    Here,
    /// To what is in it.
    Below,
    /// To what is in it, each to something else.
    BelowApart,
    No,
}

fn applies(keyword: &str) -> Applies {
    match keyword {
        "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependentSchemas" | "dependencies" => {
            Applies::Here
        }
        "properties" | "prefixItems" => Applies::BelowApart,
        "patternProperties"
        | "additionalProperties"
        | "unevaluatedProperties"
        | "propertyNames"
        | "items"
        | "additionalItems"
        | "unevaluatedItems"
        | "contains" => Applies::Below,
        _ => Applies::No,
    }
}

/// The schemas that a keyword holds: one, a list, or some by name.
fn held<'a>(keyword: &str, value: &'a Value) -> Box<dyn Iterator<Item = &'a Value> + 'a> {
    let is_named = matches!(
        keyword,
        "properties" | "patternProperties" | "dependentSchemas" | "dependencies" | "$defs" | "definitions"
    );
    match value {
        Value::Object(schemas) if is_named => Box::new(schemas.values()),
        Value::Array(schemas) => Box::new(schemas.iter()),
        other => Box::new(std::iter::once(other)),
    }
}

struct Scales<'a> {
    root: &'a Value,
    /// Parts of the schema by the name that they give themselves.
    anchors: HashMap<&'a str, Vec<&'a Value>>,
    /// What references lead to, at each height. `None`: it is being weighed, and the validator does not go in circles.
    weighed: HashMap<(*const Value, usize), Option<u64>>,
}

impl<'a> Scales<'a> {
    fn index(&mut self, schema: &'a Value, depth: usize) -> Result<(), TooMuch> {
        let Value::Object(keywords) = schema else { return Ok(()) };
        if depth > 0 && keywords.get("$id").is_some_and(Value::is_string) {
            return Err(TooMuch::Identity);
        }
        for name in ["$anchor", "$dynamicAnchor"] {
            if let Some(name) = keywords.get(name).and_then(Value::as_str) {
                self.anchors.entry(name).or_default().push(schema);
            }
        }
        for (keyword, value) in keywords {
            if applies(keyword) != Applies::No || matches!(keyword.as_str(), "$defs" | "definitions") {
                held(keyword, value).try_for_each(|inner| self.index(inner, depth + 1))?;
            }
        }
        Ok(())
    }

    fn weigh(&mut self, schema: &'a Value, height: usize, depth: usize) -> Result<u64, TooMuch> {
        let Value::Object(keywords) = schema else { return Ok(1) };
        if depth > DEEPEST {
            return Err(TooMuch::Work);
        }
        let (mut here, mut below) = (1_u64, 0_u64);
        for (keyword, value) in keywords {
            match applies(keyword) {
                Applies::Here => {
                    for inner in held(keyword, value) {
                        here = here.saturating_add(self.weigh(inner, height, depth + 1)?);
                    }
                }
                Applies::Below | Applies::BelowApart if height == 0 => {}
                Applies::Below => {
                    for inner in held(keyword, value) {
                        below = below.saturating_add(self.weigh(inner, height - 1, depth + 1)?);
                    }
                }
                Applies::BelowApart => {
                    let mut heaviest = 0;
                    for inner in held(keyword, value) {
                        heaviest = heaviest.max(self.weigh(inner, height - 1, depth + 1)?);
                    }
                    below = below.saturating_add(heaviest);
                }
                Applies::No => here = here.saturating_add(self.weigh_other(keyword, value, height, depth)?),
            }
            if here.saturating_add(below) > MOST_STEPS {
                return Err(TooMuch::Work);
            }
        }
        // What is left over is found by looking at everything again.
        let again = if is_left_over(keywords) { 2 } else { 1 };
        Ok(here.saturating_add(below).saturating_mul(again))
    }

    fn weigh_other(&mut self, keyword: &str, value: &'a Value, height: usize, depth: usize) -> Result<u64, TooMuch> {
        match (keyword, value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(target)) => {
                let mut sum = 0_u64;
                for target in self.targets(target)? {
                    sum = sum.saturating_add(self.weigh_target(target, height, depth)?);
                }
                Ok(sum)
            }
            ("enum", Value::Array(values)) => Ok(u64::try_from(values.len()).unwrap_or(u64::MAX) / 16),
            _ => Ok(0),
        }
    }

    fn weigh_target(&mut self, target: &'a Value, height: usize, depth: usize) -> Result<u64, TooMuch> {
        let key = (std::ptr::from_ref(target), height);
        if let Some(known) = self.weighed.get(&key) {
            return Ok(known.unwrap_or(1));
        }
        self.weighed.insert(key, None);
        let weight = self.weigh(target, height, depth + 1)?;
        self.weighed.insert(key, Some(weight));
        Ok(weight)
    }

    fn targets(&self, reference: &str) -> Result<Vec<&'a Value>, TooMuch> {
        let own = self.root.get("$id").and_then(Value::as_str).map(|id| id.trim_end_matches('#'));
        let within = own.and_then(|id| reference.strip_prefix(id)).unwrap_or(reference);
        let place = match within.strip_prefix('#') {
            Some(place) => percent_decoded(place),
            None if within.is_empty() => String::new(),
            None => return Err(TooMuch::Reference),
        };
        if place.is_empty() || place.starts_with('/') {
            return self.root.pointer(&place).map(|target| vec![target]).ok_or(TooMuch::Reference);
        }
        self.anchors.get(place.as_str()).cloned().ok_or(TooMuch::Reference)
    }
}

fn is_left_over(keywords: &Map<String, Value>) -> bool {
    keywords.contains_key("unevaluatedProperties") || keywords.contains_key("unevaluatedItems")
}

/// References are addresses, so a name in them may be written like one.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let decoded = digits.filter(|_| byte == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(decoded.unwrap_or(byte));
        rest = if decoded.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
