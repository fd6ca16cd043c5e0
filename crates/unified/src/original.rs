//! What a message was made from, as the agent wrote it.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::message::UnifiedMessage;

/// A record of the agent, or an array of its records.
#[derive(Clone, Debug, PartialEq)]
pub enum Original {
    Tree(Value),
    /// JSON byte for byte as it stood in the agent's file.
    Text(Box<str>),
}

impl Original {
    /// Records that were read as JSON before: the record itself where there is one, an array where there are several.
    pub fn of_records(mut records: Vec<Box<str>>) -> Option<Self> {
        match records.len() {
            0 => None,
            1 => records.pop().map(Self::Text),
            _ => Some(Self::Text(format!("[{}]", records.join(",")).into())),
        }
    }

    /// As a tree, `null` where the text is not JSON.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Tree(value) => value.clone(),
            Self::Text(text) => serde_json::from_str(text).unwrap_or_default(),
        }
    }
}

impl Serialize for Original {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Tree(value) => value.serialize(serializer),
            Self::Text(text) => {
                let raw = RawValue::from_string(text.to_string()).map_err(serde::ser::Error::custom)?;
                raw.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Original {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::Tree)
    }
}

impl UnifiedMessage {
    /// Appends the message as JSON, as `serde_json` would write it. A text of the original is copied without being parsed,
    /// which for a session file is most of what there is to write.
    pub fn append_json(&self, json: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        let Some(Original::Text(original)) = &self.original else {
            return serde_json::to_writer(json, self);
        };
        serde_json::to_writer(&mut *json, &WithoutOriginal::of(self))?;
        // The object goes on with one more field.
        json.pop();
        json.extend_from_slice(b",\"_original\":");
        json.extend_from_slice(original.as_bytes());
        json.push(b'}');
        Ok(())
    }
}

/// The fields of a message in their order.
#[derive(Serialize)]
struct WithoutOriginal<'a> {
    id: &'a str,
    role: crate::Role,
    content: &'a crate::Body,
    timestamp: u64,
    tool: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<crate::UnifiedUsage>,
}

impl<'a> WithoutOriginal<'a> {
    fn of(message: &'a UnifiedMessage) -> Self {
        let UnifiedMessage { id, role, content, timestamp, tool, model, usage, original: _ } = message;
        Self { id, role: *role, content, timestamp: *timestamp, tool, model: model.as_deref(), usage: *usage }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::{Block, Body, Role, UnifiedUsage};

    fn message(original: Option<Original>) -> UnifiedMessage {
        UnifiedMessage {
            id: "m\"1".to_owned(),
            role: Role::Assistant,
            content: Body::Blocks(vec![Block::Text { text: "two\nlines".to_owned() }]),
            timestamp: 7,
            tool: "claude".to_owned(),
            model: Some("opus".to_owned()),
            usage: Some(UnifiedUsage { input_tokens: Some(3), ..UnifiedUsage::default() }),
            original,
        }
    }

    #[test]
    fn what_is_appended_is_what_serde_writes() {
        let records = |records: &[&str]| Original::of_records(records.iter().map(|record| (*record).into()).collect());
        for original in
            [None, Some(Original::Tree(json!({"a": [1, 2.5]}))), records(&["{\"n\":1.50}"]), records(&["{}", "[]"])]
        {
            let message = message(original);
            let mut appended = b"before".to_vec();
            message.append_json(&mut appended).unwrap();
            assert_eq!(appended.strip_prefix(b"before").unwrap(), serde_json::to_vec(&message).unwrap());
            let again: UnifiedMessage = serde_json::from_slice(&appended[6..]).unwrap();
            assert_eq!(again.original.map(|it| it.to_value()), message.original.map(|it| it.to_value()));
        }
    }

    #[test]
    fn a_text_is_written_byte_for_byte_and_one_that_is_not_json_is_refused() {
        let mut appended = Vec::new();
        message(Some(Original::Text("{\"b\":1.50,\"a\":1e3}".into()))).append_json(&mut appended).unwrap();
        assert!(String::from_utf8(appended).unwrap().ends_with(",\"_original\":{\"b\":1.50,\"a\":1e3}}"));
        let broken = Original::Text("{".into());
        assert!(serde_json::to_string(&broken).is_err());
        assert_eq!(broken.to_value(), Value::Null);
        assert_eq!(Original::of_records(Vec::new()), None);
    }
}
