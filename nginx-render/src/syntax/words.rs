//! Words and blocks, as NGINX reads them (`ngx_conf_file` in its development guide).

/// A directive with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Statement {
    /// The name first. Quotes and escapes are resolved. Never empty.
    pub(super) words: Vec<String>,
    /// The line that it begins at, from 1.
    pub(super) line: usize,
    /// The innermost of them, or what is around the text.
    pub(super) block: Block,
    /// Which of the text's directives has opened that block; `None` for what is around the text.
    pub(super) opener: Option<usize>,
    /// Whether it opens a block itself.
    pub(super) opens: bool,
}

/// What kind of block a directive stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
    /// None.
    Main,
    /// `events`.
    Events,
    /// `http`.
    Http,
    /// `stream`.
    Stream,
    /// `server` of `http`.
    Server,
    /// `location`.
    Location,
    /// `if` of a server.
    ServerIf,
    /// `if` of a location.
    LocationIf,
    /// `limit_except`.
    LimitExcept,
    /// `upstream` of `http`.
    Upstream,
    /// `server` of `stream`.
    StreamServer,
    /// `upstream` of `stream`.
    StreamUpstream,
    /// `map`: values, some of which are regular expressions.
    Map,
    /// Blocks that hold anything but directives.
    Free,
    /// Any other.
    Other,
}

/// Where a text breaks the rules of blocks and words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct Broken {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong. Lower case, no full stop.
    pub reason: String,
}

impl Statement {
    pub(super) fn name(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }
}

impl Block {
    fn of(name: &str, around: Self) -> Self {
        match name {
            "http" if around == Self::Main => Self::Http,
            "stream" if around == Self::Main => Self::Stream,
            "events" if around == Self::Main => Self::Events,
            "server" if around == Self::Stream => Self::StreamServer,
            "server" if around != Self::Free => Self::Server,
            "upstream" if around == Self::Http => Self::Upstream,
            "upstream" if around == Self::Stream => Self::StreamUpstream,
            "location" => Self::Location,
            "if" if matches!(around, Self::Server | Self::ServerIf) => Self::ServerIf,
            "if" => Self::LocationIf,
            "limit_except" => Self::LimitExcept,
            "map" => Self::Map,
            "geo" | "types" | "split_clients" | "charset_map" | "geoip2" => Self::Free,
            _ => Self::Other,
        }
    }
}

/// Reads all directives of a text that stands in such a block, in the order of the text.
///
/// # Errors
/// When a block or a quote is not closed, or something stands where a directive has to end.
pub(super) fn read(text: &str, around: Block) -> Result<Vec<Statement>, Broken> {
    let mut reader = Reader {
        around,
        rest: text,
        line: 1,
        open: Vec::new(),
        statements: Vec::new(),
    };
    reader.read()?;
    Ok(reader.statements)
}

struct Reader<'a> {
    /// What is around the text.
    around: Block,
    rest: &'a str,
    line: usize,
    /// The blocks around here: which directive has opened them, and their kinds.
    open: Vec<(usize, Block)>,
    statements: Vec<Statement>,
}

impl Reader<'_> {
    fn read(&mut self) -> Result<(), Broken> {
        let mut words: Vec<String> = Vec::new();
        let mut line = self.line;
        while let Some(c) = self.rest.chars().next() {
            match c {
                '#' => self.skip(self.rest.find('\n').unwrap_or(self.rest.len())),
                ';' | '{' => {
                    if words.is_empty() {
                        return Err(self.broken(format!("unexpected \"{c}\"")));
                    }
                    self.skip(1);
                    self.end(std::mem::take(&mut words), line, c == '{')?;
                }
                '}' => {
                    if let Some(name) = words.first() {
                        return Err(Broken {
                            line,
                            reason: format!("\"{name}\" has no \";\" behind it"),
                        });
                    }
                    if self.open.pop().is_none() {
                        return Err(self.broken("it closes a block that it has not opened".into()));
                    }
                    self.skip(1);
                }
                c if c.is_ascii_whitespace() => self.skip(1),
                _ => {
                    if words.is_empty() {
                        line = self.line;
                    }
                    words.push(self.word(c)?);
                }
            }
        }
        if let Some(name) = words.first() {
            return Err(Broken {
                line,
                reason: format!("\"{name}\" has no \";\" behind it"),
            });
        }
        let opener = self.open.pop();
        match opener.and_then(|(opener, _)| self.statements.get(opener)) {
            Some(opener) => Err(Broken {
                line: opener.line,
                reason: format!("the block \"{}\" is not closed", opener.name()),
            }),
            None => Ok(()),
        }
    }

    /// Takes a directive in that ends here.
    fn end(&mut self, words: Vec<String>, line: usize, opens: bool) -> Result<(), Broken> {
        let (opener, block) = match self.open.last() {
            Some((opener, block)) => (Some(*opener), *block),
            None => (None, self.around),
        };
        let statement = Statement {
            words,
            line,
            block,
            opener,
            opens,
        };
        let name = statement.name().to_owned();
        self.statements.push(statement);
        if opens && name.ends_with("_by_lua_block") {
            self.skip_lua(&name)?;
        } else if opens {
            let inner = Block::of(&name, block);
            self.open.push((self.statements.len() - 1, inner));
        }
        Ok(())
    }

    fn word(&mut self, first: char) -> Result<String, Broken> {
        let quote = matches!(first, '"' | '\'').then_some(first);
        let mut raw = String::new();
        if quote.is_some() {
            self.skip(1);
        }
        let mut before = None;
        loop {
            let Some(c) = self.rest.chars().next() else {
                return match quote {
                    Some(_) => Err(self.broken("a quote is not closed".into())),
                    None => Ok(unescape(&raw)),
                };
            };
            if c == '\\' {
                let length = 1 + self.rest.chars().nth(1).map_or(0, char::len_utf8);
                raw.push_str(self.rest.get(..length).unwrap_or_default());
                self.skip(length);
                before = Some('\\');
                continue;
            }
            let ends = match quote {
                Some(quote) => c == quote,
                None => c.is_ascii_whitespace() || c == ';' || (c == '{' && before != Some('$')),
            };
            if ends {
                break;
            }
            raw.push(c);
            self.skip(c.len_utf8());
            before = Some(c);
        }
        if quote.is_some() {
            self.skip(1);
            let next = self.rest.chars().next();
            if next.is_some_and(|c| !c.is_ascii_whitespace() && !matches!(c, ';' | '{' | ')')) {
                return Err(self.broken("something follows a quote at once".into()));
            }
        }
        Ok(unescape(&raw))
    }

    /// Skips Lua code up to the brace that closes it.
    fn skip_lua(&mut self, name: &str) -> Result<(), Broken> {
        let line = self.line;
        let mut depth = 1_usize;
        while let Some(c) = self.rest.chars().next() {
            let length = match c {
                '-' if self.rest.starts_with("--") => {
                    long_bracket(self.rest.get(2..).unwrap_or_default()).map_or_else(
                        || self.rest.find('\n').unwrap_or(self.rest.len()),
                        |length| length + 2,
                    )
                }
                '[' => long_bracket(self.rest).unwrap_or(1),
                '"' | '\'' => lua_string(self.rest, c),
                '{' => {
                    depth += 1;
                    1
                }
                '}' => {
                    depth -= 1;
                    1
                }
                c => c.len_utf8(),
            };
            self.skip(length);
            if depth == 0 {
                return Ok(());
            }
        }
        Err(Broken {
            line,
            reason: format!("the block \"{name}\" is not closed"),
        })
    }

    fn skip(&mut self, length: usize) {
        let (skipped, rest) = self
            .rest
            .split_at_checked(length)
            .unwrap_or((self.rest, ""));
        self.line += skipped.matches('\n').count();
        self.rest = rest;
    }

    fn broken(&self, reason: String) -> Broken {
        Broken {
            line: self.line,
            reason,
        }
    }
}

