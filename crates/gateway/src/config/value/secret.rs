//! A value that is never shown.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A key or a token. It has no `Display` and no `PartialEq`; `Debug` and `Serialize` write a placeholder, and
/// a value of the wrong type is refused without being repeated in the error.
#[derive(Clone)]
pub struct Secret(String);

const PLACEHOLDER: &str = "[redacted]";

impl Secret {
    /// The value itself, for whoever must hand it on.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PLACEHOLDER)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(PLACEHOLDER)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SecretVisitor)
    }
}

struct SecretVisitor;

impl<'de> Visitor<'de> for SecretVisitor {
    type Value = Secret;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quoted string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Secret, E> {
        if text.is_empty() {
            return Err(E::custom("expected a quoted string that is not empty"));
        }
        Ok(Secret(text.to_owned()))
    }

    // The default methods would repeat the value in their error.
    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Secret, E> {
        Err(E::custom("expected a quoted string"))
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Secret, E> {
        Err(E::custom("expected a quoted string"))
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Secret, E> {
        Err(E::custom("expected a quoted string"))
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Secret, E> {
        Err(E::custom("expected a quoted string"))
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, _: A) -> Result<Secret, A::Error> {
        Err(de::Error::custom("expected a quoted string"))
    }

    fn visit_map<A: de::MapAccess<'de>>(self, _: A) -> Result<Secret, A::Error> {
        Err(de::Error::custom("expected a quoted string"))
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "writeOnly": true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize, Serialize)]
    struct Holder {
        key: Secret,
    }

    #[test]
    fn s16_a_secret_shows_in_no_output_and_in_no_error() {
        let holder: Holder = toml::from_str("key = 'canary'").unwrap();
        assert_eq!(holder.key.reveal(), "canary");
        assert!(!format!("{holder:?}").contains("canary"));
        assert_eq!(serde_json::to_string(&holder).unwrap(), r#"{"key":"[redacted]"}"#);
        for wrong in ["key = 4711", "key = 47.11", "key = ['4711']", "key = { a = '4711' }", "key = ''"] {
            let error = toml::from_str::<Holder>(wrong).unwrap_err();
            assert!(error.message().contains("expected a quoted string"), "{}", error.message());
            assert!(!error.message().contains("11"), "{}", error.message());
        }
    }
}
