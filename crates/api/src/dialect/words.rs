//! A client's own words in messages and headers: short enough to be shown, and never raw.

use serde::Deserialize;

use crate::json::Unknown;
use crate::problem::{Kind, Problem};

/// Both ends of a reader's message: what it met, which may be a whole image, and where.
pub(crate) fn shortened(message: &str) -> String {
    const END: usize = 120;
    let length = message.chars().count();
    if length <= 2 * END {
        return message.to_owned();
    }
    message.chars().take(END).chain(['…']).chain(message.chars().skip(length - END)).collect()
}

/// Enough of a client's word to recognise it.
pub(crate) fn brief(text: &str) -> String {
    text.chars().take(64).flat_map(char::escape_default).collect()
}

/// A body as a `T`; where it is none, the error names the field. `what` is what it should be.
pub(crate) fn parse<'b, T: Deserialize<'b>>(body: &'b [u8], what: &str) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|error| {
        let message = format!("the body is not {what}: {}", shortened(&error.to_string()));
        Problem { kind: Kind::Invalid, message, param: place::<T>(body) }
    })
}

/// The field of a `T` that could not be read, such as `messages[0].content`. The body is read once more, with an eye on
/// where: only the sender of a wrong one pays for it.
fn place<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Option<String> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let error = serde_path_to_error::deserialize::<_, T>(&mut json).err()?;
    // What is no JSON at all is no field's fault.
    let place = error.inner().is_data().then(|| error.path().to_string())?;
    (place != ".").then_some(place)
}

/// Fields of a request that have no effect, for the header that names them.
#[derive(Default)]
pub(crate) struct Ignored(Vec<String>);

/// Names that fit into a header.
const MOST_IGNORED: usize = 32;

impl Ignored {
    /// A field that we know, and that has no effect.
    pub(crate) fn add(&mut self, name: impl Into<String>) {
        let name = name.into();
        if self.0.len() < MOST_IGNORED && !self.0.contains(&name) {
            self.0.push(name);
        }
    }

    /// Fields that we do not know, below `prefix`.
    pub(crate) fn unknown(&mut self, prefix: &str, unknown: &Unknown) {
        for name in &unknown.0 {
            self.add(format!("{prefix}{}", brief(name)));
        }
    }

    pub(crate) fn into_names(self) -> Vec<String> {
        self.0
    }
}

/// What may have to be held back of an answer.
const LONGEST_STOP: usize = 1_024;

/// Refuses texts that cannot end an answer. `field` has them.
pub(crate) fn check_stop(stop: &[String], field: &str) -> Result<(), Problem> {
    match stop.iter().find(|text| text.is_empty() || text.len() > LONGEST_STOP) {
        Some(text) => {
            let message = format!("a text of `{field}` has {} bytes; each may have 1 to {LONGEST_STOP}", text.len());
            Err(Problem::invalid(field, message))
        }
        None => Ok(()),
    }
}
