//! Laws about one more Ingress, and about any text in any field. Further laws are in `laws`.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "what the generators make is known"
)]

mod support;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use ingress_model::{
    ConflictPolicy, Host, Layout, Location, ObjectName, Options, Outcome, Snapshot,
    layout::{Modifier, PathType},
    merge,
};
use jiff::Timestamp;
use proptest::{
    collection::vec,
    prelude::*,
    sample::{select, subsequence},
};
use serde_json::{Value, json};

const POLICIES: [ConflictPolicy; 2] = [
    ConflictPolicy::LastDefinitionWins,
    ConflictPolicy::OldestWins,
];

/// Certificates are slow to make, so all cases share these.
static SECRETS: LazyLock<Snapshot> = LazyLock::new(|| {
    support::snapshot(&[
        json!({"kind": "Tls", "name": "one", "hosts": ["a.test", "alias.test"]}),
        json!({"kind": "Tls", "name": "two", "hosts": ["a.test", "*.b.test"], "until": 2000}),
        json!({"kind": "Authority", "name": "ca"}),
    ])
});

fn options(policy: ConflictPolicy) -> Options {
    Options {
        conflict_policy: policy,
        watch_ingress_without_class: true,
        tcp_services: ObjectName::parse("shop/tcp"),
        config_map: ObjectName::parse("shop/settings"),
        ..Options::default()
    }
}

fn now() -> Timestamp {
    Timestamp::from_second(1_700_000_000).unwrap()
}

fn of(snapshot: &Snapshot, policy: ConflictPolicy) -> Outcome {
    merge(snapshot, &options(policy), now())
}

fn with_secrets(objects: &[Value]) -> Snapshot {
    let mut snapshot = SECRETS.clone();
    for object in objects {
        support::add(&mut snapshot, object.clone());
    }
    snapshot
}

/// An Ingress out of small sets of names, so that conflicts are frequent.
fn ingress() -> impl Strategy<Value = Value> {
    let name = select(vec!["a", "b", "c", "d"]);
    let namespace = select(vec!["shop", "bank"]);
    let created = proptest::option::weighted(0.9, 0_i64..3);
    let annotations = subsequence(ANNOTATIONS.to_vec(), 0..4);
    let default_backend = proptest::option::weighted(0.2, backend());
    let tls = vec(tls(), 0..2);
    let rules = vec(rule(), 0..4);
    let parts = (
        name,
        namespace,
        created,
        annotations,
        default_backend,
        tls,
        rules,
    );
    parts.prop_map(
        |(name, namespace, created, annotations, default_backend, tls, rules)| {
            let annotations: BTreeMap<_, _> = annotations
                .into_iter()
                .map(|(key, value)| (format!("nginx.ingress.kubernetes.io/{key}"), value))
                .collect();
            let mut metadata =
                json!({"name": name, "namespace": namespace, "annotations": annotations});
            if let Some(created) = created {
                metadata["created"] = created.into();
            }
            let spec = json!({"defaultBackend": default_backend, "tls": tls, "rules": rules});
            json!({"kind": "Ingress", "metadata": metadata, "spec": spec})
        },
    )
}

const ANNOTATIONS: &[(&str, &str)] = &[
    ("rewrite-target", "/x"),
    ("use-regex", "true"),
    ("server-alias", "alias.test,b.test"),
    ("ssl-ciphers", "AES128-SHA"),
    ("auth-tls-secret", "shop/ca"),
    ("affinity", "cookie"),
    ("upstream-hash-by", "$host"),
    ("service-upstream", "true"),
    ("canary", "true"),
    ("canary-weight", "20"),
    ("proxy-read-timeout", "7"),
    ("permanent-redirect", "bad value;"),
];

fn backend() -> impl Strategy<Value = Value> {
    let service = (
        select(vec!["web", "api", "missing", "far"]),
        select(vec![80, 81, 0]),
    );
    prop_oneof![
        9 => service.prop_map(|(name, port)| {
            json!({"service": {"name": name, "port": {"number": port, "name": "http"}}})
        }),
        1 => Just(json!({"resource": {"kind": "Bucket", "name": "b"}})),
    ]
}

