//! Turns what the code logs into records: level, message, fields, and the spans around.

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use jiff::Timestamp;
use tracing::field::{Field as FieldName, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::record::{AUDIT, Fields, Record, Span, Value};
use super::writer::Sender;
use crate::config::settings::Level;

/// Our own crates say as much as asked; what others say below a warning is theirs.
const OURS: &str = "gembridge";

/// Calls it an error when an agent leaves its tools, as each does in the end. Whoever looks for faults may read it.
const EXCITED: &str = "rmcp";

pub struct Collector {
    most: Most,
    sender: Sender,
}

impl Collector {
    pub fn new(most: Most, sender: Sender) -> Self {
        Self { most, sender }
    }
}

/// How much is said. Its clones are the same one.
#[derive(Clone)]
pub struct Most(Arc<AtomicU8>);

impl Most {
    const ALL: [Level; 4] = [Level::Error, Level::Warn, Level::Info, Level::Debug];

    pub fn new(level: Level) -> Self {
        Self(Arc::new(AtomicU8::new(level as u8)))
    }

    pub fn set(&self, level: Level) {
        self.0.store(level as u8, Ordering::Relaxed);
        // Who was told once whether anybody listens has to ask again.
        tracing::callsite::rebuild_interest_cache();
    }

    fn get(&self) -> Level {
        let number = usize::from(self.0.load(Ordering::Relaxed));
        Self::ALL.get(number).copied().unwrap_or(Level::Debug)
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Collector {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        let Some(level) = level_of(metadata) else { return false };
        if metadata.target() == AUDIT {
            return level <= Level::Info;
        }
        let most = self.most.get();
        if metadata.target().starts_with(EXCITED) {
            return most == Level::Debug && level <= Level::Warn;
        }
        let most = if metadata.target().starts_with(OURS) { most } else { most.min(Level::Warn) };
        level <= most || (metadata.is_span() && level <= Level::Info)
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        // Spans of the info level are kept for context whatever the level of the log.
        Some(match self.most.get() {
            Level::Error | Level::Warn | Level::Info => tracing::level_filters::LevelFilter::INFO,
            Level::Debug => tracing::level_filters::LevelFilter::DEBUG,
        })
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &tracing::span::Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut newer = Fields::default();
        values.record(&mut newer);
        if let Some(fields) = span.extensions_mut().get_mut::<Fields>() {
            fields.update(&newer);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let Some(level) = level_of(event.metadata()) else { return };
        let mut fields = Fields::with_room_for(event.metadata().fields().len());
        event.record(&mut fields);
        let spans = context.event_scope(event).into_iter().flat_map(tracing_subscriber::registry::Scope::from_root);
        let spans = spans.map(|span| Span {
            name: span.metadata().name(),
            fields: span.extensions().get::<Fields>().cloned().unwrap_or_default(),
        });
        self.sender.send(Record {
            at: Timestamp::now(),
            level,
            target: event.metadata().target(),
            spans: spans.collect(),
            fields,
        });
    }
}

/// `None` for the trace level, which is not offered.
fn level_of(metadata: &Metadata<'_>) -> Option<Level> {
    match *metadata.level() {
        tracing::Level::ERROR => Some(Level::Error),
        tracing::Level::WARN => Some(Level::Warn),
        tracing::Level::INFO => Some(Level::Info),
        tracing::Level::DEBUG => Some(Level::Debug),
        _ => None,
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &FieldName, value: &str) {
        self.put(field.name(), Value::Text(value));
    }

    fn record_u64(&mut self, field: &FieldName, value: u64) {
        self.put(field.name(), Value::Unsigned(value));
    }

    fn record_i64(&mut self, field: &FieldName, value: i64) {
        self.put(field.name(), Value::Signed(value));
    }

    fn record_f64(&mut self, field: &FieldName, value: f64) {
        self.put(field.name(), Value::Real(value));
    }

    fn record_bool(&mut self, field: &FieldName, value: bool) {
        self.put(field.name(), Value::Flag(value));
    }

    fn record_debug(&mut self, field: &FieldName, value: &dyn fmt::Debug) {
        self.put_text(field.name(), |texts| write!(texts, "{value:?}").expect("writing to a String cannot fail"));
    }
}
