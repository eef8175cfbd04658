//! What NGINX would refuse, found without NGINX: for an admission webhook, which has neither the time nor the right to
//! run it on text that nobody has accepted yet.
//!
//! The file is read as NGINX reads it (words, quotes, blocks); regular expressions are compiled by PCRE2, which NGINX
//! uses as well; variables have to be NGINX's or defined somewhere. Directives of snippets are held against the tables of
//! the NGINX that is there (`program`): they have to exist, to stand where they may, and to have as many arguments of such a
//! kind as they take; what may stand once must not stand twice, and zones of shared memory have to be defined. Whoever runs
//! beside NGINX has [`Files`] looked for, too. Nothing found does not mean that NGINX takes the file: it knows more.

mod commands;
mod directives;
mod program;
mod trespass;
mod unknown;
mod values;
mod variables;
mod whole;
mod words;

use std::{
    borrow::Cow,
    cell::LazyCell,
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use pcre2::bytes::RegexBuilder;

use crate::{
    rendered::Rendered,
    source_map::Source,
    syntax::{
        whole::Whole,
        words::{Block, Statement},
    },
};

pub use self::{directives::Directives, words::Broken};

/// Something that NGINX would refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Whose it is.
    pub source: Arc<Source>,
    /// What is wrong. Lower case, no full stop.
    pub reason: String,
    /// The variable that does not exist, in lower case, if that is what is wrong. It is the source's own fault only if its
    /// author names it: values of the ConfigMap stand among what belongs to Ingresses.
    pub variable: Option<String>,
}

/// Files that configurations name, as NGINX would find them.
pub trait Files {
    /// Whether there is such a file or directory; `None` if that is not known here.
    fn is_there(&self, path: &str) -> Option<bool>;

    /// The text of a file that a configuration includes; `None` if that is not known here.
    fn read(&self, path: &str) -> Option<String>;
}

/// Files of a machine that is not at hand.
struct UnknownFiles;

impl Files for UnknownFiles {
    fn is_there(&self, _: &str) -> Option<bool> {
        None
    }

    fn read(&self, _: &str) -> Option<String> {
        None
    }
}

/// What NGINX would refuse of the main file, as far as it belongs to somebody, wherever it runs. One fault a source is
/// told.
#[must_use]
pub fn check(rendered: &Rendered, directives: &Directives) -> Vec<Fault> {
    check_with_files(rendered, directives, &UnknownFiles)
}

/// [`check`], where NGINX's files are at hand.
#[must_use]
pub fn check_with_files(
    rendered: &Rendered,
    directives: &Directives,
    files: &dyn Files,
) -> Vec<Fault> {
    let mut faults = Faults::default();
    let unbalanced = snippets(rendered, directives, &mut faults);
    let text = without(&rendered.main, &unbalanced);
    let Ok(statements) = words::read(&text, Block::Main) else {
        return faults.found;
    };
    let lines = LazyCell::new(|| rendered.source_map.by_line());
    for statement in &statements {
        if let Some(reason) = expression_fault(statement)
            && let Some(source) = lines.get(statement.line)
        {
            faults.add(source, || Fault::new(source, reason));
        }
    }
    let raw: BTreeMap<_, _> = rendered
        .source_map
        .raw()
        .map(|(source, first, last)| (first, (last, source)))
        .collect();
    let snippet = |line: usize| {
        let (first, (last, source)) = raw.range(..=line).next_back()?;
        (line <= *last).then_some((*source, line - first + 1))
    };
    let whole = Whole {
        statements: &statements,
        directives,
        files,
        is_raw: &|line| snippet(line).is_some(),
    };
    let trespasses = trespass::faults(&statements, |line| snippet(line).is_some());
    for (line, reason) in whole.faults().into_iter().chain(trespasses) {
        if let Some((source, line)) = snippet(line) {
            faults.add(source, || {
                Fault::new(source, format!("line {line}: {reason}"))
            });
        }
    }
    let unknown = unknown::Variables::of(&statements, directives, files, |line| {
        lines.get(line).map(|source| &**source)
    });
    for (statement, name) in unknown.used(&statements) {
        if let Some(source) = lines.get(statement.line) {
            faults.add(source, || Fault {
                variable: Some(name.clone()),
                ..Fault::new(source, unknown.reason(&name))
            });
        }
    }
    faults.found
}

