//! Whoever is refused goes on guarding.

use std::sync::Arc;

use ingress_model::{
    ConflictPolicy, ObjectName, Outcome,
    explain::{locations_for, server_for},
    layout::{Location, Server},
    merge,
};

use crate::{
    Law,
    cluster::{self, Object, Words, snapshot},
    dice::Dice,
    ensure, for_some_clusters, now, options,
};

/// Ingresses that guard, and such as would answer in their place.
const GUARDED: Words = Words {
    annotations: &[
        ("auth-url", "http://auth.test/"),
        ("auth-url", "http://auth.test/"),
        ("auth-type", "basic"),
        ("auth-secret", "users"),
        ("auth-tls-secret", "shop/ca"),
        ("server-alias", "alias.test,x.b.test"),
        ("server-alias", "*.b.test"),
        ("server-alias", "~^alias"),
        ("use-regex", "true"),
        ("rewrite-target", "/x"),
        ("satisfy", "any"),
        ("canary-weight", "20"),
    ],
    hosts: &["", "a.test", "b.test", "*.b.test", "x.b.test"],
    paths: &["/", "/a", "/a/", "/a/b", "/c"],
};

/// Annotations because of which an Ingress is refused.
const BAD: [(&str, &str); 3] = [
    ("limit-rps", "many"),
    ("permanent-redirect", "bad value;"),
    ("mirror-target", "a b"),
];

/// How many clusters the laws are tried on, with each of their Ingresses and many requests.
const CASES: u64 = 600;

const HOSTS: [&str; 7] = [
    "a.test",
    "b.test",
    "x.b.test",
    "y.b.test",
    "alias.test",
    "z.y.b.test",
    "other.test",
];

const PATHS: [&str; 5] = ["/", "/a", "/a/b", "/a/b/c", "/c/d"];

/// What answers a request.
fn answering<'a>(outcome: &'a Outcome, host: &str, path: &str) -> (&'a Server, &'a Location) {
    let (server, _) = server_for(&outcome.model.layout, host).unwrap();
    let (location, _) = locations_for(server, path.as_bytes()).chosen.unwrap();
    (server, location)
}

fn asks_for_passwords(location: &Location) -> bool {
    let settings = &location.settings;
    settings.basic_auth.is_some() || settings.external_auth.is_some()
}

/// Who asks clients of a host for certificates.
fn asks_for_certificates(server: &Server) -> Option<&ObjectName> {
    let asks = server.client_auth.as_ref().filter(|_| server.tls);
    asks.map(|owned| &owned.ingress)
}

fn shown(server: &Server, location: &Location) -> String {
    let (host, by) = (&server.host, &location.ingress);
    format!(
        "{:?} {} of {host} by {by:?}",
        location.modifier, location.path
    )
}

/// Of requests that the Ingress keeps from strangers in the one outcome, none comes through in the other.
fn check(name: &ObjectName, healthy: &Outcome, refused: &Outcome) -> Law {
    for host in HOSTS {
        for path in PATHS {
            let (server, location) = answering(healthy, host, path);
            let (refusing, refusal) = answering(refused, host, path);
            let is_nobodys = refusal.ingress.is_none();
            if location.ingress.as_ref() == Some(name) && asks_for_passwords(location) {
                let is_closed = refusal.settings.denied.is_some() || asks_for_passwords(refusal);
                ensure!(
                    is_nobodys || is_closed,
                    "{host}{path} of {name} is open: {}, not {}",
                    shown(refusing, refusal),
                    shown(server, location)
                );
            }
            if asks_for_certificates(server) == Some(name) {
                let is_closed = refusal.settings.denied.is_some();
                let asks = asks_for_certificates(refusing).is_some();
                ensure!(
                    is_nobodys || is_closed || asks,
                    "{host}{path} of {name} asks nobody for a certificate: {}, not {}",
                    shown(refusing, refusal),
                    shown(server, location)
                );
            }
        }
    }
    Ok(())
}

fn with(ingress: &Object, (key, value): (&str, &str)) -> Object {
    let Object::Ingress(ingress) = ingress else {
        return ingress.clone();
    };
    let mut changed = ingress.as_ref().clone();
    let annotations = changed.metadata.annotations.get_or_insert_default();
    annotations.insert(
        format!("nginx.ingress.kubernetes.io/{key}"),
        value.to_owned(),
    );
    Object::Ingress(Arc::new(changed))
}

fn guarded(dice: &mut Dice) -> Vec<Object> {
    cluster::objects(dice, GUARDED)
}

/// Tries it with every Ingress; the law says what was served before.
fn for_refused(law: impl Fn(&[Object], &Object, &Object, ConflictPolicy, &mut Dice) -> Law) {
    for_some_clusters(CASES, guarded, |objects, policy, dice| {
        for object in objects {
            if let Object::Ingress(_) = object {
                let refused = with(object, *dice.pick(&BAD));
                law(objects, object, &refused, policy, dice)?;
            }
        }
        Ok(())
    });
}

#[test]
fn what_a_refused_ingress_guards_stays_closed() {
    for_refused(|objects, healthy, refused, policy, _| {
        let options = options(policy);
        let mut cluster = snapshot(objects);
        let before = merge(&cluster, &options, now());
        refused.put(&mut cluster);
        let after = merge(&cluster, &options, now());
        check(&healthy.name(), &before, &after)
    });
}

#[test]
fn the_version_before_is_no_more_open() {
    for_refused(|objects, healthy, refused, policy, dice| {
        let options = options(policy);
        let mut cluster = snapshot(objects);
        let meant = merge(&cluster, &options, now());
        let mut earlier = cluster::ingress(dice, GUARDED);
        if let (Object::Ingress(earlier), Object::Ingress(healthy)) = (&mut earlier, healthy) {
            let earlier = Arc::make_mut(earlier);
            let (name, created) = (&healthy.metadata.name, &healthy.metadata.creation_timestamp);
            earlier.metadata.name.clone_from(name);
            earlier
                .metadata
                .namespace
                .clone_from(&healthy.metadata.namespace);
            earlier.metadata.creation_timestamp.clone_from(created);
        }
        earlier.put(&mut cluster);
        cluster.last_good = merge(&cluster, &options, now()).last_good;
        refused.put(&mut cluster);
        let after = merge(&cluster, &options, now());
        check(&healthy.name(), &meant, &after)
    });
}
