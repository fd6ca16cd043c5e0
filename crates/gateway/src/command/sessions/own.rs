//! The gateway's own sessions as one more source: out of its store, whether a gateway runs or not.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gembridge_core::model::SessionId;
use gembridge_core::store::{SessionRecord, StoreError};
use gembridge_store::DiskReader;
use gembridge_transcripts::{Damage, Facts, Located, Piece, ReadOptions, Supplier};
use gembridge_unified::{Context, Fold, Line, UnifiedUsage};

/// The sessions of a state folder.
pub struct Own {
    reader: DiskReader,
    folder: PathBuf,
    records: HashMap<SessionId, SessionRecord>,
    lengths: Mutex<Option<Lengths>>,
}

/// How long each log was at some moment. All of them are read at once, and a scan asks for each.
struct Lengths {
    read: Instant,
    found: HashMap<SessionId, u64>,
}

/// For so long the lengths are taken for the present ones.
const FRESH: Duration = Duration::from_millis(200);

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Own").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// Every session that the gateway has kept.
pub fn sessions(folder: &Path) -> Result<Vec<Located>, StoreError> {
    let reader = DiskReader::new(folder);
    let records: HashMap<_, _> = reader.list()?.into_iter().map(|record| (record.id, record)).collect();
    let own = Arc::new(Own { reader, folder: folder.to_owned(), records, lengths: Mutex::default() });
    let located = own.records.values().map(|record| {
        let supplier: Arc<dyn Supplier> = Arc::<Own>::clone(&own);
        let mut located = Located::supplied(record.id.to_string(), record.updated.0, supplier);
        located.project.clone_from(&record.workspace);
        located.written_as = record.agent_session.as_deref().map(str::to_owned);
        located
    });
    Ok(located.collect())
}

impl Own {
    fn record(&self, id: &str) -> Option<&SessionRecord> {
        self.records.get(&id.parse().ok()?)
    }
}

impl Supplier for Own {
    fn read(&self, id: &str, options: ReadOptions, on: &mut dyn FnMut(Piece)) -> Facts {
        let Some(record) = self.record(id) else { return Facts::default() };
        let mut facts = Facts {
            title: record.title.as_deref().map(str::to_owned),
            model: record.model.as_deref().map(str::to_owned),
            version: None,
            started: Some(record.created.0),
            updated: Some(record.updated.0),
            project: record.workspace.clone(),
            usage: UnifiedUsage::default(),
        };
        let mut fold = Fold::new(Context {
            session_id: id.to_owned(),
            agent: record.agent.to_string(),
            model: facts.model.clone(),
            originals: options.originals,
        });
        let read = self.reader.entries(record.id, &mut |entry| {
            facts.updated = facts.updated.max(Some(entry.at.0));
            for line in fold.push(&entry) {
                match line {
                    Line::Assistant { message, .. } | Line::User { message, .. } => {
                        facts.model = message.model.clone().or(facts.model.take());
                        on(Piece::Message(Box::new(message)));
                    }
                    Line::Result(result) => facts.usage.add(&result.usage.into()),
                    Line::System(_) | Line::Delta(_) => {}
                }
            }
        });
        if let Err(error) = read {
            let (path, reason) = (self.folder.clone(), format!("session `{id}`: {error}"));
            on(Piece::Damage(Damage { path, line: None, reason }));
        }
        facts
    }

    fn version(&self, id: &str) -> u64 {
        let mut lengths = self.lengths.lock().unwrap_or_else(PoisonError::into_inner);
        if lengths.as_ref().is_none_or(|known| known.read.elapsed() > FRESH) {
            let found = self.reader.lengths().unwrap_or_default();
            *lengths = Some(Lengths { read: Instant::now(), found });
        }
        let found = lengths.as_ref().zip(id.parse().ok()).and_then(|(known, id)| known.found.get(&id));
        found.copied().unwrap_or(0)
    }
}
