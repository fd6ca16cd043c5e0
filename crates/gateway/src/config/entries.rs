//! The entries of a file of ours, each judged for itself: a damaged one costs itself and not the others.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize as _, Serialize};
use toml::Value;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::error::ConfigError;
use super::private_file::{self, Contents, Writer};

/// What a file is a list of.
pub trait Entry: Serialize + Sized {
    /// The name of the list in the file.
    const LIST: &'static str;
    /// The command that writes the file.
    const WRITTEN_BY: &'static str;

    /// What is wrong is told without repeating the value, which may be a secret.
    fn decode(value: &Value) -> Result<Self, &'static str>;

    /// What no two entries of a file may share. Those that do count for nothing: nobody can tell which of them was
    /// meant. The same entry twice counts once.
    fn marks(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A file of entries as it is on disk.
#[derive(Clone, Debug)]
pub struct Entries<T> {
    path: PathBuf,
    pub good: Vec<T>,
    /// Entries that count for nothing. They stay in the file until somebody mends or removes them.
    pub damaged: Vec<Damaged>,
    /// What is not an entry at all, and would not survive a write.
    strays: Vec<Damage>,
    bytes: Vec<u8>,
}

#[derive(Clone, Debug)]
pub struct Damaged {
    pub value: Value,
    pub damage: Damage,
}

/// Where a file is damaged and how, without what stands there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    line: usize,
    problem: &'static str,
    /// Tells this damage from others, also after it moved to another line.
    fingerprint: u64,
}

impl Damage {
    fn new(line: usize, problem: &'static str, of: &str) -> Self {
        Self { line, problem, fingerprint: BuildHasherDefault::<DefaultHasher>::default().hash_one((problem, of)) }
    }
}

/// A damage, as people are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    path: PathBuf,
    damage: Damage,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, damage: Damage { line, problem, .. } } = self;
        write!(f, "`{}` line {line}: {problem}; it counts for nothing until it is mended or removed", path.display())
    }
}

impl<T: Entry> Entries<T> {
    pub fn load(path: PathBuf) -> Result<Self, ConfigError> {
        let contents = private_file::read(&path)?;
        Self::of(path, contents)
    }

    /// An error only where nothing in the file can be told from anything else.
    pub fn of(path: PathBuf, Contents { bytes, .. }: Contents) -> Result<Self, ConfigError> {
        let text = String::from_utf8_lossy(&bytes);
        let mut found = Found::default();
        if matches!(text, std::borrow::Cow::Owned(_)) {
            let line = 1 + lines_in(&text, text.find(char::REPLACEMENT_CHARACTER).unwrap_or(0));
            found.strays.push(Damage::new(line, "these bytes are not UTF-8", &text));
        }
        if let Err(line) = found.read(&text, T::LIST) {
            let problem = format!("this is not TOML; mend it, or remove the file and run `{}`", T::WRITTEN_BY);
            return Err(ConfigError::InFile { path, line, problem });
        }
        let decoded: Vec<_> = found.values.iter().map(|(_, value)| T::decode(value)).collect();
        let standings = standings(&decoded);
        let (mut good, mut damaged) = (Vec::new(), Vec::new());
        for (((line, value), decoded), standing) in found.values.into_iter().zip(decoded).zip(standings) {
            let problem = match (decoded, standing) {
                (_, Standing::Again) => continue,
                (Ok(entry), Standing::Alone) => {
                    good.push(entry);
                    continue;
                }
                (Ok(_), Standing::Ambiguous) => "this entry shares its name, secret or owner with another one",
                (Err(problem), _) => problem,
            };
            let damage = Damage::new(line, problem, &value.to_string());
            damaged.push(Damaged { value, damage });
        }
        Ok(Self { path, good, damaged, strays: found.strays, bytes })
    }

