//! How objects of the wire are read: borrowed, every list bounded, no key twice, and no unknown field forgotten.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::marker::PhantomData;
use std::ops::Deref;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

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

/// A list with at most `MAX` entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounded<T, const MAX: usize>(pub Vec<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for Bounded<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(List::<T, MAX>(PhantomData)).map(Self)
    }
}

struct List<T, const MAX: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for List<T, MAX> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an array of at most {MAX} entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(entry) = seq.next_element()? {
            if list.len() == MAX {
                return Err(A::Error::custom(format_args!("an array has more than {MAX} entries")));
            }
            list.push(entry);
        }
        Ok(list)
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
                return Err(A::Error::custom(format_args!("the key `{}` stands twice", brief(&key))));
            }
            map.next_value::<Skipped>()?;
        }
        Ok(Skipped::Object)
    }
}

/// The keys of one object, by their digests: the first few without a table.
#[derive(Default)]
struct Keys {
    few: [u64; 4],
    used: usize,
    many: Option<HashSet<u64>>,
}

impl Keys {
    /// Whether it is new.
    fn insert(&mut self, key: &str) -> bool {
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

/// The fields of an object that we do not know, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unknown(pub Vec<Box<str>>);

/// More than any client has; beyond it somebody plays with us.
const MOST_UNKNOWN: usize = 64;

impl Unknown {
    /// Reads past the value. A null says nothing, and is not kept.
    pub(super) fn read<'de, A: MapAccess<'de>>(
        &mut self,
        seen: &mut HashSet<Box<str>>,
        key: &str,
        map: &mut A,
    ) -> Result<(), A::Error> {
        if seen.len() == MOST_UNKNOWN {
            return Err(A::Error::custom(format_args!("an object has more than {MOST_UNKNOWN} unknown fields")));
        }
        if !seen.insert(key.into()) {
            return Err(A::Error::custom(format_args!("the key `{}` stands twice", brief(key))));
        }
        if map.next_value::<Skipped>()? != Skipped::Null {
            self.0.push(key.into());
        }
        Ok(())
    }
}

/// Enough of a name to recognise it.
pub(super) fn brief(name: &str) -> String {
    name.chars().take(64).flat_map(char::escape_default).collect()
}

/// An object of any shape, in the API's description.
pub type AnyObject = std::collections::BTreeMap<String, String>;

/// Defines an object of the wire: every field may be missing or null, and unknown ones are kept by name. Each field
/// says what it is to a reader of the API's description.
macro_rules! object {
    ($(#[$meta:meta])* pub struct $name:ident<$life:lifetime> {
        $( $(#[$field_meta:meta])* $wire:literal => $field:ident: $type:ty as [$($schema:tt)+], )*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub struct $name<$life> {
            $( $(#[$field_meta])* pub $field: Option<$type>, )*
            pub unknown: $crate::openai::wire::Unknown,
            life: std::marker::PhantomData<&$life ()>,
        }

        const _: () = {
            $(#[$meta])*
            #[derive(utoipa::ToSchema)]
            #[schema(as = $name)]
            #[expect(dead_code, reason = "only its shape is of interest")]
            struct Described {
                $( $(#[$field_meta])* #[schema(rename = $wire)] $field: Option<$($schema)+>, )*
            }

            impl utoipa::PartialSchema for $name<'_> {
                fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                    <Described as utoipa::PartialSchema>::schema()
                }
            }

            impl utoipa::ToSchema for $name<'_> {
                fn name() -> std::borrow::Cow<'static, str> {
                    stringify!($name).into()
                }

                fn schemas(
                    schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::schema::Schema>)>,
                ) {
                    <Described as utoipa::ToSchema>::schemas(schemas);
                }
            }
        };

        impl<'de: $life, $life> serde::Deserialize<'de> for $name<$life> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Fields<$life>(std::marker::PhantomData<&$life ()>);
                impl<'de: $life, $life> serde::de::Visitor<'de> for Fields<$life> {
                    type Value = $name<$life>;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                        $( let mut $field: Option<Option<$type>> = None; )*
                        let mut unknown = $crate::openai::wire::Unknown::default();
                        let mut seen = std::collections::HashSet::new();
                        while let Some(key) = map.next_key::<$crate::openai::wire::Str<'de>>()? {
                            match &*key {
                                $( $wire => {
                                    if $field.is_some() {
                                        return Err(serde::de::Error::custom(
                                            concat!("the key `", $wire, "` stands twice"),
                                        ));
                                    }
                                    $field = Some(map.next_value()?);
                                } )*
                                other => unknown.read(&mut seen, other, &mut map)?,
                            }
                        }
                        Ok($name { $( $field: $field.flatten(), )* unknown, life: std::marker::PhantomData })
                    }
                }
                deserializer.deserialize_map(Fields(std::marker::PhantomData))
            }
        }
    };
}
pub(super) use object;
