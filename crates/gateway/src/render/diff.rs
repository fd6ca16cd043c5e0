//! A change of a file in a few lines: what differs, without what is the same around it.

use super::style::Style;
use crate::terminal::escape;

/// Changed lines shown of one file; the rest is counted.
const MOST_LINES: usize = 10;

pub fn lines(path: &str, old: Option<&str>, new: &str, style: Style) -> String {
    let (removed, added) = changed(old.unwrap_or_default(), new);
    let kind = if old.is_none() { " (new)" } else { "" };
    let mut out = format!("    {}{kind} +{} -{}\n", style.bold(&escape::line(path)), added.len(), removed.len());
    let removed = removed.iter().map(|line| style.red(&format!("-{}", escape::line(line))));
    let added = added.iter().map(|line| style.green(&format!("+{}", escape::line(line))));
    let all: Vec<_> = removed.chain(added).collect();
    for line in all.iter().take(MOST_LINES) {
        out.push_str("    ");
        out.push_str(line);
        out.push('\n');
    }
    if all.len() > MOST_LINES {
        out.push_str(&style.dim(&format!("    … {} more lines", all.len() - MOST_LINES)));
        out.push('\n');
    }
    out
}

/// The lines between the common beginning and the common end.
fn changed<'a>(old: &'a str, new: &'a str) -> (Vec<&'a str>, Vec<&'a str>) {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let before = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let after = old[before..].iter().rev().zip(new[before..].iter().rev()).take_while(|(a, b)| a == b).count();
    (old[before..old.len() - after].to_vec(), new[before..new.len() - after].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_is_shown() {
        assert_eq!(
            lines("/w/a.txt", Some("one\ntwo\nthree\n"), "one\n2\nthree\n", Style::Plain),
            "    /w/a.txt +1 -1\n    -two\n    +2\n"
        );
        assert_eq!(lines("/w/b", None, "x\n", Style::Plain), "    /w/b (new) +1 -0\n    +x\n");
        assert_eq!(lines("/w/b", Some("x\nx\n"), "x\n", Style::Plain), "    /w/b +0 -1\n    -x\n");
        assert_eq!(lines("/w/b", Some("x\n"), "x\n", Style::Plain), "    /w/b +0 -0\n");
    }

    #[test]
    fn a_long_change_is_cut_and_counted() {
        let new = "line\n".repeat(50);
        let shown = lines("/w/a", None, &new, Style::Plain);
        assert_eq!(shown.lines().count(), 1 + MOST_LINES + 1);
        assert!(shown.ends_with("… 40 more lines\n"), "{shown}");
    }
}
