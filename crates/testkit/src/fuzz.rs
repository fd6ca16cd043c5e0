//! Mutation tests with a saved corpus: as many inputs as fit into a time, each in bounded time, none of which may panic.
//!
//! Without the compiler's help nobody knows which lines an input reached. A target returns a signature of what it made of
//! the input instead; inputs with a new signature are kept and mutated further. `FUZZ_SECONDS` says for how long each
//! target runs, and `FUZZ_SEED` repeats a run.

mod mutate;

use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher, Hash, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use mutate::Mutator;

/// In the tests: enough to run the whole corpus and some thousands of mutations of it.
const USUAL_BUDGET: Duration = Duration::from_secs(1);
/// Beyond this an input hangs. Many times what the slowest takes, since the machine may be busy.
const LONGEST_INPUT: Duration = Duration::from_secs(20);
const LARGEST_INPUT: usize = 16 << 10;
const MOST_KEPT: usize = 2_048;

/// One target: where its inputs come from and how long it runs.
#[derive(Clone, Debug)]
pub struct Fuzz {
    name: &'static str,
    corpus: PathBuf,
    findings: PathBuf,
    words: &'static [&'static str],
    budget: Duration,
    longest: Duration,
    seed: u64,
}

/// What was run without a finding.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    pub inputs: u64,
    pub signatures: usize,
    pub took: Duration,
}

/// An input that must not be.
#[derive(Debug)]
pub struct Finding {
    pub why: Why,
    pub input: Vec<u8>,
    /// Where the input lies. In the corpus it is run first each time.
    pub file: PathBuf,
}

#[derive(Debug)]
pub enum Why {
    Panicked(String),
    /// It had not ended after this time.
    Hangs(Duration),
}

/// What is run now, and since when.
#[derive(Default)]
struct Running {
    input: Vec<u8>,
    since: Option<Instant>,
}

impl Fuzz {
    /// The corpus is `fixtures/fuzz/NAME`; what is found is put into `target/fuzz`.
    pub fn named(name: &'static str) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        Self {
            name,
            corpus: root.join("fixtures/fuzz").join(name),
            findings: root.join("target/fuzz"),
            words: &[],
            budget: variable("FUZZ_SECONDS").map_or(USUAL_BUDGET, Duration::from_secs),
            longest: LONGEST_INPUT,
            seed: variable("FUZZ_SEED").unwrap_or_else(|| RandomState::new().hash_one(Instant::now())),
        }
    }

    /// Words of the format, which chance alone would never write.
    #[must_use]
    pub fn words(mut self, words: &'static [&'static str]) -> Self {
        self.words = words;
        self
    }

    /// Other folders and times than the usual ones.
    #[must_use]
    pub fn within(self, folder: &Path, budget: Duration, longest: Duration) -> Self {
        Self { corpus: folder.join("corpus"), findings: folder.join("findings"), budget, longest, ..self }
    }

    /// Runs the target and says how many inputs it took.
    ///
    /// # Panics
    /// With the file of the first input that panics or hangs.
    pub fn check(&self, target: impl Fn(&[u8]) -> u64 + Send + 'static) {
        match self.run(target) {
            Ok(report) => println!("{}: {report}", self.name),
            Err(finding) => panic!("{}: {finding} (FUZZ_SEED={})", self.name, self.seed),
        }
    }

    /// Runs the target on the corpus and on mutations of it until the time is over or something is found.
    pub fn run(&self, target: impl Fn(&[u8]) -> u64 + Send + 'static) -> Result<Report, Finding> {
        let corpus = read_corpus(&self.corpus).unwrap_or_else(|error| panic!("{}: {error}", self.corpus.display()));
        assert!(!corpus.is_empty(), "{}: an empty corpus", self.corpus.display());
        let running = Arc::new(Mutex::new(Running::default()));
        let (told, heard) = sync_channel(1);
        let worker = Worker { plan: self.clone(), running: Arc::clone(&running), target };
        // Should an input hang, its thread goes with the process.
        let thread = thread::Builder::new().name(format!("fuzz {}", self.name));
        let _detached = thread.spawn(move || told.send(worker.run(corpus))).expect("a thread can be started");
        loop {
            match heard.recv_timeout(self.longest / 4) {
                Ok(Ok(report)) => return Ok(report),
                Ok(Err((why, input))) => return Err(self.found(why, input)),
                Err(RecvTimeoutError::Disconnected) => panic!("{}: the target ended its thread", self.name),
                Err(RecvTimeoutError::Timeout) => {
                    let now = running.lock().unwrap_or_else(PoisonError::into_inner);
                    if now.since.is_some_and(|since| since.elapsed() > self.longest) {
                        return Err(self.found(Why::Hangs(self.longest), now.input.clone()));
                    }
                }
            }
        }
    }

    fn found(&self, why: Why, input: Vec<u8>) -> Finding {
        let name = format!("{}-{:016x}", self.name, signature(&input));
        let file = self.findings.join(name);
        let kept = fs::create_dir_all(&self.findings).and_then(|()| fs::write(&file, &input));
        kept.unwrap_or_else(|error| panic!("{}: {error}: {}", file.display(), input.escape_ascii()));
        Finding { why, input, file }
    }
}

