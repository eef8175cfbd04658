//! Who defined what: for each part of a server that Ingresses define, the one that holds it, those that lost it, and
//! why. This is what `explain` shows.

use std::{fmt, sync::Arc};

use serde::Serialize;

use crate::{
    definition::Definition,
    diagnostic::{Diagnostic, Reason, Severity},
    host::Host,
    layout::PathType,
    object::ObjectName,
    shared_map::SharedMap,
    text::Text,
};

/// The decisions of a merge, by host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Provenance {
    /// Decisions about each host; hosts of which nothing is defined are left out.
    pub hosts: SharedMap<Host, Arc<Vec<Decision>>>,
}

impl Provenance {
    /// The decisions about a host, paths first.
    #[must_use]
    pub fn of(&self, host: &Host) -> &[Decision] {
        self.hosts.get(host).map_or(&[], |decisions| decisions)
    }
}

/// Who holds one part of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// The part.
    pub subject: Subject,
    /// The Ingress whose definition holds.
    pub winner: ObjectName,
    /// The Ingresses that define it too, in vain; the next in line first.
    pub losers: Vec<ObjectName>,
    /// Why the winner holds it.
    pub rule: Rule,
}

/// A part of a server that several Ingresses may define.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// A path.
    Path {
        /// As the winner writes it.
        path: Text,
        /// How it is matched.
        path_type: PathType,
    },
    /// The backend for paths that nobody defines.
    DefaultBackend,
    /// The TLS section.
    Tls,
    /// A setting of the whole server, by its annotation.
    Setting(&'static str),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path { path, path_type } => write!(f, "path {path} ({path_type:?})"),
            Self::DefaultBackend => f.write_str("the default backend"),
            Self::Tls => f.write_str("the TLS section"),
            Self::Setting(name) => write!(f, "setting {name}"),
        }
    }
}

/// Why a definition holds against another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Nobody else defines it.
    Sole,
    /// The winner was created later.
    CreatedLater,
    /// The winner was created earlier.
    CreatedEarlier,
    /// Both were created at the same time, and the winner's name is the larger one.
    LargerName,
    /// Both are in the same Ingress.
    SameIngress,
    /// The other Ingress has a canary's settings, but is none.
    NoCanary,
}

impl Rule {
    fn between(winner: &Definition, loser: &Definition) -> Self {
        if winner.name == loser.name {
            return Self::SameIngress;
        }
        if winner.settings.yields != loser.settings.yields {
            return Self::NoCanary;
        }
        match winner.age.created.cmp(&loser.age.created) {
            std::cmp::Ordering::Less => Self::CreatedEarlier,
            std::cmp::Ordering::Equal => Self::LargerName,
            std::cmp::Ordering::Greater => Self::CreatedLater,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sole => "nobody else defines it",
            Self::CreatedLater => "which was created later",
            Self::CreatedEarlier => "which was created earlier",
            Self::LargerName => "which was created at the same time and has the larger name",
            Self::SameIngress => "which defines it twice",
            Self::NoCanary => "since one with a canary's settings takes nothing from another",
        })
    }
}

/// Collects the decisions about one host, and tells the losers.
#[derive(Debug)]
pub(crate) struct Ledger<'a> {
    pub(crate) host: &'a Host,
    pub(crate) decisions: Vec<Decision>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// A definition that lost, and where in its Ingress it stands.
pub(crate) type Loser<'a> = (&'a Definition, Option<String>);

impl<'a> Ledger<'a> {
    pub(crate) fn new(host: &'a Host) -> Self {
        Self {
            host,
            decisions: Vec::new(),
            diagnostics: Vec::new(),
        }
    }

    /// Records who holds a part of the server. Each loser learns of it by a diagnostic of this reason.
    pub(crate) fn decide(
        &mut self,
        subject: Subject,
        winner: &Definition,
        losers: Vec<Loser<'_>>,
        reason: Reason,
    ) {
        let rule = losers
            .first()
            .map_or(Rule::Sole, |(loser, _)| Rule::between(winner, loser));
        let names = losers.iter().map(|(loser, _)| loser.name.clone()).collect();
        for (loser, key) in losers {
            let closed = if winner.settings.is_refused {
                "; that one is refused, and what it guards stays closed"
            } else {
                ""
            };
            let message = format!(
                "{subject} of host {} is held by Ingress {}, {}{closed}",
                self.host,
                winner.name,
                Rule::between(winner, loser)
            );
            self.tell(loser, Severity::Warning, reason, key, message);
        }
        self.decisions.push(Decision {
            subject,
            winner: winner.name.clone(),
            losers: names,
            rule,
        });
    }

    /// Tells an Ingress's author something.
    pub(crate) fn tell(
        &mut self,
        definition: &Definition,
        severity: Severity,
        reason: Reason,
        key: Option<String>,
        message: String,
    ) {
        let mut diagnostic = Diagnostic::new(definition.reference(), severity, reason, message);
        diagnostic.key = key;
        self.diagnostics.push(diagnostic);
    }
}
