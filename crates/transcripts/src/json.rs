//! JSON that borrows from the line that it is read from. A `serde_json::Value` copies every name and every text of a
//! record, most of which no message is made from.

use std::borrow::Cow;
use std::fmt;
use std::ops::Index;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

use crate::time;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Json<'a> {
    #[default]
    Null,
    Bool(bool),
    Number(Number),
    /// Borrowed unless something in it is escaped.
    Text(Cow<'a, str>),
    List(Vec<Json<'a>>),
    /// In their order. Of two fields with one name the later counts.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

static NULL: Json<'static> = Json::Null;

impl<'a> Json<'a> {
    /// Reads a line. Of an object only the fields that are wanted are kept; the others are checked and passed over.
    pub fn of_line(line: &'a str, wanted: &[&str]) -> serde_json::Result<Self> {
        let mut reader = serde_json::Deserializer::from_str(line);
        let json = Fields { wanted: Some(wanted) }.deserialize(&mut reader)?;
        reader.end()?;
        Ok(json)
    }

    /// Reads a text.
    pub fn of(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// A field, if there is one.
    pub fn get(&self, name: &str) -> Option<&Self> {
        let Self::Object(fields) = self else { return None };
        fields.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The items of a list; none of anything else.
    pub fn items(&self) -> &[Self] {
        if let Self::List(items) = self { items } else { &[] }
    }

    pub fn as_str(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub fn into_text(self) -> Option<String> {
        if let Self::Text(text) = self { Some(text.into_owned()) } else { None }
    }

    pub fn as_u64(&self) -> Option<u64> {
        if let Self::Number(number) = self { number.as_u64() } else { None }
    }

    pub fn is_true(&self) -> bool {
        matches!(self, Self::Bool(true))
    }

    pub fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// A timestamp in RFC 3339, or a number of milliseconds.
    pub fn millis(&self) -> Option<u64> {
        match self {
            Self::Text(text) => time::of_text(text),
            Self::Number(number) => number.as_u64(),
            _ => None,
        }
    }

    /// Moves a field out, which is null from then on.
    pub fn take(&mut self, name: &str) -> Self {
        let Self::Object(fields) = self else { return Self::Null };
        let found = fields.iter_mut().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| std::mem::take(value)).unwrap_or_default()
    }
}

impl<'a> Index<&str> for Json<'a> {
    type Output = Json<'a>;

    /// A field, or null where there is none.
    fn index(&self, name: &str) -> &Json<'a> {
        self.get(name).unwrap_or(&NULL)
    }
}

impl<'a> From<&'a Value> for Json<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => Self::Number(number.clone()),
            Value::String(text) => Self::Text(Cow::Borrowed(text)),
            Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Value::Object(fields) => {
                let field = |(name, value): (&'a String, &'a Value)| (Cow::Borrowed(name.as_str()), Self::from(value));
                Self::Object(fields.iter().map(field).collect())
            }
        }
    }
}

/// Written as JSON.
impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Value::from(self.clone()).fmt(f)
    }
}

impl From<Json<'_>> for Value {
    fn from(json: Json<'_>) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(value),
            Json::Number(number) => Self::Number(number),
            Json::Text(text) => Self::String(text.into_owned()),
            Json::List(items) => Self::Array(items.into_iter().map(Self::from).collect()),
            Json::Object(fields) => Self::Object(
                fields.into_iter().map(|(name, value)| (name.into_owned(), value.into())).collect::<Map<_, _>>(),
            ),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Json<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Fields { wanted: None }.deserialize(deserializer)
    }
}

/// Reads a value. Of its fields those that are wanted are kept, or all; of the fields of its fields all.
struct Fields<'w> {
    wanted: Option<&'w [&'w str]>,
}

