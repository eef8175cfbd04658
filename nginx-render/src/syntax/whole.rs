//! What snippets do wrong together with the rest of the configuration: what stands twice, and what is not there.

use std::collections::{HashMap, HashSet};

use super::{
    Directives, Files,
    unknown::includes,
    words::{Block, Statement},
};

/// Directives that name a zone of shared memory, those that define it, and how the names begin.
const ZONES: &[(&str, &str, &str, &str)] = &[
    ("limit_req", "zone=", "limit_req_zone", "zone="),
    ("limit_conn", "", "limit_conn_zone", "zone="),
    ("proxy_cache", "", "proxy_cache_path", "keys_zone="),
    ("fastcgi_cache", "", "fastcgi_cache_path", "keys_zone="),
    ("scgi_cache", "", "scgi_cache_path", "keys_zone="),
    ("uwsgi_cache", "", "uwsgi_cache_path", "keys_zone="),
];

/// Directives whose file NGINX reads when it starts, and the one without which it does not. It reads others only where
/// there is a use for them.
const READ: &[(&str, &str)] = &[
    ("include", "include"),
    ("ssl_certificate", "ssl_certificate_key"),
    ("ssl_certificate_key", "ssl_certificate"),
];

/// Directives whose file NGINX makes when it starts, if its directory is there.
const MADE: &[&str] = &["access_log", "error_log"];

/// A configuration in which some lines are what users wrote.
pub(super) struct Whole<'a> {
    pub(super) statements: &'a [Statement],
    pub(super) directives: &'a Directives,
    pub(super) files: &'a dyn Files,
    /// Whether a line is a user's own text.
    pub(super) is_raw: &'a dyn Fn(usize) -> bool,
}

