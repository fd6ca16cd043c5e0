//! A keyed fingerprint that rolls over a conversation as it grows.
//!
//! Clients give an answer back without the space around it; that is no different history. Everything else is.
//!
//! XXH3 with a secret drawn at random for each process, 128 bits wide. It is no cryptographic hash, and need not be
//! one: a fingerprint is compared only with those of the same owner, nobody ever sees one, and a long history is
//! hashed on every request, where a stronger hash would cost as much as reading the request does.

use std::hash::{BuildHasher as _, RandomState};

use twox_hash::xxhash3_128::Hasher;

use super::said::{Part, Role, Said, Words};

/// What the digests of this process have in common with no other: a hasher that has taken in nothing but randomness.
#[derive(Clone)]
pub(super) struct Key(Hasher);

impl Key {
    pub(super) fn random() -> Self {
        // The standard library keys this from the system's randomness; what it makes of numbers gives none of it away.
        let random = RandomState::new();
        let bytes: Vec<u8> = (0..56).flat_map(|number: u64| random.hash_one(number).to_le_bytes()).collect();
        let (secret, opening) = bytes.split_at(192);
        let mut hasher = Hasher::with_seed_and_secret(0, secret)
            .unwrap_or_else(|_| unreachable!("a secret of 192 bytes is long enough"));
        // Less than this many bytes would be hashed without the secret.
        hasher.write(opening);
        Self(hasher)
    }
}

/// The fingerprint of everything that was said up to a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mark(u128);

/// A conversation so far. One message after another is added.
#[derive(Clone)]
pub struct Fingerprint {
    hasher: Hasher,
}

/// Bytes that stand in no text.
const MESSAGE: u8 = 0xFF;
const MEDIA: u8 = 0xFE;
const NEXT_FIELD: u8 = 0xFD;
const CALL: u8 = 0xFC;
const RESULT: u8 = 0xFB;

impl Fingerprint {
    pub(super) fn new(key: &Key) -> Self {
        Self { hasher: key.0.clone() }
    }

    /// The mark of what was added so far.
    pub fn mark(&self) -> Mark {
        Mark(self.hasher.finish_128())
    }

    /// Adds a whole message.
    pub fn add(&mut self, said: &Said<'_>) {
        self.name(said.role);
        match &said.words {
            Words::Text(text) => self.hasher.write(trimmed(text).as_bytes()),
            Words::Parts(parts) => {
                let mut edge = Edge::default();
                for part in parts {
                    match part {
                        Part::Text(text) => edge.pass(text, &mut self.hasher),
                        Part::Media(media) => {
                            self.hasher.write(&[MEDIA]);
                            self.fields(&[media.mime, media.data]);
                        }
                        Part::Call { call, arguments } => self.call(call.tool, arguments),
                        Part::ResultOf(call) => {
                            self.hasher.write(&[RESULT]);
                            self.hasher.write(&call.place.unwrap_or(0).to_le_bytes());
                            self.fields(&[call.tool]);
                        }
                    }
                }
            }
        }
    }

    /// Ids are left out: a call is what was called, and clients may count them anew.
    fn call(&mut self, tool: &str, arguments: &str) {
        self.hasher.write(&[CALL]);
        self.fields(&[tool, arguments]);
    }

    fn fields(&mut self, fields: &[&str]) {
        for field in fields {
            self.hasher.write(field.as_bytes());
            self.hasher.write(&[NEXT_FIELD]);
        }
    }

    /// Begins a message whose text comes in pieces.
    pub fn begin(mut self, role: Role) -> Growing {
        self.name(role);
        Growing { whole: self, edge: Edge::default() }
    }

    fn name(&mut self, role: Role) {
        self.hasher.write(match role {
            Role::System => &[MESSAGE, b's'],
            Role::User => &[MESSAGE, b'u'],
            Role::Assistant => &[MESSAGE, b'a'],
            Role::Tool => &[MESSAGE, b't'],
        });
    }
}

/// Most texts have no space around them, and their first and last byte tell.
fn trimmed(text: &str) -> &str {
    match text.as_bytes() {
        [first, .., last] if first.is_ascii_graphic() && last.is_ascii_graphic() => text,
        _ => text.trim(),
    }
}

/// A conversation whose newest message is still being said.
pub struct Growing {
    whole: Fingerprint,
    edge: Edge,
}

impl Growing {
    pub fn text(&mut self, text: &str) {
        self.edge.pass(text, &mut self.whole.hasher);
    }

    /// The message goes on with a call of a tool. No text follows.
    pub fn call(&mut self, tool: &str, arguments: &str) {
        self.whole.call(tool, arguments);
    }

    /// The message is whole.
    pub fn end(self) -> Fingerprint {
        self.whole
    }
}

/// Keeps the space around a message out, while its text comes in pieces.
#[derive(Default)]
struct Edge {
    /// Text has come, not only space.
    inside: bool,
    /// Space that belongs to the message only if more text follows.
    space: String,
}

impl Edge {
    fn pass(&mut self, text: &str, hasher: &mut Hasher) {
        let text = if self.inside { text } else { text.trim_start() };
        let kept = text.trim_end();
        if !kept.is_empty() {
            self.inside = true;
            if !self.space.is_empty() {
                hasher.write(self.space.as_bytes());
                self.space.clear();
            }
            hasher.write(kept.as_bytes());
        }
        if kept.len() < text.len() {
            self.space.push_str(&text[kept.len()..]);
        }
    }
}
