//! One directive of NGINX, for lists of them that are made by comparing settings.

use std::fmt;

use askama::filters::Safe;

use crate::value::Printed;

/// A directive, ready to be printed.
pub(crate) type Directive = Safe<DirectiveText>;

/// What a [`Directive`] holds.
pub(crate) struct DirectiveText {
    pub(crate) name: &'static str,
    arguments: Vec<Printed>,
}

/// A directive of the program's own name.
pub(crate) fn directive(
    name: &'static str,
    arguments: impl IntoIterator<Item = Printed>,
) -> Directive {
    Safe(DirectiveText {
        name,
        arguments: arguments.into_iter().collect(),
    })
}

impl fmt::Display for DirectiveText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        for argument in &self.arguments {
            write!(f, " {}", argument.0)?;
        }
        f.write_str(";")
    }
}

impl PartialEq for DirectiveText {
    fn eq(&self, other: &Self) -> bool {
        let texts = |it: &Self| {
            it.arguments
                .iter()
                .map(|argument| argument.0.clone())
                .collect::<Vec<_>>()
        };
        self.name == other.name && texts(self) == texts(other)
    }
}
