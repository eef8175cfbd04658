//! The table of changes: which reloads NGINX and why, and of which a running NGINX is told.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "the table is a file, and a malformed one fails the test"
)]

mod support;

use std::{collections::BTreeMap, fs, path::Path};

use ingress_model::{ConflictPolicy, Merger, ObjectName, Options, Snapshot, plan};
use jiff::Timestamp;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// A change of one object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    name: String,
    /// An object that is new or another one.
    #[serde(rename = "change")]
    object: Option<Value>,
    /// An object that goes.
    remove: Option<Gone>,
    /// Other annotations of an Ingress.
    #[serde(default)]
    annotate: BTreeMap<String, BTreeMap<String, String>>,
    /// The reasons to reload.
    #[serde(default)]
    reload: Vec<String>,
    /// Those where the oldest definition wins, if they are other ones.
    oldest: Option<Vec<String>>,
    /// Whether a running NGINX is told something.
    #[serde(default)]
    live: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Gone {
    kind: String,
    name: String,
}

fn read<T: DeserializeOwned>(file: &str) -> T {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/changes");
    let text = fs::read_to_string(folder.join(file)).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

fn apply(change: &Change, cluster: &[Value], snapshot: &mut Snapshot) {
    if let Some(object) = &change.object {
        support::add(snapshot, object.clone());
    }
    if let Some(gone) = &change.remove {
        assert_eq!(gone.kind, "Ingress", "{}", change.name);
        let gone = ObjectName::new("shop", &gone.name);
        assert!(
            snapshot.ingresses.remove(&gone).is_some(),
            "{}",
            change.name
        );
    }
    for (ingress, annotations) in &change.annotate {
        let is_it = |object: &&Value| {
            object["kind"] == "Ingress" && object["metadata"]["name"] == ingress.as_str()
        };
        let mut object = cluster.iter().find(is_it).unwrap().clone();
        let prefixed = annotations
            .iter()
            .map(|(name, value)| (format!("nginx.ingress.kubernetes.io/{name}"), value));
        object["metadata"]["annotations"] = json!(prefixed.collect::<BTreeMap<_, _>>());
        support::add(snapshot, object);
    }
}

#[test]
fn every_change_has_its_reasons() {
    let cluster: Vec<Value> = read("cluster.yaml");
    let changes: Vec<Change> = read("reloads.yaml");
    // Certificates are slow to make, so that all changes begin with the same objects.
    let start = support::snapshot(&cluster);
    let mut faults = Vec::new();
    for policy in [
        ConflictPolicy::LastDefinitionWins,
        ConflictPolicy::OldestWins,
    ] {
        let options = Options {
            conflict_policy: policy,
            watch_ingress_without_class: true,
            config_map: ObjectName::parse("shop/settings"),
            tcp_services: ObjectName::parse("shop/tcp"),
            ..Options::default()
        };
        for change in &changes {
            let mut merger = Merger::default();
            let before = merger.merge(&start, &options, Timestamp::UNIX_EPOCH).model;
            let mut snapshot = start.clone();
            apply(change, &cluster, &mut snapshot);
            let after = merger
                .merge(&snapshot, &options, Timestamp::UNIX_EPOCH)
                .model;
            let reasons = plan(Some(&before.layout), &after.layout);
            let reasons: Vec<_> = reasons.iter().map(ToString::to_string).collect();
            let live = before.live != after.live;
            let oldest = change.oldest.as_ref();
            let expected = oldest.filter(|_| policy == ConflictPolicy::OldestWins);
            if reasons != *expected.unwrap_or(&change.reload) || live != change.live {
                faults.push(format!(
                    "{} ({policy:?}): live {live}, {reasons:#?}",
                    change.name
                ));
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}
