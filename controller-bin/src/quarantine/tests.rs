//! Who is taken out, how far, and when it comes back.

use ingress_model::{Layout, Options, merge};
use jiff::Timestamp;
use serde_json::json;

use super::*;

fn ingress(name: &str, host: &str, paths: &[&str]) -> Arc<Ingress> {
    let paths: Vec<_> = paths
        .iter()
        .map(|path| {
            let backend = json!({"service": {"name": "app", "port": {"number": 80}}});
            json!({"path": path, "pathType": "Prefix", "backend": backend})
        })
        .collect();
    let ingress = json!({
        "metadata": {"namespace": "shop", "name": name, "uid": name},
        "spec": {"rules": [{"host": host, "http": {"paths": paths}}]},
    });
    Arc::new(serde_json::from_value(ingress).unwrap())
}

fn snapshot(ingresses: &[&Arc<Ingress>]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for ingress in ingresses {
        let name = ingress.object_name().unwrap();
        snapshot.ingresses.insert(name, Arc::clone(ingress));
    }
    snapshot
}

fn layout(ingresses: &[&Arc<Ingress>]) -> Layout {
    let options = Options {
        watch_ingress_without_class: true,
        ..Options::default()
    };
    merge(&snapshot(ingresses), &options, Timestamp::UNIX_EPOCH)
        .model
        .layout
}

/// Paths of a host, and whether they are denied.
fn paths(layout: &Layout, host: &str) -> Vec<(String, bool)> {
    let server = layout
        .servers
        .iter()
        .find(|(name, _)| name.as_str() == host)
        .unwrap()
        .1;
    let locations = server.locations.iter();
    locations
        .map(|location| {
            (
                location.path.to_string(),
                location.settings.denied.is_some(),
            )
        })
        .collect()
}

fn name(name: &str) -> ObjectName {
    ObjectName::new("shop", name)
}

#[test]
fn only_its_own_paths_are_denied() {
    let (good, bad) = (
        ingress("good", "a.test", &["/good"]),
        ingress("bad", "a.test", &["/bad"]),
    );
    let whole = layout(&[&good, &bad]);
    let denied = deny(&whole, &Levels::from([(name("bad"), Level::Denied)]));
    let of = |layout: &Layout, path: &str| -> Vec<bool> {
        let paths = paths(layout, "a.test").into_iter();
        paths
            .filter(|(at, _)| at.starts_with(path))
            .map(|(_, denied)| denied)
            .collect()
    };
    assert!(of(&whole, "/bad").iter().all(|denied| !denied));
    assert!(!of(&denied, "/bad").is_empty() && of(&denied, "/bad").iter().all(|denied| *denied));
    assert_eq!(of(&denied, "/good"), of(&whole, "/good"));
    assert_eq!(deny(&whole, &Levels::new()), whole);
}

const PREFIX: &str = "nginx.ingress.kubernetes.io";

fn annotated(ingress: &Arc<Ingress>, key: &str, value: &str) -> Arc<Ingress> {
    let mut ingress = Ingress::clone(ingress);
    let annotations = ingress.metadata.annotations.get_or_insert_default();
    annotations.insert(format!("{PREFIX}/{key}"), value.into());
    Arc::new(ingress)
}

fn fault(served: Option<&Arc<Ingress>>, annotation: Option<&'static str>) -> Fault {
    Fault {
        reason: "why".into(),
        annotation,
        served: served.cloned(),
    }
}

fn steps(policy: OnInvalid, ingress: &Arc<Ingress>, fault: &Fault) -> Vec<Level> {
    let quarantine = Quarantine::new(policy);
    std::iter::from_fn(|| quarantine.isolate(ingress, fault, PREFIX)).collect()
}

