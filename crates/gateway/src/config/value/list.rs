//! Lists and switches, which a file writes as such and a variable as text.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Several values: a list of strings, or one string with commas between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<T>(pub Vec<T>);

/// On or off: `true`, `false`, and as text also `1`, `0`, `yes`, `no`, `on`, `off`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switch(pub bool);

/// The name of a host as a client asks for it, with or without a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName(String);

impl HostName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl FromStr for HostName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{}` is not a host, such as `bridge.example.org`", text.escape_debug());
        let (name, port) = match text.strip_prefix('[') {
            Some(rest) => rest.split_once(']').ok_or_else(wrong)?,
            None => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        let is_name = if text.starts_with('[') {
            name.parse::<std::net::Ipv6Addr>().is_ok()
        } else {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
        };
        let is_port = match port.strip_prefix(':') {
            Some(port) => port.parse::<u16>().is_ok(),
            None => port.is_empty(),
        };
        if is_name && is_port { Ok(Self(text.to_ascii_lowercase())) } else { Err(wrong()) }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: FromStr<Err: fmt::Display>> Visitor<'de> for ListVisitor<T> {
    type Value = Listed<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of strings")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Listed<T>, E> {
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        words.map(|word| word.parse().map_err(E::custom)).collect::<Result<_, E>>().map(Listed)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut words: A) -> Result<Listed<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(word) = words.next_element::<Cow<'_, str>>()? {
            list.push(word.parse().map_err(de::Error::custom)?);
        }
        Ok(Listed(list))
    }
}

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Listed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor(PhantomData))
    }
}

impl<T: fmt::Display> Serialize for Listed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(ToString::to_string))
    }
}

impl<T> JsonSchema for Listed<T> {
    fn schema_name() -> Cow<'static, str> {
        "Listed".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["array", "string"], "items": { "type": "string" } })
    }
}

struct SwitchVisitor;

impl Visitor<'_> for SwitchVisitor {
    type Value = Switch;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`true` or `false`")
    }

    fn visit_bool<E: de::Error>(self, on: bool) -> Result<Switch, E> {
        Ok(Switch(on))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Switch, E> {
        match text.trim().to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Ok(Switch(true)),
            "false" | "0" | "no" | "off" => Ok(Switch(false)),
            _ => Err(E::custom(format_args!("`{text}` is neither `true` nor `false`"))),
        }
    }
}

impl<'de> Deserialize<'de> for Switch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SwitchVisitor)
    }
}

impl Serialize for Switch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(self.0)
    }
}

impl JsonSchema for Switch {
    fn schema_name() -> Cow<'static, str> {
        "Switch".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "boolean" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Holder {
        #[serde(default)]
        hosts: Listed<HostName>,
        #[serde(default)]
        on: Switch,
    }

    fn read(text: &str) -> Result<Holder, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn a_list_is_written_as_a_list_or_with_commas() {
        let hosts = |text: &str| -> Vec<String> {
            read(text).unwrap().hosts.0.iter().map(|host| host.as_str().to_owned()).collect()
        };
        assert_eq!(hosts("hosts = ['a.example', 'B.example:8443']"), ["a.example", "b.example:8443"]);
        assert_eq!(hosts("hosts = ' a.example, [fd00::1]:80 ,'"), ["a.example", "[fd00::1]:80"]);
        for wrong in ["'http://a'", "'a b'", "'a:port'", "'[x]'", "['a', 3]", "'*'", "7"] {
            assert!(read(&format!("hosts = {wrong}")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_switch_is_a_boolean_or_a_word() {
        for (text, on) in [("true", true), ("'1'", true), ("'Yes'", true), ("false", false), ("'off'", false)] {
            assert_eq!(read(&format!("on = {text}")).unwrap().on, Switch(on), "{text}");
        }
        assert_eq!(read("on = 'perhaps'").unwrap_err(), "`perhaps` is neither `true` nor `false`");
    }
}
