//! Host names of servers.

use std::{fmt, sync::Arc};

use regex::bytes::{Regex, RegexBuilder};
use serde::{Serialize, Serializer};
use thiserror::Error;

use crate::annotation::grammar::PATTERN;

/// A host that a server answers for: a DNS name, a wildcard `*.name`, or [`Host::CATCH_ALL`]; as an alias, `~` and a
/// regular expression, too.
///
/// Lower case always: NGINX compares server names without regard to case, so `Shop.test` and `shop.test` have to be
/// one server. Orders by bytes, which is the order of servers in the configuration.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host(Arc<str>);

/// Why a text is no [`Host`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{host:?} is not a host name: {fault}")]
pub struct HostError {
    host: String,
    fault: &'static str,
}

impl Host {
    /// The name of the server that answers for every host without a server of its own.
    pub const CATCH_ALL: &'static str = "_";

    /// The server for every host without a server of its own.
    #[must_use]
    pub fn catch_all() -> Self {
        Self(Self::CATCH_ALL.into())
    }

    /// Reads the host of an Ingress rule; an empty one is the catch-all.
    ///
    /// ```
    /// use ingress_model::Host;
    ///
    /// assert_eq!(Host::parse("Shop.Test").unwrap().as_str(), "shop.test");
    /// assert!(Host::parse("").unwrap().is_catch_all());
    /// assert!(Host::parse("*.shop.test").unwrap().is_wildcard());
    /// assert!(Host::parse("shop test;").is_err());
    /// ```
    ///
    /// # Errors
    /// When the text is neither a DNS name (RFC 1123: letters, digits, `-` and `.`; at most 253 bytes) nor one behind `*.`.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if text.is_empty() || text == Self::CATCH_ALL {
            return Ok(Self::catch_all());
        }
        let fault = |fault| HostError {
            host: text.chars().take(64).collect(),
            fault,
        };
        let name = text.strip_prefix("*.").unwrap_or(text);
        if text.len() > 253 {
            return Err(fault("longer than 253 bytes"));
        }
        for label in name.split('.') {
            if label.is_empty() {
                return Err(fault("a label is empty"));
            }
            if !label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-')
            {
                return Err(fault("only letters, digits, '-' and '.' may stand in it"));
            }
            if label.starts_with('-') || label.ends_with('-') {
                return Err(fault("a label starts or ends with '-'"));
            }
        }
        if text.bytes().any(|b| b.is_ascii_uppercase()) {
            return Ok(Self(text.to_ascii_lowercase().into()));
        }
        Ok(Self(text.into()))
    }

    /// Reads an alias: a name as [`Host::parse`] takes it, but not the catch-all, or `~` and a regular expression
    /// (NGINX docs: `server_name`).
    ///
    /// ```
    /// use ingress_model::Host;
    ///
    /// assert!(Host::parse_alias(r"~^shop-\d+\.test$").unwrap().is_expression());
    /// assert!(Host::parse_alias("~(").is_err());
    /// assert!(Host::parse_alias("_").is_err());
    /// ```
    ///
    /// # Errors
    /// When the text is neither, or has characters that no alias of ingress-nginx has.
    pub fn parse_alias(text: &str) -> Result<Self, HostError> {
        let fault = |fault| HostError {
            host: text.chars().take(64).collect(),
            fault,
        };
        let Some(expression) = text.strip_prefix('~') else {
            let host = Self::parse(text)?;
            return if host.is_catch_all() {
                Err(fault("it stands for every host"))
            } else {
                Ok(host)
            };
        };
        if text.len() > 253 {
            return Err(fault("longer than 253 bytes"));
        }
        let is_written_plainly = PATTERN.check(expression).is_ok();
        if expression.is_empty() || !is_written_plainly || compile(expression).is_err() {
            return Err(fault("what follows ~ is no regular expression"));
        }
        Ok(Self(text.into()))
    }

    /// The name, `*.` included.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the server for every other host.
    #[must_use]
    pub fn is_catch_all(&self) -> bool {
        &*self.0 == Self::CATCH_ALL
    }

    /// Whether this is `*.name`, which matches exactly one label in front of the name.
    #[must_use]
    pub fn is_wildcard(&self) -> bool {
        self.0.starts_with("*.")
    }

    /// Whether this is `~` and a regular expression.
    #[must_use]
    pub fn is_expression(&self) -> bool {
        self.0.starts_with('~')
    }

    /// Whether this is a regular expression that matches the name.
    pub(crate) fn expression_matches(&self, name: &str) -> bool {
        let expression = self.0.strip_prefix('~').map(compile);
        expression.is_some_and(|compiled| compiled.is_ok_and(|it| it.is_match(name.as_bytes())))
    }

    /// The name behind `*.`, for wildcards.
    #[must_use]
    pub fn wildcard_suffix(&self) -> Option<&str> {
        self.0.strip_prefix("*.")
    }
}

/// As NGINX reads it, which compares bytes, without regard to case.
fn compile(expression: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(expression)
        .case_insensitive(true)
        .unicode(false)
        .build()
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Host {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dns_names_are_hosts() {
        for (text, want) in [
            ("", Some("_")),
            ("_", Some("_")),
            ("a.test", Some("a.test")),
            ("A.TEST", Some("a.test")),
            ("*.a.test", Some("*.a.test")),
            ("*.test", Some("*.test")),
            ("*", None),
            ("a.*.test", None),
            ("*a.test", None),
            ("a..test", None),
            (".a", None),
            ("a.", None),
            ("a b", None),
            ("a;b", None),
            ("a\nb", None),
            ("a{", None),
            ("$host", None),
            ("-a.test", None),
            ("ä.test", None),
        ] {
            assert_eq!(
                Host::parse(text).ok().as_ref().map(Host::as_str),
                want,
                "{text:?}"
            );
        }
        assert!(Host::parse(&"a".repeat(254)).is_err());
    }

    #[test]
    fn aliases_may_be_expressions() {
        let alias = Host::parse_alias(r"~^shop-(a|b)[0-9]+\.Test$").unwrap();
        assert!(alias.expression_matches("shop-a12.test"));
        assert!(!alias.expression_matches("shop-c1.test"));
        assert!(!Host::parse("a.test").unwrap().expression_matches("a.test"));
        for bad in [
            "~", "~(", "~a b", "~a\"; #", "~a;", "~(?<x>a)", "~a\n", "_", "",
        ] {
            assert!(Host::parse_alias(bad).is_err(), "{bad:?}");
        }
        assert!(Host::parse_alias(&format!("~{}", "a".repeat(253))).is_err());
    }
}
