//! Frames of clients, mutated and cut anywhere: nothing panics, and no message is longer than the limit.

use gembridge_testkit::fuzz::{Fuzz, signature};

use super::frame::{Decoder, Frame};

const LIMIT: usize = 4_096;

#[test]
fn s31_fuzz_websocket_frames() {
    Fuzz::named("websocket-frames").words(&["\u{81}", "\0\0\0\0", "\u{7f}"]).check(|input| {
        let Some((cut, bytes)) = input.split_first() else { return 0 };
        let mut decoder = Decoder::new(LIMIT);
        let mut kinds = Vec::new();
        for part in bytes.chunks(usize::from(*cut) + 1) {
            decoder.push(part);
            loop {
                match decoder.next() {
                    Ok(Some(frame)) => {
                        if let Frame::Text(text) = &frame {
                            assert!(text.len() <= LIMIT);
                        }
                        kinds.push(std::mem::discriminant(&frame));
                    }
                    Ok(None) => break,
                    Err(code) => return signature(&(code.0, kinds)),
                }
            }
        }
        signature(&kinds)
    });
}
