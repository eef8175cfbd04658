//! Paths: which may be served, who wins one, and in what order and form NGINX sees them.

use std::{cmp::Reverse, collections::BTreeSet, sync::Arc};

use crate::{
    definition::{Definition, PathField},
    diagnostic::Reason,
    expression,
    layout::{Location, LocationSettings, Modifier, PathType, ServicePort},
    live::UpstreamName,
    provenance::{Ledger, Subject},
    text::Text,
    value::MAX_TEXT,
};

/// Room for what a `$` may become when a path is written into NGINX's configuration.
const DOLLAR: usize = 16;

/// Reads a path of a rule. An empty one is `/`.
///
/// It has to start with `/`, must not hold control characters, and has to fit into one token of NGINX's configuration
/// when quotes, backslashes and dollar signs are escaped. Otherwise the answer is what it does wrong.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let served = Fixture::default().and_ingress("shop/a", &[], &["a.test/\u{1} web:80"]).merge();
/// served.assert_locations("a.test", ["/ shop/a upstream-default-backend"]);
/// ```
pub(crate) fn read(path: Option<&str>) -> Result<Text, &'static str> {
    let path = path.filter(|path| !path.is_empty()).unwrap_or("/");
    if !path.starts_with('/') {
        return Err("does not start with /");
    }
    if path.chars().any(char::is_control) {
        return Err("holds a control character");
    }
    if !fits(path) {
        return Err("is longer than NGINX accepts");
    }
    Ok(path.into())
}

/// Whether there is room for a text in one token of NGINX's configuration.
fn fits(text: &str) -> bool {
    let room = text.bytes().map(|byte| match byte {
        b'"' | b'\\' => 2,
        b'$' => 1 + DOLLAR,
        _ => 1,
    });
    room.sum::<usize>() <= MAX_TEXT
}

/// Reads the type of a path: ImplementationSpecific, or none, counts as Prefix. `None` is for types that do not exist,
/// which an API server refuses (Kubernetes docs, "Path types").
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let text = "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, namespace: shop},
///  spec: {ingressClassName: nginx, rules: [{host: a.test, http: {paths: [
///    {path: /x, pathType: ImplementationSpecific, backend: {service: {name: web, port: {number: 80}}}}]}}]}}";
/// Fixture::from_yaml(text)?.merge().assert_request("a.test/x/y", "/x/ shop/a shop-web-80");
/// # Ok::<_, ingress_model::testing::FixtureError>(())
/// ```
pub(crate) fn read_type(path_type: &str) -> Option<PathType> {
    match path_type {
        "Exact" => Some(PathType::Exact),
        "Prefix" | "ImplementationSpecific" | "" => Some(PathType::Prefix),
        _ => None,
    }
}

/// A path that an Ingress, or the controller itself, wants a host to have.
#[derive(Clone, Debug)]
pub(crate) struct Entry<'a> {
    /// Who defines it; `None` for the controller.
    pub(crate) definition: Option<&'a Definition>,
    pub(crate) path: &'a Text,
    pub(crate) path_type: PathType,
    /// Where it stands; `None` for a default backend.
    pub(crate) field: Option<PathField>,
    pub(crate) service: Option<&'a Arc<ServicePort>>,
    pub(crate) upstream: UpstreamName,
    pub(crate) settings: &'a Arc<LocationSettings>,
}

impl Entry<'_> {
    /// Whether the location matches by a regular expression: with `use-regex`, or with a rewrite to anything but its
    /// own path.
    fn is_regex(&self) -> bool {
        let rewrite = self.settings.rewrite_target.as_ref();
        let rewrite = rewrite.map(crate::value::Template::as_str);
        self.settings.use_regex || rewrite.is_some_and(|to| !to.is_empty() && *self.path != to)
    }

    /// What the path is where all paths of the host are regular expressions.
    fn expression(&self) -> Text {
        let own = (!self.is_regex()).then(|| expression::with_own_text(self.path));
        let own = own.flatten().filter(|expression| fits(expression));
        own.map_or_else(|| self.path.clone(), Text::from)
    }

    fn location(&self, modifier: Modifier, path: Text) -> Location {
        Location {
            modifier,
            path,
            ingress_path: self.path.clone(),
            path_type: self.path_type,
            ingress: self.definition.map(|definition| definition.name.clone()),
            service: self.service.cloned(),
            upstream: self.upstream.clone(),
            settings: Arc::clone(self.settings),
        }
    }
}

/// The paths that are wanted for a host, the one that holds first.
#[derive(Debug)]
pub(crate) struct Wishes<'a>(Vec<Held<'a>>);

