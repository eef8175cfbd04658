//! What NGINX takes of snippets although it takes something away from others: addresses of the controller's servers, and
//! names of other hosts.

use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use super::words::{Block, Statement};

/// Whether a text may hold anything of the kind.
pub(super) fn is_possible(text: &str) -> bool {
    text.contains("listen") || text.contains("server_name")
}

/// What is wrong at which lines of a configuration in which some lines are what users wrote.
pub(super) fn faults(
    statements: &[Statement],
    is_raw: impl Fn(usize) -> bool,
) -> Vec<(usize, String)> {
    // Servers that users write themselves may have names and addresses in common with the controller's.
    let is_within_ours = |statement: &&Statement| {
        let around = statement.opener.and_then(|it| statements.get(it));
        statement.block == Block::Server && around.is_some_and(|around| !is_raw(around.line))
    };
    let (raw, ours): (Vec<_>, Vec<_>) = statements
        .iter()
        .filter(|statement| matches!(statement.name(), "listen" | "server_name"))
        .partition(|statement| is_raw(statement.line));
    let raw: Vec<_> = raw.into_iter().filter(is_within_ours).collect();
    if raw.is_empty() {
        return Vec::new();
    }
    let places: HashSet<_> = ours.iter().filter_map(|it| Place::of(it)).collect();
    let names: HashMap<_, _> = ours
        .iter()
        .flat_map(|it| names(it).map(|name| (name, it.opener)))
        .collect();
    let faults = raw.into_iter().filter_map(|statement| {
        let reason = taken_place(statement, &places).or_else(|| taken_name(statement, &names))?;
        Some((statement.line, reason))
    });
    faults.collect()
}

/// NGINX gives a server that listens at an address of its own all requests that arrive there, whatever their host, and the
/// controller's, too.
fn taken_place(statement: &Statement, ours: &HashSet<Place<'_>>) -> Option<String> {
    let place = Place::of(statement)?;
    let taken = ours.iter().find(|ours| place.meets(ours))?;
    Some(format!(
        "{taken} is one of the controller's: no snippet can \"listen\" there"
    ))
}

/// NGINX gives requests for a name to the server that comes first.
fn taken_name(statement: &Statement, ours: &HashMap<String, Option<usize>>) -> Option<String> {
    let is_anothers = |name: &String| {
        let holder = ours.get(name);
        holder.is_some_and(|holder| *holder != statement.opener)
    };
    let name = names(statement).find(is_anothers)?;
    Some(format!(
        "\"{name}\" of directive \"server_name\" is another server's name"
    ))
}

/// The names that a directive gives a server.
fn names(statement: &Statement) -> impl Iterator<Item = String> {
    let is_theirs = statement.name() == "server_name";
    let names = statement.words.iter().skip(1).filter(move |_| is_theirs);
    names.map(|name| name.to_ascii_lowercase())
}

/// Where a server listens, whatever the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place<'a> {
    /// All ports from one to another.
    Ports(u16, u16),
    /// A Unix socket.
    Socket(&'a str),
}

impl<'a> Place<'a> {
    /// NGINX docs: `listen`.
    fn of(statement: &'a Statement) -> Option<Self> {
        if statement.name() != "listen" {
            return None;
        }
        let address = statement.words.get(1)?.as_str();
        if address.starts_with("unix:") {
            return Some(Self::Socket(address));
        }
        let is_port = |text: &str| text.chars().all(|c| c.is_ascii_digit() || c == '-');
        let port = match address.rsplit_once(':') {
            Some((_, port)) if is_port(port) => port,
            None if is_port(address) => address,
            _ => "80",
        };
        let (first, last) = port.split_once('-').unwrap_or((port, port));
        Some(Self::Ports(first.parse().ok()?, last.parse().ok()?))
    }

    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Ports(first, last), Self::Ports(from, to)) => first <= to && from <= last,
            (Self::Socket(one), Self::Socket(other)) => one == other,
            _ => false,
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ports(first, _) => write!(f, "port {first}"),
            Self::Socket(address) => write!(f, "{address:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::words, *};

    /// What is wrong with a snippet in the server of `a.test`.
    fn fault(snippet: &str) -> Option<String> {
        let text = format!(
            "http {{\nserver {{ server_name b.test *.c.test; listen 80; listen [::]:443 ssl; }}\n\
             server {{ server_name a.test; listen 80;\n{snippet}\n}}\n\
             server {{ listen 127.0.0.1:10246; listen unix:/run/h2c; }}\n}}"
        );
        let statements = words::read(&text, Block::Main).unwrap();
        let mut faults = faults(&statements, |line| line == 4).into_iter();
        faults.next().map(|(_, reason)| reason)
    }

    #[test]
    fn addresses_of_the_controller_are_not_for_snippets() {
        for (address, taken) in [
            ("80", "port 80"),
            ("127.0.0.1", "port 80"),
            ("[::1]", "port 80"),
            ("127.0.0.1:443 ssl", "port 443"),
            ("[::1]:443", "port 443"),
            ("127.0.0.1:10246", "port 10246"),
            ("localhost:010246", "port 10246"),
            ("\"127.0.0.2:10246\"", "port 10246"),
            ("10240-10250", "port 10246"),
            ("unix:/run/h2c", "unix:/run/h2c"),
        ] {
            let reason = fault(&format!("listen {address};")).unwrap_or_default();
            assert!(reason.contains(taken), "{address}: {reason}");
        }
        for address in ["8080", "127.0.0.1:8443 ssl", "[::1]:10247", "unix:/run/x"] {
            assert_eq!(fault(&format!("listen {address};")), None, "{address}");
        }
        assert_eq!(fault("if ($x) { return 403; }"), None);
    }

    #[test]
    fn names_of_other_servers_are_not_for_snippets() {
        for name in ["b.test", "B.test", "x.test b.test", "\"*.c.test\""] {
            assert!(fault(&format!("server_name {name};")).is_some(), "{name}");
        }
        for name in ["a.test", "x.test", "~^b", "x.c.test"] {
            assert_eq!(fault(&format!("server_name {name};")), None, "{name}");
        }
    }
}