impl Whole<'_> {
    /// What is wrong at which lines.
    pub(super) fn faults(&self) -> Vec<(usize, String)> {
        let raw: Vec<_> = self
            .statements
            .iter()
            .filter(|statement| (self.is_raw)(statement.line))
            .collect();
        if raw.is_empty() {
            return Vec::new();
        }
        let mut faults = self.missing_files(&raw);
        faults.extend(self.twice(&raw));
        faults.extend(self.misplaced_locations(&raw));
        faults.extend(self.unknown_zones(&raw));
        faults
    }

    /// Directives and locations that stand in a block a second time.
    fn twice(&self, raw: &[&Statement]) -> Vec<(usize, String)> {
        let blocks: HashSet<_> = raw.iter().map(|statement| statement.opener).collect();
        let mut seen: HashMap<_, usize> = HashMap::new();
        let mut faults = Vec::new();
        let within = |statement: &&Statement| blocks.contains(&statement.opener);
        for statement in self.statements.iter().filter(within) {
            let location = location(statement).filter(|(kind, _)| *kind != Kind::Expression);
            let slot = self.directives.slot(statement);
            if location.is_none() && slot.is_none() {
                continue;
            }
            let key = (statement.opener, location, slot);
            let Some(first) = seen.insert(key, statement.line) else {
                continue;
            };
            let reason = match location {
                Some((_, path)) => format!("duplicate location \"{path}\""),
                None => format!("\"{}\" directive is duplicate", statement.name()),
            };
            let lines = [statement.line, first];
            let line = lines.into_iter().find(|line| (self.is_raw)(*line));
            faults.extend(line.map(|line| (line, reason)));
        }
        faults
    }

    /// Locations within such as cannot have them.
    fn misplaced_locations(&self, raw: &[&Statement]) -> Vec<(usize, String)> {
        let faults = raw.iter().filter_map(|statement| {
            let (kind, path) = location(statement)?;
            let around = self.statements.get(statement.opener?)?;
            let (kind_around, path_around) = location(around)?;
            let reason = match kind_around {
                Kind::Exact => format!(
                    "location \"{path}\" cannot be inside the exact location \"{path_around}\""
                ),
                Kind::Named => format!(
                    "location \"{path}\" cannot be inside the named location \"{path_around}\""
                ),
                _ if kind == Kind::Named => {
                    format!("named location \"{path}\" can be on the server level only")
                }
                _ if kind != Kind::Expression && !path.starts_with(path_around) => {
                    format!("location \"{path}\" is outside location \"{path_around}\"")
                }
                Kind::Prefix | Kind::Expression => return None,
            };
            Some((statement.line, reason))
        });
        faults.collect()
    }

    /// Zones of shared memory that nothing defines.
    fn unknown_zones(&self, raw: &[&Statement]) -> Vec<(usize, String)> {
        let may_define = |statement: &&&Statement| {
            matches!(statement.block, Block::Main | Block::Http | Block::Stream)
                && includes(statement)
        };
        if raw.iter().any(|statement| may_define(&statement)) {
            return Vec::new();
        }
        let mut defined = HashSet::new();
        for statement in self.statements {
            let of = ZONES.iter().find(|zone| zone.2 == statement.name());
            let Some((user, _, _, sign)) = of else {
                continue;
            };
            let words = statement.words.iter();
            let names = words.filter_map(|word| word.strip_prefix(sign));
            let names = names.map(|rest| rest.split(':').next().unwrap_or(rest));
            defined.extend(names.map(|name| (is_stream(statement), *user, name)));
        }
        let faults = raw.iter().filter_map(|statement| {
            let (user, sign, definer, _) = ZONES.iter().find(|zone| zone.0 == statement.name())?;
            if matches!(statement.block, Block::Free | Block::Map | Block::Other) {
                return None;
            }
            let mut arguments =
                statement
                    .words
                    .iter()
                    .skip(1)
                    .take(if sign.is_empty() { 1 } else { usize::MAX });
            let name = arguments.find_map(|word| word.strip_prefix(sign))?;
            let is_named = !name.is_empty() && !name.contains('$') && name != "off";
            if !is_named || defined.contains(&(is_stream(statement), *user, name)) {
                return None;
            }
            let said = if user.ends_with("_cache") {
                format!("\"{user}\" zone \"{name}\" is unknown")
            } else {
                format!("zero size shared memory zone \"{name}\"")
            };
            let reason = format!("{said}: no \"{definer}\" of this configuration defines it");
            Some((statement.line, reason))
        });
        faults.collect()
    }

    /// Files that are not there.
    fn missing_files(&self, raw: &[&Statement]) -> Vec<(usize, String)> {
        let faults = raw.iter().filter_map(|statement| {
            let (name, file) = (statement.name(), statement.words.get(1)?);
            let may_be_another = file.contains(['$', '*', '?', '[']) || !file.starts_with('/');
            if may_be_another || matches!(statement.block, Block::Map | Block::Free) {
                return None;
            }
            let read = READ.iter().find(|(read, _)| *read == name);
            let is_there = if let Some((_, with)) = read {
                let is_beside =
                    |it: &&&Statement| it.opener == statement.opener && it.name() == *with;
                raw.iter().find(is_beside)?;
                self.files.is_there(file)
            } else if MADE.contains(&name) {
                let directory = file.rsplit_once('/').map(|(directory, _)| directory);
                let directory = directory.filter(|directory| !directory.is_empty());
                self.files.is_there(directory.unwrap_or("/"))
            } else {
                return None;
            };
            let reason = || {
                format!("cannot open \"{file}\" of directive \"{name}\": no such file or directory")
            };
            (is_there == Some(false)).then(|| (statement.line, reason()))
        });
        faults.collect()
    }
}

/// What locations are by their modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Exact,
    Prefix,
    Expression,
    Named,
}

/// The kind and the path of a location; `None` for any other directive.
fn location(statement: &Statement) -> Option<(Kind, &str)> {
    let words: Vec<_> = statement.words.iter().map(String::as_str).collect();
    let (modifier, path) = match words.as_slice() {
        ["location", modifier, path] => (*modifier, *path),
        ["location", path] => {
            let modifiers = ["=", "^~", "~*", "~"].into_iter();
            let mut joined = modifiers.filter_map(|it| Some((it, path.strip_prefix(it)?)));
            joined.next().unwrap_or(("", path))
        }
        _ => return None,
    };
    let kind = match modifier {
        "=" => Kind::Exact,
        "~" | "~*" => Kind::Expression,
        _ if path.starts_with('@') => Kind::Named,
        _ => Kind::Prefix,
    };
    Some((kind, path))
}

fn is_stream(statement: &Statement) -> bool {
    matches!(
        statement.block,
        Block::Stream | Block::StreamServer | Block::StreamUpstream
    )
}
