//! Printing results: aligned columns for people, JSON for scripts.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cli::Output;

/// Prints one line on standard output; an error when nobody reads it any more.
pub(crate) fn line(text: &str) -> std::io::Result<()> {
    writeln!(std::io::stdout().lock(), "{text}")
}

/// Prints one line, cut to the width of the terminal; whole where it goes elsewhere.
pub(crate) fn elided(text: String) -> std::io::Result<()> {
    match width() {
        Some(width) => line(&cut(text, width)),
        None => line(&text),
    }
}

/// Columns of the terminal, if standard output is one.
fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns >= 40)
}

fn cut(text: String, width: usize) -> String {
    if text.chars().count() <= width {
        return text;
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Tells the person at the terminal something that is no result.
pub(crate) fn note(text: &str) {
    // When nobody reads it, nothing is lost.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// One line on a terminal, rewritten as things go on; nothing elsewhere.
pub(crate) struct Progress {
    shown: bool,
    since: Instant,
}

impl Progress {
    /// What is done sooner needs no line.
    const AFTER: Duration = Duration::from_secs(1);

    pub(crate) fn new() -> Self {
        Self { shown: false, since: Instant::now() }
    }

    /// Says how far things are.
    pub(crate) fn say(&mut self, text: &str) {
        let waited = self.since.elapsed();
        if waited >= Self::AFTER && std::io::stderr().is_terminal() {
            // Back to the beginning of the line, which is cleared: ECMA-48, CR and EL.
            let _ = write!(std::io::stderr(), "\r\x1b[K{text} ({} s)", waited.as_secs());
            self.shown = true;
        }
    }

    /// Takes the line away.
    pub(crate) fn end(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}

/// Prints a JSON document.
pub(crate) fn json(document: &Value) -> std::io::Result<()> {
    line(&format!("{document:#}"))
}

/// Prints a result in the form that was asked for.
pub(crate) fn result(output: Output, document: &Value, text: &str) -> std::io::Result<()> {
    match output {
        Output::Json => json(document),
        Output::Text => line(text),
    }
}

/// Rows under headings, each column as wide as its longest cell.
pub(crate) fn columns(headings: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = headings.iter().map(|heading| heading.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let headings: Vec<String> = headings.iter().map(|heading| (*heading).to_owned()).collect();
    std::iter::once(&headings)
        .chain(rows)
        .map(|row| aligned(row, &widths))
        .collect::<Vec<_>>()
        .join("\n")
}

fn aligned(row: &[String], widths: &[usize]) -> String {
    let cells: Vec<String> =
        row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
    cells.join("  ").trim_end().to_owned()
}

/// `label  value` lines with the labels aligned.
pub(crate) fn facts(facts: &[(impl AsRef<str>, String)]) -> String {
    let width = facts.iter().map(|(label, _)| label.as_ref().chars().count()).max().unwrap_or(0);
    facts
        .iter()
        .map(|(label, value)| format!("{:<width$}  {value}", label.as_ref()))
        .collect::<Vec<_>>()
        .join("\n")
}

/// A JSON value as a person reads it: text without quotes.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_to_the_width() {
        assert_eq!(cut("éabc".to_owned(), 4), "éabc");
        assert_eq!(cut("éabcd".to_owned(), 4), "éab…");
    }

    #[test]
    fn columns_line_up_and_end_without_blanks() {
        let rows = vec![vec!["shop".into(), "RUNNING".into()], vec!["x".into(), "-".into()]];
        assert_eq!(columns(&["NAME", "STATE"], &rows), "NAME  STATE\nshop  RUNNING\nx     -");
    }
}
