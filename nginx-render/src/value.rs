//! The only texts that templates may print as they are. Each is made here, where its quoting is decided.
//!
//! NGINX reads a configuration word in double quotes with `\` as the escape of `"` and of itself; `\t`, `\r` and `\n`
//! stand for control characters, which are refused here. `$` has no escape: where a directive takes variables, a
//! literal one is written `${literal_dollar}`, a variable that the configuration defines.

use std::fmt;

use askama::filters::Safe;
use ingress_model::value::{Literal, Seconds, Snippet, Template};
use ipnet::IpNet;
use thiserror::Error;

use crate::{capabilities::Module, escape::is_word_byte};

/// A text that is ready to stand in a configuration file.
pub(crate) type Printed = Safe<Token>;

/// What a [`Printed`] holds: made by the functions of this module only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token(String);

impl Token {
    /// Its length in bytes, quotes included.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// A quoted text without its quotes.
    pub(crate) fn unquoted(&self) -> &str {
        let text = self.0.strip_prefix('"').unwrap_or(&self.0);
        text.strip_suffix('"').unwrap_or(text)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a text cannot stand in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unprintable {
    /// A line break or another control character.
    #[error("a control character (code {0}) stands in it")]
    Control(u32),
    /// Longer than NGINX's buffer for one word, once it is quoted.
    #[error("{0} bytes are more than NGINX reads as one word")]
    Length(usize),
    /// A path that NGINX would take for something else.
    #[error("a path starts with a slash")]
    NoSlash,
    /// What is asked for needs a module that NGINX lacks.
    #[error("NGINX lacks the module {0:?}")]
    Missing(Module),
    /// The name of an object that cannot be part of a file's name.
    #[error("the name of its Secret cannot be the name of a file")]
    FileName,
    /// A named group that would take the place of a variable that other locations use.
    #[error("its group {0:?} has the name of an NGINX variable")]
    Group(String),
}

/// NGINX reads configuration into a buffer of 4,096 bytes, and one word has to fit into it with its quotes.
const MAX_WORD: usize = 4_000;

/// Quoted; for directives that take no variables and for regular expressions: `$` stands for itself.
pub(crate) fn plain(text: &str) -> Result<Printed, Unprintable> {
    quoted(text, |_| Dollar::Plain)
}

/// Quoted; for directives that take variables: `$` stands for itself all the same.
pub(crate) fn literal(text: &str) -> Result<Printed, Unprintable> {
    quoted(text, |_| Dollar::Literal)
}

/// Quoted; `$name`, `${name}` and `$1` refer to variables, any other `$` stands for itself.
pub(crate) fn template(text: &str) -> Result<Printed, Unprintable> {
    quoted(text, |rest| {
        if starts_variable(rest) {
            Dollar::Plain
        } else {
            Dollar::Literal
        }
    })
}

/// Quoted, and of several lines; for directives that take no variables.
pub(crate) fn lines(text: &str) -> Result<Printed, Unprintable> {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' | '\t' => quoted.push(c),
            '\r' => {}
            c if c.is_control() => return Err(Unprintable::Control(c.into())),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    if quoted.len() > MAX_WORD {
        return Err(Unprintable::Length(quoted.len()));
    }
    Ok(Safe(Token(quoted)))
}

/// Without quotes if it needs none; for directives that take no variables.
pub(crate) fn argument(text: &str) -> Result<Printed, Unprintable> {
    if !text.is_empty() && text.len() <= MAX_WORD && text.bytes().all(is_word_byte) {
        return Ok(word(text));
    }
    plain(text)
}

/// Without quotes if it needs none; variables as in [`template`].
pub(crate) fn template_argument(value: &Template) -> Result<Printed, Unprintable> {
    let text = value.as_str();
    if !text.is_empty() && text.len() <= MAX_WORD && text.bytes().all(is_word_byte) {
        return Ok(word(text));
    }
    template(text)
}

/// Each as [`argument`].
pub(crate) fn arguments(texts: &[Literal]) -> Result<Vec<Printed>, Unprintable> {
    texts.iter().map(|text| argument(text.as_str())).collect()
}

/// Each as [`template_argument`].
pub(crate) fn template_arguments(texts: &[Template]) -> Result<Vec<Printed>, Unprintable> {
    texts.iter().map(template_argument).collect()
}

/// A text of the program's own: words, variables, quoted texts.
pub(crate) const fn constant(text: String) -> Printed {
    Safe(Token(text))
}

/// Something whose text is a single word by its type: a number, an address, a size.
pub(crate) fn word(value: impl fmt::Display) -> Printed {
    Safe(Token(value.to_string()))
}

/// A network, or the address that is all of it.
pub(crate) fn network(network: &IpNet) -> Printed {
    if network.prefix_len() == network.max_prefix_len() {
        return word(network.addr());
    }
    word(network)
}

/// `on` or `off`.
pub(crate) fn switch(on: bool) -> Printed {
    word(if on { "on" } else { "off" })
}

/// A time in seconds; zero without a unit.
pub(crate) fn time(seconds: Seconds) -> Printed {
    match seconds.0 {
        0 => word(0),
        _ => word(seconds),
    }
}

/// A time in the largest unit that gives a whole number, as people write it.
pub(crate) fn round_time(seconds: Seconds) -> Printed {
    match seconds.0 {
        0 => word(0),
        s if s % 3_600 == 0 => word(format_args!("{}h", s / 3_600)),
        s if s % 60 == 0 => word(format_args!("{}m", s / 60)),
        s => word(format_args!("{s}s")),
    }
}

/// A key of a `map`: a text, or a pattern behind `~`. Words that `map` knows itself lose their meaning.
pub(crate) fn map_key(text: &str) -> Result<Printed, Unprintable> {
    if text.starts_with('\\') || matches!(text, "default" | "hostnames" | "include" | "volatile") {
        return plain(&format!("\\{text}"));
    }
    plain(text)
}

/// Configuration as its author wrote it, without control characters but line breaks and tabs.
pub(crate) fn raw(snippet: &Snippet) -> Printed {
    let keep = |c: &char| matches!(c, '\n' | '\t') || !c.is_control();
    Safe(Token(snippet.as_str().chars().filter(keep).collect()))
}

/// One text of several printed ones: `prefix` is the program's own.
pub(crate) fn joined(prefix: &str, value: &Printed) -> Printed {
    Safe(Token(format!("{prefix}{}", value.0)))
}

/// One quoted text of several.
pub(crate) fn concatenated(parts: &[&Printed]) -> Printed {
    let text: String = parts.iter().map(|part| part.0.unquoted()).collect();
    Safe(Token(format!("\"{text}\"")))
}

/// The same text once more.
pub(crate) fn copy(printed: &Printed) -> Printed {
    Safe(printed.0.clone())
}

/// Whether the value refers to a group of the regular expression that matched last.
pub(crate) fn refers_to_group(value: &Template) -> bool {
    let text = value.as_str().as_bytes();
    text.windows(2)
        .any(|pair| matches!(pair, [b'$', b'1'..=b'9']))
        || text
            .windows(3)
            .any(|triple| matches!(triple, [b'$', b'{', b'1'..=b'9']))
}

enum Dollar {
    /// As it stands.
    Plain,
    /// By the variable that holds one.
    Literal,
}

fn quoted(text: &str, dollar: impl Fn(&str) -> Dollar) -> Result<Printed, Unprintable> {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for (at, c) in text.char_indices() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '$' => match dollar(text.get(at + 1..).unwrap_or_default()) {
                Dollar::Plain => quoted.push('$'),
                Dollar::Literal => quoted.push_str("${literal_dollar}"),
            },
            c if c.is_control() => return Err(Unprintable::Control(c.into())),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    if quoted.len() > MAX_WORD {
        return Err(Unprintable::Length(quoted.len()));
    }
    Ok(Safe(Token(quoted)))
}

/// Whether `rest`, the text behind a `$`, starts with what NGINX takes for the name of a variable.
fn starts_variable(rest: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    match rest.strip_prefix('{') {
        Some(rest) => rest.split_once('}').is_some_and(|(name, _)| {
            !name.is_empty() && name.bytes().all(is_name) && !name.starts_with('0')
        }),
        None => rest
            .bytes()
            .next()
            .is_some_and(|first| is_name(first) && first != b'0'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(printed: Result<Printed, Unprintable>) -> Option<String> {
        printed.ok().map(|printed| printed.0.0)
    }

    #[test]
    fn quotes_and_backslashes_are_escaped() {
        for (given, want) in [
            ("", Some(r#""""#)),
            ("a b;c}", Some(r#""a b;c}""#)),
            (r#"a"b\"#, Some(r#""a\"b\\""#)),
            (r"\n", Some(r#""\\n""#)),
            ("a$b", Some(r#""a$b""#)),
            ("a\nb", None),
            ("a\0", None),
            ("a\u{7f}", None),
            ("a\u{85}", None),
        ] {
            assert_eq!(text(plain(given)).as_deref(), want, "{given:?}");
        }
        assert!(plain(&"\\".repeat(2_000)).is_err());
        assert!(plain(&"a".repeat(3_900)).is_ok());
    }

    #[test]
    fn dollars() {
        for (given, as_literal, as_template) in [
            ("a$b", "a${literal_dollar}b", "a$b"),
            ("a${b}", "a${literal_dollar}{b}", "a${b}"),
            ("/$1", "/${literal_dollar}1", "/$1"),
            ("/$0", "/${literal_dollar}0", "/${literal_dollar}0"),
            ("/$", "/${literal_dollar}", "/${literal_dollar}"),
            ("/$-", "/${literal_dollar}-", "/${literal_dollar}-"),
            ("${", "${literal_dollar}{", "${literal_dollar}{"),
            ("${a", "${literal_dollar}{a", "${literal_dollar}{a"),
            ("${a-}", "${literal_dollar}{a-}", "${literal_dollar}{a-}"),
            (
                "$$a",
                "${literal_dollar}${literal_dollar}a",
                "${literal_dollar}$a",
            ),
        ] {
            assert_eq!(text(literal(given)), Some(format!("\"{as_literal}\"")));
            assert_eq!(text(template(given)), Some(format!("\"{as_template}\"")));
        }
    }

    #[test]
    fn an_address_is_written_without_a_prefix() {
        for (text, want) in [
            ("192.0.2.7/32", "192.0.2.7"),
            ("192.0.2.0/24", "192.0.2.0/24"),
            ("2001:db8::1/128", "2001:db8::1"),
            ("::/0", "::/0"),
        ] {
            assert_eq!(network(&text.parse().unwrap()).0.0, want);
        }
    }

    #[test]
    fn words_need_no_quotes() {
        assert_eq!(text(argument("http_502")).as_deref(), Some("http_502"));
        assert_eq!(text(argument("")).as_deref(), Some("\"\""));
        assert_eq!(text(argument("a;b")).as_deref(), Some("\"a;b\""));
        assert_eq!(round_time(Seconds(600)).0.0, "10m");
        assert_eq!(round_time(Seconds(7_200)).0.0, "2h");
        assert_eq!(round_time(Seconds(61)).0.0, "61s");
        assert_eq!(time(Seconds(0)).0.0, "0");
    }

    #[test]
    fn words_of_map_are_texts_as_keys() {
        assert_eq!(text(map_key("default")).as_deref(), Some(r#""\\default""#));
        assert_eq!(text(map_key(r"\a")).as_deref(), Some(r#""\\\\a""#));
        assert_eq!(text(map_key("~*bot")).as_deref(), Some("\"~*bot\""));
    }

    #[test]
    fn groups_are_noticed() {
        for (text, want) in [
            ("/$1", true),
            ("/${2}x", true),
            ("/$a", false),
            ("$", false),
            ("1$", false),
        ] {
            assert_eq!(
                refers_to_group(&Template::parse(text).unwrap()),
                want,
                "{text}"
            );
        }
    }
}
