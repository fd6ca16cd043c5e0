//! Whatever is written, in whatever batches, is what is read.

use bytes::Bytes;
use gembridge_core::log::LogEntry;
use gembridge_core::model::{
    Dialect, Event, Frame, Opaque, Prompt, Seq, Text, Timestamp, ToolCall, ToolCallId, TurnId,
};
use gembridge_store::DiskOptions;
use proptest::collection::vec;
use proptest::prelude::*;

use super::samples::{Backend, record};

fn opaque() -> impl Strategy<Value = Opaque> {
    prop_oneof![
        any::<String>().prop_map(|text| Opaque(Bytes::from(text))),
        vec(any::<u8>(), 0..40).prop_map(|bytes| Opaque(Bytes::from(bytes))),
    ]
}

fn event_and_frame() -> impl Strategy<Value = (Event, Option<Frame>)> {
    let dialect = prop_oneof![Just(Dialect::Acp), Just(Dialect::Headless), Just(Dialect::A2a)];
    let frame = (dialect, vec(any::<u8>(), 0..300)).prop_map(|(dialect, bytes)| Frame { dialect, bytes: bytes.into() });
    let spoken = (frame.clone(), any::<(usize, usize, bool)>()).prop_map(|(frame, (a, b, aloud))| {
        let (a, b) = (a % (frame.bytes.len() + 1), b % (frame.bytes.len() + 1));
        let text = Text::escaped(frame.bytes.slice(a.min(b)..a.max(b)));
        (if aloud { Event::Text(text) } else { Event::Thought(text) }, Some(frame))
    });
    let ours = prop_oneof![
        any::<String>().prop_map(|text| Event::Text(text.into())),
        any::<String>().prop_map(|title| Event::Title(title.into())),
        opaque().prop_map(Event::Options),
        (any::<String>(), opaque()).prop_map(|(id, input)| {
            let mut call = ToolCall::update(ToolCallId::new(id));
            call.input = Some(input);
            Event::ToolCall(Box::new(call))
        }),
        (any::<String>(), any::<u64>()).prop_map(|(text, by)| Event::Prompted {
            prompt: Prompt::text(text),
            by: gembridge_core::model::ClientId(by),
        }),
    ];
    let framed = (ours.clone(), frame).prop_map(|(event, frame)| (event, Some(frame)));
    prop_oneof![3 => spoken, 1 => ours.prop_map(|event| (event, None)), 1 => framed]
}

fn log() -> impl Strategy<Value = Vec<LogEntry>> {
    let entry = (event_and_frame(), any::<u64>(), proptest::option::of(0..9_u64));
    vec(entry, 1..60).prop_map(|entries| {
        let number = |(((event, frame), at, turn), seq): (_, u64)| LogEntry {
            seq: Seq(seq),
            at: Timestamp(at),
            turn: Option::<u64>::map(turn, TurnId),
            event,
            frame,
        };
        entries.into_iter().zip(1..).map(number).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_what_is_read(
        log in log(),
        steps in vec((1..8_usize, 0..4_u8), 60),
        segment_bytes in 1..4_000_u64,
        chunk_bytes in 1..1_000_u64,
        may_map in any::<bool>(),
        after in 0..70_u64,
        limit in 0..70_usize,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut disk = Backend::disk(DiskOptions { segment_bytes, chunk_bytes, may_map });
            let memory = Backend::memory();
            let record = record("me", 1);
            let mut reference = memory.store().create(record.clone()).await.unwrap();
            let mut writer = disk.store().create(record.clone()).await.unwrap();
            let mut rest = &log[..];
            for (count, then) in steps {
                let (batch, later) = rest.split_at(count.min(rest.len()));
                writer.append(batch).unwrap();
                reference.append(batch).unwrap();
                rest = later;
                match then {
                    0 => writer.sync().await.unwrap(),
                    1 => {
                        drop(writer);
                        disk.restart();
                        writer = disk.store().reopen(record.id, 3).await.unwrap().writer;
                    }
                    _ => {}
                }
            }
            for backend in [&memory, &disk] {
                let read = backend.store().read(record.id, Seq(after), Seq(u64::MAX), limit).await;
                let written = &log[log.len().min(usize::try_from(after).unwrap())..];
                assert_eq!(read.unwrap(), written[..written.len().min(limit)]);
            }
            assert_eq!(
                disk.store().turn_starts(record.id, limit).await,
                memory.store().turn_starts(record.id, limit).await
            );
        });
    }
}
