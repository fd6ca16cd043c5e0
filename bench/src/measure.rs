//! Clocks that survive a noisy machine: CPU time of this process and of children, memory of trees of processes.

use std::time::Duration;

use anyhow::Context as _;
use gembridge_testkit::process_table::{children_of, pss_kb};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;
use rustix::time::{ClockId, clock_gettime};

/// CPU time of this process so far, all threads, in nanoseconds.
pub fn own_cpu() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// CPU time of the children of this process that have ended and were waited for, with their children.
pub fn ended_children_cpu() -> anyhow::Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("cannot read the CPU time of children")?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Duration::from_micros(micros.unsigned_abs()))
}

/// CPU time of the living threads of these processes, in nanoseconds. Only differences mean something.
pub fn living_cpu(pids: &[u32]) -> Duration {
    let tasks = pids.iter().flat_map(|pid| std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten());
    let spent = tasks.flatten().filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_ascii_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(spent.sum())
}

/// CPU time of one process since it began, threads that have ended included, in nanoseconds.
pub fn process_cpu(pid: u32) -> anyhow::Result<Duration> {
    let clock = clock_getcpuclockid(Pid::from_raw(i32::try_from(pid)?)).context("a process without a CPU clock")?;
    let now = clock.now()?;
    Ok(Duration::new(now.tv_sec().unsigned_abs(), u32::try_from(now.tv_nsec())?))
}

/// Memory of one process that is in use, in kB.
pub fn memory_kb(pid: u32) -> anyhow::Result<f64> {
    status_kb(pid, "VmRSS:")
}

/// What of it belongs to no file: neither the program itself nor its libraries.
pub fn anonymous_memory_kb(pid: u32) -> anyhow::Result<f64> {
    status_kb(pid, "RssAnon:")
}

/// The most that it ever was.
pub fn peak_memory_kb(pid: u32) -> anyhow::Result<f64> {
    status_kb(pid, "VmHWM:")
}

fn status_kb(pid: u32, name: &str) -> anyhow::Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)).context("a process without memory")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}

/// What the machine is busy with beside us.
pub fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(2).collect::<Vec<_>>().join(", ")
}

/// The value that this share of all stays below.
pub fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a place in a list of at most some million values"
    )]
    let place = (values.len() as f64 * share) as usize;
    values.get(place.min(values.len().saturating_sub(1))).copied().unwrap_or(0.0)
}

/// CPU time of these processes since they began, threads that have ended included, in steps of 10 ms.
pub fn whole_cpu(pids: &[u32]) -> Duration {
    let ticks = pids.iter().filter_map(|pid| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, rest) = text.rsplit_once(") ")?;
        let fields: Vec<u64> = rest.split(' ').skip(11).take(4).filter_map(|field| field.parse().ok()).collect();
        Some(fields.iter().sum::<u64>())
    });
    Duration::from_millis(10 * ticks.sum::<u64>())
}

/// A process and everything that descends from it.
pub fn tree(root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while next < found.len() {
        found.extend(children_of(found[next]));
        next += 1;
    }
    found
}

/// Memory of these processes in MB, shared pages counted by share.
pub fn pss_mb(pids: &[u32]) -> f64 {
    let kilobytes: u64 = pids.iter().map(|pid| pss_kb(*pid)).sum();
    Duration::from_millis(kilobytes).as_secs_f64() * 1000.0 / 1024.0
}

pub fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The middle of the values, or between the two in the middle; 0 for none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => 0.0,
        (length, middle) if length % 2 == 0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
        (_, middle) => sorted[middle],
    }
}

pub fn smallest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

pub fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_lies_between_the_two_in_the_middle() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < f64::EPSILON);
        assert!(median(&[]).abs() < f64::EPSILON);
    }

    #[test]
    fn cpu_time_of_this_process_grows_by_work() {
        let before = own_cpu();
        let mut sum = 0_u64;
        while own_cpu().saturating_sub(before) < Duration::from_millis(2) {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(living_cpu(&[std::process::id()]) >= Duration::from_millis(2));
        assert!(pss_mb(&[std::process::id()]) > 0.0);
    }
}
