//! The servers of an `nginx.conf`, found by its structure (NGINX's development guide, "Configuration").
//!
//! It is for files that NGINX has accepted. Comments such as `## start server a.test` are not looked at: a snippet may
//! hold them too.

use std::ops::Range;

/// A server of HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::command) struct ServerBlock<'a> {
    /// What `server_name` says.
    pub(in crate::command) names: Vec<String>,
    /// The lines from `server {` to its end.
    pub(in crate::command) text: &'a str,
}

/// All servers of HTTP, in the order of the file.
pub(in crate::command) fn servers(conf: &str) -> Vec<ServerBlock<'_>> {
    let mut reader = Reader {
        text: conf,
        at: 0,
        open: Vec::new(),
        servers: Vec::new(),
    };
    reader.read();
    let servers = reader.servers.into_iter();
    let blocks = servers.filter_map(|(names, range)| {
        Some(ServerBlock {
            names,
            text: conf.get(range)?,
        })
    });
    blocks.collect()
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// The blocks around here.
    open: Vec<Open>,
    servers: Vec<(Vec<String>, Range<usize>)>,
}

struct Open {
    name: String,
    /// Where its line begins.
    start: usize,
    /// What `server_name` says in it.
    names: Vec<String>,
}

impl Reader<'_> {
    fn read(&mut self) {
        let mut words: Vec<String> = Vec::new();
        let mut start = 0;
        while let Some(c) = self.rest().chars().next() {
            match c {
                '#' => self.at += self.until('\n'),
                ';' => {
                    self.at += 1;
                    self.directive(&std::mem::take(&mut words));
                }
                '{' => {
                    self.at += 1;
                    let words = std::mem::take(&mut words);
                    let name = words.first().cloned().unwrap_or_default();
                    if name.ends_with("_by_lua_block") {
                        self.skip_lua();
                    } else {
                        let names = Vec::new();
                        self.open.push(Open { name, start, names });
                    }
                }
                '}' => {
                    self.at += 1;
                    words.clear();
                    self.close();
                }
                c if c.is_whitespace() => self.at += c.len_utf8(),
                c => {
                    if words.is_empty() {
                        let before = self.text.get(..self.at).unwrap_or_default();
                        start = before.rfind('\n').map_or(0, |end| end + 1);
                    }
                    words.push(self.word(c));
                }
            }
        }
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// How many bytes there are before a character, or before the end.
    fn until(&self, end: char) -> usize {
        let rest = self.rest();
        rest.find(end).unwrap_or(rest.len())
    }

    fn directive(&mut self, words: &[String]) {
        let Some((name, values)) = words.split_first() else {
            return;
        };
        if let Some(open) = self.open.last_mut().filter(|_| name == "server_name") {
            open.names.extend_from_slice(values);
        }
    }

    fn close(&mut self) {
        let Some(closed) = self.open.pop() else {
            return;
        };
        let is_in_http = self.open.last().is_some_and(|open| open.name == "http");
        if closed.name == "server" && is_in_http {
            let rest = self.rest();
            let end = self.at + rest.find('\n').map_or(rest.len(), |end| end + 1);
            self.servers.push((closed.names, closed.start..end));
        }
    }

    fn word(&mut self, first: char) -> String {
        let quote = matches!(first, '"' | '\'').then_some(first);
        self.at += quote.map_or(0, char::len_utf8);
        let mut word = String::new();
        let mut before = None;
        while let Some(c) = self.rest().chars().next() {
            let is_end = match quote {
                Some(quote) => c == quote,
                None => c.is_whitespace() || c == ';' || c == '{' && before != Some('$'),
            };
            if is_end {
                self.at += quote.map_or(0, char::len_utf8);
                break;
            }
            self.at += c.len_utf8();
            if c == '\\'
                && let Some(escaped) = self.rest().chars().next()
            {
                self.at += escaped.len_utf8();
                word.push(escaped);
            } else {
                word.push(c);
            }
            before = Some(c);
        }
        word
    }

    /// Goes behind the end of a block of Lua, whose braces are balanced but for those in texts and comments.
    fn skip_lua(&mut self) {
        let mut depth = 1;
        while let Some(c) = self.rest().chars().next() {
            let skipped = match c {
                '"' | '\'' => {
                    let _text = self.word(c);
                    continue;
                }
                '-' if self.rest().starts_with("--") => self.until('\n'),
                '[' if self.rest().starts_with("[[") => {
                    let end = self.rest().find("]]").map(|at| at + 2);
                    end.unwrap_or_else(|| self.rest().len())
                }
                c => c.len_utf8(),
            };
            self.at += skipped;
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONF: &str = r#"
events { }
http {
    init_by_lua_block { x = "}" -- }
        y = {} }
    log_format up '{"a": "$b"}';
    ## start server a.test
    server {
        server_name "a.test" "b.test";
        location "/x{" {
            set $x "${y}z";
# a snippet }
if ($a ~ "x}") {
return 403;
}
        }
    }
    ## end server a.test
server { server_name "~^(?<subdomain>[\\w-]+)\\.b\\.test$"; }
}
stream {
    server { listen 1; }
}
"#;

    #[test]
    fn servers_are_found_whatever_stands_in_them() {
        let servers = servers(CONF);
        assert_eq!(servers.len(), 2);
        assert_eq!(servers[0].names, ["a.test", "b.test"]);
        let text = servers[0].text;
        assert!(text.starts_with("    server {\n"), "{text}");
        assert!(text.ends_with("        }\n    }\n"), "{text}");
        assert!(servers[1].text.starts_with("server { server_name \"~^"));
    }

    #[test]
    fn broken_text_does_no_harm() {
        for text in [
            "}",
            "http { server { \"",
            "http { server {",
            "a_by_lua_block { [[",
            "\\",
        ] {
            assert!(servers(text).is_empty(), "{text}");
        }
    }
}