impl<'a> Wishes<'a> {
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self(Vec::with_capacity(count))
    }

    pub(crate) fn push(&mut self, entry: Entry<'a>) {
        self.0.push(Held {
            rank: self.0.len(),
            entry,
            losers: Vec::new(),
        });
    }
}

impl<'a> Extend<Entry<'a>> for Wishes<'a> {
    fn extend<I: IntoIterator<Item = Entry<'a>>>(&mut self, entries: I) {
        entries.into_iter().for_each(|entry| self.push(entry));
    }
}

/// The locations of a host, given the paths that are wanted for it.
///
/// * Of several entries with one path and type the first holds ([`hold`]).
/// * If a location of the host matches by regular expression, all of them do: `~* "^path"`, in which Exact and Prefix
///   of one path are the same location, so that the first holds; the controller's own `/` yields to an Exact one. Paths
///   of Ingresses that do not ask for expressions match their own text too, and nothing else if they are none.
/// * Otherwise Exact is `= path`, and a Prefix path is `path/` with `= path`, one final slash or none making no
///   difference (Kubernetes docs, "Path types"): of `/a` and `/a/` the first holds. The `= path` of a Prefix yields to
///   an Exact path, which is the more specific one.
///
/// So no two locations have the same modifier and path, which NGINX would refuse as duplicates. Whoever loses an entry
/// learns of it, unless the entry is the controller's own.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let plain = Fixture::default()
///     .and_ingress("shop/a", &[], &["= a.test/x exact:80", "a.test/x web:80"])
///     .and_ingress("shop/b", &[], &["a.test/x/ web:80"]);
/// plain.merge().assert_locations(
///     "a.test",
///     ["/x/ shop/b shop-web-80", "= /x shop/a shop-exact-80", "/ shop/b upstream-default-backend"],
/// );
/// let regex = plain.and_ingress("shop/c", &[("use-regex", "true")], &["a.test/y(.*) web:80"]);
/// regex.merge().assert_locations(
///     "a.test",
///     [
///         "~* /y(.*) shop/c shop-web-80",
///         "~* /x/ shop/b shop-web-80",
///         "~* /x shop/a shop-web-80",
///         "~* / shop/c upstream-default-backend",
///     ],
/// );
/// ```
pub(crate) fn locations(wishes: Wishes<'_>, ledger: &mut Ledger<'_>) -> Vec<Location> {
    let Wishes(mut held) = wishes;
    hold(&mut held, order);
    let regex = held.iter().any(|held| held.entry.is_regex());
    if regex || held.iter().any(|held| has_further_slash(&held.entry)) {
        hold(&mut held, |entry| match entry.path_type {
            _ if regex => (false, entry.path.as_str()),
            PathType::Exact => (true, entry.path.as_str()),
            PathType::Prefix => (false, without_slash(entry.path)),
        });
        held.sort_unstable_by(|a, b| order(&a.entry).cmp(&order(&b.entry)));
    }
    for held in &held {
        record(&held.entry, &held.losers, ledger);
    }
    if regex {
        let entries = held.iter().map(|held| &held.entry);
        entries
            .map(|entry| entry.location(Modifier::Regex, entry.expression()))
            .collect()
    } else {
        plain(&held)
    }
}

/// An entry that holds its path, its rank among all entries, and those that lost it and are [defined](is_defined).
#[derive(Debug)]
struct Held<'a> {
    rank: usize,
    entry: Entry<'a>,
    losers: Vec<Entry<'a>>,
}

/// Of the entries with one key the first holds, and takes over what the others held. Sorts by the key.
fn hold<'a, K: Ord>(held: &mut Vec<Held<'a>>, key: impl Fn(&Entry<'a>) -> K) {
    held.sort_unstable_by(|a, b| {
        let keys = key(&a.entry).cmp(&key(&b.entry));
        keys.then(a.rank.cmp(&b.rank))
    });
    held.dedup_by(|next, kept| {
        let is_same = key(&next.entry) == key(&kept.entry);
        if is_same {
            kept.losers
                .extend(is_defined(&next.entry).then(|| next.entry.clone()));
            kept.losers.append(&mut next.losers);
        }
        is_same
    });
}

/// The path of a Prefix as `= path` names it; empty for `/`.
fn without_slash(path: &str) -> &str {
    path.trim_end_matches('/')
}

/// Whether a Prefix path could be written with fewer slashes at its end.
fn has_further_slash(entry: &Entry<'_>) -> bool {
    entry.path_type == PathType::Prefix && entry.path.len() > 1 && entry.path.ends_with('/')
}

