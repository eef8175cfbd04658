//! What a merge made of a fixture, and what may be asserted of it.

#![expect(clippy::panic, reason = "an assertion that fails ends its test")]

use crate::{
    explain::{Explainer, Explanation, LocationSummary},
    host::Host,
    layout::{Location, Modifier, Server},
    options::Options,
    outcome::Outcome,
    snapshot::Snapshot,
};

use super::difference::difference;

/// What a controller serves. Locations are written as [`location_line`] writes them.
#[derive(Clone, Debug)]
pub struct Served {
    pub(super) snapshot: Snapshot,
    pub(super) options: Options,
    pub(super) outcome: Outcome,
}

/// A location in a line: how NGINX matches it (`=`, `~*` or nothing) and its path, the Ingress that defines it (`-`: the
/// controller), the upstream.
///
/// ```
/// use ingress_model::testing::{Fixture, location_line};
///
/// let served = Fixture::default().merge();
/// let server = served.server("").unwrap();
/// assert_eq!(location_line(&server.locations[0]), "/ - upstream-default-backend");
/// ```
#[must_use]
pub fn location_line(location: &Location) -> String {
    line(&LocationSummary::of(location))
}

fn line(location: &LocationSummary) -> String {
    let modifier = match location.modifier {
        Modifier::Exact => "= ",
        Modifier::Prefix => "",
        Modifier::Regex => "~* ",
    };
    let ingress = location.ingress.as_ref();
    let ingress = ingress.map_or_else(|| "-".to_owned(), ToString::to_string);
    format!(
        "{modifier}{} {ingress} {}",
        location.path, location.upstream
    )
}

impl Served {
    /// What the merge gave, for rules that the assertions here do not know.
    #[must_use]
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// The server of a host as an Ingress writes it; the empty one is for all hosts that nobody defines.
    #[must_use]
    pub fn server(&self, host: &str) -> Option<&Server> {
        let host = Host::parse(host).ok()?;
        let server = self.outcome.model.layout.servers.get(&host);
        server.map(|server| &**server)
    }

    /// Why a request goes where it goes.
    #[must_use]
    pub fn explainer(&self) -> Explainer<'_> {
        Explainer::new(&self.snapshot, &self.options, &self.outcome)
    }

    /// Asserts which hosts have servers, besides the one for all others.
    ///
    /// # Panics
    /// When they are others.
    #[track_caller]
    pub fn assert_hosts<'a>(&self, expected: impl IntoIterator<Item = &'a str>) {
        let servers = self.outcome.model.layout.servers.keys();
        let hosts = servers.filter(|host| !host.is_catch_all());
        let found: Vec<_> = hosts.map(ToString::to_string).collect();
        self.assert_same("hosts", expected, &found);
    }

    /// Asserts the locations of a host, in the order of NGINX's file.
    ///
    /// # Panics
    /// When they are others, or in another order.
    #[track_caller]
    pub fn assert_locations<'a>(&self, host: &str, expected: impl IntoIterator<Item = &'a str>) {
        let server = self.server(host);
        let locations = server.iter().flat_map(|server| &server.locations);
        let found: Vec<_> = locations.map(location_line).collect();
        self.assert_same(&format!("locations of host {host:?}"), expected, &found);
    }

    /// Asserts which location answers a request, written as `host/path`.
    ///
    /// # Panics
    /// When it is another one, or the path none that NGINX takes.
    #[track_caller]
    pub fn assert_request(&self, request: &str, expected: &str) {
        let choice = self.explain(request).location;
        let found = choice.map(|choice| line(&choice.location));
        self.assert_same(
            &format!("the location for {request}"),
            [expected],
            found.as_slice(),
        );
    }

    /// Asserts the endpoints that a request, written as `host/path`, may be sent to, as addresses with ports.
    ///
    /// # Panics
    /// When they are others, or the path none that NGINX takes.
    #[track_caller]
    pub fn assert_endpoints<'a>(&self, request: &str, expected: impl IntoIterator<Item = &'a str>) {
        let upstream = self.explain(request).upstream;
        let found = upstream.map_or_else(Vec::new, |upstream| upstream.endpoints);
        self.assert_same(&format!("endpoints for {request}"), expected, &found);
    }

    /// Asserts what there is to say about objects, as [`Diagnostic`](crate::Diagnostic)s are printed.
    ///
    /// # Panics
    /// When it is something else.
    #[track_caller]
    pub fn assert_diagnostics<'a>(&self, expected: impl IntoIterator<Item = &'a str>) {
        let said = self.outcome.diagnostics.iter();
        let found: Vec<_> = said.map(ToString::to_string).collect();
        self.assert_same("diagnostics", expected, &found);
    }

    #[track_caller]
    fn explain(&self, request: &str) -> Explanation {
        let at = request.find('/').unwrap_or(request.len());
        let (host, path) = request.split_at(at);
        let path = if path.is_empty() { "/" } else { path };
        match self.explainer().request(host, path) {
            Ok(explanation) => explanation,
            Err(error) => panic!("no request for {request:?} gets anywhere: {error}"),
        }
    }

    #[track_caller]
    fn assert_same<'a>(
        &self,
        what: &str,
        expected: impl IntoIterator<Item = &'a str>,
        found: &[String],
    ) {
        let expected: Vec<_> = expected.into_iter().collect();
        if expected != found {
            let shown = difference(&expected, found);
            let said = self.outcome.diagnostics.iter();
            let mut said: Vec<_> = said.map(ToString::to_string).collect();
            if said.is_empty() {
                said.push("nothing".to_owned());
            }
            let said = said.join("\n  ");
            panic!("{what} differ (- expected, + found):\n{shown}what the merge says:\n  {said}\n");
        }
    }
}
