//! A keyed fingerprint that rolls over a conversation as it grows.
//!
//! Clients give an answer back without the space around it; that is no different history. Everything else is.
//!
//! XXH3 with a secret drawn at random for each process, or that of its cluster, 128 bits wide. It is no cryptographic hash, and need not be
//! one: a fingerprint is compared only with those of the same owner, nobody ever sees one, and a long history is
//! hashed on every request, where a stronger hash would cost as much as reading the request does.

use std::borrow::Cow;
use std::hash::{BuildHasher as _, RandomState};

use twox_hash::xxhash3_128::Hasher;

use crate::model::{Content, Message, Part, Role};

/// Bytes of which fingerprints are keyed.
pub const FINGERPRINT_KEY: usize = 448;

/// What the digests of this process have in common with no other: a hasher that has taken in nothing but randomness.
#[derive(Clone)]
pub(super) struct Key(Hasher);

impl Key {
    pub(super) fn random() -> Self {
        // The standard library keys this from the system's randomness; what it makes of numbers gives none of it away.
        let random = RandomState::new();
        let mut bytes = [0; FINGERPRINT_KEY];
        for (number, eight) in (0_u64..).zip(bytes.chunks_exact_mut(8)) {
            eight.copy_from_slice(&random.hash_one(number).to_le_bytes());
        }
        Self::of(&bytes)
    }

    /// The same on every gateway that has the same bytes.
    pub(super) fn of(bytes: &[u8; FINGERPRINT_KEY]) -> Self {
        let (secret, opening) = bytes.split_at(192);
        let mut hasher = Hasher::with_seed_and_secret(0, secret)
            .unwrap_or_else(|_| unreachable!("a secret of 192 bytes is long enough"));
        // Less than this many bytes would be hashed without the secret.
        hasher.write(opening);
        Self(hasher)
    }

    pub(super) fn mark_of(&self, bytes: &[u8]) -> Mark {
        let mut hasher = self.0.clone();
        hasher.write(bytes);
        Mark(hasher.finish_128())
    }
}

/// What is hashed, gathered first: over a long stretch the hash is as fast as memory, but message by message it waits
/// for what it has just stored, which takes two to five times as long.
#[derive(Clone)]
struct BufferedHasher {
    hasher: Hasher,
    /// It never grows: what it has no room for goes to the hasher.
    waiting: Vec<u8>,
}

/// Longer ones were no faster.
const STRETCH: usize = 8 << 10;

impl BufferedHasher {
    fn new(key: &Key) -> Self {
        Self { hasher: key.0.clone(), waiting: Vec::with_capacity(STRETCH) }
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        if bytes.len() > self.waiting.capacity() - self.waiting.len() {
            self.flush();
            if bytes.len() > self.waiting.capacity() {
                return self.hasher.write(bytes);
            }
        }
        self.waiting.extend_from_slice(bytes);
    }

    #[cold]
    fn flush(&mut self) {
        self.hasher.write(&self.waiting);
        self.waiting.clear();
    }

    /// Holds no room from here on: what is written goes straight on.
    fn settle(&mut self) {
        self.flush();
        self.waiting = Vec::new();
    }

    fn finish(&self) -> u128 {
        let mut hasher = self.hasher.clone();
        hasher.write(&self.waiting);
        hasher.finish_128()
    }
}

/// The fingerprint of everything that was said up to a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mark(u128);

impl Mark {
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }
}

/// A conversation so far. One message after another is added.
#[derive(Clone)]
pub struct Fingerprint {
    words: BufferedHasher,
    /// Who said the message before.
    last: Option<Role>,
}

/// Bytes that stand in no text.
const MESSAGE: u8 = 0xFF;
const MEDIA: u8 = 0xFE;
const NEXT_FIELD: u8 = 0xFD;
const CALL: u8 = 0xFC;
const RESULT: u8 = 0xFB;

impl Fingerprint {
    pub(super) fn new(key: &Key) -> Self {
        Self { words: BufferedHasher::new(key), last: None }
    }

    /// The mark of what was added so far.
    pub fn mark(&self) -> Mark {
        Mark(self.words.finish())
    }

    /// Adds a whole message.
    pub fn add(&mut self, message: &Message) {
        self.name(message.role);
        if let [Part::Content(Content::Text(text))] = message.parts.as_slice() {
            return self.words.write(trimmed(&text.to_str()).as_bytes());
        }
        let mut edge = Edge::default();
        for part in &message.parts {
            match part {
                Part::Content(Content::Text(text)) => edge.pass(&text.to_str(), &mut self.words),
                Part::Content(other) => {
                    self.words.write(&[MEDIA]);
                    self.media(other);
                }
                Part::Call { call, arguments } => self.call(&call.tool, &arguments.to_str()),
                Part::ResultOf(call) => {
                    self.words.write(&[RESULT]);
                    self.words.write(&call.number.unwrap_or(0).to_le_bytes());
                    self.fields(&[&call.tool]);
                }
            }
        }
    }

