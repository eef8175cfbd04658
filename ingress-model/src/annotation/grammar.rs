//! Which characters the text of an annotation may have.

use crate::value::{Literal, ValueError};

/// A set of characters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grammar {
    /// Characters besides ASCII letters and digits.
    marks: &'static str,
    /// The set in words, for errors.
    words: &'static str,
}

/// Names, addresses, paths.
pub(crate) const PLAIN: Grammar = Grammar {
    marks: "-._~/: ",
    words: "letters, digits and -._~/:",
};

/// URLs without variables.
pub(crate) const URL: Grammar = Grammar {
    marks: "-._~/:,?&=",
    words: "letters, digits and -._~/:,?&=",
};

/// Several of them, with spaces between.
pub(crate) const URLS: Grammar = Grammar {
    marks: "-._~/:,?&= ",
    words: "letters, digits, spaces and -._~/:,?&=",
};

/// Paths with captures such as `$1`.
pub(crate) const CAPTURES: Grammar = Grammar {
    marks: "-._~/:$",
    words: "letters, digits and -._~/:$",
};

/// Regular expressions and what they match.
pub(crate) const PATTERN: Grammar = Grammar {
    marks: "-._~/:^$[](){}*+?|&=\\",
    words: "letters, digits and -._~/:^$[](){}*+?|&=\\",
};

/// Regular expressions and their replacements, with spaces between.
pub(crate) const COOKIES: Grammar = Grammar {
    marks: "-._~/:,^$[](){}*+?|&=\\!<>@% ",
    words: "letters, digits, spaces and -._~/:,^$[](){}*+?|&=\\!<>@%",
};

/// Text and variables.
pub(crate) const VARIABLES: Grammar = Grammar {
    marks: "-_${} ",
    words: "letters, digits and -_${}",
};

/// OpenSSL cipher lists.
pub(crate) const CIPHERS: Grammar = Grammar {
    marks: "!:+-_@=",
    words: "letters, digits and !:+-_@=",
};

impl Grammar {
    /// ASCII letters and digits, and these marks; `words` says the same for errors.
    pub(crate) const fn new(marks: &'static str, words: &'static str) -> Self {
        Self { marks, words }
    }

    /// Whether all characters of the text are in the set.
    ///
    /// # Errors
    /// With the first character that is not.
    pub(crate) fn check(self, text: &str) -> Result<(), ValueError> {
        match text
            .chars()
            .find(|c| !c.is_ascii_alphanumeric() && !self.marks.contains(*c))
        {
            Some(c) => Err(ValueError::Character(c, self.words)),
            None => Ok(()),
        }
    }
}

/// An OpenSSL cipher list. NGINX does not start with commands behind `@` that OpenSSL does not know (OpenSSL docs:
/// `openssl-ciphers`, "CIPHER LIST FORMAT").
///
/// # Errors
/// What may not stand in it.
pub(crate) fn ciphers(list: &str) -> Result<Literal, ValueError> {
    CIPHERS.check(list)?;
    for (_, command) in list.split(':').filter_map(|item| item.split_once('@')) {
        let level = command.strip_prefix("SECLEVEL=");
        let is_level = level.is_some_and(|level| matches!(level.as_bytes(), [b'0'..=b'5']));
        if !is_level && command != "STRENGTH" {
            let known = "@STRENGTH, @SECLEVEL=0 to @SECLEVEL=5";
            return Err(ValueError::Word(format!("@{command}"), known.into()));
        }
    }
    Literal::parse(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_ends_a_directive_is_in_any_set() {
        for grammar in [
            PLAIN, URL, URLS, CAPTURES, PATTERN, COOKIES, VARIABLES, CIPHERS,
        ] {
            assert!(grammar.check("aZ09-").is_ok());
            for bad in ["a;", "a\"", "a'", "a#", "a\nb", "a\rb", "a\0", "ä", "a\t"] {
                assert!(grammar.check(bad).is_err(), "{grammar:?} {bad:?}");
            }
        }
    }
}
