//! How the JSON of requests is read, for every dialect: text borrowed from the body, every list bounded, no key twice, and
//! no unknown field forgotten. A dialect's `wire` types derive `Deserialize` and take their fields from here.

mod borrowed;
mod bounded;
pub(crate) mod object;
mod raw;
mod serialize;
mod skipped;

pub use borrowed::{OneOrMany, Str, WordOr};
pub use bounded::Bounded;
pub(crate) use object::KnownFields;
pub use object::Unknown;
pub use raw::Raw;
pub use skipped::Skipped;

/// The types of fields, under the names by which the derived description of the API knows them as a string and an array.
pub mod field {
    pub type String<'a> = super::Str<'a>;
    pub type Vec<T, const MAX: usize> = super::Bounded<T, MAX>;
}

/// An object of any shape, in the API's description.
pub type AnyObject = std::collections::BTreeMap<String, String>;
