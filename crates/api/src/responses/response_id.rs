//! The id of a response names where its answer begins: a session, and a place in its log.

use std::fmt;
use std::str::FromStr;

use gembridge_core::exchange::AnswerPlace;
use gembridge_core::model::{Seq, SessionId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ResponseId {
    pub session: SessionId,
    /// The answer is what the log has after this entry.
    pub after: Seq,
    /// Whether it can be had again.
    pub is_stored: bool,
}

impl ResponseId {
    pub(super) const PREFIX: &str = "resp_";

    pub(super) fn new(place: AnswerPlace, is_stored: bool) -> Self {
        Self { session: place.session, after: place.after, is_stored }
    }
}

impl fmt::Display for ResponseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let session = uuid::Uuid::from_bytes(self.session.to_bytes());
        let mark = if self.is_stored { 's' } else { 'u' };
        write!(f, "{}{}{mark}{:x}", Self::PREFIX, session.simple(), self.after.0)
    }
}

/// Not an id that was given here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ForeignResponseId;

const SESSION_DIGITS: usize = uuid::fmt::Simple::LENGTH;

impl FromStr for ResponseId {
    type Err = ForeignResponseId;

    fn from_str(text: &str) -> Result<Self, ForeignResponseId> {
        let rest = text.strip_prefix(Self::PREFIX).ok_or(ForeignResponseId)?;
        let (session, rest) = rest.split_at_checked(SESSION_DIGITS).ok_or(ForeignResponseId)?;
        let session = uuid::Uuid::try_parse(session).map_err(|_| ForeignResponseId)?;
        let is_stored = rest.starts_with('s');
        let after = rest.strip_prefix(['s', 'u']).ok_or(ForeignResponseId)?;
        let after = u64::from_str_radix(after, 16).map_err(|_| ForeignResponseId)?;
        let id = Self { session: SessionId::from_bytes(session.into_bytes()), after: Seq(after), is_stored };
        // One id has one spelling.
        if id.to_string() == text { Ok(id) } else { Err(ForeignResponseId) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_finds_its_session_and_has_one_spelling() {
        for is_stored in [true, false] {
            let id = ResponseId { session: SessionId::new(), after: Seq(0x1f), is_stored };
            let text = id.to_string();
            assert!(text.len() <= 64, "{text}");
            assert_eq!(text.parse(), Ok(id));
            for foreign in [text[1..].to_owned(), text.to_uppercase(), format!("{text}g"), text.replace("1f", "01f")] {
                assert_eq!(foreign.parse::<ResponseId>(), Err(ForeignResponseId), "{foreign}");
            }
        }
        assert_eq!("resp_a96702b642b941f18c7b844b".parse::<ResponseId>(), Err(ForeignResponseId));
    }
}
