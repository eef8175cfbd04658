//! Tables for people.

/// The most characters that a cell shows, unless it is the last of its row.
const WIDEST: usize = 72;

/// Rows whose cells stand below each other.
#[derive(Debug)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with headings.
    pub(super) fn new<const N: usize>(headings: [&str; N]) -> Self {
        Self {
            rows: vec![headings.map(str::to_owned).to_vec()],
        }
    }

    /// A table without headings.
    pub(super) fn plain() -> Self {
        Self { rows: Vec::new() }
    }

    /// Adds a row. Texts of objects are shown as they are, but for characters that would do something to a terminal. The
    /// last text of a row may be as long as it likes; others are cut.
    pub(super) fn row<const N: usize>(&mut self, cells: [String; N]) {
        let last = cells.iter().rposition(|cell| !cell.is_empty());
        let cells = cells.into_iter().take(last.map_or(0, |last| last + 1));
        let cells = cells.enumerate().map(|(column, cell)| {
            let cell = printable(&cell);
            if Some(column) == last {
                cell
            } else {
                cut(cell)
            }
        });
        self.rows.push(cells.collect());
    }

    /// Adds rows.
    pub(super) fn rows<const N: usize>(&mut self, rows: impl IntoIterator<Item = [String; N]>) {
        for row in rows {
            self.row(row);
        }
    }

    /// The lines. A table without rows has none, not even its headings.
    pub(super) fn lines(&self, headed: bool) -> String {
        if headed && self.rows.len() < 2 {
            return String::new();
        }
        let mut widths: Vec<usize> = Vec::new();
        for row in &self.rows {
            // What ends a line makes no column wider.
            let others = row.split_last().map_or(&[][..], |(_, others)| others);
            for (column, cell) in others.iter().enumerate() {
                let width = cell.chars().count();
                match widths.get_mut(column) {
                    Some(known) => *known = width.max(*known),
                    None => widths.push(width),
                }
            }
        }
        let mut text = String::new();
        for row in &self.rows {
            let widths = widths.iter().copied().chain(std::iter::repeat(0));
            let cells = row.iter().zip(widths);
            let line: Vec<_> = cells
                .map(|(cell, width)| format!("{cell:width$}"))
                .collect();
            text.push_str(line.join("  ").trim_end());
            text.push('\n');
        }
        text
    }
}

/// A text of somebody else on one line, harmless to a terminal.
pub(super) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// A text of somebody else, harmless to a terminal, on as many lines as it has.
pub(super) fn printable_lines(text: &str) -> String {
    let lines = text.split_inclusive('\n').map(|line| {
        let text = line.strip_suffix('\n');
        let end = if text.is_some() { "\n" } else { "" };
        printable(text.unwrap_or(line)) + end
    });
    lines.collect()
}

fn cut(cell: String) -> String {
    if cell.chars().count() <= WIDEST {
        return cell;
    }
    let mut shown: String = cell.chars().take(WIDEST - 1).collect();
    shown.push('…');
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_below_each_other() {
        let mut table = Table::new(["A", "B"]);
        assert_eq!(table.lines(true), "");
        table.row(["long".into(), "x".into()]);
        table.row(["ä".into(), String::new()]);
        table.row(["longer than all".into(), String::new()]);
        assert_eq!(table.lines(true), "A     B\nlong  x\nä\nlonger than all\n");
    }

    #[test]
    fn nothing_reaches_the_terminal_but_text() {
        assert_eq!(
            printable("a\n\u{1b}[31m\u{202e}ä"),
            "a\\n\\u{1b}[31m\\u{202e}ä"
        );
        let mut table = Table::plain();
        table.row(["x".repeat(100), "y".repeat(100)]);
        assert_eq!(table.lines(false).chars().count(), WIDEST + 2 + 100 + 1);
    }
}
