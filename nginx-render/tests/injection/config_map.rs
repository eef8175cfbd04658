//! Texts in the controller's ConfigMap, and in the objects that it refers to.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use ingress_model::{ObjectName, Options, Snapshot, config::keys, merge, testing::Fixture};
use jiff::Timestamp;
use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Secret},
};

use crate::{
    hostile::{ESCAPES, around},
    places::{Place, assert_known, assert_plain_names, places_of},
    rows::Served,
    support,
};

#[path = "../config_keys/objects.rs"]
mod objects;
#[path = "../config_keys/rows.rs"]
#[allow(dead_code, reason = "these tests need a part of it")]
mod rows;

type Data = BTreeMap<String, String>;

fn name(name: &str) -> ObjectName {
    ObjectName::new("ingress", name)
}

/// What a ConfigMap leads to, and others that it names.
fn served(data: Data, change: impl FnOnce(&mut Snapshot)) -> Served {
    static SNAPSHOT: LazyLock<Snapshot> = LazyLock::new(|| {
        let mut snapshot = Fixture::from_yaml(&objects::OBJECTS).unwrap().snapshot();
        // One of each protocol is enough, and fast.
        for host in [
            "cross.test",
            "headers.test",
            "snippet.test",
            "tls.test",
            "word.test",
        ] {
            snapshot.ingresses.remove(&ObjectName::new("shop", host));
        }
        snapshot
    });
    let mut snapshot = SNAPSHOT.clone();
    snapshot
        .config_maps
        .insert(name("config"), config_map(data));
    change(&mut snapshot);
    let options = Options {
        config_map: Some(name("config")),
        tcp_services: Some(name("tcp")),
        udp_services: Some(name("udp")),
        ..Options::default()
    };
    Served::of(merge(&snapshot, &options, Timestamp::UNIX_EPOCH))
}

fn config_map(data: Data) -> ConfigMap {
    ConfigMap {
        data: Some(data),
        ..ConfigMap::default()
    }
}

fn owned<'a>(data: impl IntoIterator<Item = (&'a str, &'a str)>) -> Data {
    let data = data.into_iter();
    data.map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// Keys whose value is configuration, written by the administrator.
fn is_raw(key: &str) -> bool {
    key.ends_with("-snippet")
}

/// A key, and those that it needs.
fn with_companions(row: &rows::Row) -> impl Iterator<Item = (&'static str, &'static str)> {
    let (key, value, companions, _) = *row;
    companions.iter().copied().chain([(key, value)])
}

/// What values that are accepted lead to: each by itself, and all at once.
static KNOWN: LazyLock<BTreeSet<Place>> = LazyLock::new(|| {
    let rows = || rows::ROWS.iter().filter(|(key, ..)| !is_raw(key));
    let mut known = places_of(&served(Data::new(), |_| {}));
    for row in rows() {
        known.extend(places_of(&served(owned(with_companions(row)), |_| {})));
    }
    let all = owned(rows().map(|(key, value, ..)| (*key, *value)));
    for without in ["", "use-proxy-protocol", "use-http2", "enable-syslog"] {
        let mut some = all.clone();
        some.remove(without);
        known.extend(places_of(&served(some, |_| {})));
    }
    // A location that cannot be written answers 503.
    known.insert(("/http/server/location/return".into(), 1));
    known
});

fn assert_harmless(served: &Served, what: &str) {
    assert_known(&places_of(served), &KNOWN, what);
    assert_plain_names(served, what);
}

fn excerpt(text: &str) -> String {
    text.chars().take(60).collect()
}

#[test]
fn keys_of_every_name() {
    // Several at once: each that is refused leaves the others alone.
    const GROUPS: usize = 12;
    let mut tried = BTreeSet::new();
    let rows: Vec<_> = rows::ROWS.iter().filter(|(key, ..)| !is_raw(key)).collect();
    for group in 0..GROUPS {
        let rows: Vec<_> = rows.iter().skip(group).step_by(GROUPS).collect();
        let texts = rows
            .iter()
            .map(|(_, accepted, ..)| around(accepted).collect());
        let texts: Vec<Vec<String>> = texts.collect();
        let base: Data = rows
            .iter()
            .flat_map(|row| owned(with_companions(row)))
            .collect();
        tried.extend(rows.iter().map(|(key, ..)| *key));
        for at in 0..texts[0].len() {
            let texts = texts.iter().map(|texts| texts[at].clone());
            let mut data = base.clone();
            data.extend(rows.iter().map(|(key, ..)| (*key).to_owned()).zip(texts));
            assert_harmless(&served(data, |_| {}), &format!("group {group}, text {at}"));
        }
    }
    let names = keys().map(|key| key.name).filter(|key| !is_raw(key));
    assert_eq!(tried, names.collect::<BTreeSet<_>>());
}

#[test]
fn keys_that_do_not_exist() {
    for escape in ESCAPES {
        let data = owned([(*escape, "true"), ("add_header", escape)]);
        assert_harmless(&served(data, |_| {}), escape);
    }
}

/// The ConfigMaps with headers, and the Secret with parameters of a key exchange.
#[test]
fn every_reference() {
    for reference in ["add-headers", "proxy-set-headers", "ssl-dh-param"] {
        for text in around("X-Named") {
            for (key, value) in [
                ("X-Named", text.as_str()),
                (text.as_str(), "from $host"),
                ("dhparam.pem", text.as_str()),
            ] {
                let what = format!("{reference}: {:?}: {:?}", excerpt(key), excerpt(value));
                let data = owned([(reference, "ingress/referred")]);
                let served = served(data, |snapshot| {
                    let (key, value) = (key.to_owned(), value.to_owned());
                    let secret = Secret {
                        data: Some([(key.clone(), ByteString(value.clone().into()))].into()),
                        ..Secret::default()
                    };
                    let referred = config_map([(key, value)].into());
                    snapshot.config_maps.insert(name("referred"), referred);
                    snapshot.secrets.insert(name("referred"), secret);
                });
                assert_harmless(&served, &what);
            }
        }
    }
}

/// The ConfigMaps with Services that are no HTTP.
#[test]
fn ports_and_their_services() {
    let accepted = "shop/web:80";
    for services in ["tcp", "udp"] {
        let ports = around("9000").map(|port| (port, accepted.to_owned()));
        let values = around(accepted).map(|value| ("9000".to_owned(), value));
        for (port, value) in ports.chain(values) {
            let what = format!("{services}: {:?}: {:?}", excerpt(&port), excerpt(&value));
            let served = served(Data::new(), |snapshot| {
                let entry = config_map([(port, value)].into());
                snapshot.config_maps.insert(name(services), entry);
            });
            assert_harmless(&served, &what);
        }
    }
}

#[test]
fn a_directive_too_many_is_noticed() {
    let mut known = KNOWN.clone();
    let place = known.iter().find(|(place, _)| place.ends_with("/gzip"));
    let place = place.unwrap().clone();
    known.remove(&place);
    let data = owned([("use-gzip", "true")]);
    assert!(!places_of(&served(data, |_| {})).is_subset(&known));
}
