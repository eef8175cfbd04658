//! Which server and which location NGINX chooses.

use serde::Serialize;

use crate::{
    expression,
    host::Host,
    layout::{Layout, Location, Modifier, Server},
};

/// Why a server is chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum HostMatch {
    /// The host is the server's.
    Exact,
    /// The host is an alias of the server (`server-alias`), perhaps by a wildcard.
    Alias {
        /// The alias.
        alias: Host,
    },
    /// The host is redirected to the server's (`from-to-www-redirect`).
    Redirected,
    /// The server is for all hosts one label longer than its name.
    Wildcard,
    /// No server has the host.
    CatchAll,
}

/// The server for a host as [`request_host`](super::request_host) gives it, and why it is that one; `None` only for a
/// layout that no merge made, which lacks the catch-all server.
///
/// In this order (NGINX docs, "Server names"): the host itself, an alias that is the host, or the name that is redirected
/// to it; the longest alias `*.name`
/// that the host ends with, over any number of labels; the wildcard host `*.name`, which stands for exactly one label
/// (Kubernetes docs, "Hostname wildcards") and so is a regular expression; the catch-all.
///
/// ```
/// use std::sync::Arc;
///
/// use ingress_model::{explain::{HostMatch, server_for}, merge, Host, Options, Snapshot};
///
/// let layout = merge(&Snapshot::default(), &Options::default(), jiff::Timestamp::UNIX_EPOCH).model.layout;
/// let (server, by) = server_for(&layout, "shop.test").unwrap();
/// assert_eq!((server.host.as_str(), by), ("_", HostMatch::CatchAll));
/// ```
#[must_use]
pub fn server_for<'a>(layout: &'a Layout, host: &str) -> Option<(&'a Server, HostMatch)> {
    let servers = || layout.servers.values().map(|server| &**server);
    let exact = servers().find(|server| server.host.as_str() == host && !server.host.is_wildcard());
    if let Some(server) = exact {
        let by = if server.host.is_catch_all() {
            HostMatch::CatchAll
        } else {
            HostMatch::Exact
        };
        return Some((server, by));
    }
    let redirected = servers().find(|server| {
        let other = server.redirected.as_ref();
        other.is_some_and(|other| other.as_str() == host)
    });
    if let Some(server) = redirected {
        return Some((server, HostMatch::Redirected));
    }
    let aliases =
        servers().flat_map(|server| server.aliases.iter().map(move |alias| (server, alias)));
    let matching = aliases.filter(|(_, alias)| match alias.wildcard_suffix() {
        Some(suffix) => labels_before(host, suffix).is_some(),
        None => alias.as_str() == host,
    });
    // An alias that is the host has no wildcard, and is longer than any that has one.
    let longest = matching.max_by_key(|(_, alias)| (!alias.is_wildcard(), alias.as_str().len()));
    if let Some((server, alias)) = longest {
        let alias = alias.clone();
        return Some((server, HostMatch::Alias { alias }));
    }
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    // Hosts with a wildcard are regular expressions to NGINX, of which the first that matches holds.
    let expression = servers().find_map(|server| {
        let suffix = server.host.wildcard_suffix();
        let label = suffix.and_then(|suffix| labels_before(host, suffix));
        if label.is_some_and(|label| label.bytes().all(is_word)) {
            return Some((server, HostMatch::Wildcard));
        }
        let mut aliases = server.aliases.iter();
        let alias = aliases.find(|alias| alias.expression_matches(host))?;
        let alias = alias.clone();
        Some((server, HostMatch::Alias { alias }))
    });
    if expression.is_some() {
        return expression;
    }
    let catch_all = servers().find(|server| server.host.is_catch_all());
    catch_all.map(|server| (server, HostMatch::CatchAll))
}

/// What stands in front of `.suffix`, if anything does.
fn labels_before<'a>(host: &'a str, suffix: &str) -> Option<&'a str> {
    let labels = host.strip_suffix(suffix)?.strip_suffix('.')?;
    Some(labels).filter(|labels| !labels.is_empty())
}

/// Why a location is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PathMatch {
    /// Its path is the request's.
    Exact,
    /// No location has a longer beginning of the request's path.
    LongestPrefix,
    /// It is the first in the server whose regular expression matches.
    FirstExpression,
}

