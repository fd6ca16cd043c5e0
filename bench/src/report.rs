//! What a scenario found: series of numbers, ratios between them, and the bars they are held against.

use serde::Serialize;

use crate::measure::{largest, median, smallest};

/// Fewer say nothing on a machine that does other things as well.
const FEWEST_ROUNDS: usize = 5;

#[derive(Debug, Serialize)]
pub struct Report {
    scenario: &'static str,
    about: &'static str,
    series: Vec<Series>,
    findings: Vec<Finding>,
    notes: Vec<String>,
}

/// One number of one contender, once for each round.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    name: String,
    unit: &'static str,
    rounds: Vec<f64>,
}

/// Something to be held against a bar: a ratio of two series, or a number that the bar names.
#[derive(Debug, Serialize)]
struct Finding {
    name: String,
    /// The median of the rounds.
    median: f64,
    /// For a ratio the smallest of the one by the smallest of the other.
    best: f64,
    unit: &'static str,
    bar: Option<Bar>,
    result: Result,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Bar {
    limit: f64,
    side: Side,
    weight: Weight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum Side {
    AtMost,
    AtLeast,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum Weight {
    /// Missing it fails the run.
    Gate,
    /// Published, and no more.
    Goal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum Result {
    Passed,
    Failed,
    /// No bar stands.
    Told,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    Failed,
}

impl Verdict {
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        if other == Self::Failed { other } else { self }
    }
}

impl Bar {
    pub const fn gate_at_most(limit: f64) -> Self {
        Self { limit, side: Side::AtMost, weight: Weight::Gate }
    }

    pub const fn gate_at_least(limit: f64) -> Self {
        Self { limit, side: Side::AtLeast, weight: Weight::Gate }
    }

    pub const fn goal_at_most(limit: f64) -> Self {
        Self { limit, side: Side::AtMost, weight: Weight::Goal }
    }

    pub const fn goal_at_least(limit: f64) -> Self {
        Self { limit, side: Side::AtLeast, weight: Weight::Goal }
    }

    fn hold(self, value: f64) -> Result {
        let holds = match self.side {
            Side::AtMost => value <= self.limit,
            Side::AtLeast => value >= self.limit,
        };
        if holds { Result::Passed } else { Result::Failed }
    }
}

impl Series {
    pub fn new(name: impl Into<String>, unit: &'static str) -> Self {
        Self { name: name.into(), unit, rounds: Vec::new() }
    }

    pub fn push(&mut self, value: f64) {
        self.rounds.push(value);
    }

    pub fn is_empty(&self) -> bool {
        self.rounds.is_empty()
    }
}

impl Report {
    pub fn new(scenario: &'static str, about: &'static str) -> Self {
        Self { scenario, about, series: Vec::new(), findings: Vec::new(), notes: Vec::new() }
    }

    pub fn show(&mut self, series: &Series) {
        self.series.push(series.clone());
    }

    pub fn show_all<'a>(&mut self, all: impl IntoIterator<Item = &'a Series>) {
        for series in all {
            self.show_unless_empty(series);
        }
    }

    /// Shows a series of somebody who may not have been there.
    pub fn show_unless_empty(&mut self, series: &Series) {
        if !series.rounds.is_empty() {
            self.show(series);
        }
    }

    /// How many times `of` is `to`, by round.
    pub fn ratio(&mut self, name: impl Into<String>, of: &Series, to: &Series, bar: Option<Bar>) {
        let ratios: Vec<f64> = of.rounds.iter().zip(&to.rounds).map(|(of, to)| of / to).collect();
        self.find(name.into(), median(&ratios), smallest(&of.rounds) / smallest(&to.rounds), "×", bar);
    }

    /// The median round of one series against a bar that names a number.
    pub fn typical(&mut self, name: impl Into<String>, of: &Series, bar: Option<Bar>) {
        self.find(name.into(), median(&of.rounds), smallest(&of.rounds), of.unit, bar);
    }

    /// The worst round of one series against a bar that names a number.
    pub fn worst(&mut self, name: impl Into<String>, of: &Series, bar: Option<Bar>) {
        self.find(name.into(), largest(&of.rounds), smallest(&of.rounds), of.unit, bar);
    }

    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    pub fn verdict(&self) -> Verdict {
        let missed = self.findings.iter().any(|finding| {
            finding.result == Result::Failed && finding.bar.is_some_and(|bar| bar.weight == Weight::Gate)
        });
        if missed { Verdict::Failed } else { Verdict::Passed }
    }

    fn find(&mut self, name: String, median: f64, best: f64, unit: &'static str, bar: Option<Bar>) {
        let result = bar.map_or(Result::Told, |bar| bar.hold(median));
        self.findings.push(Finding { name, median, best, unit, bar, result });
    }

    pub fn print(&self) {
        println!("\n## {}\n\n{}\n", self.scenario, self.about);
        let wide = |names: &mut dyn Iterator<Item = &String>| names.map(|name| name.chars().count()).max().unwrap_or(0);
        let width = wide(&mut self.series.iter().map(|series| &series.name));
        println!("{:<width$}  {:>10} {:>10} {:>10}", "", "min", "median", "max");
        for Series { name, unit, rounds } in &self.series {
            let [min, middle, max] = [smallest(rounds), median(rounds), largest(rounds)].map(figure);
            println!("{name:<width$}  {min:>10} {middle:>10} {max:>10} {unit}");
        }
        let width = wide(&mut self.findings.iter().map(|finding| &finding.name));
        println!("\n{:<width$}  {:>10} {:>10}", "", "by round", "best");
        for finding in &self.findings {
            let [middle, best] = [finding.median, finding.best].map(figure);
            println!("{:<width$}  {middle:>10} {best:>10} {:<5} {}", finding.name, finding.unit, finding.said());
        }
        if self.series.iter().any(|series| series.rounds.len() < FEWEST_ROUNDS) {
            println!("\nfewer than {FEWEST_ROUNDS} rounds: a look, not a result");
        }
        for note in &self.notes {
            println!("\n{note}");
        }
    }
}

impl Finding {
    fn said(&self) -> String {
        let Some(bar) = self.bar else { return String::new() };
        let sign = if bar.side == Side::AtMost { "≤" } else { "≥" };
        let weight = if bar.weight == Weight::Gate { "gate" } else { "goal" };
        let result = if self.result == Result::Passed { "PASS" } else { "FAIL" };
        format!("{result}  {weight} {sign} {} {}", figure(bar.limit), self.unit)
    }
}

/// Three digits that count.
fn figure(value: f64) -> String {
    match value.abs() {
        size if !size.is_finite() => "-".to_owned(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(rounds: &[f64]) -> Series {
        Series { rounds: rounds.to_vec(), ..Series::new("of", "ms") }
    }

    #[test]
    fn a_ratio_is_the_median_of_the_rounds_and_not_the_ratio_of_medians() {
        let mut report = Report::new("test", "");
        report.ratio("r", &series(&[1.0, 40.0, 3.0]), &series(&[1.0, 10.0, 3.0]), Some(Bar::gate_at_most(1.3)));
        assert!((report.findings[0].median - 1.0).abs() < f64::EPSILON);
        assert_eq!(report.verdict(), Verdict::Passed);
    }

    #[test]
    fn only_a_gate_fails_the_run() {
        let mut report = Report::new("test", "");
        report.typical("t", &series(&[5.0]), Some(Bar::goal_at_least(6.0)));
        assert_eq!((report.findings[0].result, report.verdict()), (Result::Failed, Verdict::Passed));
        report.worst("w", &series(&[5.0, 7.0]), Some(Bar::gate_at_most(6.0)));
        assert_eq!(report.verdict(), Verdict::Failed);
    }
}
