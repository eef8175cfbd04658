//! The last line of defence: what a template prints without a type of its own has to be a single harmless word.
//!
//! NGINX has no escape for text outside of quotes, so nothing is escaped here. A character that could end a word, start
//! a comment, a block or a variable makes the rendering fail. Quoting is done by the types in [`crate::value`].

use std::fmt;

/// The escaper of `*.conf` templates: refuses instead of escaping.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Nginx;

impl askama::filters::Escaper for Nginx {
    fn write_escaped_str<W: fmt::Write>(&self, mut dest: W, text: &str) -> fmt::Result {
        if text.bytes().all(is_word_byte) {
            dest.write_str(text)
        } else {
            Err(fmt::Error)
        }
    }
}

/// Whether a byte may stand in a word without quotes.
pub(crate) const fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'.' | b'_' | b'-' | b'/' | b':' | b'=' | b'+' | b'@' | b',' | b'!' | b'%'
        )
}

#[cfg(test)]
mod tests {
    use askama::Template;

    #[derive(Template)]
    #[template(source = "listen {{ port }};", ext = "conf")]
    struct Listen<'a> {
        port: &'a str,
    }

    #[test]
    fn what_could_end_a_word_is_refused() {
        for port in ["80", "[", "unix:/run/x.sock", "a=b", "127.0.0.1:80"] {
            let rendered = Listen { port }.render();
            assert_eq!(rendered.is_ok(), port != "[", "{port}");
        }
        for port in [
            "80; return 200",
            "80;",
            "80}",
            "{",
            "$port",
            "a\"",
            "a'",
            "a\\",
            "a#b",
            "a b",
            "a\n",
            "\u{1}",
            "ä",
            "a\0",
        ] {
            assert!(Listen { port }.render().is_err(), "{port:?}");
        }
    }
}
