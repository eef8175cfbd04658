//! The names, labels, kinds and buckets that dashboards and alerts rely on.

use std::{collections::BTreeSet, path::Path};

use ingress_model::{ReloadReason, merge};
use jiff::Timestamp;
use k8s_openapi::{
    ByteString,
    api::core::v1::{Secret, Service},
    api::networking::v1::{Ingress, IngressClass},
};
use lua_sync_client::Applied;
use prometheus::proto::{Bucket, LabelPair, MetricFamily, MetricType};
use serde_json::json;

use super::*;
use crate::{admission::Course, observe::LoadReason};

/// Labels of each of our metrics.
const OWN: [&str; 3] = ["controller_class", "controller_namespace", "controller_pod"];

/// Labels of what is counted by request.
const REQUEST: [&str; 8] = [
    "canary",
    "host",
    "ingress",
    "method",
    "namespace",
    "path",
    "service",
    "status",
];

const TIMES: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];
const LENGTHS: &[f64] = &[10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0];
const SIZES: &[f64] = &[10.0, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7];

enum Kind {
    Counter,
    Gauge,
    Histogram(&'static [f64]),
}
use Kind::{Counter, Histogram};

/// Name without prefix, kind, and labels besides [`OWN`].
type Row = (&'static str, Kind, &'static [&'static str]);

/// The metrics of ingress-nginx v1.15 that carry [`OWN`]; those of Go's runtime are left out, since there is none.
const INGRESS_NGINX: &[Row] = &[
    ("requests", Counter, &REQUEST),
    ("request_duration_seconds", Histogram(TIMES), &REQUEST),
    ("response_duration_seconds", Histogram(TIMES), &REQUEST),
    ("header_duration_seconds", Histogram(TIMES), &REQUEST),
    ("connect_duration_seconds", Histogram(TIMES), &REQUEST),
    ("request_size", Histogram(LENGTHS), &REQUEST),
    ("response_size", Histogram(LENGTHS), &REQUEST),
    ("bytes_sent", Histogram(SIZES), &REQUEST),
    ("nginx_process_connections", Kind::Gauge, &["state"]),
    ("nginx_process_connections_total", Counter, &["state"]),
    ("nginx_process_requests_total", Counter, &[]),
    ("nginx_process_num_procs", Kind::Gauge, &[]),
    ("nginx_process_cpu_seconds_total", Counter, &[]),
    ("nginx_process_read_bytes_total", Counter, &[]),
    ("nginx_process_write_bytes_total", Counter, &[]),
    ("nginx_process_resident_memory_bytes", Kind::Gauge, &[]),
    ("nginx_process_virtual_memory_bytes", Kind::Gauge, &[]),
    ("nginx_process_oldest_start_time_seconds", Kind::Gauge, &[]),
    ("config_hash", Kind::Gauge, &[]),
    ("config_last_reload_successful", Kind::Gauge, &[]),
    (
        "config_last_reload_successful_timestamp_seconds",
        Kind::Gauge,
        &[],
    ),
    ("success", Counter, &[]),
    ("errors", Counter, &[]),
    ("check_success", Counter, &["ingress", "namespace"]),
    ("check_errors", Counter, &["ingress", "namespace"]),
    ("leader_election_status", Kind::Gauge, &["name"]),
    (
        "orphan_ingress",
        Kind::Gauge,
        &["ingress", "namespace", "type"],
    ),
    (
        "build_info",
        Kind::Gauge,
        &["build", "release", "repository"],
    ),
    ("admission_tested_ingresses", Kind::Gauge, &[]),
    ("admission_tested_duration", Kind::Gauge, &[]),
    ("admission_render_ingresses", Kind::Gauge, &[]),
    ("admission_render_duration", Kind::Gauge, &[]),
    ("admission_config_size", Kind::Gauge, &[]),
    ("admission_roundtrip_duration", Kind::Gauge, &[]),
];

/// The metrics of ingress-nginx with labels of their own only.
const WITHOUT_OWN: &[Row] = &[
    (
        "nginx_ingress_controller_ssl_expire_time_seconds",
        Kind::Gauge,
        &["class", "host", "identifier", "namespace", "secret_name"],
    ),
    (
        "nginx_ingress_controller_ssl_certificate_info",
        Kind::Gauge,
        &[
            "class",
            "host",
            "identifier",
            "issuer_common_name",
            "issuer_organization",
            "namespace",
            "public_key_algorithm",
            "secret_name",
            "serial_number",
        ],
    ),
    ("process_cpu_seconds_total", Counter, &[]),
    ("process_open_fds", Kind::Gauge, &[]),
    ("process_max_fds", Kind::Gauge, &[]),
    ("process_resident_memory_bytes", Kind::Gauge, &[]),
    ("process_virtual_memory_bytes", Kind::Gauge, &[]),
    ("process_start_time_seconds", Kind::Gauge, &[]),
    ("promhttp_metric_handler_requests_total", Counter, &["code"]),
    (
        "promhttp_metric_handler_requests_in_flight",
        Kind::Gauge,
        &[],
    ),
];

/// Ours.
const OURS: &[Row] = &[
    ("reload_reasons", Counter, &["reason"]),
    (
        "sync_phase_duration_seconds",
        Histogram(&[
            0.001, 0.0025, 0.01, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 120.0,
        ]),
        &["phase"],
    ),
    (
        "propagation_delay_seconds",
        Histogram(&[
            0.001, 0.0025, 0.01, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 120.0,
        ]),
        &["way"],
    ),
    ("queue_depth", Kind::Gauge, &["queue"]),
    ("isolated_ingresses", Kind::Gauge, &[]),
    ("nginx_ending_workers", Kind::Gauge, &[]),
    ("metric_series", Kind::Gauge, &["sort"]),
    ("metric_series_dropped", Counter, &["sort"]),
    ("requests_unreported", Counter, &[]),
];

fn metrics(flags: &[&str]) -> Metrics {
    let words = ["test", "--enable-metrics", "--validating-webhook=:0"];
    let args = Args::try_parse_from(words.iter().chain(flags)).unwrap();
    let sources = Sources {
        store: Arc::new(Store::awaiting([])),
        process: Arc::new(Process::new(Path::new("/bin/false"), Path::new("/none"))),
    };
    Metrics::new(&args, sources, Arc::new(())).unwrap()
}

fn object<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// Two Ingresses, of which one has a certificate and a path without endpoint, and the other one no Service.
fn fill(store: &Store) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(["a.test".to_owned()]).unwrap();
    params.serial_number = Some(rcgen::SerialNumber::from(4711));
    params.not_after = rcgen::date_time_ymd(2031, 1, 1);
    let mut name = rcgen::DistinguishedName::new();
    name.push(rcgen::DnType::CommonName, "An Authority");
    name.push(rcgen::DnType::OrganizationName, "Acme");
    params.distinguished_name = name;
    let pem = params.self_signed(&key).unwrap().pem();
    let mut secret: Secret = object(json!({
        "metadata": {"namespace": "shop", "name": "tls", "uid": "u-1"},
        "type": "kubernetes.io/tls",
    }));
    let data = [("tls.crt", pem), ("tls.key", key.serialize_pem())];
    let data = data.map(|(key, text)| (key.to_owned(), ByteString(text.into_bytes())));
    secret.data = Some(data.into());
    store.apply(secret);
    store.apply::<Service>(object(json!({
        "metadata": {"namespace": "shop", "name": "web"},
        "spec": {"ports": [{"port": 80}]},
    })));
    store.apply::<IngressClass>(object(json!({
        "metadata": {"name": "nginx"}, "spec": {"controller": "k8s.io/ingress-nginx"},
    })));
    for (name, service) in [("a", "web"), ("b", "nobody")] {
        let host = format!("{name}.test");
        let tls = json!([{"hosts": ["a.test"], "secretName": "tls"}]);
        store.apply::<Ingress>(object(json!({
            "metadata": {"namespace": "shop", "name": name},
            "spec": {
                "ingressClassName": "nginx",
                "tls": if name == "a" { tls } else { json!([]) },
                "rules": [{"host": host, "http": {"paths": [{
                    "path": "/", "pathType": "Prefix",
                    "backend": {"service": {"name": service, "port": {"number": 80}}},
                }]}}],
            },
        })));
    }
}

/// Has everything happen once that is counted.
fn exercise(metrics: &Metrics) {
    let gathered = metrics.gathered.as_ref().unwrap();
    fill(&gathered.sources.store);
    let snapshot = gathered.sources.store.snapshot();
    let outcome = merge(
        &snapshot,
        &ingress_model::Options::default(),
        Timestamp::now(),
    );
    metrics.merged(&Arc::new(outcome), Duration::ZERO);
    metrics.told(&Told {
        applied: Applied {
            backends_sent: 1,
            ..Applied::default()
        },
        ..Told::default()
    });
    metrics.loaded(&Load {
        reasons: vec![LoadReason::Objects(ReloadReason::First)],
        ..Load::default()
    });
    metrics.watch_queue("syncs", Depth::default);
    gathered.controller.leads("chosen", true);
    gathered.requests.observe(&RequestRecord {
        host: "a.test".into(),
        namespace: "shop".into(),
        ingress: "a".into(),
        service: "web".into(),
        canary: String::new(),
        path: "/".into(),
        method: "GET".into(),
        status: "200".into(),
        request_length: 1.0,
        request_time: 1.0,
        response_length: 1.0,
        upstream_latency: 1.0,
        upstream_header_time: 1.0,
        upstream_response_time: 1.0,
    });
    let admission = gathered.admission.as_ref().unwrap();
    let name = ObjectName::new("shop", "a");
    admission.accepted(&name);
    admission.refused(&name);
    admission.reviewed(&Course::default());
}

/// The families, with what `stub_status` would have told.
async fn families(metrics: &Metrics) -> Vec<MetricFamily> {
    metrics.text().await.unwrap();
    let gathered = metrics.gathered.as_ref().unwrap();
    gathered.nginx.show_status("1 2 3 4 5 6 7");
    metrics.registry.gather()
}

fn check(families: &[MetricFamily], name: &str, kind: &Kind, want: &BTreeSet<&str>) {
    let family = families.iter().find(|family| family.name() == name);
    let family = family.unwrap_or_else(|| panic!("{name} is missing"));
    let want_type = match kind {
        Counter => MetricType::COUNTER,
        Kind::Gauge => MetricType::GAUGE,
        Histogram(_) => MetricType::HISTOGRAM,
    };
    assert_eq!(family.get_field_type(), want_type, "{name}");
    assert!(!family.get_metric().is_empty(), "{name}");
    for metric in family.get_metric() {
        let labels = metric.get_label().iter().map(LabelPair::name);
        assert_eq!(labels.collect::<BTreeSet<_>>(), *want, "{name}");
        if let Histogram(bounds) = kind {
            let buckets = metric.get_histogram().get_bucket().iter();
            let found: Vec<_> = buckets.map(Bucket::upper_bound).collect();
            assert_eq!(found, *bounds, "{name}");
        }
    }
}

#[tokio::test]
async fn every_metric_has_its_name_kind_labels_and_buckets() {
    let metrics = metrics(&["--manifests=/none"]);
    exercise(&metrics);
    let families = families(&metrics).await;
    for (name, kind, labels) in INGRESS_NGINX.iter().chain(OURS) {
        let want = OWN.iter().chain(*labels).copied().collect();
        check(&families, &format!("{NAMESPACE}_{name}"), kind, &want);
    }
    for (name, kind, labels) in WITHOUT_OWN {
        check(&families, name, kind, &labels.iter().copied().collect());
    }
    let listed = INGRESS_NGINX.iter().chain(OURS).map(|(name, ..)| *name);
    let listed: BTreeSet<_> = listed.collect();
    for family in &families {
        let name = family.name().strip_prefix("nginx_ingress_controller_");
        let Some(name) = name.filter(|name| !name.starts_with("ssl_")) else {
            continue;
        };
        assert!(listed.contains(name), "{name} is in no table");
    }
}

#[tokio::test]
async fn certificates_and_orphans_are_shown() {
    let metrics = metrics(&["--manifests=/none"]);
    exercise(&metrics);
    let text = metrics.text().await.unwrap();
    let own =
        r#"controller_class="k8s.io/ingress-nginx",controller_namespace="",controller_pod="""#;
    let certificate = r#"class="k8s.io/ingress-nginx",host="a.test",identifier="-4711""#;
    for line in [
        format!(
            r#"ssl_expire_time_seconds{{{certificate},namespace="shop",secret_name="tls"}} 1924992000"#
        ),
        format!(
            r#"ssl_certificate_info{{{certificate},issuer_common_name="An Authority",issuer_organization="Acme",namespace="shop",public_key_algorithm="ECDSA",secret_name="tls",serial_number="4711"}} 1"#
        ),
        format!(r#"orphan_ingress{{{own},ingress="a",namespace="shop",type="no-service"}} 0"#),
        format!(r#"orphan_ingress{{{own},ingress="a",namespace="shop",type="no-endpoint"}} 1"#),
        format!(r#"orphan_ingress{{{own},ingress="b",namespace="shop",type="no-service"}} 1"#),
        format!(r#"orphan_ingress{{{own},ingress="b",namespace="shop",type="no-endpoint"}} 0"#),
    ] {
        let line = format!("nginx_ingress_controller_{line}\n");
        assert!(text.contains(&line), "{line} in {text}");
    }
}

#[tokio::test]
async fn only_who_is_to_tell_shows_when_certificates_end() {
    let metrics = metrics(&[]);
    exercise(&metrics);
    let expiry = "nginx_ingress_controller_ssl_expire_time_seconds{";
    assert!(!metrics.text().await.unwrap().contains(expiry));
    let gathered = metrics.gathered.as_ref().unwrap();
    for leads in [true, false] {
        gathered.shows_expiry.store(leads, Ordering::Relaxed);
        let text = metrics.text().await.unwrap();
        assert_eq!(text.contains(expiry), leads);
        assert!(text.contains("nginx_ingress_controller_ssl_certificate_info{"));
    }
}

#[tokio::test]
async fn without_the_flag_only_the_process_is_shown() {
    let args = Args::try_parse_from(["test"]).unwrap();
    let sources = Sources {
        store: Arc::new(Store::awaiting([])),
        process: Arc::new(Process::new(Path::new("/bin/false"), Path::new("/none"))),
    };
    let metrics = Metrics::new(&args, sources, Arc::new(())).unwrap();
    let text = metrics.text().await.unwrap();
    assert!(text.contains("process_cpu_seconds_total"), "{text}");
    assert!(!text.contains(NAMESPACE), "{text}");
}
