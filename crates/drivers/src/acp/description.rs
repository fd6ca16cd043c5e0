//! What an agent says of a session when it opens it: its modes, models and options.
//!
//! Agents say the same of every session but for its id. The last answer is kept with what it meant, so that opening a session
//! costs a comparison of bytes: reading the 4 kB of a usual answer was a sixth of a new conversation's CPU time.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use gembridge_core::model::{Model, SessionFacts};

use super::client_rights::{ClientRights, KnownOption};
use super::{decode, wire};
use crate::profile::Profile;

#[derive(Default)]
pub(super) struct Description {
    /// As a client of the session may see it.
    pub facts: SessionFacts,
    /// The models that may be set: those that the agent lists, and those that it is known to take besides. None: the agent
    /// decides for itself.
    pub models: Vec<Model>,
    pub options: Vec<KnownOption>,
    pub stand_ins: StandIns,
}

/// Configuration options that stand for the model and the mode, where the agent has no other way to set them.
#[derive(Clone, Default)]
pub(super) struct StandIns {
    pub model: Option<Arc<str>>,
    pub mode: Option<Arc<str>>,
}

impl Description {
    pub(super) fn of(opened: &wire::SessionOpened<'_>, profile: &Profile, rights: &ClientRights) -> Self {
        let options = opened.config_options.map(decode::config_options).unwrap_or_default();
        let mut facts = decode::session_facts(opened, &options);
        rights.limit(&mut facts);
        let mut models = facts.models.to_vec();
        if !models.is_empty() {
            let besides = profile.model.known.iter().map(|id| id.as_str().into());
            models.extend(besides.map(|id: Arc<str>| Model { name: Arc::clone(&id), id, description: None }));
        }
        let stand_ins = StandIns::of(opened, &options);
        Self { facts, models, options: options.iter().map(KnownOption::of).collect(), stand_ins }
    }
}

impl StandIns {
    fn of(opened: &wire::SessionOpened<'_>, options: &[wire::ConfigOption]) -> Self {
        let of_category = |category: &str| {
            let option = options.iter().find(|option| option.category.as_deref() == Some(category))?;
            Some(option.id.as_str().into())
        };
        Self {
            model: of_category("model").filter(|_| opened.models.is_none()),
            mode: of_category("mode").filter(|_| opened.modes.is_none()),
        }
    }
}

/// The descriptions that one process has given: the last is kept.
#[derive(Default)]
pub(super) struct Descriptions {
    last: Mutex<Option<Answer>>,
}

/// An answer to `session/new`, and what it meant.
struct Answer {
    bytes: Bytes,
    /// Where the session's id stands in it, without the quotes.
    id: Range<usize>,
    meaning: Arc<Description>,
}

/// A session as the agent described it.
pub(super) struct Described {
    /// Absent in an answer to `session/load`.
    pub id: Option<Arc<str>>,
    pub description: Arc<Description>,
}

impl Descriptions {
    /// Reads an answer; `describe` is asked only if it says anything new.
    pub(super) fn read(
        &self,
        answer: &Bytes,
        describe: impl FnOnce(&wire::SessionOpened<'_>) -> Description,
    ) -> Result<Described, serde_json::Error> {
        if let Some(known) = self.lock().as_ref().and_then(|last| last.with_another_id(answer)) {
            return Ok(known);
        }
        let opened: wire::SessionOpened<'_> = serde_json::from_slice(answer)?;
        let meaning = Arc::new(describe(&opened));
        let id = opened.session_id.as_deref().map(Arc::from);
        if let Some(id) = opened.session_id.as_deref().and_then(|id| position(answer, id)) {
            *self.lock() = Some(Answer { bytes: answer.clone(), id, meaning: Arc::clone(&meaning) });
        }
        Ok(Described { id, description: meaning })
    }

    /// Never held across an await; a panic while it was held left nothing half-done.
    fn lock(&self) -> MutexGuard<'_, Option<Answer>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Answer {
    /// What another answer means that differs in nothing but the id.
    fn with_another_id(&self, answer: &Bytes) -> Option<Described> {
        let rest = answer.strip_prefix(&self.bytes[..self.id.start])?;
        let id = rest.strip_suffix(&self.bytes[self.id.end..])?;
        let id = std::str::from_utf8(id).ok().filter(|id| is_plain(id))?;
        Some(Described { id: Some(id.into()), description: Arc::clone(&self.meaning) })
    }
}

/// Where a string that is not empty stands in the JSON text, if it stands there as it is, and once.
fn position(json: &[u8], text: &str) -> Option<Range<usize>> {
    let text = Some(text).filter(|text| !text.is_empty() && is_plain(text))?;
    let mut found = memchr::memmem::find_iter(json, text);
    let start = found.next().filter(|_| found.next().is_none())?;
    let range = start..start + text.len();
    let quoted = json[..range.start].last() == Some(&b'"') && json.get(range.end) == Some(&b'"');
    quoted.then_some(range)
}

/// Whether a string is its own JSON, and nothing in it could end it.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the answer describes (nothing is empty): its id, the model that it has, and whether it had to be read.
    fn read(descriptions: &Descriptions, answer: &str) -> (String, String, bool) {
        let mut is_read = false;
        let described = descriptions.read(&Bytes::copy_from_slice(answer.as_bytes()), |opened| {
            is_read = true;
            let facts = decode::session_facts(opened, &[]);
            Description { facts, ..Description::default() }
        });
        let Described { id, description } = described.expect("an answer");
        (
            id.as_deref().unwrap_or_default().to_owned(),
            description.facts.model.as_deref().unwrap_or_default().to_owned(),
            is_read,
        )
    }

    fn answer(id: &str, model: &str) -> String {
        format!(r#"{{"sessionId":"{id}","models":{{"currentModelId":"{model}","availableModels":[]}}}}"#)
    }

    fn found(id: &str, model: &str, is_read: bool) -> (String, String, bool) {
        (id.to_owned(), model.to_owned(), is_read)
    }

    #[test]
    fn an_answer_that_differs_in_its_id_alone_is_not_read_again() {
        let known = Descriptions::default();
        assert_eq!(read(&known, &answer("one", "m")), found("one", "m", true));
        assert_eq!(read(&known, &answer("another", "m")), found("another", "m", false));
        assert_eq!(read(&known, &answer("one", "n")), found("one", "n", true), "another model");
        assert_eq!(read(&known, &answer("two", "n")), found("two", "n", false));
    }

    #[test]
    fn an_id_that_could_be_taken_for_something_else_is_read_each_time() {
        for (first, second) in [
            // It stands there twice.
            (answer("m", "m"), answer("k", "m")),
            // It has quotes or escapes of its own.
            (answer(r"a\nb", "m"), answer(r"c\nd", "m")),
            (answer("a", "m"), answer(r#"b\"c"#, "m")),
            (answer("a", "m"), answer(r#"b","modes":null,"x":"c"#, "m")),
            (answer("", "m"), answer("b", "m")),
        ] {
            let known = Descriptions::default();
            assert!(read(&known, &first).2);
            let (id, model, is_read) = read(&known, &second);
            assert!(is_read, "{second}");
            assert_eq!((id, model), {
                let fresh = read(&Descriptions::default(), &second);
                (fresh.0, fresh.1)
            });
        }
    }

    #[test]
    fn an_answer_without_an_id_is_none_of_another_session() {
        let known = Descriptions::default();
        assert_eq!(read(&known, &answer("one", "m")).0, "one");
        assert_eq!(read(&known, "{}"), found("", "", true));
    }
}
