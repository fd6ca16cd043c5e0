//! Clients that keep their own history: what turns a stateless request into a turn of a session and its answer.

mod conversations;
mod fingerprint;
mod history;

pub use conversations::{Claim, ConversationLimits, Conversations, Held, Owner};
pub use fingerprint::{Fingerprint, Growing, Mark};
pub use history::{FittedHistory, fit, news};
