//! Tools that the client runs: what it offers, what the agent calls, what comes back.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ClientId, Content, Opaque, SessionId, TurnId};

/// A tool that the client runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientTool {
    pub name: Arc<str>,
    pub description: Option<Arc<str>>,
    /// The JSON schema of its arguments, as the client wrote it. `None` takes none.
    pub schema: Option<Opaque>,
}

/// A call of a client's tool. It names its session, so that the bare id finds the turn that waits, and still says which
/// session it was of when nothing waits any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CallId {
    session: SessionId,
    turn: TurnId,
    /// Among the calls of the turn, from 1.
    number: u64,
}

impl CallId {
    pub fn new(session: SessionId, turn: TurnId, number: u64) -> Self {
        Self { session, turn, number }
    }

    pub fn session(&self) -> SessionId {
        self.session
    }

    pub fn turn(&self) -> TurnId {
        self.turn
    }
}

const PREFIX: &str = "call_";
/// Short enough for clients that bound the length of an id at forty characters.
const SESSION_DIGITS: usize = 22;

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}{:x}_{:x}", digits(self.session.as_u128()), self.turn.0, self.number)
    }
}

/// Not an id that was given here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not the id of a call that was made here")]
pub struct ForeignCallId;

impl FromStr for CallId {
    type Err = ForeignCallId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rest = text.strip_prefix(PREFIX).ok_or(ForeignCallId)?;
        let (session, rest) = rest.split_at_checked(SESSION_DIGITS).ok_or(ForeignCallId)?;
        let (turn, number) = rest.split_once('_').ok_or(ForeignCallId)?;
        let session = SessionId::from_u128(number_of(session).ok_or(ForeignCallId)?);
        let hexadecimal = |text| u64::from_str_radix(text, 16).map_err(|_| ForeignCallId);
        let id = Self { session, turn: TurnId(hexadecimal(turn)?), number: hexadecimal(number)? };
        // One id has one spelling.
        if id.to_string() == text { Ok(id) } else { Err(ForeignCallId) }
    }
}

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

fn digits(mut number: u128) -> String {
    let mut digits = [b'0'; SESSION_DIGITS];
    for digit in digits.iter_mut().rev() {
        *digit = usize::try_from(number % 62).map_or(b'0', |at| ALPHABET[at]);
        number /= 62;
    }
    String::from_utf8_lossy(&digits).into_owned()
}

fn number_of(digits: &str) -> Option<u128> {
    digits.bytes().try_fold(0_u128, |number, digit| {
        let at = ALPHABET.iter().position(|known| *known == digit)?;
        number.checked_mul(62)?.checked_add(u128::try_from(at).ok()?)
    })
}

/// The agent called a tool of the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientCall {
    pub id: CallId,
    /// The tool's name as the client wrote it.
    pub tool: Arc<str>,
    /// A JSON object.
    pub arguments: Opaque,
}

/// What a call came to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolReturn {
    pub outcome: ReturnOutcome,
    pub content: Vec<Content>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ReturnOutcome {
    Done,
    /// The tool failed; the agent is told so and goes on.
    Failed,
}

impl ToolReturn {
    pub fn failed(message: impl Into<super::Text>) -> Self {
        Self { outcome: ReturnOutcome::Failed, content: vec![Content::text(message)] }
    }
}

/// Who ended a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReturnedBy {
    Client(ClientId),
    /// Nobody answered in time; the agent was told so and goes on.
    Timeout,
    /// The turn ended.
    Cancel,
    /// The agent does not wait for it any more.
    Agent,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_id_finds_its_session_and_fits_in_forty_characters() {
        let session = SessionId::new();
        let id = CallId::new(session, TurnId(0xf_ffff), 0xf_ffff);
        let text = id.to_string();
        assert!(text.len() <= 40, "{text}");
        assert_eq!(text.parse(), Ok(id));
        assert_eq!(id.session(), session);
    }

    #[test]
    fn what_was_not_given_here_is_no_call_id() {
        let sound = CallId::new(SessionId::new(), TurnId(7), 1).to_string();
        let padded = format!("{}0{}", &sound[..27], &sound[27..]);
        for foreign in ["", "call_", "call_abc123", "toolu_01", &sound[1..], &padded, "call_zzzzzzzzzzzzzzzzzzzzzz1_1"]
        {
            assert_eq!(foreign.parse::<CallId>(), Err(ForeignCallId), "{foreign}");
        }
    }
}
