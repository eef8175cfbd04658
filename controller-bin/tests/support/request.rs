//! What a request asks for, read from its method and URL, and the log entry made of it.

use std::{collections::BTreeMap, time::Instant};

use axum::{
    extract::Query,
    http::{Method, Uri},
};
use serde_json::Value;

use super::resource::Resource;

/// What a request does, named as in RBAC rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    /// Anything else, such as deleting a whole collection.
    Other,
}

/// A request taken apart.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) verb: Verb,
    /// Path without query.
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    /// `None` for discovery, health and unknown paths.
    pub(crate) resource: Option<&'static Resource>,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

/// An entry of the request log.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// When it arrived.
    pub(crate) at: Instant,
    pub(crate) call: Call,
    /// What a write carried.
    pub(crate) body: Option<Value>,
    /// HTTP code of the answer, `None` until there is one.
    pub(crate) code: Option<u16>,
}

impl Call {
    /// Takes a request's head apart.
    pub(crate) fn parse(method: &Method, uri: &Uri) -> Self {
        let query = Query::<BTreeMap<String, String>>::try_from_uri(uri)
            .map(|Query(pairs)| pairs)
            .unwrap_or_default();
        let mut call = Self {
            verb: Verb::Other,
            path: uri.path().to_owned(),
            query,
            resource: None,
            namespace: None,
            name: None,
            subresource: None,
        };
        let segments: Vec<&str> = uri.path().trim_matches('/').split('/').collect();
        match segments.as_slice() {
            ["api", version, rest @ ..] => call.locate("", version, rest),
            ["apis", group, version, rest @ ..] => call.locate(group, version, rest),
            _ => {}
        }
        call.verb = call.verb_of(method);
        call
    }

    /// A query parameter, empty when absent.
    pub(crate) fn parameter(&self, name: &str) -> &str {
        self.query.get(name).map_or("", String::as_str)
    }

    /// Whether a query parameter is set to a true value.
    pub(crate) fn flag(&self, name: &str) -> bool {
        matches!(self.parameter(name), "true" | "1")
    }

    fn locate(&mut self, group: &str, version: &str, rest: &[&str]) {
        let (namespace, rest) = match rest {
            ["namespaces", namespace, tail @ ..] if is_collection(tail) => (Some(*namespace), tail),
            _ => (None, rest),
        };
        let [plural, tail @ ..] = rest else { return };
        let (name, subresource) = match tail {
            [] => (None, None),
            [name] => (Some(*name), None),
            [name, subresource] => (Some(*name), Some(*subresource)),
            _ => return,
        };
        self.resource = Resource::at(group, version, plural)
            .filter(|resource| resource.namespaced || namespace.is_none())
            .filter(|resource| !resource.namespaced || namespace.is_some() || name.is_none());
        self.namespace = namespace.map(str::to_owned);
        self.name = name.map(str::to_owned);
        self.subresource = subresource.map(str::to_owned);
    }

    fn verb_of(&self, method: &Method) -> Verb {
        match (method.as_str(), &self.name) {
            ("GET", None) if self.resource.is_some() && self.flag("watch") => Verb::Watch,
            ("GET", None) if self.resource.is_some() => Verb::List,
            ("GET", _) => Verb::Get,
            ("POST", None) => Verb::Create,
            ("PUT", Some(_)) => Verb::Update,
            ("PATCH", Some(_)) => Verb::Patch,
            ("DELETE", Some(_)) => Verb::Delete,
            _ => Verb::Other,
        }
    }
}

impl Request {
    /// Whether it did this to that kind (named as for [`Resource::named`]), subresources aside.
    pub(crate) fn is(&self, verb: Verb, resource: &str) -> bool {
        self.call.verb == verb
            && self.call.resource == Some(Resource::named(resource))
            && self.call.subresource.is_none()
    }

    /// Whether it wrote the status of an object of that kind.
    pub(crate) fn writes_status(&self, resource: &str) -> bool {
        matches!(self.call.verb, Verb::Update | Verb::Patch)
            && self.call.resource == Some(Resource::named(resource))
            && self.call.subresource.as_deref() == Some("status")
    }
}

/// Tells `/namespaces/NS/services/…` from `/namespaces/NS` and its own subresources.
fn is_collection(tail: &[&str]) -> bool {
    !matches!(tail, [] | ["status" | "finalize"])
}
