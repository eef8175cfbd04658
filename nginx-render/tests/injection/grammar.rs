//! NGINX's configuration grammar, read without any of the renderer's code.

use std::{iter::Peekable, str::Chars};

/// A directive: its name and arguments, and what its block holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    pub(crate) words: Vec<String>,
    pub(crate) block: Option<Vec<Self>>,
}

impl Statement {
    pub(crate) fn name(&self) -> &str {
        &self.words[0]
    }

    /// Name, number of arguments and block, without what the arguments say.
    pub(crate) fn shape(&self) -> String {
        let block = self.block.as_ref().map(|block| shape(block));
        let block = block.map_or_else(|| String::from(";"), |block| format!("{{{block}}}"));
        format!("{}/{}{block}", self.name(), self.words.len() - 1)
    }
}

/// The shapes of all statements, in order.
pub(crate) fn shape(statements: &[Statement]) -> String {
    statements
        .iter()
        .map(Statement::shape)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Reads a whole file. Panics where NGINX would refuse it.
pub(crate) fn parse(text: &str) -> Vec<Statement> {
    let mut chars = text.chars().peekable();
    let mut statements = block(&mut chars);
    name_entries(&mut statements, false);
    assert_eq!(chars.next(), None, "a brace too many");
    statements
}

/// Entries of a `map` or a `geo` start with a text of their own, not with a directive's name.
fn name_entries(statements: &mut [Statement], are_entries: bool) {
    for statement in statements {
        let is_table = matches!(statement.name(), "map" | "geo");
        if are_entries {
            statement.words.insert(0, "entry".into());
        }
        if let Some(block) = &mut statement.block {
            name_entries(block, is_table);
        }
    }
}

fn block(chars: &mut Peekable<Chars<'_>>) -> Vec<Statement> {
    let mut statements = Vec::new();
    let mut words = Vec::new();
    loop {
        match chars.peek().copied() {
            None | Some('}') => {
                assert!(words.is_empty(), "{words:?} has no end");
                return statements;
            }
            Some(c) if c.is_ascii_whitespace() => {
                chars.next();
            }
            Some('#') => {
                assert!(words.is_empty(), "a comment within {words:?}");
                while chars.next().is_some_and(|c| c != '\n') {}
            }
            Some(';') => {
                chars.next();
                assert!(!words.is_empty(), "nothing before ';'");
                statements.push(Statement {
                    words: std::mem::take(&mut words),
                    block: None,
                });
            }
            Some('{') => {
                chars.next();
                assert!(!words.is_empty(), "nothing before '{{'");
                let words = std::mem::take(&mut words);
                let inner = if words[0].ends_with("_by_lua_block") {
                    lua(chars);
                    Vec::new()
                } else {
                    block(chars)
                };
                assert_eq!(chars.next(), Some('}'), "{words:?} is not closed");
                statements.push(Statement {
                    words,
                    block: Some(inner),
                });
            }
            Some(quote @ ('"' | '\'')) => {
                chars.next();
                words.push(quoted(chars, quote));
                let next = chars.peek().copied();
                let ends =
                    next.is_some_and(|c| c.is_ascii_whitespace() || matches!(c, ';' | '{' | ')'));
                assert!(ends, "{next:?} after a quoted word");
            }
            Some(_) => words.push(bare(chars)),
        }
    }
}

fn quoted(chars: &mut Peekable<Chars<'_>>, quote: char) -> String {
    let mut word = String::new();
    loop {
        match chars.next().expect("a quoted word without end") {
            c if c == quote => return word,
            '\\' => match chars.next().expect("a backslash at the end") {
                c @ ('"' | '\'' | '\\') => word.push(c),
                't' => word.push('\t'),
                'r' => word.push('\r'),
                'n' => word.push('\n'),
                c => word.extend(['\\', c]),
            },
            c => word.push(c),
        }
    }
}

fn bare(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut word = String::new();
    while let Some(c) = chars.peek().copied() {
        let is_variable = c == '{' && word.ends_with('$');
        if c.is_ascii_whitespace() || c == ';' || (c == '{' && !is_variable) {
            break;
        }
        chars.next();
        word.push(c);
        if c == '\\' {
            word.extend(chars.next());
        }
        if is_variable {
            while chars.peek().is_some_and(|c| *c != '}') {
                word.extend(chars.next());
            }
            word.extend(chars.next());
        }
    }
    word
}

/// Lua up to the brace that closes the block; strings may hold braces.
fn lua(chars: &mut Peekable<Chars<'_>>) {
    let mut depth = 0;
    while let Some(c) = chars.peek().copied() {
        match c {
            '}' if depth == 0 => return,
            '}' => depth -= 1,
            '{' => depth += 1,
            '"' => {
                chars.next();
                while chars.next().is_some_and(|c| c != '"') {}
                continue;
            }
            _ => {}
        }
        chars.next();
    }
}