#[tokio::test(start_paused = true)]
async fn it_is_taken_out_step_by_step() {
    use Level::{Denied, Earlier, Removed, Without};
    let bad = ingress("bad", "a.test", &["/"]);
    let older = ingress("bad", "older.test", &["/"]);
    let last_good = OnInvalid::LastGood;
    assert_eq!(
        steps(last_good, &bad, &fault(None, None)),
        [Denied, Removed]
    );
    assert_eq!(
        steps(last_good, &bad, &fault(Some(&older), None)),
        [Earlier, Denied, Removed]
    );
    assert_eq!(
        steps(last_good, &bad, &fault(Some(&bad), None)),
        [Denied, Removed],
        "it is the version that is refused"
    );
    let mut another = Ingress::clone(&older);
    another.metadata.uid = Some("deleted".into());
    let gone = fault(Some(&Arc::new(another)), None);
    assert_eq!(steps(last_good, &bad, &gone), [Denied, Removed]);
    assert_eq!(
        steps(OnInvalid::Unavailable, &bad, &fault(Some(&older), None)),
        [Denied, Removed]
    );
    let ciphers = annotated(&bad, "ssl-ciphers", "none");
    assert_eq!(
        steps(last_good, &ciphers, &fault(None, Some("ssl-ciphers"))),
        [Without("ssl-ciphers"), Denied, Removed]
    );
    let snippet = annotated(&bad, "server-snippet", "deny all;");
    assert_eq!(
        steps(last_good, &snippet, &fault(None, Some("server-snippet"))),
        [Denied, Removed],
        "what it protects is not laid open"
    );
    let canary = annotated(&bad, "canary", "true");
    assert_eq!(steps(last_good, &canary, &fault(None, None)), [Removed]);
}

