//! Typed values that end up in NGINX's configuration. Nothing reaches a template as a bare string by accident: a
//! [`Literal`] is quoted and cannot refer to variables, a [`Template`] is quoted but may, and only a [`Snippet`] is raw.

use std::{fmt, sync::Arc, time::Duration};

use serde::{Serialize, Serializer};
use thiserror::Error;

use crate::scalar;

/// Why a text is not the value that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ValueError {
    /// Not a size such as `8k`.
    #[error("{0:?} is not a size: digits, then at most one of k, m and g")]
    Size(String),
    /// Text with a line break or another control character.
    #[error("a control character stands in it (code {0})")]
    Control(u32),
    /// Text that is too long.
    #[error("{0} bytes are too many (at most {1})")]
    Length(usize, usize),
    /// Nothing where something has to stand.
    #[error("it is empty")]
    Empty,
    /// Not a boolean.
    #[error("{0:?} is not a boolean: true or false")]
    Boolean(String),
    /// Not a whole number.
    #[error("{0:?} is not a whole number")]
    Integer(String),
    /// A number outside of what makes sense.
    #[error("{0} is not between {1} and {2}")]
    Range(i64, i64, i64),
    /// Not a time such as `90s`.
    #[error("{0:?} is not a time: whole seconds, or numbers with the units s, m, h, d, w, M and y")]
    Time(String),
    /// Not one of the words that may stand there.
    #[error("{0:?} is not one of {1}")]
    Word(String, String),
    /// A character that may not stand there.
    #[error("{0:?} may not stand in it: only {1} may")]
    Character(char, &'static str),
    /// Not an address or a network.
    #[error("{0:?} is neither an address nor a network such as 10.0.0.0/8")]
    Network(String),
    /// Not the name of an object.
    #[error("{0:?} is not of the form namespace/name")]
    ObjectName(String),
    /// Text that breaks a rule of its own.
    #[error("{0}")]
    Rule(&'static str),
}

impl ValueError {
    /// As much of a text as an error should repeat.
    pub(crate) fn excerpt(text: &str) -> String {
        text.chars().take(64).collect()
    }
}

/// Whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Seconds(pub u32);

impl fmt::Display for Seconds {
    /// As NGINX reads a time: `60s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", self.0)
    }
}

/// A time as NGINX reads it: numbers with the units y, M, w, d, h, m, s and ms, larger ones first; a number alone is in
/// seconds (NGINX docs: "Configuration file measurement units"). It is written as it was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Time(Arc<str>);

impl Time {
    /// Reads a time.
    ///
    /// # Errors
    /// When the text is anything else, or more seconds than 32 bits can count.
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        scalar::milliseconds(text).map(|_| Self(text.trim().into()))
    }

    /// So many seconds.
    #[must_use]
    pub fn seconds(count: u32) -> Self {
        Self(format!("{count}s").into())
    }

    /// So many minutes.
    #[must_use]
    pub fn minutes(count: u32) -> Self {
        Self(format!("{count}m").into())
    }

    /// So many hours.
    #[must_use]
    pub fn hours(count: u32) -> Self {
        Self(format!("{count}h").into())
    }

    /// How long it is.
    #[must_use]
    pub fn duration(&self) -> Duration {
        Duration::from_millis(scalar::milliseconds(&self.0).unwrap_or(u64::MAX))
    }

    /// The text, as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A number of bytes as NGINX reads it: digits and at most one of the letters k, m, g (NGINX docs: "Configuration
/// file measurement units"). `0` commonly means "no limit". It is written as it was given; `1m` and `1M` are equal.
#[derive(Clone, Debug, Serialize)]
pub struct Size(Arc<str>);

impl PartialEq for Size {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for Size {}

impl Size {
    /// Reads a size.
    ///
    /// # Errors
    /// When the text is anything else than digits and a unit, or would overflow 63 bits.
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        let fault = || ValueError::Size(ValueError::excerpt(text));
        let digits = text.trim_end_matches(['k', 'K', 'm', 'M', 'g', 'G']);
        if text.len() - digits.len() > 1
            || digits.is_empty()
            || !digits.bytes().all(|b| b.is_ascii_digit())
        {
            return Err(fault());
        }
        let size = Self(text.into());
        size.checked_bytes().map(|_| size.clone()).ok_or_else(fault)
    }

    /// So many times 1,024 bytes.
    #[must_use]
    pub fn kib(count: u32) -> Self {
        Self(format!("{count}k").into())
    }

    /// So many times 1,048,576 bytes.
    #[must_use]
    pub fn mib(count: u32) -> Self {
        Self(format!("{count}m").into())
    }

