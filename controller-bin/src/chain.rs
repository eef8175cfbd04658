//! An error with all its causes, on one line.

use std::error::Error;

/// "what failed: why: why that".
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let further = error.to_string();
        // Some libraries repeat the cause in the text of what it caused, perhaps in brackets.
        if !bare(&text).ends_with(bare(&further)) {
            text.push_str(": ");
            text.push_str(&further);
        }
        cause = error.source();
    }
    text
}

fn bare(text: &str) -> &str {
    text.trim_end_matches(')')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Link {
        #[error("end")]
        End,
        #[error("middle")]
        Middle(#[source] Box<Self>),
        #[error("repeats: {0}")]
        Repeats(#[source] Box<Self>),
        #[error("either (one) or ({0})")]
        Brackets(#[source] Box<Self>),
    }

    #[test]
    fn causes_follow_once() {
        let link = Link::Repeats(Box::new(Link::Middle(Box::new(Link::End))));
        assert_eq!(chain(&link), "repeats: middle: end");
        let link = Link::Brackets(Box::new(Link::Repeats(Box::new(Link::End))));
        assert_eq!(chain(&link), "either (one) or (repeats: end)");
    }
}