#[tokio::test(start_paused = true)]
async fn what_stands_for_it_is_merged() {
    let options = Options::default();
    let older = ingress("bad", "older.test", &["/"]);
    let bad = annotated(&ingress("bad", "a.test", &["/"]), "ssl-ciphers", "none");
    let stands_for = |times: usize, fault: &Fault| {
        let quarantine = Quarantine::default();
        for _ in 0..times {
            quarantine.isolate(&bad, fault, PREFIX);
        }
        let mut snapshot = snapshot(&[&bad]);
        quarantine.substitute(&mut snapshot, &options);
        snapshot.ingresses.get(&name("bad")).cloned()
    };
    let earlier = fault(Some(&older), None);
    assert_eq!(stands_for(1, &earlier).as_ref(), Some(&older));
    assert_eq!(stands_for(2, &earlier).as_ref(), Some(&bad), "denied later");
    assert_eq!(stands_for(3, &earlier), None);
    let without = stands_for(1, &fault(None, Some("ssl-ciphers"))).unwrap();
    assert_eq!(
        without.metadata.annotations.as_ref().map(BTreeMap::len),
        Some(0)
    );
    assert_eq!(without.spec, bad.spec);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_left_out_until_it_changes() {
    let map = ObjectName::new("ingress", "settings");
    let options = Options {
        config_map: Some(map.clone()),
        ..Options::default()
    };
    let of = |value: &str| {
        let data = json!({"data": {"http-snippet": value, "other": "1"}});
        let config_map: ConfigMap = serde_json::from_value(data).unwrap();
        let mut snapshot = Snapshot::default();
        snapshot.config_maps.insert(map.clone(), config_map);
        snapshot
    };
    let quarantine = Quarantine::default();
    assert!(quarantine.leave_out("http-snippet", "bad", "why"));
    assert!(!quarantine.leave_out("http-snippet", "bad", "why"));
    assert_eq!(quarantine.keys(), [("http-snippet".into(), "why".into())]);
    let keys = |value: &str| -> Vec<String> {
        let mut snapshot = of(value);
        quarantine.review(&snapshot, Some(&map), &[]);
        quarantine.substitute(&mut snapshot, &options);
        let config_map = snapshot.config_maps.get(&map).unwrap();
        config_map
            .data
            .iter()
            .flatten()
            .map(|(key, _)| key.clone())
            .collect()
    };
    assert_eq!(keys("bad"), ["other"]);
    assert_eq!(keys("mended"), ["http-snippet", "other"]);
    assert!(quarantine.keys().is_empty());
}

#[tokio::test(start_paused = true)]
async fn it_comes_back_when_it_changes_or_goes() {
    let quarantine = Quarantine::default();
    let bad = ingress("bad", "a.test", &["/"]);
    let isolate = || quarantine.isolate(&bad, &fault(None, None), PREFIX);
    isolate();
    assert_eq!(quarantine.reason(&name("bad")).as_deref(), Some("why"));
    let mut touched = Ingress::clone(&bad);
    touched.metadata.resource_version = Some("2".into());
    quarantine.review(&snapshot(&[&Arc::new(touched)]), None, &[]);
    assert_eq!(
        quarantine.levels().len(),
        1,
        "nothing that rules see has changed"
    );
    quarantine.review(&snapshot(&[&ingress("bad", "b.test", &["/"])]), None, &[]);
    assert!(quarantine.levels().is_empty());
    isolate();
    quarantine.review(&Snapshot::default(), None, &[]);
    assert!(quarantine.levels().is_empty());
    isolate();
    quarantine.release(&name("bad"));
    assert!(quarantine.levels().is_empty());
}

#[tokio::test(start_paused = true)]
async fn it_is_tried_by_itself_less_and_less_often() {
    let quarantine = Quarantine::default();
    let bad = ingress("bad", "a.test", &["/"]);
    let present = snapshot(&[&bad]);
    let isolated = quarantine.isolate(&bad, &fault(None, None), PREFIX);
    assert_eq!(isolated, Some(Level::Denied));
    for wait in [FIRST_WAIT, FIRST_WAIT * 2, FIRST_WAIT * 4] {
        tokio::time::advance(wait.saturating_sub(Duration::from_secs(1))).await;
        assert!(quarantine.due().is_empty(), "{wait:?}");
        tokio::time::advance(Duration::from_secs(1)).await;
        quarantine.review(&present, None, &[]);
        assert_eq!(quarantine.due(), [name("bad")], "{wait:?}");
        assert_eq!(quarantine.levels().len(), 1, "it stays out meanwhile");
        let is_news = quarantine.convict(&bad, &fault(None, None), PREFIX);
        assert!(!is_news, "it is told the same once");
        assert_eq!(quarantine.levels().len(), 1);
    }
    quarantine.readmit(&name("bad"));
    assert!(quarantine.levels().is_empty() && quarantine.due().is_empty());
}

#[tokio::test(start_paused = true)]
async fn who_is_held_is_told_what_nginx_says_once_that_is_known() {
    let quarantine = Quarantine::default();
    let bad = annotated(&ingress("bad", "a.test", &["/"]), "stream-snippet", "x;");
    assert!(quarantine.hold(&bad, None, PREFIX));
    assert!(!quarantine.hold(&bad, None, PREFIX), "it is held already");
    assert!(quarantine.is_held(&name("bad")));
    assert_eq!(quarantine.due(), [name("bad")]);
    assert_eq!(
        quarantine.levels(),
        Levels::from([(name("bad"), Level::Denied)])
    );
    let about = fault(None, Some("stream-snippet"));
    let known = quarantine.isolate(&bad, &about, PREFIX);
    assert_eq!(known, Some(Level::Without("stream-snippet")));
    let held = Quarantine::default();
    held.hold(&bad, None, PREFIX);
    let quarantine = held;
    assert!(quarantine.convict(&bad, &about, PREFIX));
    assert!(!quarantine.is_held(&name("bad")) && quarantine.due().is_empty());
    let without = Levels::from([(name("bad"), Level::Without("stream-snippet"))]);
    assert_eq!(quarantine.levels(), without, "as far out as needed");
    assert_eq!(quarantine.reason(&name("bad")).as_deref(), Some("why"));
}

#[tokio::test(start_paused = true)]
async fn a_verdict_holds_until_something_that_matters_changes() {
    let bad = annotated(
        &ingress("bad", "a.test", &["/"]),
        "auth-secret",
        "shop/users",
    );
    let settings = name("settings");
    let with = |data: &[(&str, &str)]| {
        let mut snapshot = snapshot(&[&bad]);
        let data = data
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let config_map = ConfigMap {
            data: Some(data.collect()),
            ..ConfigMap::default()
        };
        snapshot
            .config_maps
            .insert(settings.clone(), Arc::new(config_map));
        snapshot
    };
    let (before, after) = (with(&[]), with(&[("allow-snippet-annotations", "false")]));
    let quarantine = Quarantine::new(OnInvalid::LastGood);
    let due = |snapshot: &Snapshot, changed: &[ObjectRef]| {
        quarantine.review(snapshot, Some(&settings), changed);
        let due = quarantine.due().len();
        assert_eq!(quarantine.levels().len(), 1);
        quarantine.convict(&bad, &fault(None, None), PREFIX);
        due
    };
    quarantine.review(&before, Some(&settings), &[]);
    let level = quarantine.isolate(&bad, &fault(None, None), PREFIX);
    assert!(level.is_some());
    let of = |kind, of: &str| ObjectRef::new(kind, name(of));
    assert_eq!(due(&before, &[]), 0);
    let others = [
        of(ObjectKind::Secret, "other"),
        of(ObjectKind::EndpointSlice, "users"),
    ];
    assert_eq!(due(&before, &others), 0);
    assert_eq!(due(&before, &[of(ObjectKind::Secret, "users")]), 1);
    assert_eq!(due(&after, &[]), 1);
    assert_eq!(due(&after, &[]), 0);
}
