//! Whatever an agent does, the messages are well formed.

use std::collections::{HashMap, HashSet};

use gembridge_core::log::LogEntry;
use gembridge_core::model::{
    Answer, AnsweredBy, Ask, AskBody, AskId, AskOption, ClientId, Event, OptionKind, Outcome, Prompt, Seq, Stop,
    Subject, Timestamp, ToolCall, ToolCallId, ToolStatus, TurnId,
};
use gembridge_unified::{Block, Body, Context, DeltaBody, Fold, Line, Originals, Report, UnifiedMessage};
use proptest::collection::vec;
use proptest::prelude::*;

fn event() -> impl Strategy<Value = Event> {
    let status = prop_oneof![
        Just(None),
        Just(Some(ToolStatus::Pending)),
        Just(Some(ToolStatus::InProgress)),
        Just(Some(ToolStatus::Completed)),
        Just(Some(ToolStatus::Failed)),
    ];
    let tool = (0..4_u8, status).prop_map(|(id, status)| {
        let mut call = ToolCall::update(ToolCallId::new(format!("call-{id}")));
        call.status = status;
        call
    });
    let ask = (tool.clone(), 0..4_u64).prop_map(|(tool, id)| {
        let option = |id: &str, kind| AskOption { id: id.into(), name: id.into(), kind };
        let options = vec![option("y", OptionKind::AllowOnce), option("n", OptionKind::RejectOnce)];
        let body = AskBody::Permission { tool: Box::new(tool), options, subject: Subject::AgentTool };
        Event::Asked(Box::new(Ask { id: AskId(id), body }))
    });
    let answer = (0..4_u64, any::<bool>()).prop_map(|(ask, yes)| Event::Answered {
        ask: AskId(ask),
        answer: Answer::Option(if yes { "y" } else { "n" }.into()),
        by: AnsweredBy::Policy,
    });
    prop_oneof![
        "[a-z]{0,4}".prop_map(|text| Event::Text(text.into())),
        "[a-z]{0,4}".prop_map(|text| Event::Thought(text.into())),
        tool.prop_map(|call| Event::ToolCall(Box::new(call))),
        ask,
        answer,
    ]
}

/// Several turns, each with any events between its beginning and its end.
fn log() -> impl Strategy<Value = Vec<LogEntry>> {
    vec(vec(event(), 0..25), 1..4).prop_map(|turns| {
        let mut entries = Vec::new();
        for (events, turn) in turns.into_iter().zip(1..) {
            let prompt = Prompt::text("go");
            let mut all = vec![Event::Prompted { prompt, by: ClientId(1) }, Event::Started];
            all.extend(events);
            all.push(Event::Ended(Outcome::Finished(Stop::EndTurn)));
            for event in all {
                let seq = entries.len() as u64 + 1;
                entries.push(LogEntry {
                    seq: Seq(seq),
                    at: Timestamp(seq),
                    turn: Some(TurnId(turn)),
                    event,
                    frame: None,
                });
            }
        }
        entries
    })
}

fn context() -> Context {
    Context { session_id: "s".to_owned(), agent: "demo".to_owned(), model: None, originals: Originals::Leave }
}

fn blocks(message: &UnifiedMessage) -> &[Block] {
    match &message.content {
        Body::Blocks(blocks) => blocks,
        Body::Text(_) => &[],
    }
}

proptest! {
    #[test]
    fn every_use_of_a_tool_has_one_result_after_it_and_every_turn_one_end(entries in log()) {
        let mut fold = Fold::new(context());
        let lines: Vec<Line> = entries.iter().flat_map(|entry| fold.push(entry)).collect();
        let mut open = HashSet::new();
        let mut ends = 0;
        for line in &lines {
            match line {
                Line::Assistant { message, .. } => {
                    prop_assert!(!blocks(message).is_empty());
                    for block in blocks(message) {
                        if let Block::ToolUse { id, .. } = block {
                            prop_assert!(open.insert(id.clone()), "{id} is used twice");
                        }
                    }
                }
                Line::User { message, .. } => for block in blocks(message) {
                    if let Block::ToolResult { tool_use_id, .. } = block {
                        prop_assert!(open.remove(tool_use_id), "a result without its use");
                    }
                },
                Line::Result(_) => {
                    prop_assert!(open.is_empty(), "left open: {open:?}");
                    ends += 1;
                }
                Line::System(_) | Line::Delta(_) => {}
            }
        }
        let turns = entries.iter().filter(|entry| matches!(entry.event, Event::Ended(_))).count();
        prop_assert_eq!(ends, turns);
    }

    #[test]
    fn the_pieces_make_the_messages_and_the_messages_make_the_report(entries in log()) {
        let mut fold = Fold::new(context());
        let lines: Vec<Line> = entries.iter().flat_map(|entry| fold.push(entry)).collect();
        let mut pieces: HashMap<(String, usize), String> = HashMap::new();
        for line in &lines {
            if let Line::Delta(delta) = line {
                let (DeltaBody::TextDelta { text } | DeltaBody::ThinkingDelta { thinking: text }) =
                    &delta.delta;
                pieces.entry((delta.message_id.clone(), delta.index)).or_default().push_str(text);
            }
        }
        let report = Report::from_lines(lines).unwrap();
        let mut ids = HashSet::new();
        for message in &report.messages {
            prop_assert!(ids.insert(message.id.clone()), "{} is there twice", message.id);
            for (index, block) in blocks(message).iter().enumerate() {
                if let Block::Text { text } | Block::Thinking { thinking: text } = block {
                    let piece = pieces.remove(&(message.id.clone(), index));
                    prop_assert_eq!(piece.as_deref(), Some(text.as_str()));
                }
            }
        }
        prop_assert!(pieces.is_empty(), "pieces of no message: {pieces:?}");
        prop_assert_eq!(Report::of(context(), &entries), Some(report));
    }
}