    pub fn is_empty_file(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Everything that is damaged.
    pub fn reports(&self) -> Vec<Report> {
        let of_entries = self.damaged.iter().map(|damaged| &damaged.damage);
        let all = of_entries.chain(&self.strays).cloned();
        all.map(|damage| Report { path: self.path.clone(), damage }).collect()
    }

    fn save(&self, writer: &Writer) -> Result<(), ConfigError> {
        if !self.strays.is_empty() {
            let copy = writer.keep_copy(&self.bytes)?;
            tracing::warn!("`{}` was damaged; a copy of it is kept as `{}`", self.path.display(), copy.display());
        }
        let unwritable =
            |error: toml::ser::Error| ConfigError::Invalid(format!("cannot write `{}`: {error}", self.path.display()));
        let good: Result<Vec<_>, _> = self.good.iter().map(Value::try_from).collect();
        let damaged = self.damaged.iter().map(|damaged| damaged.value.clone());
        let all: Vec<_> = good.map_err(unwritable)?.into_iter().chain(damaged).collect();
        let list = toml::Table::from_iter([(T::LIST.to_owned(), Value::Array(all))]);
        writer.replace(&toml::to_string(&list).map_err(unwritable)?)
    }
}

/// How an entry stands beside the others of its file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Alone,
    /// The same stands before it.
    Again,
    Ambiguous,
}

fn standings<T: Entry>(decoded: &[Result<T, &'static str>]) -> Vec<Standing> {
    let mut sharing: HashMap<String, Vec<usize>> = HashMap::new();
    for (place, entry) in decoded.iter().enumerate() {
        for mark in entry.iter().flat_map(Entry::marks) {
            sharing.entry(mark).or_default().push(place);
        }
    }
    let mut standings = vec![Standing::Alone; decoded.len()];
    let written = |place: usize| decoded[place].as_ref().ok().and_then(|entry| Value::try_from(entry).ok());
    for places in sharing.into_values().filter(|places| places.len() > 1) {
        let is_one = places.iter().all(|place| written(*place) == written(places[0]));
        let later = if is_one { &places[1..] } else { &places[..] };
        for place in later {
            let is_settled = standings[*place] == Standing::Ambiguous;
            standings[*place] = if is_one && !is_settled { Standing::Again } else { Standing::Ambiguous };
        }
    }
    standings
}

/// Reads a file, changes it and writes it, while nobody else does.
pub fn change<T: Entry, R>(
    path: &Path,
    change: impl FnOnce(&mut Entries<T>) -> Result<R, ConfigError>,
) -> Result<R, ConfigError> {
    let writer = private_file::lock(path)?;
    let mut entries = Entries::of(path.to_owned(), writer.read()?)?;
    let done = change(&mut entries)?;
    entries.save(&writer)?;
    Ok(done)
}

/// What was reported, so that each damage is told once.
#[derive(Debug, Default)]
pub struct Reported(Mutex<Vec<u64>>);

impl Reported {
    /// Warns of what is new.
    pub fn warn(&self, reports: &[Report]) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for report in reports.iter().filter(|report| !told.contains(&report.damage.fingerprint)) {
            tracing::warn!("{report}");
        }
        *told = reports.iter().map(|report| report.damage.fingerprint).collect();
    }
}

/// The values of a list with their lines, and what is none of them.
#[derive(Default)]
struct Found {
    values: Vec<(usize, Value)>,
    strays: Vec<Damage>,
}

impl Found {
    /// The line of the first mistake, if nothing can be read.
    fn read(&mut self, text: &str, list: &'static str) -> Result<(), usize> {
        let document = match DeTable::parse(text) {
            Ok(document) => document,
            Err(error) => {
                let line = 1 + lines_in(text, error.span().map_or(0, |span| span.start));
                return if self.read_by_blocks(text, list) { Ok(()) } else { Err(line) };
            }
        };
        for (name, value) in document.get_ref() {
            let line = 1 + lines_in(text, name.span().start);
            match value.get_ref() {
                DeValue::Array(items) if name.get_ref() == list => {
                    for item in items {
                        let line = 1 + lines_in(text, item.span().start);
                        match Value::deserialize(ValueDeserializer::from(item.clone())) {
                            Ok(value) => self.values.push((line, value)),
                            Err(_) => self.strays.push(Damage::new(line, "this value cannot be read", "")),
                        }
                    }
                }
                _ if name.get_ref() == list => return Err(line),
                _ => self.strays.push(Damage::new(line, "this field is not known here", name.get_ref())),
            }
        }
        Ok(())
    }