fn rule() -> impl Strategy<Value = Value> {
    let host = select(vec![
        "",
        "a.test",
        "A.test",
        "b.test",
        "*.b.test",
        "alias.test",
        "bad host",
    ]);
    let path = select(vec![
        "/",
        "",
        "/a",
        "/a/",
        "/A",
        "/a//",
        "/b(.*)",
        "/etc/nginx",
        "x",
    ]);
    let path_type = select(vec!["Exact", "Prefix", "ImplementationSpecific"]);
    let path = (path, path_type, backend());
    let path = path.prop_map(|(path, path_type, backend)| {
        json!({"path": path, "pathType": path_type, "backend": backend})
    });
    let paths = proptest::option::weighted(0.9, vec(path, 0..4));
    (host, paths).prop_map(|(host, paths)| match paths {
        Some(paths) => json!({"host": host, "http": {"paths": paths}}),
        None => json!({"host": host}),
    })
}

fn tls() -> impl Strategy<Value = Value> {
    let hosts = subsequence(vec!["a.test", "B.test", "*.b.test"], 0..3);
    let secret = select(vec!["one", "two", "ca", "missing", ""]);
    (hosts, secret).prop_map(|(hosts, secret)| json!({"hosts": hosts, "secretName": secret}))
}

/// Anything but Ingresses.
fn other() -> impl Strategy<Value = Value> {
    let web = (
        select(vec!["web", "api"]),
        select(vec!["shop", "bank"]),
        subsequence(vec!["10.0.0.1", "10.0.0.2", "10.0.0.3"], 0..3),
    );
    let web = web.prop_map(|(name, namespace, pods)| {
        json!({"kind": "Web", "name": name, "namespace": namespace, "pods": pods})
    });
    let far = select(vec!["far.test", "localhost"]).prop_map(|name| {
        json!({"kind": "Service", "metadata": {"name": "far"},
            "spec": {"type": "ExternalName", "externalName": name}})
    });
    let ports = subsequence(
        vec![("9000", "shop/web:80"), ("9001", "bank/api:http:PROXY")],
        0..3,
    );
    let tcp = ports.prop_map(|ports| {
        let data: BTreeMap<_, _> = ports.into_iter().collect();
        json!({"kind": "ConfigMap", "metadata": {"name": "tcp"}, "data": data})
    });
    let keys = subsequence(
        vec![("server-tokens", "true"), ("ssl-redirect", "false")],
        0..2,
    );
    let settings = keys.prop_map(|keys| {
        let data: BTreeMap<_, _> = keys.into_iter().collect();
        json!({"kind": "ConfigMap", "metadata": {"name": "settings"}, "data": data})
    });
    prop_oneof![6 => web, 1 => far, 1 => tcp, 1 => settings]
}

fn objects() -> impl Strategy<Value = Vec<Value>> {
    (vec(ingress(), 0..7), vec(other(), 0..5))
        .prop_map(|(ingresses, others)| ingresses.into_iter().chain(others).collect())
}

/// Who holds a path of a host, by the path as the Ingress writes it.
type Owners = BTreeMap<(Host, String, PathType), ObjectName>;

/// Those paths that a rule of an Ingress asks for.
fn owners(layout: &Layout, snapshot: &Snapshot) -> Owners {
    let defined = |host: &Host, location: &Location| {
        let ingress = snapshot.ingresses.get(location.ingress.as_ref()?)?;
        let asks = definitions(ingress).iter().any(|(on, path, kind)| {
            on == host && *path == location.ingress_path && *kind == location.path_type
        });
        asks.then(|| location.ingress.clone())?
    };
    let servers = layout.servers.iter();
    let locations =
        servers.flat_map(|(host, server)| server.locations.iter().map(move |one| (host, one)));
    locations
        .filter_map(|(host, location)| {
            let key = (
                host.clone(),
                location.ingress_path.to_string(),
                location.path_type,
            );
            Some((key, defined(host, location)?))
        })
        .collect()
}

/// The paths that an Ingress defines, read independently of the rules.
fn definitions(
    ingress: &k8s_openapi::api::networking::v1::Ingress,
) -> Vec<(Host, String, PathType)> {
    let spec = ingress.spec.clone().unwrap_or_default();
    let mut definitions = Vec::new();
    for rule in spec.rules.unwrap_or_default() {
        let Ok(host) = Host::parse(&rule.host.unwrap_or_default()) else {
            continue;
        };
        for path in rule.http.map(|http| http.paths).unwrap_or_default() {
            let text = path
                .path
                .filter(|path| !path.is_empty())
                .unwrap_or_else(|| "/".into());
            let kind = match path.path_type.as_str() {
                "Exact" => PathType::Exact,
                _ => PathType::Prefix,
            };
            if text.starts_with('/') && path.backend.service.is_some() {
                definitions.push((host.clone(), text, kind));
            }
        }
    }
    definitions
}

