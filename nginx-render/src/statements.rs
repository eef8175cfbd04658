//! Which directives a snippet contains, so that ours do not stand beside them twice.

use std::collections::BTreeSet;

/// The names of the directives at the top level of a piece of configuration. Blocks are skipped; what NGINX would not
/// accept gives some names or other.
pub(crate) fn names(text: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    let mut depth = 0_usize;
    let mut at_start = true;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '"' | '\'' => {
                at_start = false;
                quoted_length(rest, c)
            }
            ';' | '{' | '}' => {
                depth = match c {
                    '{' => depth + 1,
                    '}' => depth.saturating_sub(1),
                    _ => depth,
                };
                at_start = true;
                1
            }
            c if c.is_whitespace() => c.len_utf8(),
            _ => {
                let length = rest
                    .find(|c: char| c.is_whitespace() || matches!(c, ';' | '{' | '}'))
                    .unwrap_or(rest.len());
                if at_start && depth == 0 {
                    names.extend(rest.get(..length));
                }
                at_start = false;
                length.max(c.len_utf8())
            }
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    names
}

/// The length of a quoted word, its quotes included.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_top_level_counts() {
        let text = "# proxy_pass x;\nproxy_read_timeout 5s; map $a $b { default 1; }\n\
                    more_set_headers \"A: b; return 200 '\\\"\";if ($x) { return 403; }  server{listen 1;}}\nä ö;'q' r;";
        let names: Vec<_> = names(text).into_iter().collect();
        assert_eq!(
            names,
            [
                "if",
                "map",
                "more_set_headers",
                "proxy_read_timeout",
                "server",
                "ä"
            ]
        );
        assert!(super::names("").is_empty());
        assert_eq!(super::names("\"open").len(), 0);
    }
}
