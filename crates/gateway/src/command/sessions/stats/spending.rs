//! The tokens of many sessions, summed as they are read. What is held grows with days, models and projects, not with
//! sessions.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use gembridge_transcripts::{Counted, Damage, Located, Spent, Tokens, spent};

use super::super::progress::Progress;
use super::day::Days;
use crate::terminal::Terminal;

/// What tokens are told apart by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    /// `2026-11-16`.
    pub day: String,
    pub agent: &'static str,
    pub model: Option<Arc<str>>,
    pub project: Option<PathBuf>,
}

#[derive(Debug, Default)]
pub struct Spending {
    groups: HashMap<Group, Tokens>,
    counted: Counted,
    damages: Vec<Damage>,
    done: usize,
}

impl Spending {
    pub fn groups(&self) -> impl Iterator<Item = (&Group, &Tokens)> {
        self.groups.iter()
    }

    /// Adds the answers of a session that no session before had.
    fn add(&mut self, session: &Located, answers: &[(String, Spent)]) {
        for (day, answer) in answers {
            if self.counted.is_new(answer) {
                let group = Group {
                    day: day.clone(),
                    agent: session.agent.name(),
                    model: answer.model.clone(),
                    project: session.project.clone(),
                };
                self.groups.entry(group).or_default().add(&answer.tokens);
            }
        }
    }
}

/// Sessions whose files the system is told to fetch while those before them are counted: counting is faster than most disks.
const AHEAD: usize = 4;

/// Reads the sessions, as many at once as there are processors.
pub fn of(sessions: &[&Located], days: &Days, terminal: Terminal) -> (Spending, Vec<Damage>) {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(sessions.len()).max(1);
    let next = AtomicUsize::new(0);
    let shared = Mutex::new((Spending::default(), Progress::new(terminal, "reading sessions", sessions.len())));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut days = days.clone();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(session) = sessions.get(number) else { break };
                    if let Some(later) = sessions.get(number + AHEAD) {
                        later.fetch_ahead();
                    }
                    let mut answers = Vec::new();
                    let damages = spent(session, &mut |spent| {
                        if let Some(day) = days.name(spent.at) {
                            answers.push((day, spent));
                        }
                    });
                    let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
                    let (spending, progress) = &mut *shared;
                    spending.add(session, &answers);
                    spending.damages.extend(damages);
                    spending.done += 1;
                    progress.at(spending.done);
                }
            });
        }
    });
    let (mut spending, progress) = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    drop(progress);
    let damages = std::mem::take(&mut spending.damages);
    (spending, damages)
}
