//! Variables that are looked up although there are none.

use std::collections::{BTreeSet, HashMap};

use ingress_model::spelling;

use super::{
    Directives, Files, variables,
    words::{self, Block, Statement},
};
use crate::source_map::Source;

/// For so many names the one is looked for that may have been meant.
const MOST_HINTS: usize = 32;

/// How deep files may include others.
const MOST_NESTED: usize = 8;

/// The variables of a configuration that nobody defines.
pub(super) struct Variables {
    defined: BTreeSet<String>,
    /// Those that are unknown, and what may have been meant.
    unknown: HashMap<String, Option<String>>,
}

impl Variables {
    /// Looks for those that statements use. Where a snippet has NGINX read other files, these may define anything: none
    /// are unknown if one of them cannot be read.
    pub(super) fn of<'a>(
        statements: &[Statement],
        directives: &Directives,
        files: &dyn Files,
        source: impl Fn(usize) -> Option<&'a Source>,
    ) -> Self {
        let mut variables = Self {
            defined: BTreeSet::new(),
            unknown: HashMap::new(),
        };
        let is_snippet = |source: &Source| source.what.ends_with("-snippet");
        let including = statements.iter().filter(|statement| includes(statement));
        let including = including
            .filter(|statement| source(statement.line).is_some_and(is_snippet))
            .collect::<Vec<_>>();
        let mut included = BTreeSet::new();
        if !including
            .iter()
            .all(|statement| read_included(statement, files, MOST_NESTED, &mut included))
        {
            return variables;
        }
        variables.defined = variables::defined(statements);
        variables.defined.append(&mut included);
        let used: BTreeSet<_> = statements.iter().flat_map(variables::used).collect();
        let is_unknown =
            |name: &String| !variables.defined.contains(name) && !directives.has_variable(name);
        let unknown = used.into_iter().filter(is_unknown).enumerate();
        let unknown = unknown.map(|(number, name)| {
            let hint = (number < MOST_HINTS).then(|| variables.meant(&name));
            (name, hint.flatten())
        });
        variables.unknown = unknown.collect();
        variables
    }

    /// The uses of unknown variables.
    pub(super) fn used<'a>(
        &'a self,
        statements: &'a [Statement],
    ) -> impl Iterator<Item = (&'a Statement, String)> {
        let statements = statements.iter().filter(|_| !self.unknown.is_empty());
        statements.flat_map(|statement| {
            let names = variables::used(statement);
            names
                .filter(|name| self.unknown.contains_key(name))
                .map(move |name| (statement, name))
        })
    }

    /// What to say of an unknown one.
    pub(super) fn reason(&self, name: &str) -> String {
        let hint = self.unknown.get(name).and_then(Option::as_ref);
        let hint = hint.map(|meant| format!("; did you mean ${meant}?"));
        format!("unknown variable \"${name}\"{}", hint.unwrap_or_default())
    }

    fn meant(&self, name: &str) -> Option<String> {
        let documented = variables::DOCUMENTED.iter().copied();
        let defined = self.defined.iter().map(String::as_str);
        let meant = spelling::nearest(name, documented);
        meant
            .or_else(|| spelling::nearest(name, defined))
            .map(str::to_owned)
    }
}

/// Takes in what the file of a directive defines, and what those that it includes do. Answers whether all could be read.
fn read_included(
    statement: &Statement,
    files: &dyn Files,
    depth: usize,
    defined: &mut BTreeSet<String>,
) -> bool {
    let Some(path) = statement
        .words
        .get(1)
        .filter(|_| statement.name() == "include")
    else {
        return false;
    };
    let Some(text) = files.read(path).filter(|_| depth > 0) else {
        return false;
    };
    let Ok(statements) = words::read(&text, statement.block) else {
        return false;
    };
    defined.append(&mut variables::defined(&statements));
    let mut including = statements.iter().filter(|statement| includes(statement));
    including.all(|statement| read_included(statement, files, depth - 1, defined))
}

/// Whether a directive has NGINX read another file, which may define anything.
pub(super) fn includes(statement: &Statement) -> bool {
    matches!(statement.name(), "include" | "load_module")
        && !matches!(statement.block, Block::Map | Block::Free)
}
