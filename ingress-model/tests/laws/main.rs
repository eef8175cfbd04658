//! Laws that hold for any objects, each tried on many clusters. A cluster that breaks one is made as small as it can be
//! and shown.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "what the generators make is known, and a broken law fails the test"
)]

mod balancing;
mod change;
mod cluster;
mod dice;
mod guards;
mod oracle;
#[path = "../support/mod.rs"]
mod support;
mod wild;

use std::collections::BTreeSet;

use ingress_model::{
    ConflictPolicy, Explainer, Layout, Merger, Model, ObjectKind, ObjectName, ObjectRef, Options,
    Outcome, Snapshot, admit, layout::Modifier, merge, plan, provenance::Subject,
};
use jiff::Timestamp;

use crate::{
    change::change,
    cluster::{ALL, Object, PLAIN, snapshot},
    dice::Dice,
    oracle::Oracle,
};

/// How many clusters each law is tried on.
const CASES: u64 = 10_000;

pub(crate) const POLICIES: [ConflictPolicy; 2] = [
    ConflictPolicy::LastDefinitionWins,
    ConflictPolicy::OldestWins,
];

pub(crate) type Law = Result<(), String>;

macro_rules! ensure {
    ($holds:expr, $($fault:tt)+) => {
        if !$holds {
            return Err(format!($($fault)+));
        }
    };
}
pub(crate) use ensure;

