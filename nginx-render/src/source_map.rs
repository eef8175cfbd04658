//! Who is behind which line, so that an error of NGINX can be traced to the object that caused it.
//!
//! Templates print marks around the lines of a source: lines that start with a control character, which nothing else
//! may contain. [`Text::read`] takes them out again and notes the lines between them.

use std::{cmp::Reverse, fmt, sync::Arc};

use askama::filters::Safe;
use ingress_model::{Host, ObjectName};

/// Where a piece of configuration comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The host whose server it stands in; `None` outside of servers.
    pub host: Option<Host>,
    /// The path of the location, as the location names it.
    pub path: Option<String>,
    /// The Ingress that asked for it; `None` for what the controller adds and for the ConfigMap's settings.
    pub ingress: Option<ObjectName>,
    /// What it is: `server`, `location`, or the name of an annotation or of a ConfigMap key.
    pub what: &'static str,
}

/// Something that could not be rendered as it was asked for. Everything else was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Whom it concerns.
    pub source: Arc<Source>,
    /// What was done, and why. Lower case, no full stop.
    pub text: String,
}

/// Lines and who is behind them. Lines count from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceMap {
    ranges: Vec<Range>,
    files: Vec<(String, Arc<Source>)>,
}

/// The innermost source of each line.
#[derive(Debug)]
pub(crate) struct Lines<'a>(Vec<Option<&'a Arc<Source>>>);

impl Lines<'_> {
    pub(crate) fn get(&self, line: usize) -> Option<&Arc<Source>> {
        *self.0.get(line)?
    }
}

/// Lines of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    first: usize,
    last: usize,
    source: Arc<Source>,
}

impl Range {
    /// A single line.
    pub(crate) fn line(line: usize, source: Arc<Source>) -> Self {
        Self {
            first: line,
            last: line,
            source,
        }
    }
}

impl SourceMap {
    /// The innermost source of a line: a snippet rather than the location around it.
    #[must_use]
    pub fn locate(&self, line: usize) -> Option<&Source> {
        let around = self
            .ranges
            .iter()
            .filter(|range| range.first <= line && line <= range.last);
        around
            .min_by_key(|range| range.last - range.first)
            .map(|range| &*range.source)
    }

    /// Who is behind a file, by its path below NGINX's directory. Errors about such a file name it, but no line.
    #[must_use]
    pub fn locate_file(&self, path: &str) -> Option<&Source> {
        let found = self.files.iter().find(|(file, _)| file == path);
        found.map(|(_, source)| &**source)
    }

    /// The same as [`Self::locate`] for many lines.
    pub(crate) fn by_line(&self) -> Lines<'_> {
        let length = self.ranges.iter().map(|range| range.last + 1).max();
        let mut lines = vec![None; length.unwrap_or_default()];
        let mut outermost_first: Vec<_> = self.ranges.iter().rev().collect();
        outermost_first.sort_by_key(|range| Reverse(range.last - range.first));
        for range in outermost_first {
            if let Some(within) = lines.get_mut(range.first..=range.last) {
                within.fill(Some(&range.source));
            }
        }
        Lines(lines)
    }

    /// Snippets of users, with their first and last lines.
    pub(crate) fn raw(&self) -> impl Iterator<Item = (&Arc<Source>, usize, usize)> {
        let raw = self
            .ranges
            .iter()
            .filter(|range| range.source.what.ends_with("-snippet"));
        raw.map(|range| (&range.source, range.first, range.last))
    }

    pub(crate) fn add_file(&mut self, path: &str, source: Arc<Source>) {
        self.files.push((path.into(), source));
    }

    /// Adds ranges of a piece of text that starts after `lines` others, and into which `inserted` lines were put behind
    /// its own line `at`.
    pub(crate) fn extend_around(
        &mut self,
        ranges: &[Range],
        lines: usize,
        at: usize,
        inserted: usize,
    ) {
        let moved = |line: usize| lines + if line > at { line + inserted } else { line };
        self.ranges.extend(ranges.iter().map(|range| Range {
            first: moved(range.first),
            last: moved(range.last),
            source: Arc::clone(&range.source),
        }));
    }

    /// Adds ranges of a piece of text that starts after `lines` others.
    pub(crate) fn extend(&mut self, lines: usize, ranges: &[Range]) {
        self.ranges.extend(ranges.iter().map(|range| Range {
            first: range.first + lines,
            last: range.last + lines,
            source: Arc::clone(&range.source),
        }));
    }
}

/// Sources of a piece of text while it is being made, by the number that their marks carry.
#[derive(Debug, Default)]
pub(crate) struct Sources(Vec<Arc<Source>>);