struct Worker<T> {
    plan: Fuzz,
    running: Arc<Mutex<Running>>,
    target: T,
}

impl<T: Fn(&[u8]) -> u64> Worker<T> {
    fn run(&self, corpus: Vec<Vec<u8>>) -> Result<Report, (Why, Vec<u8>)> {
        let begun = Instant::now();
        let mut mutator = Mutator::new(self.plan.seed, self.plan.words, LARGEST_INPUT);
        let (mut kept, mut seen, mut inputs) = (Vec::new(), HashSet::new(), 0);
        for input in corpus {
            seen.insert(self.one(&input)?);
            kept.push(input);
            inputs += 1;
        }
        let mut input = Vec::new();
        while begun.elapsed() < self.plan.budget {
            mutator.mutate(&kept, &mut input);
            inputs += 1;
            if seen.insert(self.one(&input)?) {
                match kept.len() {
                    MOST_KEPT => {
                        let place = mutator.below(MOST_KEPT);
                        kept[place].clone_from(&input);
                    }
                    _ => kept.push(input.clone()),
                }
            }
        }
        Ok(Report { inputs, signatures: seen.len(), took: begun.elapsed() })
    }

    fn one(&self, input: &[u8]) -> Result<u64, (Why, Vec<u8>)> {
        self.now(input, Some(Instant::now()));
        let ran = catch_unwind(AssertUnwindSafe(|| (self.target)(input)));
        self.now(&[], None);
        ran.map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            (Why::Panicked(text.unwrap_or_default()), input.to_vec())
        })
    }

    fn now(&self, input: &[u8], since: Option<Instant>) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.input.clear();
        running.input.extend_from_slice(input);
        running.since = since;
    }
}

/// The same for what is the same, in every run.
pub fn signature(value: &impl Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
}

/// How a value begins when it is shown: enough to tell its kind, however long the rest is.
pub fn beginning(value: &impl fmt::Debug) -> String {
    let mut begun = Beginning(String::new());
    // Ends with an error once there is enough.
    fmt::write(&mut begun, format_args!("{value:?}")).ok();
    begun.0
}

struct Beginning(String);

impl fmt::Write for Beginning {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        const ENOUGH: usize = 24;
        self.0.extend(text.chars().take(ENOUGH.saturating_sub(self.0.chars().count())));
        if self.0.chars().count() < ENOUGH { Ok(()) } else { Err(fmt::Error) }
    }
}

fn read_corpus(folder: &Path) -> io::Result<Vec<Vec<u8>>> {
    let mut files: Vec<_> =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.sort();
    files.iter().map(fs::read).collect()
}

#[expect(clippy::disallowed_methods, reason = "whoever runs the tests says for how long")]
fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok().filter(|value| !value.is_empty())?;
    Some(value.parse().unwrap_or_else(|_| panic!("`{name}` is `{value}`; write a number")))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.took.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "shown to people")]
        let rate = self.inputs as f64 / seconds.max(0.001);
        write!(f, "{} inputs in {seconds:.1} s ({rate:.0}/s), {} signatures", self.inputs, self.signatures)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Why::Panicked(text) => write!(f, "the input in `{}` panics: {text}", self.file.display()),
            Why::Hangs(after) => write!(f, "the input in `{}` runs for more than {after:?}", self.file.display()),
        }
    }
}
