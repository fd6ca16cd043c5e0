//! One agent that talks as fast as its pipe takes it: CPU time of ours for each 60-byte piece of text.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use gembridge_core::driver::{AgentStop, Opened, SessionSpec, Signal, Update};
use gembridge_core::model::{Event, Prompt, Stop, Text};
use gembridge_drivers::profile::{Environment, Quirk};
use gembridge_drivers::setup::{ManagedDriver, Spares};
use gembridge_process::Spawner;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::args::Args;
use crate::client::Client;
use crate::house::{self, House};
use crate::measure::own_cpu;
use crate::pipe::{BarePipe, Look};
use crate::report::{Bar, Report, Series};

pub const NAME: &str = "firehose";
pub const ABOUT: &str = "CPU per 60-byte update of a burst: our driver : envelope read and dropped : pipe split";

const SIZE: usize = 60;

/// One frame in so many is also read as JSON, beside the check of every text.
const SAMPLED: u32 = 4096;

pub fn run(args: &Args) -> anyhow::Result<Report> {
    let mut driver = Direct::start(&[])?;
    let mut quirky = Direct::start(&[Quirk::RetriesRepeatText, Quirk::ModeUpdateAsText])?;
    let mut core = Whole::start()?;
    let (mut envelope, mut split) = (BarePipe::start()?, BarePipe::start()?);
    let names = ["driver", "driver, quirks of Gemini", "whole core: actor, log on disk, follower", "envelope", "split"];
    let mut cpu = names.map(|name| Series::new(format!("{name}: CPU"), "ns/update"));
    let mut wall = names.map(|name| Series::new(format!("{name}: wall"), "ns/update"));
    // The first burst finds out how large buffers must be, and counts for nobody.
    for round in 0..=args.rounds {
        let chunks = if round == 0 { args.chunks.min(10_000) } else { args.chunks };
        let bursts = [
            driver.burst(chunks)?,
            quirky.burst(chunks)?,
            core.burst(chunks)?,
            bare(&mut envelope, chunks, Look::Envelope)?,
            bare(&mut split, chunks, Look::Split)?,
        ];
        if round > 0 {
            for (place, burst) in bursts.into_iter().enumerate() {
                cpu[place].push(burst.cpu.as_secs_f64() * 1e9 / f64::from(chunks));
                wall[place].push(burst.wall.as_secs_f64() * 1e9 / f64::from(chunks));
            }
        }
    }
    driver.stop();
    quirky.stop();
    core.stop();
    let mut report = Report::new(NAME, ABOUT);
    cpu.iter().chain(&wall).for_each(|series| report.show(series));
    let [driver, quirky, core, envelope, split] = &cpu;
    report.ratio("CPU, driver : envelope", driver, envelope, Some(Bar::gate_at_most(2.0)));
    report.ratio("CPU, driver with quirks : envelope", quirky, envelope, None);
    report.ratio("CPU, whole core : envelope", core, envelope, None);
    report.ratio("CPU, driver : split", driver, split, None);
    report.typical("CPU, whole core", core, Some(Bar::goal_at_most(600.0)));
    report.note(
        "one thread each; the agent's own time is left out; every text is compared, one frame in 4096 is read again",
    );
    Ok(report)
}

/// What one burst cost this process.
struct Burst {
    cpu: Duration,
    wall: Duration,
}

