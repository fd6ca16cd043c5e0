//! Inputs out of other inputs: bytes, ranges, numbers and words changed by chance. The same seed makes the same inputs.

use std::ops::Range;

/// Numbers at which readers break.
const NUMBERS: [&str; 16] = [
    "0",
    "-0",
    "-1",
    "1e400",
    "-1e400",
    "1E-400",
    "1.5",
    "255",
    "65536",
    "2147483648",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "123456789012345678901234567890",
];

/// Bytes that mean something somewhere.
const BYTES: &[u8] = b"\0\n\r\t \"\\/{}[]:,.=#&%+-eE0 9\x7f\x80\xbf\xc0\xe2\xed\xf0\xff";

pub struct Mutator {
    state: u64,
    words: &'static [&'static str],
    largest: usize,
}

impl Mutator {
    pub fn new(seed: u64, words: &'static [&'static str], largest: usize) -> Self {
        Self { state: seed, words, largest }
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % bound as u64).unwrap_or(0)
    }

    /// Puts a changed copy of one of these into `out`.
    pub fn mutate(&mut self, inputs: &[Vec<u8>], out: &mut Vec<u8>) {
        out.clone_from(&inputs[self.below(inputs.len())]);
        for _ in 0..=self.below(5) {
            self.change(inputs, out);
        }
        out.truncate(self.largest);
    }

    fn change(&mut self, inputs: &[Vec<u8>], out: &mut Vec<u8>) {
        let at = self.below(out.len() + 1);
        match self.below(12) {
            0 if at < out.len() => out[at] ^= 1 << self.below(8),
            1 if at < out.len() => out[at] = BYTES[self.below(BYTES.len())],
            2 => {
                let range = self.range(out.len());
                out.drain(range);
            }
            3 => {
                let range = self.range(out.len());
                let copied = out[range].to_vec();
                for _ in 0..=self.below(3) {
                    out.splice(at..at, copied.iter().copied());
                }
            }
            4 | 5 if !self.words.is_empty() => {
                let word = self.words[self.below(self.words.len())];
                let end = if self.below(2) == 0 { at } else { out.len().min(at + word.len()) };
                out.splice(at..end, word.bytes());
            }
            6 => {
                let other = &inputs[self.below(inputs.len())];
                out.truncate(at);
                out.extend_from_slice(&other[self.below(other.len() + 1)..]);
            }
            7 => self.replace_number(out),
            8 => {
                let bytes: Vec<u8> = (0..=self.below(8)).map(|_| u8::try_from(self.below(256)).unwrap_or(0)).collect();
                out.splice(at..at, bytes);
            }
            // Exchanges the parts before and after the place.
            9 => out.rotate_left(at),
            10 => {
                let depth = 1 + self.below(200);
                let brackets: [&[u8]; 3] = [b"[", b"{\"a\":", b"\""];
                let bracket = brackets[self.below(brackets.len())];
                out.splice(at..at, bracket.repeat(depth));
            }
            _ => out.truncate(at),
        }
    }

    fn range(&mut self, length: usize) -> Range<usize> {
        let start = self.below(length + 1);
        let most = (length - start).min(1 + self.below(64));
        start..start + most
    }

    fn replace_number(&mut self, out: &mut Vec<u8>) {
        let digits: Vec<usize> = (0..out.len()).filter(|at| out[*at].is_ascii_digit()).collect();
        let Some(start) = (!digits.is_empty()).then(|| digits[self.below(digits.len())]) else { return };
        let end = (start..out.len()).find(|at| !out[*at].is_ascii_digit()).unwrap_or(out.len());
        out.splice(start..end, NUMBERS[self.below(NUMBERS.len())].bytes());
    }
}
