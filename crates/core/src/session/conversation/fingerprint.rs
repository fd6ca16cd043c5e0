//! A keyed fingerprint that rolls over a conversation as it grows.
//!
//! Clients give an answer back with other line ends, or without the space around it; such differences are no
//! different history. Everything else is.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use siphasher::sip128::{Hasher128 as _, SipHasher13};

use super::said::{Part, Role, Said};

/// Random for each process: nobody outside can prepare two histories with one fingerprint.
#[derive(Clone, Copy)]
pub(super) struct Key(u64, u64);

impl Key {
    pub(super) fn random() -> Self {
        // The standard library seeds these from the system's randomness; hashing nothing gives that out.
        let word = || RandomState::new().build_hasher().finish();
        Self(word(), word())
    }
}

/// The fingerprint of everything that was said up to a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mark(u128);

/// A conversation so far. Cheap to clone; one message after another is added.
#[derive(Clone)]
pub struct Fingerprint {
    hasher: SipHasher13,
    /// Space that belongs to the message only if more text follows.
    space: String,
    /// Nothing but space came of this stretch of text so far.
    blank: bool,
}

/// Bytes that stand in no text, between its pieces.
const END_OF_MESSAGE: u8 = 0xFF;
const MEDIA: u8 = 0xFE;
const NEXT_FIELD: u8 = 0xFD;

impl Fingerprint {
    pub(super) fn new(key: Key) -> Self {
        Self { hasher: SipHasher13::new_with_keys(key.0, key.1), space: String::new(), blank: true }
    }

    /// The mark of what was added so far.
    pub fn mark(&self) -> Mark {
        Mark(self.hasher.finish128().as_u128())
    }

    /// Adds a whole message.
    pub fn add(&mut self, said: &Said<'_>) {
        self.begin(said.role);
        for part in said.parts() {
            match part {
                Part::Text(text) => self.text(text),
                Part::Media(media) => {
                    self.hasher.write(&[MEDIA]);
                    for field in [media.mime, media.data] {
                        self.hasher.write(field.as_bytes());
                        self.hasher.write(&[NEXT_FIELD]);
                    }
                }
            }
        }
        self.end();
    }

    /// Begins a message whose text comes in pieces: then [`Self::text`] for each, and [`Self::end`].
    pub fn begin(&mut self, role: Role) {
        self.space.clear();
        self.blank = true;
        self.hasher.write(&[match role {
            Role::System => b's',
            Role::User => b'u',
            Role::Assistant => b'a',
            Role::Tool => b't',
        }]);
    }

    pub fn text(&mut self, text: &str) {
        if text.contains('\r') {
            text.split('\r').for_each(|piece| self.without_returns(piece));
        } else {
            self.without_returns(text);
        }
    }

    pub fn end(&mut self) {
        self.space.clear();
        self.hasher.write(&[END_OF_MESSAGE]);
    }

    fn without_returns(&mut self, text: &str) {
        let text = if self.blank { text.trim_start() } else { text };
        let kept = text.trim_end();
        if !kept.is_empty() {
            self.blank = false;
            if !self.space.is_empty() {
                self.hasher.write(self.space.as_bytes());
                self.space.clear();
            }
            self.hasher.write(kept.as_bytes());
        }
        if kept.len() < text.len() {
            self.space.push_str(&text[kept.len()..]);
        }
    }
}
