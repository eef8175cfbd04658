//! Why a model would be loaded in place of another one, where all that is known of the other one is its JSON: the reasons of
//! [`plan`](ingress_model::plan()), found in the same places.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Change, Reason, Told};

/// Two models as JSON.
#[derive(Clone, Copy, Debug)]
pub(super) struct Models<'a> {
    pub(super) old: &'a Value,
    pub(super) new: &'a Value,
}

/// What of a server is looked at apart from its settings.
const NO_SETTINGS_OF_SERVERS: &[&str] = &["tls", "locations"];

/// The same of a location.
const NO_SETTINGS_OF_LOCATIONS: &[&str] = &["path", "modifier", "settings"];

impl Models<'_> {
    /// Why NGINX would have to reload.
    pub(super) fn reasons(self) -> Vec<Reason> {
        let mut reasons = Vec::new();
        let layouts = self.at("layout");
        let keys: Vec<_> = differing(layouts.at("config"), &[]).collect();
        if !keys.is_empty() {
            let keys: Vec<_> = keys.iter().map(|field| field.replace('_', "-")).collect();
            add(
                &mut reasons,
                "config_changed",
                format!("ConfigMap changed: {}", keys.join(", ")),
            );
        }
        for (host, server) in layouts.at("servers").entries() {
            server.server(&host, &mut reasons);
        }
        for (field, protocol) in [("tcp", "TCP"), ("udp", "UDP")] {
            let ports = layouts.at(field).entries();
            for (port, _) in ports.filter(|(_, ports)| ports.old != ports.new) {
                add(
                    &mut reasons,
                    "stream_changed",
                    format!("{protocol} port {port} changed"),
                );
            }
        }
        let snippets = layouts.at("stream_snippets");
        if snippets.old != snippets.new {
            add(
                &mut reasons,
                "stream_snippets_changed",
                "stream snippets changed".to_owned(),
            );
        }
        reasons
    }

    fn server(self, host: &str, reasons: &mut Vec<Reason>) {
        match (self.old.is_null(), self.new.is_null()) {
            (true, _) => return add(reasons, "host_added", format!("host {host} added")),
            (_, true) => return add(reasons, "host_removed", format!("host {host} removed")),
            (false, false) => {}
        }
        let tls = self.at("tls");
        match (tls.old.as_bool(), tls.new.as_bool()) {
            (Some(false), Some(true)) => {
                add(
                    reasons,
                    "tls_added",
                    format!("TLS section of host {host} added"),
                );
            }
            (Some(true), Some(false)) => {
                add(
                    reasons,
                    "tls_removed",
                    format!("TLS section of host {host} removed"),
                );
            }
            _ => {}
        }
        for setting in differing(self, NO_SETTINGS_OF_SERVERS) {
            add(
                reasons,
                "server_changed",
                format!("{setting} of host {host} changed"),
            );
        }
        self.at("locations").locations(host, reasons);
    }

    fn locations(self, host: &str, reasons: &mut Vec<Reason>) {
        if self.old == self.new {
            return;
        }
        let before = reasons.len();
        let list = |locations: &'_ Value| locations.as_array().cloned().unwrap_or_default();
        let (olds, news) = (list(self.old), list(self.new));
        let find = |list: &[Value], key: &(String, String)| {
            list.iter()
                .rfind(|location| place(location) == *key)
                .cloned()
        };
        let places: BTreeSet<_> = olds.iter().chain(&news).map(place).collect();
        for key in places {
            let path = &key.0;
            match (find(&olds, &key), find(&news, &key)) {
                (None, _) => add(
                    reasons,
                    "path_added",
                    format!("path {path} of host {host} added"),
                ),
                (_, None) => {
                    add(
                        reasons,
                        "path_removed",
                        format!("path {path} of host {host} removed"),
                    );
                }
                (Some(old), Some(new)) => {
                    let pair = Models {
                        old: &old,
                        new: &new,
                    };
                    let settings = differing(pair, NO_SETTINGS_OF_LOCATIONS);
                    for setting in settings.chain(differing(pair.at("settings"), &[])) {
                        let text = format!("{setting} of path {path} of host {host} changed");
                        add(reasons, "location_changed", text);
                    }
                }
            }
        }
        // A path that is both exact and prefix comes and goes as one.
        let mut tail = reasons.split_off(before);
        tail.dedup();
        reasons.append(&mut tail);
        let kept = |list: &[Value], other: &[Value]| {
            let other: BTreeSet<_> = other.iter().map(place).collect();
            let places = list.iter().map(place);
            places
                .filter(|place| other.contains(place))
                .collect::<Vec<_>>()
        };
        if kept(&olds, &news) != kept(&news, &olds) || reasons.len() == before {
            let text = format!("order of the paths of host {host} changed");
            add(reasons, "locations_reordered", text);
        }
    }

    fn at(self, field: &str) -> Self {
        const NOTHING: &Value = &Value::Null;
        Self {
            old: self.old.get(field).unwrap_or(NOTHING),
            new: self.new.get(field).unwrap_or(NOTHING),
        }
    }

    /// The entries of two objects by their names, in order.
    fn entries(self) -> impl Iterator<Item = (String, Self)> {
        let names = [self.old, self.new]
            .into_iter()
            .filter_map(Value::as_object);
        let names: BTreeSet<_> = names.flat_map(Map::keys).cloned().collect();
        names.into_iter().map(move |name| {
            let entry = self.at(&name);
            (name, entry)
        })
    }
}

