//! Where an answer ends by the client's wish: before a text that it named, or after about so many tokens.

use super::request::{Counts, TokenLimit};
use super::sink::Finish;
use super::token_estimate as estimate;

#[derive(Debug)]
pub(super) struct StopSequences {
    stop: Vec<String>,
    /// The end of the text so far, as far as it may be the beginning of a stop.
    held: String,
    /// The one that ended the answer.
    found: Option<String>,
    room: Option<Room>,
}

#[derive(Debug)]
struct Room {
    quarters: u64,
    counts: Counts,
}

/// What may go out, and whether it is the end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Passed {
    pub text: String,
    pub end: Option<Finish>,
}

impl StopSequences {
    /// Nothing to look for: `None`.
    pub(super) fn new(stop: Vec<String>, limit: Option<TokenLimit>) -> Option<Self> {
        if stop.is_empty() && limit.is_none() {
            return None;
        }
        let room =
            limit.map(|limit| Room { quarters: limit.tokens.saturating_mul(estimate::TOKEN), counts: limit.counts });
        Some(Self { stop, held: String::new(), found: None, room })
    }

    /// The text that ended the answer, where one did.
    pub(super) fn found(&self) -> Option<&str> {
        self.found.as_deref()
    }

    /// Whether all of a text may go out as it is, which then is counted. `false`: it has to be looked at.
    pub(super) fn takes_whole(&mut self, text: &str) -> bool {
        match &mut self.room {
            Some(room) if self.stop.is_empty() => match room.quarters.checked_sub(estimate::of_text(text)) {
                Some(rest) => {
                    room.quarters = rest;
                    true
                }
                None => false,
            },
            Some(_) | None => false,
        }
    }

    pub(super) fn text(&mut self, text: &str) -> Passed {
        let (mut text, mut end) = self.before_stop(text);
        if let Some(room) = &mut self.room
            && !room.take(&mut text)
        {
            end = Some(Finish::Length);
        }
        Passed { text, end }
    }

    pub(super) fn thought(&mut self, text: &str) -> Passed {
        let mut text = text.to_owned();
        let whole = match &mut self.room {
            Some(room) if room.counts == Counts::TextAndThoughts => room.take(&mut text),
            Some(_) | None => true,
        };
        Passed { text, end: (!whole).then_some(Finish::Length) }
    }

    /// What was held back, when the answer ended by itself.
    pub(super) fn rest(&mut self) -> Passed {
        let mut text = std::mem::take(&mut self.held);
        let whole = self.room.as_mut().is_none_or(|room| room.take(&mut text));
        Passed { text, end: (!whole).then_some(Finish::Length) }
    }

    /// The text up to the first stop in it; what may begin one waits.
    fn before_stop(&mut self, text: &str) -> (String, Option<Finish>) {
        if self.stop.is_empty() {
            return (text.to_owned(), None);
        }
        let mut all = std::mem::take(&mut self.held);
        all.push_str(text);
        if let Some((at, stop)) = first_stop(&all, &self.stop) {
            all.truncate(at);
            self.found = Some(stop.to_owned());
            return (all, Some(Finish::Stop));
        }
        let held = self.stop.iter().map(|stop| overlap(&all, stop)).max().unwrap_or(0);
        self.held = all.split_off(all.len() - held);
        (all, None)
    }
}

/// Where the stop begins that is complete first: the one that ends the answer however the text comes in pieces.
fn first_stop<'s>(text: &str, stops: &'s [String]) -> Option<(usize, &'s str)> {
    let found = stops.iter().filter_map(|stop| text.find(stop.as_str()).map(|start| (start + stop.len(), start, stop)));
    found.min().map(|(_, start, stop)| (start, stop.as_str()))
}

/// How much of the end of `text` is the beginning of `stop`, in bytes.
fn overlap(text: &str, stop: &str) -> usize {
    let longest = text.len().min(stop.len() - 1);
    let fits = |length: &usize| text.as_bytes()[text.len() - length..] == stop.as_bytes()[..*length];
    (1..=longest).rev().find(fits).unwrap_or(0)
}

impl Room {
    /// Takes what fits; the rest is cut off. Whether all fitted.
    fn take(&mut self, text: &mut String) -> bool {
        for (at, character) in text.char_indices() {
            let Some(rest) = self.quarters.checked_sub(estimate::of_character(character)) else {
                text.truncate(at);
                return false;
            };
            self.quarters = rest;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run(cut: &mut StopSequences, pieces: &[String]) -> (String, Option<Finish>) {
        let mut out = String::new();
        for piece in pieces {
            let passed = cut.text(piece);
            out.push_str(&passed.text);
            if passed.end.is_some() {
                return (out, passed.end);
            }
        }
        let rest = cut.rest();
        (out + &rest.text, rest.end)
    }

    proptest! {
        #[test]
        fn a_stop_is_found_however_the_text_is_cut(
            pieces in prop::collection::vec("[abé]{0,4}", 0..12),
            stop in prop::collection::vec("[abé]{1,4}", 1..4),
        ) {
            let whole = pieces.concat();
            let first = first_stop(&whole, &stop).map(|(at, _)| at);
            let mut cut = StopSequences::new(stop.clone(), None).unwrap();
            let (out, end) = run(&mut cut, &pieces);
            prop_assert_eq!(&out, &whole[..first.unwrap_or(whole.len())]);
            prop_assert_eq!(end.is_some(), first.is_some());
            prop_assert_eq!(cut.found(), first_stop(&whole, &stop).map(|(_, stop)| stop));
        }

        #[test]
        fn a_limit_cuts_at_a_character_however_the_text_is_cut(
            pieces in prop::collection::vec("[a日]{0,6}", 0..12),
            tokens in 1u64..8,
        ) {
            let whole = pieces.concat();
            let mut quarters = tokens * 4;
            let fits = |character: &char| {
                let cost = if character.is_ascii() { 1 } else { 4 };
                let fits = quarters >= cost;
                quarters = if fits { quarters - cost } else { 0 };
                fits
            };
            let expected: String = whole.chars().take_while(fits).collect();
            let mut cut = StopSequences::new(Vec::new(), Some(TokenLimit { tokens, counts: Counts::Text })).unwrap();
            let (out, end) = run(&mut cut, &pieces);
            prop_assert_eq!(end == Some(Finish::Length), out.len() < whole.len());
            let mut quick = StopSequences::new(Vec::new(), Some(TokenLimit { tokens, counts: Counts::Text })).unwrap();
            prop_assert_eq!(pieces.iter().all(|piece| quick.takes_whole(piece)), end.is_none());
            prop_assert_eq!(out, expected);
        }
    }

    #[test]
    fn thoughts_count_only_where_the_client_counts_them() {
        let limit = |counts| Some(TokenLimit { tokens: 1, counts });
        let mut text_only = StopSequences::new(Vec::new(), limit(Counts::Text)).unwrap();
        assert_eq!(text_only.thought("long thought"), Passed { text: "long thought".into(), end: None });
        let mut both = StopSequences::new(Vec::new(), limit(Counts::TextAndThoughts)).unwrap();
        assert_eq!(both.thought("abcdef"), Passed { text: "abcd".into(), end: Some(Finish::Length) });
    }
}