/// The locations of a server that match a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matches<'a> {
    /// The one that NGINX takes, and why.
    pub chosen: Option<(&'a Location, PathMatch)>,
    /// Those behind it, which would be taken if it were not there; the next in line first. With each, whether it matches
    /// for certain.
    pub others: Vec<(&'a Location, bool)>,
    /// Those before the chosen one of which it is not known whether they match: their expressions use what only NGINX's
    /// library of regular expressions has (look-around, back-references, possessive repetition, …).
    pub unknown: Vec<&'a Location>,
}

/// The locations of a server that match a path as [`request_path`](super::request_path) gives it.
///
/// In this order (NGINX docs: `location`): `= path`, if it is the path; the first `~* "^path"` in the order of the
/// server whose expression matches, without regard to case; the longest path that the request's begins with.
///
/// ```
/// use ingress_model::{explain::{PathMatch, locations_for}, merge, Host, Options, Snapshot};
///
/// let layout = merge(&Snapshot::default(), &Options::default(), jiff::Timestamp::UNIX_EPOCH).model.layout;
/// let matches = locations_for(&layout.servers[&Host::catch_all()], b"/cart");
/// let (location, by) = matches.chosen.unwrap();
/// assert_eq!((location.path.as_str(), by), ("/", PathMatch::LongestPrefix));
/// ```
#[must_use]
pub fn locations_for<'a>(server: &'a Server, path: &[u8]) -> Matches<'a> {
    let mut exact = Vec::new();
    let mut expressions = Vec::new();
    let mut prefixes = Vec::new();
    for location in &server.locations {
        match location.modifier {
            Modifier::Exact if location.path.as_bytes() == path => {
                exact.push((location, PathMatch::Exact, true));
            }
            Modifier::Prefix if path.starts_with(location.path.as_bytes()) => {
                prefixes.push((location, PathMatch::LongestPrefix, true));
            }
            Modifier::Regex => {
                let matches = expression::matches(&location.path, path);
                if matches != Some(false) {
                    let is_certain = matches.is_some();
                    expressions.push((location, PathMatch::FirstExpression, is_certain));
                }
            }
            Modifier::Exact | Modifier::Prefix => {}
        }
    }
    prefixes.sort_by_key(|(location, ..)| std::cmp::Reverse(location.path.len()));
    let in_line: Vec<_> = exact
        .into_iter()
        .chain(expressions)
        .chain(prefixes)
        .collect();
    let first = in_line.iter().position(|(_, _, is_certain)| *is_certain);
    let (unknown, rest) = in_line.split_at(first.unwrap_or(in_line.len()));
    let mut rest = rest.iter().copied();
    Matches {
        chosen: rest.next().map(|(location, by, _)| (location, by)),
        others: rest
            .map(|(location, _, is_certain)| (location, is_certain))
            .collect(),
        unknown: unknown.iter().map(|(location, ..)| *location).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        layout::{LocationSettings, PathType},
        live::UpstreamName,
    };

    fn server(host: &str, aliases: &[&str]) -> Server {
        let nowhere = crate::explain::nowhere();
        Server {
            host: Host::parse(host).unwrap(),
            aliases: aliases
                .iter()
                .map(|alias| Host::parse_alias(alias).unwrap())
                .collect(),
            locations: Vec::new(),
            ..Server::clone(&nowhere)
        }
    }

    #[test]
    fn servers_are_chosen_in_order() {
        let servers = [
            server("", &[]),
            Server {
                redirected: Some(Host::parse("www.a.test").unwrap()),
                ..server("a.test", &["b.test", "*.c.test"])
            },
            server("*.test", &[]),
            server("*.c.test", &["*.e.c.test"]),
            server("z.org", &["~^[xz][.](y[.])?test$"]),
        ];
        let servers = servers.map(|server| (server.host.clone(), Arc::new(server)));
        let layout = Layout {
            servers: servers.into(),
            ..Layout::default()
        };
        for (host, want) in [
            ("a.test", "a.test exact"),
            ("b.test", "a.test alias b.test"),
            ("www.a.test", "a.test redirected"),
            // The alias's wildcard goes before the wildcard host of the same name, over any number of labels.
            ("x.c.test", "a.test alias *.c.test"),
            ("x.y.c.test", "a.test alias *.c.test"),
            ("x.e.c.test", "*.c.test alias *.e.c.test"),
            ("c.test", "*.test wildcard"),
            ("x_1.test", "*.test wildcard"),
            // The first expression in the file holds, and a wildcard host is one.
            ("x.test", "*.test wildcard"),
            ("x.y.test", "z.org alias ~^[xz][.](y[.])?test$"),
            ("w.y.test", "_ catch-all"),
            ("test", "_ catch-all"),
            (".test", "_ catch-all"),
            ("_", "_ catch-all"),
            ("", "_ catch-all"),
            ("10.0.0.1", "_ catch-all"),
        ] {
            let (server, by) = server_for(&layout, host).unwrap();
            let by = match by {
                HostMatch::Exact => "exact".to_owned(),
                HostMatch::Alias { alias } => format!("alias {alias}"),
                HostMatch::Redirected => "redirected".to_owned(),
                HostMatch::Wildcard => "wildcard".to_owned(),
                HostMatch::CatchAll => "catch-all".to_owned(),
            };
            assert_eq!(format!("{} {by}", server.host), want, "{host}");
        }
    }

    /// The locations that match, the chosen one first, then those of which it is not known.
    fn matching(locations: &[(Modifier, &str)], path: &str) -> (Vec<String>, Vec<String>) {
        let location = |(modifier, path): &(Modifier, &str)| Location {
            modifier: *modifier,
            path: (*path).into(),
            ingress_path: (*path).into(),
            path_type: PathType::Prefix,
            ingress: None,
            service: None,
            upstream: UpstreamName::default_backend(),
            settings: Arc::new(LocationSettings::default()),
        };
        let server = Server {
            locations: locations.iter().map(location).collect(),
            ..server("", &[])
        };
        let matches = locations_for(&server, path.as_bytes());
        let chosen = matches.chosen.map(|(location, _)| (location, true));
        let shown = |(location, is_certain): (&Location, bool)| {
            let mark = if is_certain { "" } else { "? " };
            format!("{mark}{}", location.path)
        };
        let in_line = chosen.into_iter().chain(matches.others);
        let unknown = matches.unknown.into_iter();
        (
            in_line.map(shown).collect(),
            unknown.map(|location| location.path.to_string()).collect(),
        )
    }

    #[test]
    fn locations_are_chosen_in_order() {
        use Modifier::{Exact, Prefix, Regex};
        let plain = [
            (Prefix, "/a/"),
            (Exact, "/a"),
            (Prefix, "/a/b/"),
            (Exact, "/A"),
            (Prefix, "/"),
        ];
        let regex = [
            (Regex, "/a/b"),
            (Regex, "/(x|y)$"),
            (Regex, "/a"),
            (Regex, "/"),
        ];
        for (locations, path, want) in [
            (&plain[..], "/a", &["/a", "/"][..]),
            (&plain, "/A", &["/A", "/"]),
            (&plain, "/a/b/c", &["/a/b/", "/a/", "/"]),
            (&plain, "/a/b", &["/a/", "/"]),
            (&plain, "/ab", &["/"]),
            (&regex, "/A/Bc", &["/a/b", "/a", "/"]),
            (&regex, "/ab", &["/a", "/"]),
            (&regex, "/x", &["/(x|y)$", "/"]),
            (&regex, "/xx", &["/"]),
            (&[(Prefix, "/a/"), (Regex, "/")], "/a/x", &["/", "/a/"]),
            (&[(Exact, "/x")], "/y", &[]),
        ] {
            assert_eq!(matching(locations, path).0, want, "{path}");
        }
    }

    #[test]
    fn what_only_nginx_knows_is_not_guessed() {
        for expression in [
            "/(?!b)", "/(a)\\1", "/a++b", "/[a&&b]", "/[a[b]", "/(?<=x)a", "/a\\<", "/(",
        ] {
            let locations = [(Modifier::Regex, expression), (Modifier::Regex, "/")];
            let (matching, unknown) = matching(&locations, "/a");
            assert_eq!(
                (matching, unknown),
                (vec!["/".into()], vec![expression.to_owned()])
            );
        }
        let all = [
            (Modifier::Regex, "/(?!x)a"),
            (Modifier::Regex, "/a"),
            (Modifier::Regex, "/(?!y)a"),
            (Modifier::Regex, "/(?!z)b"),
            (Modifier::Prefix, "/"),
        ];
        let in_line = ["/a", "? /(?!y)a", "? /(?!z)b", "/"]
            .map(str::to_owned)
            .to_vec();
        let first = vec!["/(?!x)a".to_owned()];
        assert_eq!(matching(&all, "/a"), (in_line, first));
        for expression in ["/[[:alpha:]]+$", "/[^/]+/?", "/a|b", "/(?<name>a)", "/\\w"] {
            let locations = [(Modifier::Regex, expression)];
            assert_eq!(matching(&locations, "/a").0, [expression]);
        }
    }
}