/// What NGINX would be told of certificates, of TCP and UDP services, and of hosts that are passed through.
pub(super) fn live(old: &Value, new: &Value) -> Vec<Told> {
    let live = Models { old, new }.at("live");
    let kinds = [
        ("certificates", "certificate"),
        ("servers", "certificate of host"),
        ("tcp", "TCP port"),
        ("udp", "UDP port"),
        ("passthrough", "passed-through host"),
    ];
    let told = kinds.into_iter().flat_map(|(field, kind)| {
        let both = live.at(field);
        let names = [both.old, both.new]
            .into_iter()
            .filter_map(Value::as_object);
        let names: BTreeSet<_> = names.flat_map(Map::keys).collect();
        names.into_iter().filter_map(move |name| {
            // A host that is not passed through may be there with nothing.
            let change = match (both.old.get(name), both.new.get(name)) {
                (_, None) => Change::Removed,
                (old, new) if old != new => Change::Set,
                _ => return None,
            };
            Some(Told {
                kind,
                name: name.clone(),
                change,
            })
        })
    });
    told.collect()
}

fn add(reasons: &mut Vec<Reason>, reason: &'static str, text: String) {
    reasons.push(Reason { reason, text });
}

/// What tells the locations of a server apart.
fn place(location: &Value) -> (String, String) {
    let text = |field| {
        location
            .get(field)
            .map(ToString::to_string)
            .unwrap_or_default()
    };
    let path = location.get("path").and_then(Value::as_str);
    (path.unwrap_or_default().to_owned(), text("modifier"))
}

