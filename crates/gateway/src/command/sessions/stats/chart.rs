//! Numbers for people: bars for days, tables for the rest.

use std::fmt::Write as _;

use super::super::list::amount;
use super::{Report, Row};
use crate::cli::args::sessions::Grouping;
use crate::render::style::Style;
use crate::terminal::escape;

/// The longest bar, in characters.
const WIDTH: u64 = 40;
/// Parts of a character, from none to seven eighths.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
/// The days that are shown where nothing narrows them.
const DAYS: usize = 30;

pub fn text(report: &Report, by: Option<Grouping>, style: Style) -> String {
    if report.total.total == 0 {
        return "no tokens were counted\n".to_owned();
    }
    let mut out = String::new();
    match by {
        Some(Grouping::Day) => days(&report.days, style, &mut out),
        Some(by) => table(by, report, style, &mut out),
        None => {
            let from = report.days.len().saturating_sub(DAYS);
            if from > 0 {
                add(
                    &mut out,
                    format_args!(
                        "{}\n",
                        style.dim(&format!("the last {DAYS} of {} days; `--by day` shows all", report.days.len()))
                    ),
                );
            }
            days(&report.days[from..], style, &mut out);
            for by in [Grouping::Agent, Grouping::Model, Grouping::Project] {
                out.push('\n');
                table(by, report, style, &mut out);
            }
        }
    }
    if !report.unpriced_models.is_empty() {
        let names = escape::line(&report.unpriced_models.join(", ")).into_owned();
        add(&mut out, format_args!("\n{}\n", style.dim(&format!("no price in `[prices]` for {names}"))));
    }
    out
}

fn days(rows: &[Row], style: Style, out: &mut String) {
    let most = rows.iter().map(|row| row.total).max().unwrap_or(0).max(1);
    for row in rows {
        let bar = bar(row.total, most);
        let blank = " ".repeat(usize::try_from(WIDTH).unwrap_or(0).saturating_sub(bar.chars().count()));
        let cost = row.cost.map(|cost| format!("  {}", money(cost))).unwrap_or_default();
        add(out, format_args!("{}  {}{blank}  {:>5}{cost}\n", row.name, style.green(&bar), amount(row.total)));
    }
}

fn bar(count: u64, most: u64) -> String {
    let eighths = u128::from(count) * u128::from(WIDTH) * 8 / u128::from(most);
    // What was spent is seen, however little it was.
    let eighths = usize::try_from(eighths).unwrap_or(0).max(usize::from(count > 0));
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

fn table(by: Grouping, report: &Report, style: Style, out: &mut String) {
    let heading = match by {
        Grouping::Day => "DAY",
        Grouping::Agent => "AGENT",
        Grouping::Model => "MODEL",
        Grouping::Project => "PROJECT",
    };
    let titles = [heading, "INPUT", "OUTPUT", "THOUGHTS", "CACHE READ", "CACHE WRITE", "TOTAL", "COST"];
    let mut lines = vec![titles.map(str::to_owned)];
    for row in report.rows(by).iter().chain([&report.total]) {
        let tokens = &row.tokens;
        let counts = [tokens.input, tokens.output, tokens.thoughts, tokens.cache_read, tokens.cache_write, row.total];
        let [input, output, thoughts, read, write, total] = counts.map(amount);
        let cost = row.cost.map_or_else(|| "-".to_owned(), money);
        lines.push([escape::line(&row.name).into_owned(), input, output, thoughts, read, write, total, cost]);
    }
    let columns = if report.total.cost.is_some() { 8 } else { 7 };
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..columns).map(width).collect();
    for (number, line) in lines.iter().enumerate() {
        let mut text = format!("{:width$}", line[0], width = widths[0]);
        for (cell, width) in line.iter().zip(&widths).skip(1) {
            add(&mut text, format_args!("  {cell:>width$}"));
        }
        let is_edge = number == 0 || number == lines.len() - 1;
        add(out, format_args!("{}\n", if is_edge { style.dim(text.trim_end()) } else { text.trim_end().to_owned() }));
    }
}

/// To the cent, and small amounts as far as they can be told.
fn money(cost: f64) -> String {
    if cost >= 0.1 || cost == 0.0 { format!("{cost:.2}") } else { format!("{cost:.4}") }
}

fn add(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a String cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_in_proportion_and_what_was_spent_is_seen() {
        assert_eq!(bar(100, 100), "█".repeat(40));
        assert_eq!(bar(50, 100), "█".repeat(20));
        assert_eq!(bar(51, 100), format!("{}▍", "█".repeat(20)));
        assert_eq!(bar(1, 1_000_000), "▏");
        assert_eq!(bar(0, 100), "");
        assert_eq!(bar(u64::MAX, u64::MAX), "█".repeat(40));
    }

    #[test]
    fn money_is_told_to_the_cent_and_small_amounts_further() {
        for (cost, shown) in [(0.0, "0.00"), (1.005, "1.00"), (12.5, "12.50"), (0.027_336, "0.0273")] {
            assert_eq!(money(cost), shown);
        }
    }
}