    /// A text that is not TOML as a whole: each block that begins with the header of an entry is read for itself.
    fn read_by_blocks(&mut self, text: &str, list: &'static str) -> bool {
        let header = format!("[[{list}]]");
        let mut blocks: Vec<(usize, String)> = vec![(1, String::new())];
        for (place, line) in text.lines().enumerate() {
            if line.trim_start().starts_with(&header) {
                blocks.push((place + 1, String::new()));
            }
            if let Some((_, block)) = blocks.last_mut() {
                block.extend([line, "\n"]);
            }
        }
        let has_entries = blocks.len() > 1;
        for (first, block) in blocks {
            let mut of_block = Self::default();
            // One block holds one entry, so it is not split again.
            let is_read = DeTable::parse(&block).is_ok() && of_block.read(&block, list).is_ok();
            if is_read {
                self.values.extend(of_block.values.into_iter().map(|(line, value)| (line + first - 1, value)));
                let moved = |damage: Damage| Damage { line: damage.line + first - 1, ..damage };
                self.strays.extend(of_block.strays.into_iter().map(moved));
            } else {
                self.strays.push(Damage::new(first, "this entry is not TOML", &block));
            }
        }
        has_entries
    }
}

fn lines_in(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
    struct Number(i64);

    impl Entry for Number {
        const LIST: &'static str = "numbers";
        const WRITTEN_BY: &'static str = "count";

        fn decode(value: &Value) -> Result<Self, &'static str> {
            let number = value.get("n").unwrap_or(value);
            number.as_integer().map(Self).ok_or("this is not a number")
        }
    }

    fn entries(text: &[u8]) -> Result<Entries<Number>, ConfigError> {
        let contents = Contents { bytes: text.to_owned(), stamp: private_file::Stamp::Missing };
        Entries::of(PathBuf::from("numbers.toml"), contents)
    }

    #[test]
    fn f5_what_is_damaged_is_told_by_its_line_and_costs_nothing_else() {
        for (text, good, lines) in [
            ("numbers = [1, 'canary', 3]\n", &[1, 3][..], &[1][..]),
            ("canary = 1\nnumbers = [1]\n", &[1], &[1]),
            ("[[numbers]]\nn = 1\n\n[[numbers]]\nn = 'canary'\n[[numbers]]\nn = 3\n", &[1, 3], &[4]),
            ("[[numbers]]\nn = 1\n\n[[numbers]]\nn = canary\n[[numbers]]\nn = 3\n", &[1, 3], &[4]),
            ("canary\n[[numbers]]\nn = 1\n", &[1], &[1]),
            ("# nothing\n", &[], &[]),
            ("", &[], &[]),
        ] {
            let read = entries(text.as_bytes()).unwrap();
            assert_eq!(read.good.iter().map(|number| number.0).collect::<Vec<_>>(), good, "{text}");
            let reports = read.reports();
            assert_eq!(reports.iter().map(|report| report.damage.line).collect::<Vec<_>>(), lines, "{text}");
            assert!(reports.iter().all(|report| !report.to_string().contains("canary")), "{reports:?}");
        }
        let read = entries(b"numbers = [1]\n# \xff\n").unwrap();
        assert_eq!((read.good.len(), read.reports()[0].damage.line), (1, 2));
        for text in ["[[numbers", "numbers = 'canary'\n", "numbers = [1,\n"] {
            let error = entries(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("numbers.toml` line") && !error.contains("canary"), "{error}");
        }
    }

    #[test]
    fn f5_damaged_entries_survive_a_change_and_what_cannot_is_kept_as_a_copy() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("numbers.toml");
        let add = |number: i64| {
            change(&path, |entries: &mut Entries<Number>| {
                entries.good.push(Number(number));
                Ok(())
            })
            .unwrap();
        };
        let copies = || {
            let names = std::fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().path());
            names.filter(|path| path.to_string_lossy().contains("damaged-")).collect::<Vec<_>>()
        };
        std::fs::write(&path, "numbers = [1, 'x']\n").unwrap();
        add(2);
        let read = Entries::<Number>::load(path.clone()).unwrap();
        assert_eq!((read.good, read.damaged[0].value.as_str()), (vec![Number(1), Number(2)], Some("x")));
        assert!(copies().is_empty());
        std::fs::write(&path, "stray = 1\nnumbers = [1]\n").unwrap();
        add(2);
        assert_eq!(std::fs::read_to_string(&copies()[0]).unwrap(), "stray = 1\nnumbers = [1]\n");
        assert!(Entries::<Number>::load(path.clone()).unwrap().reports().is_empty());
        // What cannot be read at all is not replaced by what was asked for.
        std::fs::write(&path, "numbers").unwrap();
        assert!(change(&path, |_: &mut Entries<Number>| Ok(())).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "numbers");
    }
}