/// An Ingress that is served for certain, newer than all others.
fn newest() -> impl Strategy<Value = Value> {
    vec(rule(), 1..4).prop_map(|rules| {
        let rules: Vec<_> = rules
            .into_iter()
            .filter(|rule| !rule.to_string().contains("/etc/nginx"))
            .collect();
        json!({"kind": "Ingress", "metadata": {"name": "newest", "created": 100},
            "spec": {"rules": if rules.is_empty() { json!([{}]) } else { json!(rules) }}})
    })
}

/// Any text in any field.
fn wild_ingress() -> impl Strategy<Value = Value> {
    let text = || prop_oneof![".{0,12}", "[a-z/.*_-]{0,12}", Just("x".repeat(5000))];
    let port = prop_oneof![
        Just(json!({})),
        any::<i32>().prop_map(|n| json!({"number": n})),
        text().prop_map(|t| json!({"name": t}))
    ];
    let backend =
        (text(), port).prop_map(|(name, port)| json!({"service": {"name": name, "port": port}}));
    let path = (text(), text(), backend).prop_map(
        |(path, kind, backend)| json!({"path": path, "pathType": kind, "backend": backend}),
    );
    let rule = (text(), vec(path, 0..3))
        .prop_map(|(host, paths)| json!({"host": host, "http": {"paths": paths}}));
    let tls = (vec(text(), 0..2), text())
        .prop_map(|(hosts, secret)| json!({"hosts": hosts, "secretName": secret}));
    let annotations = proptest::collection::btree_map(
        select(
            ANNOTATIONS
                .iter()
                .map(|(key, _)| format!("nginx.ingress.kubernetes.io/{key}"))
                .collect::<Vec<_>>(),
        ),
        text(),
        0..4,
    );
    (text(), text(), annotations, vec(rule, 0..3), vec(tls, 0..2)).prop_map(
        |(namespace, name, annotations, rules, tls)| {
            json!({"kind": "Ingress",
                "metadata": {"namespace": namespace, "name": name, "annotations": annotations},
                "spec": {"rules": rules, "tls": tls}})
        },
    )
}

/// A Service, its slices and a ConfigMap with any numbers and texts.
fn wild_others() -> impl Strategy<Value = Vec<Value>> {
    let text = || prop_oneof![".{0,12}", "[a-z0-9:/.-]{0,16}", Just("web".to_owned())];
    let target = prop_oneof![
        any::<i32>().prop_map(|n| json!(n)),
        text().prop_map(|t| json!(t))
    ];
    let port = (text(), any::<i32>(), target, select(vec!["TCP", "UDP", "?"])).prop_map(
        |(name, port, target, protocol)| {
            json!({"name": name, "port": port, "targetPort": target, "protocol": protocol})
        },
    );
    let service = (text(), text(), text(), vec(port, 0..3));
    let slice_port =
        (text(), any::<i32>()).prop_map(|(name, port)| json!({"name": name, "port": port}));
    let slice = (vec(slice_port, 0..3), vec(text(), 0..3));
    let data = proptest::collection::btree_map(text(), text(), 0..4);
    (service, slice, data).prop_map(|((kind, name, ip, ports), (slice_ports, addresses), data)| {
        vec![
            json!({"kind": "Service", "metadata": {"name": "web"}, "spec": {
                "type": if kind.len() > 6 { "ExternalName" } else { kind.as_str() },
                "externalName": name, "clusterIP": ip, "ports": ports}}),
            json!({"kind": "EndpointSlice",
                "metadata": {"name": "s", "labels": {"kubernetes.io/service-name": "web"}},
                "addressType": "IPv4", "ports": slice_ports, "endpoints": [{"addresses": addresses}]}),
            json!({"kind": "ConfigMap", "metadata": {"name": "tcp"}, "data": data}),
        ]
    })
}

