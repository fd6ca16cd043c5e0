//! Objects whose fields serde derives. Derived code skips unknown fields in silence and reads their values without a look;
//! here they are kept by name, bounded, and checked for duplicate keys.
//!
//! A message of 200 bytes takes 308 ns to read, 1.05 times what a visitor written by hand for its type takes (row `decoder`
//! of the bench `history`). `serde_ignored` would allocate each key, and would let duplicate keys in unknown values pass.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer as _, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::skipped::Keys;
use super::{Skipped, Str};

/// The fields of an object that its type does not have, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unknown(pub Vec<Box<str>>);

/// More than any client has.
const MOST_UNKNOWN: usize = 64;

/// Makes `Deserialize` of types that derive it with `#[serde(remote = "Self")]` and have a field `unknown: Unknown` that
/// serde skips.
macro_rules! objects {
    ($($name:ident $(<$life:lifetime>)?),+ $(,)?) => { $(
        impl<'de $(: $life, $life)?> serde::Deserialize<'de> for $name $(<$life>)? {
            #[inline]
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let mut unknown = $crate::json::Unknown::default();
                // The derived function, which `remote` makes an inherent one.
                let mut object = $name::deserialize($crate::json::KnownFields::new(deserializer, &mut unknown))?;
                object.unknown = unknown;
                Ok(object)
            }
        }
    )+ };
}
pub(crate) use objects;

/// A deserializer that shows a derived struct the fields that it has, and keeps the names of all others.
pub(crate) struct KnownFields<'u, D> {
    inner: D,
    unknown: &'u mut Unknown,
}

impl<'u, D> KnownFields<'u, D> {
    pub(crate) fn new(inner: D, unknown: &'u mut Unknown) -> Self {
        Self { inner, unknown }
    }
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for KnownFields<'_, D> {
    type Error = D::Error;

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_map(Filter { visitor, fields, unknown: self.unknown })
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

struct Filter<'u, V> {
    visitor: V,
    fields: &'static [&'static str],
    unknown: &'u mut Unknown,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Filter<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(Fields { map, known: self.fields, read: 0, others: None, unknown: self.unknown })
    }
}

struct Fields<'u, A> {
    map: A,
    known: &'static [&'static str],
    /// The known fields that were read, one bit each by their place in the list.
    read: u64,
    /// The keys that are not known. Most objects have none.
    others: Option<Box<Others>>,
    unknown: &'u mut Unknown,
}

#[derive(Default)]
struct Others {
    keys: Keys,
    count: usize,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Fields<'_, A> {
    type Error = A::Error;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        while let Some(Str(key)) = self.map.next_key()? {
            if let Some(at) = self.known.iter().position(|field| *field == key) {
                let bit = 1_u64.checked_shl(u32::try_from(at).unwrap_or(u32::MAX)).unwrap_or(0);
                if self.read & bit != 0 {
                    return Err(duplicate(&key));
                }
                self.read |= bit;
                // Derived code takes the place of a field in its list as well as its name, and is spared a second search.
                return seed.deserialize((at as u64).into_deserializer()).map(Some);
            }
            self.skip(&key)?;
        }
        Ok(None)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

impl<'de, A: MapAccess<'de>> Fields<'_, A> {
    /// Reads past the value of an unknown field. A null says nothing, and is not kept.
    #[cold]
    fn skip(&mut self, key: &str) -> Result<(), A::Error> {
        let others = self.others.get_or_insert_default();
        if others.count == MOST_UNKNOWN {
            return Err(A::Error::custom(format_args!("an object has more than {MOST_UNKNOWN} unknown fields")));
        }
        if !others.keys.insert(key) {
            return Err(duplicate(key));
        }
        others.count += 1;
        if self.map.next_value::<Skipped>()? != Skipped::Null {
            self.unknown.0.push(key.into());
        }
        Ok(())
    }
}

pub(super) fn duplicate<E: Error>(key: &str) -> E {
    // Enough of a name to recognise it.
    let shown: String = key.chars().take(64).flat_map(char::escape_default).collect();
    E::custom(format_args!("the key `{shown}` stands twice"))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(remote = "Self")]
    struct Person<'a> {
        #[serde(borrow)]
        name: Option<Str<'a>>,
        age: Option<u8>,
        #[serde(skip)]
        unknown: Unknown,
    }
    objects!(Person<'a>);

    fn read(json: &str) -> Result<Person<'_>, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn unknown_fields_are_kept_by_name_and_known_ones_are_read() {
        let person = read(r#"{"shoe":{"size":[1]},"age":3,"hat":null,"name":"Ann","sh\u006fes":1}"#).unwrap();
        assert_eq!((person.name.as_deref(), person.age), (Some("Ann"), Some(3)));
        assert_eq!(person.unknown.0, ["shoe".into(), "shoes".into()]);
        let empty = read(r#"{"name":null}"#).unwrap();
        assert!(empty.name.is_none() && empty.age.is_none() && empty.unknown.0.is_empty());
    }

    #[test]
    fn s26_no_key_stands_twice_known_or_unknown_at_any_depth() {
        for (json, key) in [
            (r#"{"age":1,"age":1}"#, "age"),
            (r#"{"age":null,"age":1}"#, "age"),
            (r#"{"x":1,"age":1,"x":1}"#, "x"),
            (r#"{"x":null,"x":null}"#, "x"),
            (r#"{"x":[{"y":{"z":1,"z":2}}]}"#, "z"),
            (r#"{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"a":1}"#, "a"),
        ] {
            let refused = read(json).unwrap_err();
            assert!(refused.starts_with(&format!("the key `{key}` stands twice")), "{json}: {refused}");
        }
    }

    #[test]
    fn s26_unknown_fields_are_bounded() {
        let many = |count: usize| {
            let fields: Vec<String> = (0..count).map(|number| format!(r#""x{number}":0"#)).collect();
            format!("{{{}}}", fields.join(","))
        };
        assert_eq!(read(&many(64)).unwrap().unknown.0.len(), 64);
        assert!(read(&many(65)).unwrap_err().contains("more than 64 unknown fields"));
    }

    #[test]
    fn what_is_no_object_is_named_for_what_it_is() {
        for (json, what) in [("[1]", "sequence"), ("1", "integer"), (r#""x""#, "string"), ("null", "null")] {
            let refused = read(json).unwrap_err();
            assert!(refused.contains(what) && refused.contains("expected an object"), "{refused}");
        }
    }
}