    fn media(&mut self, content: &Content) {
        match content {
            Content::Text(text) => self.fields(&[&text.to_str()]),
            Content::Image { mime, data, .. } | Content::Audio { mime, data } => self.fields(&[mime, &data.to_str()]),
            Content::Blob { uri, mime, data } => {
                self.fields(&[uri, mime.as_deref().unwrap_or_default(), &data.to_str()]);
            }
            Content::Document { uri, mime, text } => {
                self.fields(&[uri, mime.as_deref().unwrap_or_default(), &text.to_str()]);
            }
            Content::Link { uri, name, .. } => self.fields(&[uri, name]),
            Content::Other { kind, body } => self.fields(&[kind, &String::from_utf8_lossy(&body.0)]),
        }
    }

    /// Ids are left out: a call is what was called, and clients may count them anew. Clients also parse the arguments and
    /// write them again, with other space between the parts, and some without what is empty.
    fn call(&mut self, tool: &str, arguments: &str) {
        self.words.write(&[CALL]);
        self.fields(&[tool, &normal(arguments)]);
    }

    fn fields(&mut self, fields: &[&str]) {
        for field in fields {
            self.words.write(field.as_bytes());
            self.words.write(&[NEXT_FIELD]);
        }
    }

    /// Begins a message whose text comes in pieces. That takes its time, and many wait at once.
    pub fn begin(mut self, role: Role) -> Growing {
        self.name(role);
        self.words.settle();
        Growing { whole: self, edge: Edge::default() }
    }

    fn name(&mut self, role: Role) {
        // What the system says in a row is one message: clients split it in one request and not in the next.
        if self.last.replace(role) == Some(Role::System) && role == Role::System {
            return;
        }
        self.words.write(match role {
            Role::System => &[MESSAGE, b's'],
            Role::User => &[MESSAGE, b'u'],
            Role::Assistant => &[MESSAGE, b'a'],
            Role::Tool => &[MESSAGE, b't'],
        });
    }
}

/// JSON without space between its parts, without members that are empty, and with its members in order: clients write what they
/// parsed. What is no JSON, or is nested without end, stays as it is.
fn normal(json: &str) -> Cow<'_, str> {
    let (mut rest, mut out) = (json, String::with_capacity(json.len()));
    match value(&mut rest, &mut out, DEEPEST) {
        Some(()) if rest.trim_ascii().is_empty() => Cow::Owned(out),
        _ => Cow::Borrowed(json),
    }
}

const DEEPEST: usize = 128;

/// Values that some clients leave out when they write arguments again.
const EMPTY: [&str; 4] = ["\"\"", "[]", "{}", "null"];

/// Writes the value that `rest` begins with. `None`: there is none.
fn value(rest: &mut &str, out: &mut String, deepest: usize) -> Option<()> {
    *rest = rest.trim_ascii_start();
    let open = rest.bytes().next()?;
    let close = match open {
        b'{' => '}',
        b'[' => ']',
        b'"' => {
            out.push_str(string(rest)?);
            return Some(());
        }
        _ => {
            let end = rest.find([',', ']', '}', ' ', '\n', '\r', '\t']).unwrap_or(rest.len());
            out.push_str(take(rest, end)?);
            return (end > 0).then_some(());
        }
    };
    take(rest, 1)?;
    let mut entries: Vec<(&str, String)> = Vec::new();
    loop {
        *rest = rest.trim_ascii_start();
        if let Some(after) = rest.strip_prefix(close) {
            *rest = after;
            break;
        }
        let mut name = "";
        if open == b'{' {
            name = string(rest)?;
            *rest = rest.trim_ascii_start().strip_prefix(':')?;
        }
        let mut written = String::new();
        value(rest, &mut written, deepest.checked_sub(1)?)?;
        if open == b'[' || !EMPTY.contains(&written.as_str()) {
            entries.push((name, written));
        }
        *rest = rest.trim_ascii_start();
        *rest = rest.strip_prefix(',').or_else(|| rest.starts_with(close).then_some(*rest))?;
    }
    if open == b'{' {
        entries.sort_unstable();
    }
    out.push(char::from(open));
    for (number, (name, written)) in entries.iter().enumerate() {
        let (comma, colon) = (if number > 0 { "," } else { "" }, if open == b'{' { ":" } else { "" });
        out.extend([comma, name, colon, written]);
    }
    out.push(close);
    Some(())
}