/// The names of those fields that differ, but for some.
fn differing<'a>(models: Models<'a>, but: &'a [&'a str]) -> impl Iterator<Item = String> + 'a {
    let entries = models.entries();
    let differing = entries
        .filter(move |(name, entry)| entry.old != entry.new && !but.contains(&name.as_str()));
    differing.map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use ingress_model::{ObjectName, Options, Outcome, Snapshot, merge, plan};
    use jiff::Timestamp;
    use k8s_openapi::api::{core::v1::ConfigMap, networking::v1::Ingress};
    use serde_json::json;

    use super::*;
    use crate::view::ModelView;

    /// An Ingress: its annotations, and its paths as `host/path service`.
    type Written<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str]);

    fn outcome(keys: &[(&str, &str)], ingresses: &[Written<'_>]) -> Outcome {
        let mut snapshot = Snapshot::default();
        for (name, annotations, paths) in ingresses {
            let annotations = annotations.iter();
            let annotations = annotations.map(|(key, value)| {
                let key = format!("nginx.ingress.kubernetes.io/{key}");
                (key, json!(value))
            });
            let rules = paths.iter().map(|path| {
                let (request, service) = path.split_once(' ').unwrap();
                let (host, path) = request.split_once('/').unwrap();
                let backend = json!({"service": {"name": service, "port": {"number": 80}}});
                let path = format!("/{path}");
                let paths = json!([{"path": path, "pathType": "Prefix", "backend": backend}]);
                json!({"host": host, "http": {"paths": paths}})
            });
            let ingress = json!({
                "metadata": {
                    "name": name, "namespace": "shop", "annotations": annotations.collect::<Map<_, _>>(),
                },
                "spec": {
                    "rules": rules.collect::<Vec<_>>(),
                    "tls": if *name == "tls" { json!([{"hosts": ["a.test"]}]) } else { json!([]) },
                },
            });
            let ingress: Ingress = serde_json::from_value(ingress).unwrap();
            snapshot
                .ingresses
                .insert(ObjectName::new("shop", name), ingress);
        }
        let settings = ObjectName::new("shop", "settings");
        let data = keys
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let config_map = ConfigMap {
            data: Some(data.collect()),
            ..ConfigMap::default()
        };
        snapshot.config_maps.insert(settings.clone(), config_map);
        let options = Options {
            watch_ingress_without_class: true,
            config_map: Some(settings),
            ..Options::default()
        };
        merge(&snapshot, &options, Timestamp::UNIX_EPOCH)
    }

    fn json_of(outcome: &Outcome) -> Value {
        let model = &outcome.model;
        serde_json::to_value(ModelView::new(&model.layout, &model.live)).unwrap()
    }

    /// The reasons from one to the other, which have to be the plan's.
    #[track_caller]
    fn planned(old: &Outcome, new: &Outcome) -> Vec<&'static str> {
        let plan = plan(Some(&old.model.layout), &new.model.layout);
        let plan: BTreeSet<_> = plan
            .iter()
            .map(|reason| (reason.label(), reason.to_string()))
            .collect();
        let (before, after) = (json_of(old), json_of(new));
        let models = Models {
            old: &before,
            new: &after,
        };
        let reasons = models.reasons().into_iter();
        let found: BTreeSet<_> = reasons.map(|reason| (reason.reason, reason.text)).collect();
        assert_eq!(found, plan);
        let mut labels: Vec<_> = found.into_iter().map(|(label, _)| label).collect();
        labels.dedup();
        labels
    }

    #[test]
    fn reasons_are_those_of_the_plan() {
        let regex: &[_] = &[("use-regex", "true")];
        let a: Written<'_> = ("a", &[], &["a.test/ web", "a.test/cart cart"]);
        let b: Written<'_> = ("b", regex, &["b.test/x web", "b.test/yy web"]);
        let base = outcome(&[], &[a, b]);
        assert_eq!(planned(&base, &base), [""; 0]);
        let c: Written<'_> = ("c", &[], &["c.test/ web", "a.test/new web"]);
        let further = outcome(&[("keep-alive", "7"), ("use-gzip", "true")], &[a, b, c]);
        let labels = ["config_changed", "host_added", "path_added"];
        assert_eq!(planned(&base, &further), labels);
        let labels = ["config_changed", "host_removed", "path_removed"];
        assert_eq!(planned(&further, &base), labels);
        let everywhere: Written<'_> = ("d", &[], &["/all web"]);
        let catch_all = outcome(&[], &[a, b, everywhere]);
        assert_eq!(planned(&base, &catch_all), ["path_added"]);
        let models = (json_of(&base), json_of(&catch_all));
        let models = Models {
            old: &models.0,
            new: &models.1,
        };
        let mut reasons = models.reasons().into_iter().map(|reason| reason.text);
        assert!(reasons.any(|text| text == "path /all of host _ added"));
        let settings: &[_] = &[
            ("proxy-body-size", "8m"),
            ("ssl-ciphers", "HIGH"),
            ("server-alias", "other.test"),
            ("enable-cors", "true"),
        ];
        let a: Written<'_> = ("a", settings, &["a.test/ api", "a.test/cart cart"]);
        let b: Written<'_> = ("b", regex, &["b.test/yy web", "b.test/xxx web"]);
        let tls: Written<'_> = ("tls", &[], &["a.test/tls web"]);
        let other = outcome(&[], &[a, b, tls]);
        let labels = [
            "location_changed",
            "path_added",
            "path_removed",
            "server_changed",
            "tls_added",
        ];
        assert_eq!(planned(&base, &other), labels);
        let labels = [
            "location_changed",
            "path_added",
            "path_removed",
            "server_changed",
            "tls_removed",
        ];
        assert_eq!(planned(&other, &base), labels);
    }

    #[test]
    fn what_is_told_is_named() {
        let base = json_of(&outcome(&[], &[]));
        let mut other = base.clone();
        other["live"]["certificates"] = json!({"new": {"serial": "1"}});
        other["live"]["passthrough"] = json!({"a.test": null});
        let told = |old, new| {
            let told = live(old, new).into_iter();
            let told = told.map(|told| format!("{} {} {:?}", told.kind, told.name, told.change));
            told.collect::<Vec<_>>()
        };
        assert_eq!(told(&base, &base), [""; 0]);
        let set = ["certificate new Set", "passed-through host a.test Set"];
        assert_eq!(told(&base, &other), set);
        assert!(told(&other, &base)[0].ends_with("Removed"));
    }
}
