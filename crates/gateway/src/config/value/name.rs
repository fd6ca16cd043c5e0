//! Names of things outside: folders and models. Checked where they are written, not where they are used.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

/// A path from the root: a setting must not mean another folder when the program starts elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct AbsolutePath(PathBuf);

impl AbsolutePath {
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

/// A model's id, in the only characters that ever reach an agent's command line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ModelName(String);

impl ModelName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

const LONGEST_MODEL_NAME: usize = 128;

impl FromStr for AbsolutePath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = PathBuf::from(text);
        if path.is_absolute() && !text.contains('\0') {
            Ok(Self(path))
        } else {
            Err(format!("`{text}` is not an absolute path, such as `/home/me/project`"))
        }
    }
}

impl FromStr for ModelName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/-".contains(&byte);
        if (1..=LONGEST_MODEL_NAME).contains(&text.len()) && !text.starts_with('-') && text.bytes().all(is_allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!("`{}` is not a model name: up to 128 letters, digits and `._:/-`", text.escape_debug()))
        }
    }
}

macro_rules! checked_text {
    ($name:ident, $schema:tt) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<'_, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

checked_text!(AbsolutePath, { "type": "string", "pattern": "^/" });
checked_text!(ModelName, { "type": "string", "pattern": "^[A-Za-z0-9._:/][A-Za-z0-9._:/-]{0,127}$" });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s12_only_model_names_of_plain_characters_are_taken() {
        for good in ["gemini-2.5-pro", "models/gemini:latest", "a", &"x".repeat(128)] {
            assert!(good.parse::<ModelName>().is_ok(), "{good}");
        }
        for bad in ["", "--yolo", "-m", "a b", "a;b", "$(id)", "a\nb", "a\0b", "é", &"x".repeat(129)] {
            assert!(bad.parse::<ModelName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_folder_must_be_absolute() {
        assert!("/w".parse::<AbsolutePath>().is_ok());
        for bad in ["w", "./w", "~/w", ""] {
            assert!(bad.parse::<AbsolutePath>().is_err(), "{bad}");
        }
    }
}
