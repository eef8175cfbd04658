//! Paths that are regular expressions, as far as NGINX's library and ours see them with the same eyes.

use regex::bytes::RegexBuilder;

/// The expression of a path whose author means it as it is written, on a host where another Ingress makes all paths
/// expressions. Where it does not match its own text, as `/a$b` does not, it matches that too: what it guards must not
/// fall to shorter paths. Where it is no expression at all, as `/a(b` is not, it matches nothing but its text, rather
/// than being refused for what another Ingress asks. `None` where it is as it should be.
pub(crate) fn with_own_text(path: &str) -> Option<String> {
    // A dot matches itself. That most paths do is known without compiling them at each merge.
    let is_plain = |byte: u8| !br"\^$*+?()[]{}|".contains(&byte);
    if path.bytes().all(is_plain) {
        return None;
    }
    if repeats_repetition(path) {
        return Some(regex::escape(path));
    }
    match matches(path, path.as_bytes()) {
        Some(true) => None,
        Some(false) => Some(format!("(?:{path}|{})", regex::escape(path))),
        None => is_surely_invalid(path).then(|| regex::escape(path)),
    }
}

/// Whether `~* "^path"` matches; `None` where NGINX's library may see the expression with other eyes than ours.
pub(crate) fn matches(expression: &str, path: &[u8]) -> Option<bool> {
    if is_peculiar(expression) {
        return None;
    }
    // NGINX sees bytes, and no line break counts as the end.
    let expression = RegexBuilder::new(&format!("^{expression}"))
        .case_insensitive(true)
        .unicode(false)
        .build()
        .ok()?;
    Some(expression.is_match(path))
}

/// Whether an expression that both libraries take means different things to them: possessive repetition, operators
/// within sets, and the escapes `\<` and `\>`.
fn is_peculiar(expression: &str) -> bool {
    let possessive = ["*+", "++", "?+", "}+"];
    let sets = ["&&", "--", "~~"];
    let words = ["\\<", "\\>"];
    let nested = expression.matches('[').count() > expression.matches("[:").count()
        && expression.split(']').any(|part| {
            part.replace("\\[", "")
                .replace("[:", "")
                .matches('[')
                .count()
                > 1
        });
    let mut peculiar = possessive.iter().chain(&sets).chain(&words);
    nested || peculiar.any(|text| expression.contains(text))
}

/// Whether NGINX's library, too, refuses a text that ours refuses.
fn is_surely_invalid(text: &str) -> bool {
    is_simple(text) && regex::Regex::new(text).is_err()
}

/// Whether a text such as `/static/**` repeats a repetition, which only our library takes.
fn repeats_repetition(text: &str) -> bool {
    is_simple(text) && ["**", "+*", "?*"].iter().any(|it| text.contains(it))
}

/// Whether a text has nothing that only NGINX's library may read. One that has may match more than its text, and those
/// requests must not fall to shorter paths.
fn is_simple(text: &str) -> bool {
    let has_peculiar_syntax = ["\\", "(?", "(*", "{"].iter().any(|it| text.contains(it));
    // Of what stands between brackets, the libraries have different notions, and of how deep groups may be nested.
    let has_set = text.contains('[') && text.contains(']');
    !has_peculiar_syntax && !has_set && text.matches('(').count() < 50
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_matches_its_own_text() {
        for path in ["/d$e", "/x*y", "/q?r", "/u^v", "/w{2}", "/y\\z", "/[a-z]+"] {
            let expression = with_own_text(path).unwrap();
            assert_eq!(matches(&expression, path.as_bytes()), Some(true), "{path}");
        }
        let expression = with_own_text("/[a-z]+/").unwrap();
        assert_eq!(matches(&expression, b"/word/"), Some(true));
        for path in ["/", "/a-b", "/a.b", "/a&b#c~d", "/a|b", "/a/(.*)", "/(?!a)"] {
            assert_eq!(with_own_text(path), None, "{path}");
        }
    }

    #[test]
    fn a_path_that_is_no_expression_is_its_text() {
        for (path, want) in [
            ("/a(b", r"/a\(b"),
            ("/a)b", r"/a\)b"),
            ("/a[b", r"/a\[b"),
            ("/(+)", r"/\(\+\)"),
            ("/ä(b", r"/ä\(b"),
            ("/static/**", r"/static/\*\*"),
            ("/a+*", r"/a\+\*"),
        ] {
            assert_eq!(with_own_text(path).as_deref(), Some(want));
            assert_eq!(matches(want, path.as_bytes()), Some(true), "{path}");
        }
        // Some of these are expressions to NGINX's library.
        for path in [
            "/(?=a)(",
            r"/a\Kb(",
            "/a(*ACCEPT)",
            "/a{(",
            "/[a[b]",
            "/a++",
            "/a*?",
            r"/\**",
            "/(?:a**)",
        ] {
            assert_eq!(with_own_text(path), None, "{path}");
        }
    }
}
