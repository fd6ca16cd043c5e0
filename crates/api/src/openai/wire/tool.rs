//! Tools that a client offers, which of them shall be called, and the form of an answer.

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};

use utoipa::openapi::{OneOfBuilder, Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::object::{AnyObject, object};
use super::{Bounded, Raw, Str};

object! {
    pub struct Tool<'a> {
        /// `function`.
        "type" => kind: Str<'a> as [String],
        "function" => function: Box<Function<'a>> as [Function<'static>],
    }
}

object! {
    /// A tool of the client's.
    pub struct Function<'a> {
        /// Letters, digits, `_` and `-`, at most 64.
        "name" => name: Str<'a> as [String],
        "description" => description: Str<'a> as [String],
        /// The JSON schema of the arguments. It reaches the agent as it is.
        "parameters" => parameters: Raw<'a> as [AnyObject],
        /// Arguments that do not fit the schema go back to the agent before the client sees them.
        "strict" => strict: bool as [bool],
    }
}

object! {
    /// One tool, or some of them.
    pub struct ToolChoice<'a> {
        /// `function` or `allowed_tools`.
        "type" => kind: Str<'a> as [String],
        "function" => function: Box<ToolName<'a>> as [ToolName<'static>],
        "allowed_tools" => allowed_tools: Box<AllowedTools<'a>> as [AllowedTools<'static>],
    }
}

object! {
    pub struct AllowedTools<'a> {
        /// `auto` or `required`.
        "mode" => mode: Str<'a> as [String],
        "tools" => tools: Bounded<AllowedTool<'a>, 256> as [Vec<AllowedTool<'static>>],
    }
}

object! {
    pub struct AllowedTool<'a> {
        /// `function`.
        "type" => kind: Str<'a> as [String],
        "function" => function: Box<ToolName<'a>> as [ToolName<'static>],
    }
}

object! {
    pub struct ToolName<'a> {
        "name" => name: Str<'a> as [String],
    }
}

object! {
    pub struct ResponseFormat<'a> {
        /// `text`, `json_object` or `json_schema`.
        "type" => kind: Str<'a> as [String],
        "json_schema" => json_schema: Box<JsonSchema<'a>> as [JsonSchema<'static>],
    }
}

object! {
    pub struct JsonSchema<'a> {
        "name" => name: Str<'a> as [String],
        "description" => description: Str<'a> as [String],
        "schema" => schema: Raw<'a> as [AnyObject],
        /// Answers are checked in any case.
        "strict" => strict: bool as [bool],
    }
}

/// How the API's description tells a word or an object.
macro_rules! word_or_object {
    ($(#[$meta:meta])* $name:ident, $object:ident) => {
        $(#[$meta])*
        pub struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let object = Ref::from_schema_name($object::name());
                Schema::OneOf(OneOfBuilder::new().item(String::schema()).item(object).build()).into()
            }
        }

        impl ToSchema for $name {
            fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
                schemas.push(($object::name().into_owned(), $object::schema()));
                $object::schemas(schemas);
            }
        }
    };
}

word_or_object! {
    /// `tool_choice`.
    ToolChoiceValue, ToolChoice
}
word_or_object! {
    /// `function_call` of a request.
    FunctionChoiceValue, ToolName
}

/// A word, or an object.
#[derive(Clone, Debug)]
pub enum WordOr<'a, T> {
    Word(Str<'a>),
    Object(Box<T>),
}

impl<'de: 'a, 'a, T: Deserialize<'de> + 'a> Deserialize<'de> for WordOr<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<'a, T>(std::marker::PhantomData<&'a T>);
        impl<'de: 'a, 'a, T: Deserialize<'de>> Visitor<'de> for Either<'a, T> {
            type Value = WordOr<'a, T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string or an object")
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(WordOr::Word(Str(text.to_owned().into())))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|object| WordOr::Object(Box::new(object)))
            }
        }
        deserializer.deserialize_any(Either(std::marker::PhantomData))
    }
}