/// What NGINX takes of snippets, but must not be given: by a `listen` at one of the controller's own ports, or by the
/// `server_name` of another host, a snippet gets the requests of others, those by which NGINX is told of endpoints and keys
/// among them. [`check`] finds it, too.
#[must_use]
pub fn trespasses(rendered: &Rendered) -> Vec<Fault> {
    let raw: Vec<_> = rendered.source_map.raw().collect();
    let lines: Vec<_> = rendered.main.lines().collect();
    let is_possible = |first: usize, last: usize| {
        let text = lines.get(first.saturating_sub(1)..last);
        text.is_some_and(|text| text.iter().any(|line| trespass::is_possible(line)))
    };
    if !raw
        .iter()
        .any(|(_, first, last)| is_possible(*first, *last))
    {
        return Vec::new();
    }
    let raw: BTreeMap<_, _> = raw.into_iter().map(|it| (it.1, it)).collect();
    let snippet = |line: usize| {
        let (_, it) = raw.range(..=line).next_back()?;
        (line <= it.2).then_some(*it)
    };
    let statements = words::read(&rendered.main, Block::Main).unwrap_or_default();
    let found = trespass::faults(&statements, |line| snippet(line).is_some());
    let faults = found.into_iter().filter_map(|(line, reason)| {
        let (source, first, _) = snippet(line)?;
        let line = line - first + 1;
        Some(Fault::new(source, format!("line {line}: {reason}")))
    });
    faults.collect()
}

/// Whose parts of the main file name a variable (in lower case, without `$`). Nobody's, if the file cannot be read.
#[must_use]
pub fn users(rendered: &Rendered, variable: &str) -> Vec<Arc<Source>> {
    let statements = words::read(&rendered.main, Block::Main).unwrap_or_default();
    let lines = rendered.source_map.by_line();
    let mut seen = HashSet::new();
    let users = statements
        .iter()
        .filter(|statement| statement.words.iter().any(|word| mentions(word, variable)))
        .filter_map(|statement| lines.get(statement.line))
        .filter(|source| seen.insert(Arc::as_ptr(source)));
    users.cloned().collect()
}

/// Whether a text names a variable (in lower case, without `$`).
///
/// ```
/// use nginx_render::syntax::mentions;
///
/// assert!(mentions("https://${Host}/x", "host"));
/// assert!(!mentions("$hostname", "host"));
/// ```
#[must_use]
pub fn mentions(text: &str, variable: &str) -> bool {
    variables::named(text).any(|name| name.eq_ignore_ascii_case(variable))
}

/// Whether a piece of configuration may define a variable (in lower case, without `$`). What cannot be read defines none.
///
/// ```
/// use nginx_render::syntax::defines;
///
/// assert!(defines("set $tenant a;", "tenant"));
/// assert!(!defines("return 200 $tenant;", "tenant"));
/// ```
#[must_use]
pub fn defines(text: &str, variable: &str) -> bool {
    let statements = words::read(text, Block::Main).unwrap_or_default();
    variables::defined(&statements).contains(variable) || statements.iter().any(unknown::includes)
}

/// The names of all directives of a configuration, in the order of the text: what is not among them was read as part of a
/// value.
///
/// # Errors
///
/// When a block or a quote is not closed, or something stands where a directive has to end.
///
/// ```
/// use nginx_render::syntax::names;
///
/// let text = r#"location "/; deny all;" { return 204; }"#;
/// assert_eq!(names(text)?, ["location", "return"]);
/// # Ok::<_, nginx_render::syntax::Broken>(())
/// ```
pub fn names(text: &str) -> Result<Vec<String>, Broken> {
    let statements = words::read(text, Block::Main)?.into_iter();
    Ok(statements
        .map(|statement| statement.name().to_owned())
        .collect())
}

