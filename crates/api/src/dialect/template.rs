//! A piece of a stream that was serialised once, with a hole for the text: the hot path of every dialect.

use bytes::{BufMut as _, BytesMut};

/// Stands where the text will be; no name or id holds it.
pub(crate) const HOLE: &str = "\u{1}";
const HOLE_ESCAPED: &str = "\\u0001";

/// JSON with a hole for the body of a string.
pub(crate) struct Template {
    before: Box<[u8]>,
    after: Box<[u8]>,
}

impl Template {
    /// Of JSON whose last text is [`HOLE`].
    pub(crate) fn of(json: &[u8]) -> Self {
        let hole = json.windows(HOLE_ESCAPED.len()).rposition(|window| window == HOLE_ESCAPED.as_bytes());
        let hole = hole.unwrap_or(json.len());
        let after = json.get(hole + HOLE_ESCAPED.len()..).unwrap_or_default();
        Self { before: json[..hole].into(), after: after.into() }
    }

    pub(crate) fn fill(&self, escaped: &[u8], out: &mut BytesMut) {
        out.reserve(self.before.len() + escaped.len() + self.after.len());
        out.put_slice(&self.before);
        out.put_slice(escaped);
        out.put_slice(&self.after);
    }
}