#[derive(Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> DeserializeSeed<'de> for Fields<'_> {
    type Value = Json<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json<'de>, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json<'de>, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json<'de>, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json<'de>, E> {
        Ok(Number::from_f64(value).map_or(Json::Null, Json::Number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json<'de>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Json<'de>, A::Error> {
        let mut object = Vec::new();
        while let Some(Name(name)) = fields.next_key()? {
            if self.wanted.is_none_or(|wanted| wanted.contains(&&*name)) {
                object.push((name, fields.next_value()?));
            } else {
                fields.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Json::Object(object))
    }
}

/// The fields of an object, each as the text of its value. Nothing is parsed but where one ends and the next begins.
pub(crate) struct RawFields<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> RawFields<'a> {
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// A field; null where there is none, or one that cannot be parsed.
    pub fn parsed(&self, name: &str) -> Json<'a> {
        self.get(name).and_then(|value| Json::of(value.get()).ok()).unwrap_or_default()
    }

    /// A field that is a text.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name)
            .filter(|value| value.get().starts_with('"'))
            .and_then(|value| Json::of(value.get()).ok()?.into_text())
    }

    /// A field that is a list.
    pub fn list(&self, name: &str) -> Option<Vec<&'a RawValue>> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawFields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RawFieldsVisitor)
    }
}

struct RawFieldsVisitor;

impl<'de> Visitor<'de> for RawFieldsVisitor {
    type Value = RawFields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<RawFields<'de>, A::Error> {
        let mut object = Vec::with_capacity(8);
        while let Some(Name(name)) = fields.next_key()? {
            object.push((name, fields.next_value()?));
        }
        Ok(RawFields(object))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_wanted_fields_of_the_line_itself_are_kept() {
        let line = r#"{"a":{"b":1,"c":"x\ny"},"b":[2],"a2":null}"#;
        let mut json = Json::of_line(line, &["a"]).unwrap();
        assert_eq!(json["a"]["c"].as_str(), Some("x\ny"));
        assert_eq!((&json["b"], &json["nothing"]["at all"]), (&Json::Null, &Json::Null));
        assert_eq!(Value::from(json.take("a")), json!({"b": 1, "c": "x\ny"}));
        assert_eq!(json["a"], Json::Null);
        assert!(Json::of_line("{\"a\":1,\"b\":[}", &["a"]).is_err(), "what is passed over is checked");
        assert!(Json::of_line("{} {}", &[]).is_err());
    }

    #[test]
    fn texts_are_borrowed_unless_they_are_escaped() {
        let json = Json::of_line(r#"{"a":"plain","b":"\t"}"#, &["a", "b"]).unwrap();
        assert!(matches!(json["a"], Json::Text(Cow::Borrowed("plain"))));
        assert!(matches!(json["b"], Json::Text(Cow::Owned(_))));
    }

    #[test]
    fn the_later_of_two_fields_with_one_name_counts_as_in_any_other_reader() {
        let line = r#"{"a":1,"a":2}"#;
        let json = Json::of_line(line, &["a"]).unwrap();
        assert_eq!(json["a"].as_u64(), Some(2));
        assert_eq!(Value::from(json), serde_json::from_str::<Value>(line).unwrap());
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "\\PC{0,12}|[\\n\"\\\\]{1,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::hash_map("[a-c\\n]{1,2}", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_reads_what_serde_json_reads(value in any_json()) {
            let text = value.to_string();
            let names: Vec<String> = value.as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default();
            let wanted: Vec<&str> = names.iter().map(String::as_str).collect();
            let json = Json::of_line(&text, &wanted).unwrap();
            let read: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(json.to_string(), read.to_string());
            prop_assert_eq!(Json::from(&read), json.clone());
            prop_assert_eq!(Value::from(json), read);
        }

        #[test]
        fn fields_are_the_texts_of_their_values(value in any_json()) {
            let text = value.to_string();
            let Ok(fields) = serde_json::from_str::<RawFields<'_>>(&text) else {
                prop_assert!(!value.is_object());
                return Ok(());
            };
            for (name, raw) in &fields.0 {
                prop_assert_eq!(raw.get(), value[&**name].to_string());
                prop_assert_eq!(fields.text(name), value[&**name].as_str().map(str::to_owned));
                prop_assert_eq!(fields.list(name).is_some(), value[&**name].is_array());
            }
        }
    }
}
