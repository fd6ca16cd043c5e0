//! Frames: bytes of a client into messages, and the heads of our own.

use bytes::{BufMut, Bytes, BytesMut};

use super::socket::CloseCode;

/// What a client sent, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    Text(String),
    Binary,
    Ping(Bytes),
    Pong,
    Close(Option<u16>),
}

/// Puts frames together as their bytes come. Everything that breaks the standard ends the connection with its code.
#[derive(Debug)]
pub struct Decoder {
    bytes: BytesMut,
    message: Message,
    /// The largest message, in however many frames.
    limit: usize,
    /// What was wrong with the bytes: nothing after it can be read.
    broken: Option<CloseCode>,
}

/// A message that has not ended.
#[derive(Debug)]
enum Message {
    None,
    Text(Vec<u8>),
    /// Read past, and never kept.
    Binary(usize),
}

struct Head {
    fin: bool,
    opcode: u8,
    mask: [u8; 4],
    /// Of the head itself.
    size: usize,
    length: usize,
}

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

impl Decoder {
    pub fn new(limit: usize) -> Self {
        Self { bytes: BytesMut::new(), message: Message::None, limit, broken: None }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes of what has not ended.
    pub fn held(&self) -> usize {
        let of_message = match &self.message {
            Message::Text(bytes) => bytes.len(),
            Message::None | Message::Binary(_) => 0,
        };
        self.bytes.len() + of_message
    }

    /// The next frame that ends something; `None` until more bytes come. The first error is the last result.
    pub fn next(&mut self) -> Result<Option<Frame>, CloseCode> {
        match self.broken {
            Some(code) => Err(code),
            None => self.decode().inspect_err(|code| self.broken = Some(*code)),
        }
    }

    fn decode(&mut self) -> Result<Option<Frame>, CloseCode> {
        while let Some(head) = self.head()? {
            if self.bytes.len() < head.size + head.length {
                return Ok(None);
            }
            let mut body = self.bytes.split_to(head.size + head.length).split_off(head.size);
            unmask(&mut body, head.mask);
            if self.bytes.is_empty() {
                // An idle socket keeps no buffer.
                self.bytes = BytesMut::new();
            }
            if let Some(frame) = self.take(&head, body)? {
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    fn head(&self) -> Result<Option<Head>, CloseCode> {
        let bytes = &self.bytes[..];
        let (Some(first), Some(second)) = (bytes.first(), bytes.get(1)) else { return Ok(None) };
        let (fin, opcode) = (first & 0x80 != 0, first & 0x0f);
        // No extension was agreed on, and clients mask.
        if first & 0x70 != 0 || second & 0x80 == 0 {
            return Err(CloseCode::PROTOCOL);
        }
        let (length, size) = match second & 0x7f {
            126 => (bytes.get(2..4).and_then(|b| b.try_into().ok()).map(|b| u64::from(u16::from_be_bytes(b))), 8),
            127 => (bytes.get(2..10).and_then(|b| b.try_into().ok()).map(u64::from_be_bytes), 14),
            short => (Some(u64::from(short)), 6),
        };
        let is_control = opcode >= CLOSE;
        if is_control && (!fin || second & 0x7f > 125) {
            return Err(CloseCode::PROTOCOL);
        }
        let Some(length) = length else { return Ok(None) };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if !is_control && length.saturating_add(self.message.len()) > self.limit {
            return Err(CloseCode::TOO_LARGE);
        }
        let Some(mask) = bytes.get(size - 4..size).and_then(|mask| mask.try_into().ok()) else { return Ok(None) };
        Ok(Some(Head { fin, opcode, mask, size, length }))
    }

    fn take(&mut self, head: &Head, body: BytesMut) -> Result<Option<Frame>, CloseCode> {
        match (head.opcode, &mut self.message) {
            (PING, _) => return Ok(Some(Frame::Ping(body.freeze()))),
            (PONG, _) => return Ok(Some(Frame::Pong)),
            (CLOSE, _) => return closed(&body).map(Some),
            (TEXT, Message::None) if head.fin => return text(body.into()).map(Some),
            (TEXT, Message::None) => self.message = Message::Text(body.into()),
            (BINARY, Message::None) => self.message = Message::Binary(body.len()),
            (CONTINUATION, Message::Text(whole)) => whole.extend_from_slice(&body),
            (CONTINUATION, Message::Binary(length)) => *length += body.len(),
            _ => return Err(CloseCode::PROTOCOL),
        }
        if !head.fin {
            return Ok(None);
        }
        match std::mem::replace(&mut self.message, Message::None) {
            Message::Text(whole) => text(whole).map(Some),
            Message::Binary(_) => Ok(Some(Frame::Binary)),
            Message::None => Ok(None),
        }
    }
}

impl Message {
    fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Text(bytes) => bytes.len(),
            Self::Binary(length) => *length,
        }
    }
}

fn text(bytes: Vec<u8>) -> Result<Frame, CloseCode> {
    String::from_utf8(bytes).map(Frame::Text).map_err(|_| CloseCode::NOT_TEXT)
}

fn closed(body: &[u8]) -> Result<Frame, CloseCode> {
    match body {
        [] => Ok(Frame::Close(None)),
        [high, low, reason @ ..] if std::str::from_utf8(reason).is_ok() => {
            let code = u16::from_be_bytes([*high, *low]);
            let is_sound = matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999);
            if is_sound { Ok(Frame::Close(Some(code))) } else { Err(CloseCode::PROTOCOL) }
        }
        _ => Err(CloseCode::PROTOCOL),
    }
}

fn unmask(body: &mut [u8], mask: [u8; 4]) {
    let (words, rest) = body.as_chunks_mut::<4>();
    for word in words {
        *word = (u32::from_ne_bytes(*word) ^ u32::from_ne_bytes(mask)).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(mask) {
        *byte ^= key;
    }
}

/// The head of a text frame of ours, which holds a whole message of so many bytes.
pub fn write_header(out: &mut BytesMut, length: usize) {
    write_head(out, TEXT, length);
}

pub(super) fn write_close(out: &mut BytesMut, code: u16, reason: &str) {
    // A control frame holds 125 bytes.
    let reason = &reason.as_bytes()[..reason.floor_char_boundary(123)];
    write_head(out, CLOSE, reason.len() + 2);
    out.put_u16(code);
    out.put_slice(reason);
}

pub(super) fn write_ping(out: &mut BytesMut) {
    write_head(out, PING, 0);
}

pub(super) fn write_pong(out: &mut BytesMut, body: &[u8]) {
    write_head(out, PONG, body.len());
    out.put_slice(body);
}

fn write_head(out: &mut BytesMut, opcode: u8, length: usize) {
    let first = 0x80 | opcode;
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short), _) if short < 126 => out.put_slice(&[first, short]),
        (_, Ok(medium)) => {
            let [high, low] = medium.to_be_bytes();
            out.put_slice(&[first, 126, high, low]);
        }
        _ => {
            out.put_slice(&[first, 127]);
            out.put_u64(length as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A frame as a client sends it.
    fn masked(first: u8, body: &[u8]) -> Vec<u8> {
        let mut head = BytesMut::new();
        write_head(&mut head, 0, body.len());
        let mut bytes = head.to_vec();
        bytes[0] = first;
        bytes[1] |= 0x80;
        let mask = [7, 77, 177, 200];
        bytes.extend(mask);
        bytes.extend(body.iter().zip(mask.iter().cycle()).map(|(byte, key)| byte ^ key));
        bytes
    }

    fn read(bytes: &[u8], piece: usize) -> Result<Vec<Frame>, CloseCode> {
        let mut decoder = Decoder::new(100_000);
        let mut frames = Vec::new();
        for piece in bytes.chunks(piece.max(1)) {
            decoder.push(piece);
            while let Some(frame) = decoder.next()? {
                frames.push(frame);
            }
        }
        Ok(frames)
    }

    proptest! {
        #[test]
        fn a_text_comes_out_whole_however_it_is_cut(text in "\\PC{0,300}", long in 0..70_000_usize, cut in 1..50_usize, at in 0..300_usize) {
            let text = text + &"x".repeat(long);
            let at = text.floor_char_boundary(at.min(text.len()));
            let mut bytes = masked(TEXT, &text.as_bytes()[..at]);
            bytes.extend(masked(0x80 | PING, b"between"));
            bytes.extend(masked(0x80, &text.as_bytes()[at..]));
            bytes.extend(masked(0x80 | TEXT, text.as_bytes()));
            let frames = read(&bytes, cut * 31).unwrap();
            let whole = Frame::Text(text);
            prop_assert_eq!(frames, vec![Frame::Ping(Bytes::from_static(b"between")), whole.clone(), whole]);
        }

        #[test]
        fn s31_no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 1..20_usize) {
            drop(read(&bytes, cut));
        }
    }

    #[test]
    fn what_breaks_the_standard_ends_with_its_code() {
        let mut unmasked = BytesMut::new();
        write_header(&mut unmasked, 1);
        unmasked.put_u8(b'x');
        for (bytes, code) in [
            (unmasked.to_vec(), CloseCode::PROTOCOL),
            (masked(0xc1, b"x"), CloseCode::PROTOCOL),
            (masked(0x80, b"x"), CloseCode::PROTOCOL),
            (masked(0x83, b"x"), CloseCode::PROTOCOL),
            (masked(PING, b"x"), CloseCode::PROTOCOL),
            (masked(0x80 | PING, &[0; 126]), CloseCode::PROTOCOL),
            (masked(0x88, &[3]), CloseCode::PROTOCOL),
            (masked(0x88, &[0, 5]), CloseCode::PROTOCOL),
            (masked(0x81, &[0xff]), CloseCode::NOT_TEXT),
            (masked(0x81, &vec![b'x'; 100_001]), CloseCode::TOO_LARGE),
            ([masked(1, &vec![b'x'; 60_000]), masked(0x80, &vec![b'x'; 60_000])].concat(), CloseCode::TOO_LARGE),
        ] {
            assert_eq!(read(&bytes, 4096), Err(code), "{:?}", &bytes[..bytes.len().min(8)]);
        }
    }

    #[test]
    fn binary_is_read_past_and_a_close_tells_its_code() {
        let bytes = [masked(0x82, b"\xff\xfe"), masked(0x88, &[3, 232, b'x']), masked(0x88, b"")].concat();
        let expected = vec![Frame::Binary, Frame::Close(Some(1000)), Frame::Close(None)];
        assert_eq!(read(&bytes, 1), Ok(expected));
    }
}
