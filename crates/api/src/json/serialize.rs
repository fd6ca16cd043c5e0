//! Values of a request that come back in its answer.

use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{Bounded, Raw, Str, WordOr};

impl Serialize for Str<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<&RawValue>(self.text).map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl<T: Serialize, const MAX: usize> Serialize for Bounded<T, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<T: Serialize> Serialize for WordOr<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Word(word) => word.serialize(serializer),
            Self::Object(object) => object.serialize(serializer),
        }
    }
}