/// The string that `rest` begins with, as it is written.
fn string<'j>(rest: &mut &'j str) -> Option<&'j str> {
    let mut is_escaped = false;
    let end = rest.strip_prefix('"')?.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    })?;
    take(rest, end + 2)
}

fn take<'j>(rest: &mut &'j str, length: usize) -> Option<&'j str> {
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
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
        self.edge.pass(text, &mut self.whole.words);
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
    fn pass(&mut self, text: &str, words: &mut BufferedHasher) {
        let text = if self.inside { text } else { text.trim_start() };
        let kept = text.trim_end();
        if !kept.is_empty() {
            self.inside = true;
            if !self.space.is_empty() {
                words.write(self.space.as_bytes());
                self.space.clear();
            }
            words.write(kept.as_bytes());
        }
        if kept.len() < text.len() {
            self.space.push_str(&text[kept.len()..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_size_come_to_the_same_as_the_whole() {
        let key = Key::random();
        let text = "a few words, ".repeat(3 * STRETCH / 13);
        let history = Message::text(Role::User, &text[..STRETCH / 2]);
        for length in [1, STRETCH / 2, STRETCH - 2, STRETCH - 1, STRETCH, STRETCH + 1, text.len()] {
            let said = &text[..length];
            let mut whole = Fingerprint::new(&key);
            whole.add(&history);
            let mut copy = whole.clone();
            whole.add(&Message::text(Role::Assistant, said));
            copy.add(&Message::text(Role::Assistant, said));
            assert_eq!(copy.mark(), whole.mark(), "{length} bytes, added to a copy");
            for piece in [1, 7, 4_096, STRETCH, STRETCH + 1] {
                let mut begun = Fingerprint::new(&key);
                begun.add(&history);
                let mut growing = begun.begin(Role::Assistant);
                for piece in said.as_bytes().chunks(piece) {
                    growing.text(std::str::from_utf8(piece).expect("ASCII"));
                }
                assert_eq!(growing.end().mark(), whole.mark(), "{length} bytes in pieces of {piece}");
            }
        }
    }

    #[test]
    fn arguments_that_a_client_wrote_again_are_the_same() {
        for (one, other, same) in [
            (r#"{"a":[1,"x y"]}"#, "{ \"a\": [1,\n \"x y\"]\t}", true),
            (r#"{"a":"x y"}"#, r#"{"a":"xy"}"#, false),
            (r#"{"a":"\" b"}"#, r#"{"a": "\" b"}"#, true),
            (r#"{"a":"\\","b":1}"#, r#"{"a":"\\", "b": 1}"#, true),
            (r#"{"a":"","b":1,"c":null}"#, r#"{"b":1}"#, true),
            (r#"{"a":{"x":[],"y":{}},"b":[{"z":""},1]}"#, r#"{ "b": [{}, 1] }"#, true),
            (r#"{"a":""}"#, "{}", true),
            (r#"{"a":1,"b":{"d":2,"c":3}}"#, r#"{"b":{"c":3,"d":2},"a":1}"#, true),
            (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#, false),
            (r#"{"a":":[]"}"#, "{}", false),
            (r#"{"a":["",null]}"#, r#"{"a":[]}"#, false),
            ("{]}, \"", "", false),
        ] {
            assert_eq!(normal(one) == normal(other), same, "{one} and {other}");
        }
    }

    #[test]
    fn what_the_system_says_in_a_row_is_one_message() {
        let key = Key::random();
        let mark = |messages: &[(Role, &str)]| {
            let mut said = Fingerprint::new(&key);
            for (role, text) in messages {
                said.add(&Message::text(*role, *text));
            }
            said.mark()
        };
        let (system, user) = (Role::System, Role::User);
        let whole = mark(&[(system, "be brief. be kind"), (user, "hi")]);
        assert_eq!(
            mark(&[(system, "be brief. be"), (system, " kind"), (user, "hi")]),
            mark(&[(system, "be brief. bekind"), (user, "hi")])
        );
        assert_ne!(mark(&[(user, "be brief."), (user, " be kind")]), mark(&[(user, "be brief. be kind")]));
        assert_ne!(whole, mark(&[(system, "be brief."), (user, "hi"), (system, "be kind")]));
    }

    #[test]
    fn a_mark_changes_nothing_of_what_follows() {
        let key = Key::random();
        let said = |text: &str| Message::text(Role::User, text);
        let (mut marked, mut unmarked) = (Fingerprint::new(&key), Fingerprint::new(&key));
        marked.add(&said("one"));
        assert_eq!(marked.mark(), marked.mark());
        marked.add(&said("two"));
        unmarked.add(&said("one"));
        unmarked.add(&said("two"));
        assert_eq!(marked.mark(), unmarked.mark());
    }
}
