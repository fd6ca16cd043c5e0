//! What something costs.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

/// An amount of money that is not negative.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Price(pub f64);

impl<'de> Deserialize<'de> for Price {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let amount = f64::deserialize(source)?;
        if amount.is_finite() && amount >= 0.0 {
            Ok(Self(amount))
        } else {
            Err(serde::de::Error::custom(format!("`{amount}` is not a price; write a number from 0, such as `1.25`")))
        }
    }
}

impl JsonSchema for Price {
    fn schema_name() -> Cow<'static, str> {
        "Price".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0 })
    }
}
