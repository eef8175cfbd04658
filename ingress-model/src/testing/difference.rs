//! Two lists of lines side by side.

use std::fmt::Write;

/// The lines of both, each once where they are the same: `-` in front of those that only the expected list has, `+` in
/// front of those that only the found one has (the longest common subsequence is kept).
pub(super) fn difference(expected: &[&str], found: &[String]) -> String {
    let mut text = String::new();
    let (mut left, mut right) = (expected, found);
    while !left.is_empty() || !right.is_empty() {
        let (mark, line) = match (left.split_first(), right.split_first()) {
            (Some((line, rest)), Some((other, others))) if line == other => {
                (left, right) = (rest, others);
                (' ', *line)
            }
            (Some((line, rest)), others)
                if others.is_none() || common(rest, right) >= common(left, tail(right)) =>
            {
                left = rest;
                ('-', *line)
            }
            (_, Some((line, rest))) => {
                right = rest;
                ('+', line.as_str())
            }
            (_, None) => break,
        };
        // Writing to a text cannot fail.
        let _written = writeln!(text, "{mark} {line}");
    }
    text
}

fn tail(lines: &[String]) -> &[String] {
    lines.get(1..).unwrap_or_default()
}

/// The length of the longest common subsequence.
fn common(expected: &[&str], found: &[String]) -> usize {
    let mut row = vec![0; found.len() + 1];
    for line in expected {
        let mut diagonal = 0;
        let mut left = 0;
        for (cell, other) in row.iter_mut().skip(1).zip(found) {
            let best = if line == other {
                diagonal + 1
            } else {
                left.max(*cell)
            };
            diagonal = *cell;
            *cell = best;
            left = best;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_same_is_shown_once() {
        for (expected, found, want) in [
            (&[][..], &[][..], ""),
            (&["a", "b"], &["a", "b"], "  a\n  b\n"),
            (&["a"], &[], "- a\n"),
            (&[], &["a"], "+ a\n"),
            (&["a", "b", "c"], &["a", "x", "c"], "  a\n- b\n+ x\n  c\n"),
            (&["a", "b"], &["b", "a"], "- a\n  b\n+ a\n"),
            (&["b", "c"], &["a", "b", "c"], "+ a\n  b\n  c\n"),
        ] {
            let found: Vec<_> = found.iter().map(ToString::to_string).collect();
            assert_eq!(difference(expected, &found), want);
        }
    }
}