pub(crate) fn options(policy: ConflictPolicy) -> Options {
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

fn outcome(objects: &[Object], policy: ConflictPolicy) -> Outcome {
    merge(&snapshot(objects), &options(policy), now())
}

/// Tries a law on clusters of many seeds.
fn for_clusters(
    make: impl Fn(&mut Dice) -> Vec<Object>,
    law: impl Fn(&[Object], ConflictPolicy, &mut Dice) -> Law,
) {
    for_some_clusters(CASES, make, law);
}

/// Tries a law on clusters of the first few seeds.
fn for_some_clusters(
    count: u64,
    make: impl Fn(&mut Dice) -> Vec<Object>,
    law: impl Fn(&[Object], ConflictPolicy, &mut Dice) -> Law,
) {
    for seed in 0..count {
        let mut dice = Dice::new(seed);
        let objects = make(&mut dice);
        let policy = POLICIES[usize::from(seed % 2 == 1)];
        let law = |objects: &[Object]| law(objects, policy, &mut dice.clone());
        if let Err(mut fault) = law(&objects) {
            let objects = shrink(objects, &mut fault, law);
            panic!("case {seed}, {policy:?}: {fault}\n{objects:#?}");
        }
    }
}

/// Leaves out objects as long as the law stays broken.
fn shrink(
    mut objects: Vec<Object>,
    fault: &mut String,
    law: impl Fn(&[Object]) -> Law,
) -> Vec<Object> {
    let mut place = 0;
    while place < objects.len() {
        let mut fewer = objects.clone();
        fewer.remove(place);
        match law(&fewer) {
            Err(smaller) => (objects, *fault, place) = (fewer, smaller, 0),
            Ok(()) => place += 1,
        }
    }
    objects
}

fn all(dice: &mut Dice) -> Vec<Object> {
    cluster::objects(dice, ALL)
}

fn plain(dice: &mut Dice) -> Vec<Object> {
    cluster::objects(dice, PLAIN)
}

/// Everything of an outcome but the ConfigMap's settings, as text.
fn text(outcome: &Outcome) -> String {
    let Model { layout, live } = &outcome.model;
    let servers = serde_json::to_string(&layout.servers).unwrap();
    let rest = serde_json::to_string(&(&layout.tcp, &layout.udp, &layout.stream_snippets)).unwrap();
    let (diagnostics, dependencies) = (&outcome.diagnostics, &outcome.dependencies);
    format!(
        "{servers}{rest}{live:?}{diagnostics:?}{dependencies:?}{:?}",
        outcome.provenance
    )
}

/// Names the parts that differ, since a whole outcome is long.
fn check_same(one: &Outcome, other: &Outcome) -> Law {
    let (a, b) = (&one.model, &other.model);
    for (host, server) in &a.layout.servers {
        ensure!(
            b.layout.servers.get(host) == Some(server),
            "server {host} differs"
        );
    }
    ensure!(
        a.layout.servers.len() == b.layout.servers.len(),
        "there are other servers"
    );
    ensure!(a.layout == b.layout, "the rest of the layout differs");
    ensure!(a.live == b.live, "one {:?}\nother {:?}", a.live, b.live);
    ensure!(
        one.diagnostics == other.diagnostics,
        "one {:?}\nother {:?}",
        one.diagnostics,
        other.diagnostics
    );
    ensure!(
        one.provenance == other.provenance,
        "who defined what differs"
    );
    ensure!(
        one.dependencies == other.dependencies,
        "one {:?}\nother {:?}",
        one.dependencies,
        other.dependencies
    );
    ensure!(one == other, "the versions to fall back to differ");
    Ok(())
}

/// NGINX refuses a server that has a location twice, and every request needs one.
fn check_locations(layout: &Layout) -> Law {
    for (host, server) in &layout.servers {
        let keys = || {
            server
                .locations
                .iter()
                .map(|one| (one.modifier, one.path.as_str()))
        };
        let distinct: BTreeSet<_> = keys().collect();
        ensure!(
            distinct.len() == server.locations.len(),
            "{host} has one twice: {distinct:?}"
        );
        let regex = keys()
            .filter(|(modifier, _)| *modifier == Modifier::Regex)
            .count();
        ensure!(
            regex == 0 || regex == distinct.len(),
            "{host} mixes: {distinct:?}"
        );
        let root = distinct.contains(&(Modifier::Prefix, "/"))
            || distinct.contains(&(Modifier::Regex, "/"));
        ensure!(root, "{host} has no location for the rest: {distinct:?}");
    }
    Ok(())
}

/// Every name that one half of the model refers to is known to the other.
fn check_references(model: &Model) -> Law {
    let Model { layout, live } = model;
    for location in layout.servers.values().flat_map(|server| &server.locations) {
        let backend = live.backends.get(&location.upstream);
        ensure!(
            backend.is_some_and(|backend| !backend.canary),
            "no backend: {location:?}"
        );
    }
    for (name, backend) in &live.backends {
        ensure!(*name == backend.name, "{name} is {}", backend.name);
        let varied = backend.variants.iter();
        let varied = varied.flat_map(|variant| &variant.alternatives);
        for other in backend.alternatives.iter().chain(varied) {
            let other = live.backends.get(other);
            ensure!(
                other.is_some_and(|other| other.canary),
                "no canary: {backend:?}"
            );
        }
    }
    for (host, id) in &live.servers {
        ensure!(
            live.certificates.contains_key(id),
            "{host} has no certificate"
        );
    }
    let mut names = BTreeSet::new();
    for server in layout.servers.values() {
        for name in std::iter::once(&server.host)
            .chain(&server.aliases)
            .chain(&server.redirected)
        {
            ensure!(names.insert(name), "{name} is served twice");
        }
    }
    ensure!(layout.tcp.keys().eq(live.tcp.keys()), "TCP ports differ");
    Ok(())
}

#[test]
fn the_order_of_objects_does_not_matter() {
    for_clusters(all, |objects, policy, dice| {
        let one = outcome(objects, policy);
        let mut shuffled = objects.to_vec();
        dice.shuffle(&mut shuffled);
        let other = outcome(&shuffled, policy);
        check_same(&one, &other)?;
        // Text is slow to make, and mostly follows.
        let is_shown = !dice.percent(10) || text(&one) == text(&other);
        ensure!(is_shown, "equal, but shown otherwise");
        Ok(())
    });
}

#[test]
fn no_two_locations_of_a_server_are_one() {
    for_clusters(all, |objects, _, _| {
        for policy in POLICIES {
            let model = outcome(objects, policy).model;
            check_locations(&model.layout)?;
            check_references(&model)?;
        }
        Ok(())
    });
}

#[test]
fn any_object_gives_an_outcome() {
    for_clusters(wild::objects, |objects, policy, dice| {
        let options = wild::options(dice, policy);
        let mut snapshot = snapshot(objects);
        wild::furnish(dice, &mut snapshot);
        let outcome = merge(&snapshot, &options, now());
        check_locations(&outcome.model.layout)?;
        check_references(&outcome.model)?;
        if dice.percent(30) {
            explain_all(&snapshot, &options, &outcome);
            for ingress in snapshot.ingresses.iter().map(|(_, ingress)| ingress) {
                let _verdict = admit(ingress, &snapshot, &options);
            }
        }
        Ok(())
    });
}

/// Whatever is asked, there is an answer.
fn explain_all(snapshot: &Snapshot, options: &Options, outcome: &Outcome) {
    let explainer = Explainer::new(snapshot, options, outcome);
    let overview = explainer.overview();
    for host in overview.hosts.iter().take(5) {
        let _about = explainer.host(host.host.as_str());
        for path in host.paths.iter().take(3) {
            let _about = explainer.request(host.host.as_str(), &path.path);
        }
    }
}

#[test]
fn who_holds_what_follows_from_time_and_name() {
    for_clusters(plain, |objects, policy, _| {
        let snapshot = snapshot(objects);
        let outcome = merge(&snapshot, &options(policy), now());
        Oracle::new(&snapshot, &outcome, policy).check()
    });
}

#[test]
fn every_part_has_a_definer_and_every_loser_is_told() {
    for_clusters(all, |objects, policy, _| {
        let snapshot = snapshot(objects);
        let outcome = merge(&snapshot, &options(policy), now());
        for (host, server) in &outcome.model.layout.servers {
            let decisions = outcome.provenance.of(host);
            let held_by = |subject: &dyn Fn(&Subject) -> bool| {
                let decision = decisions.iter().find(|decision| subject(&decision.subject));
                decision.map(|decision| decision.winner.clone())
            };
            let setting = |name: &str| {
                held_by(&|subject| {
                    *subject
                        == Subject::Setting(match name {
                            "auth-tls-secret" => "auth-tls-secret",
                            "server-snippet" => "server-snippet",
                            "ssl-ciphers" => "ssl-ciphers",
                            "ssl-prefer-server-ciphers" => "ssl-prefer-server-ciphers",
                            _ => "server-alias",
                        })
                })
            };
            let snippet = server.snippet.as_ref().map(|owned| owned.ingress.clone());
            ensure!(
                snippet.is_none() || snippet == setting("server-snippet"),
                "{host}: snippet"
            );
            let auth = server
                .client_auth
                .as_ref()
                .map(|owned| owned.ingress.clone());
            ensure!(
                auth.is_none() || auth == setting("auth-tls-secret"),
                "{host}: client certificates"
            );
            for (is_set, name) in [
                (server.ssl_ciphers.is_some(), "ssl-ciphers"),
                (
                    server.ssl_prefer_server_ciphers.is_some(),
                    "ssl-prefer-server-ciphers",
                ),
                (!server.aliases.is_empty(), "server-alias"),
            ] {
                ensure!(
                    !is_set || setting(name).is_some(),
                    "{host}: nobody set {name}"
                );
            }
            ensure!(
                !server.tls || held_by(&|one| *one == Subject::Tls).is_some(),
                "{host}: TLS"
            );
            for location in &server.locations {
                let Some(owner) = &location.ingress else {
                    continue;
                };
                let of_path = held_by(&|one| {
                    matches!(one, Subject::Path { path, path_type }
                    if *path == location.ingress_path && *path_type == location.path_type)
                });
                let is_written = oracle::paths(&snapshot.ingresses.get(owner).unwrap().clone())
                    .any(|(on, path, kind)| {
                        on == *host && path == location.ingress_path && kind == location.path_type
                    });
                ensure!(
                    !is_written || of_path.as_ref() == Some(owner),
                    "{host}: {location:?}: {decisions:?}"
                );
            }
            for decision in decisions {
                for loser in &decision.losers {
                    let object = ObjectRef::new(ObjectKind::Ingress, loser.clone());
                    let told = outcome.diagnostics.iter().any(|one| {
                        let held = format!("{} of host {host} is held by", decision.subject);
                        one.object == object && one.message.starts_with(&held)
                    });
                    ensure!(
                        told,
                        "{loser} does not learn that it lost {} of {host}",
                        decision.subject
                    );
                }
            }
        }
        oracle::check_losers(&snapshot, &outcome)
    });
}

#[test]
fn a_change_is_seen_exactly_where_it_matters() {
    for_clusters(all, |objects, policy, dice| {
        let Some(place) = (!objects.is_empty()).then(|| dice.below(objects.len())) else {
            return Ok(());
        };
        let old = &objects[place];
        let options = options(policy);
        let mut merger = Merger::default();
        let mut cluster = snapshot(objects);
        let before = merger.merge(&cluster, &options, now());
        let new = change(dice, old, ALL);
        if dice.percent(15) {
            old.take(&mut cluster);
        } else {
            new.put(&mut cluster);
        }
        let after = merger.merge(&cluster, &options, now());
        check_same(&after, &merge(&cluster, &options, now()))?;
        let (a, b) = (&before.model, &after.model);
        let reasons = plan(Some(&a.layout), &b.layout);
        ensure!(
            reasons.is_empty() == (a.layout == b.layout),
            "reasons: {reasons:?}"
        );
        let delta = a.live.diff(&b.live);
        ensure!(delta.is_empty() == (a.live == b.live), "delta: {delta:?}");
        let mut applied = a.live.clone();
        applied.apply(&delta);
        ensure!(applied == b.live, "delta leads elsewhere: {delta:?}");
        let (set, removed) = delta.split();
        let mut applied = a.live.clone();
        applied.apply(&set);
        applied.apply(&removed);
        ensure!(applied == b.live, "delta in two steps leads elsewhere");
        ensure!(
            a == b || matters(&before, old) || matters(&after, &new),
            "{old:?} is no dependency"
        );
        Ok(())
    });
}

/// Whether an outcome says that an object of this kind and name may change it.
fn matters(outcome: &Outcome, object: &Object) -> bool {
    let name = match object {
        Object::Ingress(_) => return true,
        Object::EndpointSlice(slice) => {
            let labels = slice.metadata.labels.as_ref();
            let service = labels.and_then(|labels| labels.get("kubernetes.io/service-name"));
            return service.is_some_and(|service| {
                let service = object.name().sibling(service);
                outcome
                    .dependencies
                    .contains(&ObjectRef::new(ObjectKind::Service, service))
            });
        }
        Object::Service(_) | Object::Secret(_) | Object::ConfigMap(_) => object.name(),
    };
    outcome
        .dependencies
        .contains(&ObjectRef::new(object.kind(), name))
}

#[test]
fn remembering_changes_nothing() {
    let mut merger = Merger::default();
    let mut cluster = Snapshot::default();
    for seed in 0..CASES {
        let mut dice = Dice::new(seed);
        // A few stories, long enough for a merger to have much to remember.
        if seed % 50 == 0 {
            (merger, cluster) = Default::default();
        }
        let options = options(POLICIES[usize::from(seed / 50 % 2 == 1)]);
        for object in cluster::objects(&mut dice, ALL) {
            match dice.below(3) {
                0 => object.take(&mut cluster),
                1 => object.put(&mut cluster),
                _ => {}
            }
        }
        let remembered = merger.merge(&cluster, &options, now());
        if let Err(fault) = check_same(&remembered, &merge(&cluster, &options, now())) {
            panic!("step {seed}: {fault}");
        }
        cluster.last_good = remembered.last_good;
    }
}

#[test]
fn what_is_refused_leaves_the_version_before_in_service() {
    for_clusters(plain, |objects, policy, _| {
        let options = options(policy);
        let mut cluster = snapshot(objects);
        let before = merge(&cluster, &options, now());
        cluster.last_good = before.last_good.clone();
        for object in objects {
            if let Object::Ingress(ingress) = object {
                let mut refused = ingress.as_ref().clone();
                let annotations = refused.metadata.annotations.get_or_insert_default();
                let key = "nginx.ingress.kubernetes.io/permanent-redirect".to_owned();
                annotations.insert(key, "bad value;".to_owned());
                Object::Ingress(refused.into()).put(&mut cluster);
            }
        }
        let after = merge(&cluster, &options, now());
        ensure!(before.model == after.model, "another model");
        ensure!(
            before.last_good == after.last_good,
            "other versions to fall back to"
        );
        Ok(())
    });
}
