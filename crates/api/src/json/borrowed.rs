//! Text that is borrowed from the body where it has no escapes, alone or as one of two shapes of a field.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

use super::bounded::List;

/// A string that is borrowed from the body where it has no escapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Str<'a>(pub Cow<'a, str>);

impl Deref for Str<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Cow<'de, str>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(text))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Cow::Owned(text.to_owned()))
            }
        }
        deserializer.deserialize_str(Text).map(Self)
    }
}

/// A string, or a list of at most `MAX` things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OneOrMany<'a, T, const MAX: usize> {
    One(Str<'a>),
    Many(Vec<T>),
}

impl<'de: 'a, 'a, T: Deserialize<'de> + 'a, const MAX: usize> Deserialize<'de> for OneOrMany<'a, T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<'a, T, const MAX: usize>(PhantomData<&'a T>);
        impl<'de: 'a, 'a, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for Either<'a, T, MAX> {
            type Value = OneOrMany<'a, T, MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a string or an array of at most {MAX} entries")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(OneOrMany::One(Str(Cow::Borrowed(text))))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(OneOrMany::One(Str(Cow::Owned(text.to_owned()))))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                List::<T, MAX>(PhantomData).visit_seq(seq).map(OneOrMany::Many)
            }
        }
        deserializer.deserialize_any(Either(PhantomData))
    }
}

/// A word, or an object.
#[derive(Clone, Debug)]
pub enum WordOr<'a, T> {
    Word(Str<'a>),
    Object(Box<T>),
}

impl<'de: 'a, 'a, T: Deserialize<'de> + 'a> Deserialize<'de> for WordOr<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<'a, T>(PhantomData<&'a T>);
        impl<'de: 'a, 'a, T: Deserialize<'de>> Visitor<'de> for Either<'a, T> {
            type Value = WordOr<'a, T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an object")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(WordOr::Word(Str(Cow::Borrowed(text))))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(WordOr::Word(Str(Cow::Owned(text.to_owned()))))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|object| WordOr::Object(Box::new(object)))
            }
        }
        deserializer.deserialize_any(Either(PhantomData))
    }
}