    /// The number of bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.checked_bytes().unwrap_or(u64::MAX)
    }

    fn checked_bytes(&self) -> Option<u64> {
        let (digits, unit) = match self.0.as_bytes().last() {
            Some(b'k' | b'K') => (&self.0[..self.0.len() - 1], 1 << 10),
            Some(b'm' | b'M') => (&self.0[..self.0.len() - 1], 1 << 20),
            Some(b'g' | b'G') => (&self.0[..self.0.len() - 1], 1 << 30),
            _ => (&*self.0, 1),
        };
        digits
            .parse::<u64>()
            .ok()?
            .checked_mul(unit)
            .filter(|bytes| *bytes < 1 << 63)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Text that NGINX takes as it stands: quoted when rendered, its `$` never start a variable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Literal(Arc<str>);

/// Text in which `$name` refers to an NGINX variable: quoted when rendered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Template(Arc<str>);

/// Configuration written by a user, inserted raw. Only the snippet annotations and keys make one, when allowed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Snippet(Arc<str>);

/// Text that nobody but NGINX may see, such as password hashes and private keys: neither printed nor serialised.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Confidential(Arc<str>);

impl Confidential {
    /// A text as it stands.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The text, for the file that NGINX reads.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Confidential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(confidential)")
    }
}

impl Serialize for Confidential {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("(confidential)")
    }
}

/// The longest text that a quoted value may have, in bytes. NGINX reads a configuration token into a buffer of 4,096
/// bytes and refuses longer ones.
pub const MAX_TEXT: usize = 3_900;

fn check_text(text: &str) -> Result<(), ValueError> {
    if text.len() > MAX_TEXT {
        return Err(ValueError::Length(text.len(), MAX_TEXT));
    }
    match text.chars().find(|c| c.is_control()) {
        Some(c) => Err(ValueError::Control(c.into())),
        None => Ok(()),
    }
}

impl Literal {
    /// A text of the program's own, not checked again.
    #[must_use]
    pub fn constant(text: &'static str) -> Self {
        Self(text.into())
    }

    /// Takes a text of at most [`MAX_TEXT`] bytes without control characters.
    ///
    /// # Errors
    /// When it is longer or holds a control character (a line break, a NUL).
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        check_text(text).map(|()| Self(text.into()))
    }

    /// The text, unquoted.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Template {
    /// A text of the program's own, not checked again.
    #[must_use]
    pub fn constant(text: &'static str) -> Self {
        Self(text.into())
    }

    /// Takes a text of at most [`MAX_TEXT`] bytes without control characters.
    ///
    /// # Errors
    /// When it is longer or holds a control character (a line break, a NUL).
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        check_text(text).map(|()| Self(text.into()))
    }

    /// The text, unquoted.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Snippet {
    /// Takes the user's configuration; `None` when there is nothing but white space.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.into()))
    }

    /// The raw text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, want) in [
            ("0", Some(0)),
            ("10", Some(10)),
            ("8k", Some(8192)),
            ("8K", Some(8192)),
            ("1m", Some(1 << 20)),
            ("2g", Some(2 << 30)),
            ("", None),
            ("k", None),
            ("1kk", None),
            ("1b", None),
            ("1 k", None),
            ("-1", None),
            ("1;", None),
            ("99999999999999999999", None),
            ("9999999999g", None),
        ] {
            assert_eq!(
                Size::parse(text).ok().map(|size| size.bytes()),
                want,
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_time_is_written_as_it_was_given() {
        for (text, want) in [
            ("120", 120_000),
            ("2m", 120_000),
            ("1h 30m", 5_400_000),
            ("1s500ms", 1_500),
        ] {
            let time = Time::parse(text).unwrap();
            assert_eq!(time.as_str(), text);
            assert_eq!(time.duration(), Duration::from_millis(want), "{text}");
        }
        assert_eq!(Time::parse("10m").unwrap(), Time::minutes(10));
        assert!(Time::parse("soon").is_err());
    }

    #[test]
    fn a_size_is_written_as_it_was_given() {
        let size = Size::parse("1M").unwrap();
        assert_eq!(size.to_string(), "1M");
        assert_eq!(size, Size::mib(1));
        assert_ne!(size, Size::kib(1_024));
    }

    #[test]
    fn what_is_confidential_is_not_shown() {
        let key = Confidential::new("hunter2");
        assert_eq!(format!("{key:?}"), "(confidential)");
        assert_eq!(serde_json::to_string(&key).unwrap(), "\"(confidential)\"");
        assert_eq!(key.reveal(), "hunter2");
    }

    #[test]
    fn quoted_values_hold_no_control_characters() {
        assert!(Literal::parse("a \"quoted\" $value; }").is_ok());
        assert_eq!(Literal::parse("a\nb"), Err(ValueError::Control(10)));
        assert_eq!(Template::parse("a\0b"), Err(ValueError::Control(0)));
        assert!(Template::parse(&"x".repeat(MAX_TEXT + 1)).is_err());
    }
}
