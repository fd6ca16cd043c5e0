//! Numbers with a meaning: durations, sizes, counts, ports.
//!
//! `bytesize` and `humantime` are not used: to `bytesize` a `kB` is 1000 bytes, while our settings have always meant 1024, and
//! a number that is too large becomes the largest one without an error; `humantime` shows `90s` as `1m 30s` and takes
//! fractions, months and years, which the schema of the configuration does not.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A duration: whole seconds as a number, or a string with its unit (`"500ms"`, `"30s"`, `"2m"`, `"1h"`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

/// A size in bytes: a number, or a string with its unit (`"64kB"`, `"10MB"`, `"1GB"`; powers of 1024).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

/// An amount that is written as a number or as text.
trait Amount: Sized {
    const EXPECTED: &'static str;

    fn from_number(number: u64) -> Option<Self>;
    fn from_text(text: &str) -> Option<Self>;
}

const SPAN_UNITS: &[(&str, u64)] = &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
const SIZE_UNITS: &[(&str, u64)] =
    &[("kb", 1 << 10), ("mb", 1 << 20), ("gb", 1 << 30), ("k", 1 << 10), ("m", 1 << 20), ("g", 1 << 30), ("b", 1)];

/// Longer than anybody waits, and short enough to be added to any clock.
const LONGEST: Duration = Duration::from_hours(24 * 365);

impl Amount for Span {
    const EXPECTED: &'static str =
        "a duration: whole seconds such as `120`, or text such as \"500ms\", \"30s\", \"2m\" or \"1h\"";

    fn from_number(number: u64) -> Option<Self> {
        let span = Duration::from_secs(number);
        (!span.is_zero() && span <= LONGEST).then_some(Self(span))
    }

    fn from_text(text: &str) -> Option<Self> {
        let (number, unit) = number_and_unit(text)?;
        if unit.is_empty() {
            return Self::from_number(number);
        }
        let span = Duration::from_millis(number.checked_mul(factor(SPAN_UNITS, unit)?)?);
        (!span.is_zero() && span <= LONGEST).then_some(Self(span))
    }
}

impl Amount for Size {
    const EXPECTED: &'static str = "a size: bytes such as `65536`, or text such as \"64kB\", \"10MB\" or \"1GB\"";

    fn from_number(number: u64) -> Option<Self> {
        (number > 0).then_some(Self(number))
    }

    fn from_text(text: &str) -> Option<Self> {
        let (number, unit) = number_and_unit(text)?;
        if unit.is_empty() {
            return Self::from_number(number);
        }
        Self::from_number(number.checked_mul(factor(SIZE_UNITS, &unit.to_ascii_lowercase())?)?)
    }
}

fn number_and_unit(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    Some((text[..digits].parse().ok()?, text[digits..].trim_start()))
}

fn factor(units: &[(&str, u64)], unit: &str) -> Option<u64> {
    units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)
}

