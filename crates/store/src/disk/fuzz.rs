//! Records and segments of a log, damaged: nothing panics, and what is read comes out the same when it is written again.

use bytes::Bytes;
use gembridge_core::model::Event;
use gembridge_testkit::fuzz::{Fuzz, beginning, signature};

use super::frame;
use super::import::{FuzzedPosition, FuzzedScan, fuzzed_path};
use super::record::{self, InBatch};

const WORDS: &[&str] = &["{\"Text\":\"", "\"Prompted\"", "\"Ended\"", "\"ToolCall\"", "\\ud83d", "\0\0\0\0"];

/// Whatever its checksum is: somebody may have written a good one.
#[test]
fn s31_fuzz_log_records() {
    Fuzz::named("log-records").words(WORDS).check(|input| {
        let mut rest = Bytes::copy_from_slice(input);
        let mut shapes = Vec::new();
        while let Some((length, _)) = record::prefix(&rest) {
            if rest.len() < record::PREFIX + length {
                break;
            }
            let body = rest.slice(record::PREFIX..record::PREFIX + length);
            rest = rest.slice(record::PREFIX + length..);
            let decoded = record::decode(&body);
            let Ok(entry) = decoded else {
                shapes.push(String::new());
                continue;
            };
            if let Event::Text(text) | Event::Thought(text) = &entry.event {
                drop(text.to_str());
            }
            let mut again = Vec::new();
            record::encode(&entry, &mut again).expect("what was read can be written");
            let read = record::decode(&Bytes::from(again.split_off(record::PREFIX))).expect("and read");
            assert_eq!(format!("{:?}", read.event), format!("{:?}", entry.event));
            shapes.push(beginning(&entry.event));
        }
        signature(&shapes)
    });
}

#[test]
fn s31_fuzz_log_segments() {
    let folder = tempfile::tempdir().unwrap();
    Fuzz::named("log-segments").words(WORDS).check(move |input| {
        std::fs::write(fuzzed_path(folder.path(), 1), input).unwrap();
        let mut scan = FuzzedScan::new(folder.path(), FuzzedPosition::START);
        let mut read = Vec::new();
        let ended = loop {
            match scan.next() {
                Ok(Some(body)) => {
                    drop(record::decode(&body));
                    read.push((body.len(), record::in_batch(&body) == InBatch::Last));
                }
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        let at = scan.place();
        assert!(at.offset <= input.len() as u64 || read.is_empty());
        signature(&(read, ended))
    });
}

#[test]
fn s31_fuzz_journal_frames() {
    Fuzz::named("journal-frames").words(WORDS).check(|input| {
        let mut rest = Bytes::copy_from_slice(input);
        let mut read = Vec::new();
        while let Some((frame, length)) = frame::parse(&rest, 0) {
            let entries =
                record::EntryBodies::in_bytes(frame.payload.clone()).map(|body| record::decode(&body).is_ok());
            read.push((format!("{:?}", frame.kind), entries.collect::<Vec<_>>()));
            drop(super::records::Change::of(&frame));
            let mut again = Vec::new();
            frame::begin(&mut again);
            again.extend_from_slice(&frame.payload);
            frame::finish(&mut again, frame.kind, frame.session).expect("what was read can be written");
            let again = Bytes::from(again);
            assert_eq!(frame::parse(&again, 0).map(|(_, length)| length), Some(length));
            rest = rest.slice(length..);
        }
        signature(&read)
    });
}