/// Longer paths come first, since NGINX takes the first regular expression that matches; among equally long ones the
/// larger text, and of Exact and Prefix the former.
fn order<'a>(entry: &Entry<'a>) -> (Reverse<(usize, &'a str)>, PathType) {
    (
        Reverse((entry.path.len(), entry.path.as_str())),
        entry.path_type,
    )
}

fn record(entry: &Entry<'_>, losers: &[Entry<'_>], ledger: &mut Ledger<'_>) {
    // Only where `spec.defaultBackend` is the definition is the path not written anywhere.
    let (Some(winner), true) = (entry.definition, is_defined(entry)) else {
        return;
    };
    let subject = Subject::Path {
        path: entry.path.clone(),
        path_type: entry.path_type,
    };
    let losers = losers.iter().filter_map(|loser| {
        let key = loser.field.map_or_else(
            || "spec.defaultBackend".to_owned(),
            |field| format!("{field}.path"),
        );
        loser.definition.map(|definition| (definition, Some(key)))
    });
    ledger.decide(subject, winner, losers.collect(), Reason::PathConflict);
}

/// Whether an Ingress asks for this path, rather than getting it along with a host.
fn is_defined(entry: &Entry<'_>) -> bool {
    entry.field.is_some()
        || entry
            .definition
            .is_some_and(|definition| definition.catch_all)
}

