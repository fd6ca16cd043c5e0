//! What a conversation is compacted into: an item that only we can read, and that stands for the messages before it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gembridge_core::model::Message;

/// The messages of a compaction. `None`: it was not made here.
pub(super) fn open(content: &str) -> Option<Vec<Message>> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(content).ok()?).ok()
}

pub(super) fn seal(messages: &[Message]) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(messages).expect("messages always serialise"))
}
