//! The agent's plan: one line an entry.

use gembridge_core::model::{PlanEntry, PlanStatus};

use super::style::Style;
use crate::terminal::escape;

pub fn lines(entries: &[PlanEntry], style: Style) -> String {
    let mut out = String::new();
    for entry in entries {
        let content = escape::line(&entry.content);
        let line = match entry.status {
            PlanStatus::Pending => format!("  ○ {content}"),
            PlanStatus::InProgress => format!("  {} {}", style.yellow("◐"), style.bold(&content)),
            PlanStatus::Completed => format!("  {} {}", style.green("✓"), style.dim(&content)),
        };
        out.push_str(&line);
        out.push('\n');
    }
    out
}