/// Faults, one a source.
#[derive(Default)]
struct Faults {
    found: Vec<Fault>,
    /// Whose they are.
    sources: HashSet<*const Source>,
}

impl Fault {
    fn new(source: &Arc<Source>, reason: String) -> Self {
        Self {
            source: Arc::clone(source),
            reason,
            variable: None,
        }
    }
}

impl Faults {
    /// Adds a fault, unless its source has one.
    fn add(&mut self, source: &Arc<Source>, fault: impl FnOnce() -> Fault) {
        if self.sources.insert(Arc::as_ptr(source)) {
            self.found.push(fault());
        }
    }
}

/// Looks at snippets one by one: a brace too many shows only far behind otherwise. Answers the first and last lines of
/// those that do not close what they open, or close more.
fn snippets(
    rendered: &Rendered,
    directives: &Directives,
    faults: &mut Faults,
) -> Vec<(usize, usize)> {
    let lines: Vec<_> = rendered.main.lines().collect();
    let mut unbalanced = Vec::new();
    for (source, first, last) in rendered.source_map.raw() {
        let Some(text) = lines.get(first.saturating_sub(1)..last) else {
            continue;
        };
        let text = text.join("\n");
        if words::read(&text, Block::Main).is_err() {
            unbalanced.push((first, last));
        }
        if let Some(reason) = snippet_fault(&text, source.what, directives) {
            faults.add(source, || Fault::new(source, reason));
        }
    }
    unbalanced
}

/// The text with nothing in these lines, which keep their numbers.
fn without<'a>(text: &'a str, ranges: &[(usize, usize)]) -> Cow<'a, str> {
    if ranges.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut lines: Vec<_> = text.lines().collect();
    for (first, last) in ranges {
        if let Some(within) = lines.get_mut(first.saturating_sub(1)..*last) {
            within.fill("");
        }
    }
    Cow::Owned(lines.join("\n"))
}

fn snippet_fault(text: &str, what: &str, directives: &Directives) -> Option<String> {
    let around = match what {
        "server-snippet" => Block::Server,
        "http-snippet" => Block::Http,
        "main-snippet" => Block::Main,
        "stream-snippet" => Block::Stream,
        _ => Block::Location,
    };
    let statements = match words::read(text, around) {
        Ok(statements) => statements,
        Err(broken) => return Some(broken.to_string()),
    };
    statements.iter().find_map(|statement| {
        let reason = directives
            .fault(statement)
            .or_else(|| expression_fault(statement))?;
        Some(format!("line {}: {reason}", statement.line))
    })
}

/// What is wrong with the regular expressions of a statement.
fn expression_fault(statement: &Statement) -> Option<String> {
    let words: Vec<&str> = statement.words.iter().map(String::as_str).collect();
    match (statement.block, words.as_slice()) {
        (Block::Map, [key, ..]) => {
            let pattern = key.strip_prefix('~')?;
            let pattern = pattern.strip_prefix('*').unwrap_or(pattern);
            compile_fault(pattern)
        }
        (Block::Free, _) => None,
        (
            _,
            ["location", "~" | "~*", pattern]
            | ["rewrite", pattern, ..]
            | ["if", .., "~" | "~*" | "!~" | "!~*", pattern, ")"],
        ) => compile_fault(pattern),
        (_, ["location", joined]) => {
            let pattern = joined.strip_prefix('~')?;
            compile_fault(pattern.strip_prefix('*').unwrap_or(pattern))
        }
        (_, ["server_name", names @ ..]) => names
            .iter()
            .filter_map(|name| name.strip_prefix('~'))
            .find_map(compile_fault),
        (_, ["if", .., "~" | "~*" | "!~" | "!~*", pattern]) => {
            compile_fault(pattern.strip_suffix(')').unwrap_or(pattern))
        }
        _ => None,
    }
}

/// Whether PCRE2, with which NGINX compiles them, takes a regular expression.
///
/// ```
/// use nginx_render::syntax::is_expression;
///
/// assert!(is_expression("^/cart/([0-9]+)") && !is_expression("^/cart/("));
/// ```
#[must_use]
pub fn is_expression(pattern: &str) -> bool {
    compile_fault(pattern).is_none()
}