/// A word as NGINX hands it on: `\` disappears before quotes and itself, and makes `\t`, `\r` and `\n`.
fn unescape(raw: &str) -> String {
    let mut word = String::with_capacity(raw.len());
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            word.push(c);
            continue;
        }
        match chars.next() {
            Some(c @ ('"' | '\'' | '\\')) => word.push(c),
            Some('t') => word.push('\t'),
            Some('r') => word.push('\r'),
            Some('n') => word.push('\n'),
            Some(c) => word.extend(['\\', c]),
            None => word.push('\\'),
        }
    }
    word
}

/// The length of Lua's `[[…]]` or `[=[…]=]`, if the text begins with one.
fn long_bracket(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('[')?;
    let level = inner.find(|c| c != '=')?;
    inner.get(level..)?.strip_prefix('[')?;
    let end = format!("]{}]", "=".repeat(level));
    let content = level + 2;
    let found = text.get(content..)?.find(&end);
    Some(found.map_or(text.len(), |at| content + at + end.len()))
}

/// The length of a Lua string, its quotes included.
fn lua_string(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Vec<String>> {
        let statements = read(text, Block::Main).unwrap().into_iter();
        statements.map(|statement| statement.words).collect()
    }

    #[test]
    fn words_are_read_as_nginx_does() {
        assert_eq!(
            words("a \"b;{}\" 'c' d\\;e ${f}g # h;\n;i{j \"\\\"\\\\\\n\\.\";}"),
            [
                vec!["a", "b;{}", "c", "d\\;e", "${f}g"],
                vec!["i"],
                vec!["j", "\"\\\n\\."],
            ]
        );
    }

    #[test]
    fn blocks_and_lines_are_kept() {
        let text = "http {\n server {\n\n  location /a { b; }\n } map $a $b {\n ~x y; }\n}\nstream { server { c; } }";
        let seen = read(text, Block::Main).unwrap();
        let seen: Vec<_> = seen.iter().map(|s| (s.name(), s.line, s.block)).collect();
        assert_eq!(
            seen,
            [
                ("http", 1, Block::Main),
                ("server", 2, Block::Http),
                ("location", 4, Block::Server),
                ("b", 4, Block::Location),
                ("map", 5, Block::Http),
                ("~x", 6, Block::Map),
                ("stream", 8, Block::Main),
                ("server", 8, Block::Stream),
                ("c", 8, Block::StreamServer),
            ]
        );
    }

    #[test]
    fn lua_is_skipped() {
        let lua = "a_by_lua_block { local t = {\"}\"} --[[ } ]] -- }\n t = [=[ } ]] ]=] } b;";
        assert_eq!(words(lua), [vec!["a_by_lua_block"], vec!["b"]]);
        assert!(read("a_by_lua_block { {}", Block::Main).is_err());
    }

    #[test]
    fn what_breaks_the_rules_is_named() {
        for (text, line, reason) in [
            ("a;\n}", 2, "closes"),
            ("a {\nb;", 1, "\"a\" is not closed"),
            ("a\nb", 1, "\"a\" has no \";\""),
            ("a { b }", 1, "\"b\" has no \";\""),
            (";", 1, "unexpected"),
            ("a 'b", 1, "quote"),
            ("a \"b\"c;", 1, "follows a quote"),
        ] {
            let broken = read(text, Block::Main).unwrap_err();
            assert_eq!(broken.line, line, "{text}");
            assert!(broken.reason.contains(reason), "{text}: {}", broken.reason);
        }
    }
}