/// Runs a burst between two looks at the clocks.
fn costed(burst: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Burst> {
    let (cpu, wall) = (own_cpu(), Instant::now());
    burst()?;
    Ok(Burst { cpu: own_cpu().saturating_sub(cpu), wall: wall.elapsed() })
}

fn prompt(chunks: u32) -> String {
    format!("chunks {chunks} size {SIZE}")
}

fn bare(pipe: &mut BarePipe, chunks: u32, look: Look) -> anyhow::Result<Burst> {
    costed(|| {
        let updates = pipe.burst(&prompt(chunks), look)?;
        // The agent adds the size of its context at the end.
        anyhow::ensure!((chunks..=chunks + 2).contains(&updates), "{updates} updates of {chunks} came");
        Ok(())
    })
}

fn single_thread() -> anyhow::Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// A session opened at the driver, its signals taken and dropped.
struct Direct {
    runtime: Runtime,
    driver: Arc<dyn ManagedDriver>,
    opened: Opened,
    spawner: Spawner,
    _folder: tempfile::TempDir,
}

impl Direct {
    fn start(quirks: &[Quirk]) -> anyhow::Result<Self> {
        let runtime = single_thread()?;
        let folder = tempfile::tempdir()?;
        let (mut profile, program) = house::demo(&[])?;
        profile.quirks = quirks.to_vec();
        let inside = runtime.enter();
        let spawner = house::spawner()?;
        let setup = house::setup(profile, program, Environment::new(), &folder, spawner.clone())?;
        let driver = setup.start(Spares::None);
        drop(inside);
        let opened =
            runtime.block_on(driver.open(SessionSpec::plain())).map_err(|failure| anyhow::anyhow!("{failure}"))?;
        Ok(Self { runtime, driver, opened, spawner, _folder: folder })
    }

    fn burst(&mut self, chunks: u32) -> anyhow::Result<Burst> {
        let opened = &mut self.opened;
        costed(|| self.runtime.block_on(take_and_drop(opened, chunks)))
    }

    fn stop(self) {
        self.runtime.block_on(async {
            drop(self.opened);
            self.driver.shutdown().await;
            self.spawner.shut_down().await;
        });
    }
}

async fn take_and_drop(opened: &mut Opened, chunks: u32) -> anyhow::Result<()> {
    let asked = Prompt::text(prompt(chunks));
    opened.agent.prompt(&asked).map_err(|failure| anyhow::anyhow!("{failure}"))?;
    let mut expected = Numbered::new();
    loop {
        let signals = opened.signals.recv().await.context("the driver let go of the session")?;
        for signal in signals {
            match signal {
                Signal::Update(Update { event: Event::Text(text), frame }) => {
                    expected.check(&text)?;
                    if expected.number.is_multiple_of(SAMPLED) {
                        let frame = frame.context("a piece of text without its frame")?;
                        let message: Value = serde_json::from_slice(&frame.bytes)?;
                        let inside = message["params"]["update"]["content"]["text"].as_str().map(str::as_bytes);
                        anyhow::ensure!(inside == Some(&*text.to_escaped()), "frame {} is another", expected.number);
                    }
                }
                Signal::Update(_) => {}
                Signal::Done { stop: AgentStop::Stopped(Stop::EndTurn), .. } => return expected.complete(chunks),
                other => anyhow::bail!("the burst ended as {other:?}"),
            }
        }
    }
}

/// The texts that the demo agent counts out, made without an allocation for each.
struct Numbered {
    number: u32,
    text: [u8; SIZE],
    digits: usize,
}

impl Numbered {
    fn new() -> Self {
        let mut text = [b'.'; SIZE];
        text[SIZE - 1] = b' ';
        text[0] = b'0';
        Self { number: 0, text, digits: 1 }
    }

    fn check(&mut self, text: &Text) -> anyhow::Result<()> {
        self.count();
        anyhow::ensure!(*text.to_escaped() == self.text, "piece {} is `{}`", self.number, text.to_str());
        Ok(())
    }

    fn complete(&self, chunks: u32) -> anyhow::Result<()> {
        anyhow::ensure!(self.number == chunks, "{} pieces of {chunks} came", self.number);
        Ok(())
    }

    /// The next number, written over the one before.
    fn count(&mut self) {
        self.number += 1;
        for place in (0..self.digits).rev() {
            if self.text[place] < b'9' {
                self.text[place] += 1;
                return;
            }
            self.text[place] = b'0';
        }
        // All were nines: a digit more.
        self.text[0] = b'1';
        self.text[self.digits] = b'0';
        self.digits += 1;
    }
}

/// A session of the whole core: its actor, its log on disk, one follower.
struct Whole {
    runtime: Runtime,
    house: House,
    client: Client,
}

impl Whole {
    fn start() -> anyhow::Result<Self> {
        let runtime = single_thread()?;
        let (mut profile, program) = house::demo(&[])?;
        profile.limits.spare = 0;
        let (house, client) = runtime.block_on(async {
            let house = House::open(profile, program, Environment::new())?;
            let client = Client::attach(house.create().await?).await?;
            client.wake().await?;
            anyhow::Ok((house, client))
        })?;
        Ok(Self { runtime, house, client })
    }

    fn burst(&mut self, chunks: u32) -> anyhow::Result<Burst> {
        let client = &mut self.client;
        costed(|| {
            self.runtime.block_on(async {
                let turn = client.prompt(&prompt(chunks)).await?;
                let mut expected = Numbered::new();
                loop {
                    for entry in client.next().await?.iter().filter(|entry| entry.turn == Some(turn)) {
                        match &entry.event {
                            Event::Text(text) => expected.check(text)?,
                            Event::Ended(_) => return expected.complete(chunks),
                            _ => {}
                        }
                    }
                }
            })
        })
    }

    fn stop(self) {
        self.runtime.block_on(self.house.close());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expected_texts_are_those_that_the_demo_agent_counts_out() {
        let mut expected = Numbered::new();
        for number in 1..=12_345_u32 {
            let mut text = number.to_string();
            while text.len() + 1 < SIZE {
                text.push('.');
            }
            text.push(' ');
            expected.check(&Text::plain(text)).unwrap();
        }
        assert!(expected.complete(12_345).is_ok() && expected.complete(12_346).is_err());
    }
}