/// What PCRE2 says against a regular expression.
fn compile_fault(pattern: &str) -> Option<String> {
    let error = RegexBuilder::new().build(pattern).err()?;
    let said = error.to_string();
    let said = said.rsplit(": ").next().unwrap_or_default();
    Some(format!(
        "{pattern:?} is no regular expression: {said}{}",
        error
            .offset()
            .map(|offset| format!(" at offset {offset}"))
            .unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expression(text: &str) -> Option<String> {
        let statements = words::read(text, Block::Main).unwrap();
        statements.iter().find_map(expression_fault)
    }

    #[test]
    fn regular_expressions_are_compiled_wherever_they_stand() {
        for text in [
            r#"location ~* "^/((a|b)?news/?$" { }"#,
            r"location ~^/x[ { }",
            r#"server { server_name a.test "~^(a\.test$"; }"#,
            r#"if ($host ~* "x[") { return 403; }"#,
            r#"if ( $host !~ "x[" ) { return 403; }"#,
            r#"rewrite "(" /x break;"#,
            r#"map $a $b { "~*(" 1; default 0; }"#,
        ] {
            let fault = expression(text).unwrap_or_else(|| panic!("{text}"));
            assert!(fault.contains("is no regular expression"), "{fault}");
        }
        for text in [
            r#"location ~* "^/(a|b){2}/?(?<rest>.*)$" { rewrite "(?i)^/(.*)$" /$1 break; }"#,
            r#"location "/x[" { } location = "/(" { }"#,
            r#"if ($host ~ "^a\.test$") { return 403; }"#,
            r#"if ($a = "(") { return 403; }"#,
            r#"map $a $b { "(" 1; "~^/x" 2; }"#,
            "types { text/html ~(; }",
        ] {
            assert_eq!(expression(text), None, "{text}");
        }
        let said = expression("location ~ /(a { }").unwrap();
        assert!(said.starts_with(r#""/(a" is no regular"#), "{said}");
        assert!(
            said.contains("parenthesis") && said.contains("at offset"),
            "{said}"
        );
    }

    #[test]
    fn snippets_are_judged_by_themselves() {
        let known = Directives::of_programs([
            b"\0add_header\0proxy_pass\0if\0return\0set\0location\0server\0map\0x\0".as_slice(),
        ]);
        let fault = |text, what| snippet_fault(text, what, &known);
        let location = "configuration-snippet";
        assert_eq!(fault("add_header X \"a;}\";\nset $x 1;", location), None);
        assert_eq!(fault("if ($x) { return 403; }", "server-snippet"), None);
        assert_eq!(
            fault("location /x { proxy_pass http://a; }", "server-snippet"),
            None
        );
        // Servers of streams have no locations.
        assert_eq!(
            fault("server { proxy_pass 10.0.0.1:80; }", "stream-snippet"),
            None
        );
        for (text, what, said) in [
            ("}\nlocation /x {", location, "line 1: it closes a block"),
            (
                "if ($x) {\nreturn 403;",
                location,
                "line 1: the block \"if\" is not closed",
            ),
            (
                "add_header X 1",
                location,
                "line 1: \"add_header\" has no \";\" behind it",
            ),
            (
                "set $x 1;\nadd_headr X 1;",
                location,
                "line 2: unknown directive \"add_headr\"",
            ),
            (
                "server { }",
                location,
                "line 1: directive \"server\" may not stand here",
            ),
            (
                "map $a $b { }",
                "server-snippet",
                "line 1: directive \"map\" may not stand here",
            ),
            (
                "proxy_pass http://a;",
                "server-snippet",
                "\"proxy_pass\" may not stand here",
            ),
            ("set $x \"1;", location, "line 1: a quote is not closed"),
            (
                "if ($a ~ \"(\") { return 1; }",
                location,
                "is no regular expression",
            ),
        ] {
            let fault = fault(text, what).unwrap_or_else(|| panic!("{text}"));
            assert!(fault.contains(said), "{text}: {fault}");
        }
    }
}