impl Sources {
    /// The mark in front of a source's lines.
    pub(crate) fn begin(&mut self, source: Arc<Source>) -> Mark {
        self.0.push(source);
        Safe(MarkText::Begin(self.0.len() - 1))
    }

    /// The same in front of a user's own text, whose lines are left as they are.
    pub(crate) fn begin_raw(&mut self, source: Arc<Source>) -> Mark {
        self.0.push(source);
        Safe(MarkText::BeginRaw(self.0.len() - 1))
    }
}

/// A line for [`Text::read`].
pub(crate) type Mark = Safe<MarkText>;

/// What a [`Mark`] holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MarkText {
    /// In front of a source's lines.
    Begin(usize),
    /// In front of a user's own text.
    BeginRaw(usize),
    /// Behind them.
    End,
    /// Where the servers stand.
    Servers,
}

pub(crate) const END: Mark = Safe(MarkText::End);
pub(crate) const SERVERS: Mark = Safe(MarkText::Servers);

const BEGIN_MARK: char = '\u{1}';
const BEGIN_RAW_MARK: char = '\u{4}';
const END_MARK: &str = "\u{2}";
const SERVERS_MARK: &str = "\u{3}";

impl fmt::Display for MarkText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begin(number) => write!(f, "{BEGIN_MARK}{number}"),
            Self::BeginRaw(number) => write!(f, "{BEGIN_RAW_MARK}{number}"),
            Self::End => f.write_str(END_MARK),
            Self::Servers => f.write_str(SERVERS_MARK),
        }
    }
}

/// A piece of configuration without marks and empty lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Text {
    pub(crate) content: String,
    pub(crate) lines: usize,
    pub(crate) ranges: Vec<Range>,
    /// Where the servers stand: behind so many bytes and lines.
    pub(crate) servers_at: Option<(usize, usize)>,
}

impl Text {
    /// Takes the marks out of a rendered template.
    pub(crate) fn read(rendered: &str, sources: &Sources) -> Self {
        let mut read = Self {
            content: String::with_capacity(rendered.len()),
            ..Self::default()
        };
        let mut open: Vec<(usize, Option<&Arc<Source>>)> = Vec::new();
        let mut is_raw = false;
        for line in rendered.lines() {
            let word = line.trim();
            let begin = word.strip_prefix([BEGIN_MARK, BEGIN_RAW_MARK]);
            if let Some(number) = begin {
                is_raw = word.starts_with(BEGIN_RAW_MARK);
                let source = number
                    .parse()
                    .ok()
                    .and_then(|number: usize| sources.0.get(number));
                open.push((read.lines + 1, source));
            } else if word == END_MARK {
                is_raw = false;
                if let Some((first, Some(source))) = open.pop()
                    && first <= read.lines
                {
                    read.ranges.push(Range {
                        first,
                        last: read.lines,
                        source: Arc::clone(source),
                    });
                }
            } else if word == SERVERS_MARK {
                read.servers_at = Some((read.content.len(), read.lines));
            } else if is_raw || !word.is_empty() {
                read.content
                    .push_str(if is_raw { line } else { line.trim_end() });
                read.content.push('\n');
                read.lines += 1;
            }
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(what: &'static str) -> Arc<Source> {
        Arc::new(Source {
            host: None,
            path: None,
            ingress: None,
            what,
        })
    }

    #[test]
    fn lines_are_found_innermost_first() {
        let mut sources = Sources::default();
        let outer = sources.begin(source("server")).0;
        let inner = sources.begin(source("snippet")).0;
        let empty = sources.begin(source("nothing")).0;
        let end = END.0;
        let rendered = format!(
            "a\n\n  {outer}\nserver {{\n\n{inner}\n1;\n2;\n{end}\n{empty}\n\n{end}\n}}\n{end}\nz\n"
        );
        let text = Text::read(&rendered, &sources);
        assert_eq!(text.content, "a\nserver {\n1;\n2;\n}\nz\n");
        assert_eq!(text.lines, 6);

        let mut map = SourceMap::default();
        map.extend(10, &text.ranges);
        let found: Vec<_> = (11..=17)
            .map(|line| map.locate(line).map(|s| s.what))
            .collect();
        let (server, snippet) = (Some("server"), Some("snippet"));
        assert_eq!(found, [None, server, snippet, snippet, server, None, None]);
        let lines = map.by_line();
        let same: Vec<_> = (11..=17)
            .map(|line| lines.get(line).map(|s| s.what))
            .collect();
        assert_eq!(same, found);
    }

    #[test]
    fn text_with_marks_of_its_own_does_no_harm() {
        let text = Text::read("\u{2}\na\n\u{1}99\nb\n\u{2}\n\u{1}x\n", &Sources::default());
        assert_eq!(text.content, "a\nb\n");
        assert!(text.ranges.is_empty());
    }
}