/// Locations of a host without regular expressions.
fn plain(held: &[Held<'_>]) -> Vec<Location> {
    let entries = || held.iter().map(|held| &held.entry);
    let exact = entries().filter(|entry| entry.path_type == PathType::Exact);
    let exact: BTreeSet<&str> = exact.map(|entry| entry.path.as_str()).collect();
    let count = entries().map(|entry| match entry.path_type {
        PathType::Exact => 1,
        PathType::Prefix => 1 + usize::from(entry.path.len() > 1),
    });
    let mut locations = Vec::with_capacity(count.sum());
    for entry in entries() {
        let base = without_slash(entry.path);
        match entry.path_type {
            PathType::Exact => {
                locations.push(entry.location(Modifier::Exact, entry.path.clone()));
            }
            PathType::Prefix => {
                let slashes = entry.path.len() - base.len();
                let or_shared = |slashes_then: usize, text: &dyn Fn() -> Text| {
                    if slashes == slashes_then {
                        entry.path.clone()
                    } else {
                        text()
                    }
                };
                let with_slash = or_shared(1, &|| [base, "/"].concat().into());
                locations.push(entry.location(Modifier::Prefix, with_slash));
                if !base.is_empty() && !exact.contains(base) {
                    let without = or_shared(0, &|| base.into());
                    locations.push(entry.location(Modifier::Exact, without));
                }
            }
        }
    }
    locations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{host::Host, value::Template};

    #[test]
    fn paths_are_read_or_refused() {
        for (path, want) in [
            (None, Some("/")),
            (Some(""), Some("/")),
            (Some("/a"), Some("/a")),
            (Some("/a\"b\\c$d"), Some("/a\"b\\c$d")),
            (Some("/ä ;{}"), Some("/ä ;{}")),
            (Some("a"), None),
            (Some("/a\nb"), None),
            (Some("/a\0"), None),
            (Some("/a\u{85}"), None),
        ] {
            let read = read(path).ok();
            assert_eq!(read.as_deref(), want, "{path:?}");
        }
        let long = |c: &str, count: usize| read(Some(&format!("/{}", c.repeat(count))));
        assert!(long("x", MAX_TEXT - 1).is_ok());
        assert!(long("x", MAX_TEXT).is_err());
        assert!(long("\"", MAX_TEXT / 2).is_err());
        assert!(long("$", MAX_TEXT / 16).is_err());
    }

    #[test]
    fn types_of_paths_are_those_of_the_api() {
        for (path_type, want) in [
            ("Exact", Some(E)),
            ("Prefix", Some(P)),
            ("ImplementationSpecific", Some(P)),
            ("", Some(P)),
            ("exact", None),
            ("Regex", None),
        ] {
            assert_eq!(read_type(path_type), want, "{path_type}");
        }
    }

    const E: PathType = PathType::Exact;
    const P: PathType = PathType::Prefix;

    /// Locations as text, each with the upstream that the entry got as its number.
    fn show(paths: &[(&str, PathType)], settings: &Arc<LocationSettings>) -> Vec<String> {
        let texts: Vec<Text> = paths.iter().map(|(path, _)| Text::from(*path)).collect();
        let entries = texts
            .iter()
            .zip(paths)
            .enumerate()
            .map(|(i, (path, (_, path_type)))| Entry {
                definition: None,
                path,
                path_type: *path_type,
                field: None,
                service: None,
                upstream: UpstreamName::new(&i.to_string()),
                settings,
            });
        let mut wishes = Wishes::with_capacity(paths.len());
        wishes.extend(entries);
        let host = Host::catch_all();
        locations(wishes, &mut Ledger::new(&host))
            .iter()
            .map(|location| {
                let modifier = match location.modifier {
                    Modifier::Exact => "= ",
                    Modifier::Prefix => "",
                    Modifier::Regex => "~ ",
                };
                format!("{modifier}{} {}", location.path, location.upstream)
            })
            .collect()
    }

    /// Another Ingress of the host may make expressions of all its paths, and open none by that.
    #[test]
    fn a_path_that_is_made_an_expression_matches_what_it_did() {
        let (guard, open) = (
            ("allowlist-source-range", "192.0.2.1"),
            ("use-regex", "true"),
        );
        for path in ["/d$e", "/x*y", "/u^v", "/w{2}", "/a(b", "/a[b"] {
            let web = |path: &str| format!("a.test{path} web:80");
            let served = crate::testing::Fixture::default()
                .and_ingress("shop/guard", &[guard], &[&web(path)])
                .and_ingress("shop/open", &[], &[&web("/")])
                .and_ingress("evil/open", &[open], &[&web("/other")])
                .merge();
            let paths = &served.server("a.test").unwrap().locations;
            let holds = |location: &&Location| {
                expression::matches(&location.path, path.as_bytes()) == Some(true)
            };
            let first = paths.iter().find(holds).unwrap();
            assert_eq!(first.ingress_path, path);
            assert!(!first.settings.allow.is_empty(), "{path}");
        }
    }

    /// Behind the controller's own `/`, which is there before it, nothing would ever be asked of it.
    #[test]
    fn an_exact_root_is_served_among_expressions() {
        let regex = ("use-regex", "true");
        let fixture = crate::testing::Fixture::default();
        let alone =
            fixture.and_ingress("shop/a", &[regex], &["= a.test/ web:80", "a.test/x web:80"]);
        let expected = ["~* /x shop/a shop-web-80", "~* / shop/a shop-web-80"];
        alone.merge().assert_locations("a.test", expected);
        let both = alone
            .and_ingress("shop/b", &[], &["a.test/ other:80"])
            .merge();
        let expected = ["~* /x shop/a shop-web-80", "~* / shop/b shop-other-80"];
        both.assert_locations("a.test", expected);
    }

    #[test]
    fn no_two_locations_are_one() {
        let none = Arc::default();
        for (paths, want) in [
            (&[("/", P)][..], &["/ 0"][..]),
            (&[("/", E), ("/", P)], &["= / 0", "/ 1"]),
            (&[("/a", P), ("/", P)], &["/a/ 0", "= /a 0", "/ 1"]),
            (&[("/a/", P)], &["/a/ 0", "= /a 0"]),
            (&[("/a", P), ("/a/", P)], &["/a/ 0", "= /a 0"]),
            (&[("/a/", P), ("/a", P)], &["/a/ 0", "= /a 0"]),
            (&[("/a", P), ("/a", E), ("/a", P)], &["= /a 1", "/a/ 0"]),
            (&[("/a/", P), ("/a", E)], &["/a/ 0", "= /a 1"]),
            (&[("/a/", E), ("/a", P)], &["= /a/ 0", "/a/ 1", "= /a 1"]),
            (&[("/a", E), ("/a", E)], &["= /a 0"]),
            (&[("//", P), ("/", P)], &["/ 0"]),
            (
                &[("/b", P), ("/a", P), ("/aa", P)],
                &["/aa/ 2", "= /aa 2", "/b/ 0", "= /b 0", "/a/ 1", "= /a 1"],
            ),
        ] {
            assert_eq!(show(paths, &none), want, "{paths:?}");
        }
    }

    #[test]
    fn one_regular_expression_makes_all_of_them_such() {
        let regex = Arc::new(LocationSettings {
            use_regex: true,
            ..LocationSettings::default()
        });
        let rewrite = |target| {
            Arc::new(LocationSettings {
                rewrite_target: Some(Template::constant(target)),
                ..LocationSettings::default()
            })
        };
        assert_eq!(
            show(
                &[("/a", E), ("/", P), ("/a", P), ("/a/", P), ("/b(.*)", P)],
                &regex
            ),
            ["~ /b(.*) 4", "~ /a/ 3", "~ /a 0", "~ / 1"]
        );
        assert_eq!(show(&[("/a$b", P)], &regex), ["~ /a$b 0"]);
        assert_eq!(show(&[("/a", P)], &rewrite("/")), ["~ /a 0"]);
        assert_eq!(show(&[("/a", P)], &rewrite("/a")), ["/a/ 0", "= /a 0"]);
        assert_eq!(show(&[("/a", P)], &rewrite("")), ["/a/ 0", "= /a 0"]);
        assert_eq!(show(&[("//", P), ("/", P)], &regex), ["~ // 0", "~ / 1"]);
    }
}
