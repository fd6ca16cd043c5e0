//! Values that are read for their form alone.

use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

use super::Str;
use super::object::duplicate;

/// A value that is read for its form alone: nothing of it is kept. The parser's own bound on depth holds, and objects
/// in it have no key twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skipped {
    Null,
    Text,
    Number,
    True,
    False,
    Object,
    Array { empty: bool },
}

impl<'de> Deserialize<'de> for Skipped {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Anything)
    }
}

struct Anything;
impl<'de> Visitor<'de> for Anything {
    type Value = Skipped;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Skipped, E> {
        Ok(Skipped::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Skipped, E> {
        Ok(if value { Skipped::True } else { Skipped::False })
    }

    fn visit_i64<E>(self, _: i64) -> Result<Skipped, E> {
        Ok(Skipped::Number)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Skipped, E> {
        Ok(Skipped::Number)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Skipped, E> {
        Ok(Skipped::Number)
    }

    fn visit_str<E>(self, _: &str) -> Result<Skipped, E> {
        Ok(Skipped::Text)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Skipped, A::Error> {
        let mut empty = true;
        while seq.next_element::<Skipped>()?.is_some() {
            empty = false;
        }
        Ok(Skipped::Array { empty })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Skipped, A::Error> {
        let mut keys = Keys::default();
        while let Some(key) = map.next_key::<Str<'de>>()? {
            if !keys.insert(&key) {
                return Err(duplicate(&key));
            }
            map.next_value::<Skipped>()?;
        }
        Ok(Skipped::Object)
    }
}

/// The keys of one object, as keyed hashes of 64 bits: the first four without a table. A client cannot choose keys that
/// collide, and two that do by chance only cost a request.
#[derive(Default)]
pub(super) struct Keys {
    few: [u64; 4],
    used: usize,
    many: Option<HashSet<u64>>,
}

impl Keys {
    /// Whether it is new.
    pub(super) fn insert(&mut self, key: &str) -> bool {
        let digest = digests().hash_one(key);
        if let Some(many) = &mut self.many {
            return many.insert(digest);
        }
        if self.few[..self.used].contains(&digest) {
            return false;
        }
        match self.few.get_mut(self.used) {
            Some(free) => {
                *free = digest;
                self.used += 1;
            }
            None => self.many = Some(self.few.into_iter().chain([digest]).collect()),
        }
        true
    }
}

fn digests() -> &'static RandomState {
    static STATE: std::sync::OnceLock<RandomState> = std::sync::OnceLock::new();
    STATE.get_or_init(RandomState::new)
}