/// The largest unit that says `amount` without a fraction.
fn largest_unit(amount: u64, units: &[(&'static str, u64)]) -> (u64, &'static str) {
    units
        .iter()
        .filter(|(_, factor)| amount.is_multiple_of(*factor))
        .max_by_key(|(_, factor)| *factor)
        .map_or((amount, ""), |(unit, factor)| (amount / factor, *unit))
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        let (amount, unit) = largest_unit(millis, SPAN_UNITS);
        write!(f, "{amount}{unit}")
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: &[_] = &[("", 1), ("kB", 1 << 10), ("MB", 1 << 20), ("GB", 1 << 30)];
        let (amount, unit) = largest_unit(self.0, shown);
        write!(f, "{amount}{unit}")
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

struct AmountVisitor<T>(PhantomData<T>);

impl<T: Amount> Visitor<'_> for AmountVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        T::from_number(number).ok_or_else(|| E::custom(format_args!("`{number}` is not {}", T::EXPECTED)))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        u64::try_from(number)
            .ok()
            .and_then(T::from_number)
            .ok_or_else(|| E::custom(format_args!("`{number}` is not {}", T::EXPECTED)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        T::from_text(text).ok_or_else(|| E::custom(format_args!("`{text}` is not {}", T::EXPECTED)))
    }
}

macro_rules! amount {
    ($name:ident, $schema:tt) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(AmountVisitor(PhantomData))
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                Self::from_text(text).ok_or_else(|| format!("expected {}", Self::EXPECTED))
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

amount!(Span, { "type": ["integer", "string"], "minimum": 1, "pattern": "^[0-9]+ *(ms|s|m|h)?$", "examples": [120, "2m"] });
amount!(Size, { "type": ["integer", "string"], "minimum": 1, "pattern": "^[0-9]+ *([kKmMgG]?[bB]?)$", "examples": [65536, "10MB"] });

/// A whole number within bounds.
macro_rules! whole_number {
    ($(#[$doc:meta])* $name:ident($number:ty), from $least:literal to $most:expr, $expected:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        pub struct $name(pub $number);

        impl Amount for $name {
            const EXPECTED: &'static str = $expected;

            fn from_number(number: u64) -> Option<Self> {
                let bounds = $least..=u64::from($most);
                bounds.contains(&number).then(|| <$number>::try_from(number).ok()).flatten().map(Self)
            }

            fn from_text(text: &str) -> Option<Self> {
                Self::from_number(text.trim().parse().ok()?)
            }
        }

        amount!($name, { "type": "integer", "minimum": $least, "maximum": ($most) });
    };
}

whole_number!(
    /// A whole number from 1.
    Count(u32), from 1 to u32::MAX, "a whole number from 1"
);
whole_number!(
    /// A whole number of something, of which 0 is none.
    Tally(u32), from 0 to u32::MAX, "a whole number from 0"
);
whole_number!(
    /// A TCP port; 0 lets the system choose one.
    Port(u16), from 0 to u16::MAX, "a port from 0 to 65535"
);
whole_number!(
    /// A nice value: steps behind other processes.
    Nice(u8), from 0 to 19_u8, "a whole number from 0 to 19"
);

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: FromStr + fmt::Display>(text: &str, shown: Option<&str>) {
        assert_eq!(text.parse::<T>().ok().map(|value| value.to_string()).as_deref(), shown, "{text}");
    }

    #[test]
    fn durations_are_seconds_or_text_with_a_unit() {
        check::<Span>("120", Some("2m"));
        check::<Span>("500ms", Some("500ms"));
        check::<Span>("90s", Some("90s"));
        check::<Span>(" 2 m", Some("2m"));
        check::<Span>("1h", Some("1h"));
        for wrong in ["", "0", "0s", "-1", "2 weeks", "1.5s", "99999999999999999999", "1000000h", "é"] {
            check::<Span>(wrong, None);
        }
    }

    #[test]
    fn sizes_are_bytes_or_text_with_a_unit() {
        check::<Size>("65536", Some("64kB"));
        check::<Size>("10MB", Some("10MB"));
        check::<Size>("10mb", Some("10MB"));
        check::<Size>("1G", Some("1GB"));
        check::<Size>("1000", Some("1000"));
        for wrong in ["0", "ten", "1TB", "18446744073709551615GB"] {
            check::<Size>(wrong, None);
        }
    }

    #[test]
    fn a_number_out_of_range_is_named_with_what_was_expected() {
        #[derive(Debug, Deserialize)]
        #[expect(dead_code, reason = "only its error is read")]
        struct Holder {
            port: Port,
        }
        let error = toml::from_str::<Holder>("port = 70000").unwrap_err();
        assert_eq!(error.message(), "`70000` is not a port from 0 to 65535");
        let error = toml::from_str::<Holder>("port = true").unwrap_err();
        assert_eq!(error.message(), "invalid type: boolean `true`, expected a port from 0 to 65535");
    }
}
