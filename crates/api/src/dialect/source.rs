//! Texts of a request without copies of them.

use bytes::Bytes;
use gembridge_core::model::Text;

/// The body that a request was read from.
#[derive(Clone, Copy)]
pub struct Source<'b>(pub &'b Bytes);

impl Source<'_> {
    /// A text of the request: a slice of the body where it stands there as it is.
    pub(crate) fn text(self, text: &str) -> Text {
        let body = self.0.as_ptr_range();
        let bytes = text.as_bytes();
        if bytes.is_empty() || !body.contains(&bytes.as_ptr()) {
            return Text::plain(text);
        }
        Text::shared(self.0.slice_ref(bytes))
    }
}