fn check_locations(layout: &Layout) -> Result<(), TestCaseError> {
    for (host, server) in &layout.servers {
        let keys: Vec<_> = server
            .locations
            .iter()
            .map(|one| (one.modifier, &one.path))
            .collect();
        let distinct: BTreeSet<_> = keys.iter().collect();
        prop_assert_eq!(distinct.len(), keys.len(), "{}: {:?}", host, keys);
        let regex = keys
            .iter()
            .filter(|(modifier, _)| *modifier == Modifier::Regex)
            .count();
        prop_assert!(regex == 0 || regex == keys.len(), "{}: {:?}", host, keys);
        let root = keys
            .iter()
            .any(|(modifier, path)| *path == "/" && *modifier != Modifier::Exact);
        prop_assert!(root, "{host} has no location for the rest: {keys:?}");
    }
    Ok(())
}

/// Every name that the layout refers to is known to the other half.
fn check_references(outcome: &Outcome) -> Result<(), TestCaseError> {
    let (layout, live) = (&outcome.model.layout, &outcome.model.live);
    for location in layout.servers.values().flat_map(|server| &server.locations) {
        let known = live.backends.get(&location.upstream);
        prop_assert!(
            known.is_some_and(|backend| !backend.canary),
            "{:?}",
            location
        );
    }
    for (name, backend) in &live.backends {
        prop_assert_eq!(name, &backend.name);
        for alternative in &backend.alternatives {
            prop_assert!(
                live.backends
                    .get(alternative)
                    .is_some_and(|other| other.canary)
            );
        }
    }
    for id in live.servers.values() {
        prop_assert!(live.certificates.contains_key(id));
    }
    let names: Vec<_> = layout
        .servers
        .values()
        .flat_map(|server| std::iter::once(&server.host).chain(&server.aliases))
        .collect();
    prop_assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    prop_assert!(layout.tcp.keys().eq(live.tcp.keys()));
    Ok(())
}

proptest! {
    #[test]
    fn any_object_gives_an_outcome(
        ingresses in vec(wild_ingress(), 0..4),
        others in wild_others(),
    ) {
        let objects: Vec<_> = ingresses.into_iter().chain(others).collect();
        for policy in POLICIES {
            let outcome = of(&with_secrets(&objects), policy);
            check_locations(&outcome.model.layout)?;
            check_references(&outcome)?;
        }
    }

    #[test]
    fn the_last_definition_holds_all_its_paths(objects in objects(), newest in newest()) {
        let mut snapshot = with_secrets(&objects);
        support::add(&mut snapshot, newest);
        let name = ObjectName::new("shop", "newest");
        let outcome = of(&snapshot, ConflictPolicy::LastDefinitionWins);
        for (host, path, kind) in definitions(snapshot.ingresses.get(&name).unwrap()) {
            let server = &outcome.model.layout.servers[&host];
            let covers = |location: &&Location| match location.modifier {
                Modifier::Regex => location.path == path,
                Modifier::Exact => kind == PathType::Exact && location.path == path,
                Modifier::Prefix => {
                    kind == PathType::Prefix
                        && location.path.trim_end_matches('/') == path.trim_end_matches('/')
                }
            };
            let location = server.locations.iter().find(covers);
            prop_assert_eq!(location.and_then(|one| one.ingress.as_ref()), Some(&name), "{} {}", host, path);
        }
    }

    #[test]
    fn where_the_oldest_wins_a_new_definition_takes_nothing(objects in objects(), newest in newest()) {
        let mut snapshot = with_secrets(&objects);
        let before = of(&snapshot, ConflictPolicy::OldestWins);
        let before = owners(&before.model.layout, &snapshot);
        support::add(&mut snapshot, newest);
        let after = of(&snapshot, ConflictPolicy::OldestWins);
        let after = owners(&after.model.layout, &snapshot);
        // One with a canary's weight that is no canary is switched off, and yields to all others.
        let yields = |owner: &ObjectName| {
            let annotations = &snapshot.ingresses.get(owner).unwrap().metadata.annotations;
            let mut keys = annotations.iter().flat_map(|all| all.keys());
            keys.any(|key| key.ends_with("/canary-weight"))
        };
        for (key, owner) in before.into_iter().filter(|(_, owner)| !yields(owner)) {
            prop_assert_eq!(after.get(&key), Some(&owner), "{:?}", key);
        }
    }
}
