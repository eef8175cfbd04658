//! What the webhook reads as NGINX would: without NGINX, and with a model of all objects.

use std::{path::Path, sync::Arc};

use controller_bin::{
    admission::{Inspector, Review, Reviewer},
    nginx::program,
    store::Store,
};
use ingress_model::{ObjectName, Options};
use k8s_openapi::api::{core::v1::ConfigMap, networking::v1::Ingress};
use nginx_render::{Capabilities, Environment, syntax::Directives};
use serde_json::{Value, json};

use crate::webhook::review;

/// An Ingress with these annotations, or with this path of `{name}.test`.
fn ingress(name: &str, annotations: &Value, path: &str) -> Ingress {
    let mut object = review(name, path)["request"]["object"].clone();
    object["metadata"]["annotations"] = annotations.clone();
    object["spec"]["rules"][0]["host"] = format!("{name}.test").into();
    object["spec"]["rules"][0]["http"]["paths"][0]["pathType"] = "ImplementationSpecific".into();
    serde_json::from_value(object).unwrap()
}

fn annotation(name: &str, value: &str) -> Value {
    json!({format!("nginx.ingress.kubernetes.io/{name}"): value})
}

/// One who allows snippets, knows these Ingresses, and a map in the ConfigMap.
fn reviewer(stored: Vec<Ingress>) -> Reviewer {
    reviewer_with(stored, Directives::documented())
}

/// The same who knows these directives.
fn reviewer_with(stored: Vec<Ingress>, directives: Directives) -> Reviewer {
    let config = json!({
        "metadata": {"namespace": "shop", "name": "settings"},
        "data": {
            "allow-snippet-annotations": "true",
            "annotations-risk-level": "Critical",
            "http-snippet": "map $host $of_the_configmap { default 1; }",
        },
    });
    let config: ConfigMap = serde_json::from_value(config).unwrap();
    let store = Arc::new(Store::awaiting(["test".to_owned()]));
    store.apply(config);
    for ingress in stored {
        store.apply(ingress);
    }
    store.listed("test");
    let options = Options {
        watch_ingress_without_class: true,
        config_map: Some(ObjectName::new("shop", "settings")),
        ..Options::default()
    };
    Reviewer::new(store, options).with_inspector(Inspector {
        capabilities: Capabilities::parse(
            "configure arguments: --add-module=/src/lua-nginx-module",
            ["ngx_http_headers_more_filter_module.so"],
        ),
        environment: Environment::default(),
        directives,
    })
}

#[tokio::test]
async fn snippets_are_held_against_the_directives_of_the_nginx_that_is_there() {
    let nginx = Path::new("/usr/sbin/nginx");
    let directives = program::directives(nginx).await.unwrap();
    let reviewer = reviewer_with(Vec::new(), directives);
    let judge = |snippet: &str| {
        let name = "configuration-snippet";
        let verdict = reviewer.review(&ingress("new", &annotation(name, snippet), "/"));
        let faults = verdict.faults.iter();
        let faults: Vec<_> = faults
            .map(|fault| (fault.key.clone(), fault.message.clone()))
            .collect();
        faults
    };
    for (snippet, said) in [
        (
            "add_header A b;\nset $x;",
            "line 2: invalid number of arguments in \"set\" directive: it takes 2, and has 1",
        ),
        (
            "proxy_read_timeout soon;",
            "line 1: invalid value \"soon\" in \"proxy_read_timeout\" directive, it must be a time such as 30s or 5m",
        ),
        (
            "limit_req zone=none;",
            "line 1: zero size shared memory zone \"none\": no \"limit_req_zone\" of this configuration defines it",
        ),
        (
            "root /a;\nroot /b;",
            "line 2: \"root\" directive is duplicate",
        ),
    ] {
        let key = "nginx.ingress.kubernetes.io/configuration-snippet".to_owned();
        assert_eq!(judge(snippet), [(Some(key), said.to_owned())], "{snippet}");
    }
    // Nobody learns from the webhook which files there are.
    assert_eq!(judge("include /no/such/file;"), []);
    assert_eq!(judge("add_header A b; proxy_read_timeout 5m;"), []);
}

#[test]
fn variables_that_do_not_exist_are_refused_with_the_annotation_that_names_them() {
    let reviewer = reviewer(Vec::new());
    for (name, value, told) in [
        (
            "upstream-vhost",
            "$no_such",
            "unknown variable \"$no_such\"",
        ),
        (
            "upstream-vhost",
            "${remote_adr}.test",
            "unknown variable \"$remote_adr\"; did you mean $remote_addr?",
        ),
        ("configuration-snippet", "return 200 $no_such;", "$no_such"),
        (
            "configuration-snippet",
            "set $mine 1;\nadd_header X $mime;",
            "did you mean $mine?",
        ),
        (
            "server-snippet",
            "if ($no_such) { return 403; }",
            "$no_such",
        ),
    ] {
        let candidate = ingress("new", &annotation(name, value), "/");
        let refusal = reviewer.review(&candidate).refusal().unwrap();
        let key = format!("nginx.ingress.kubernetes.io/{name}: ");
        assert!(
            refusal.starts_with(&key) && refusal.contains(told),
            "{refusal}"
        );
    }
}

#[test]
fn variables_that_anybody_defines_are_known() {
    let others = vec![
        ingress(
            "one",
            &annotation("server-snippet", "set $of_a_server x;"),
            "/",
        ),
        ingress(
            "two",
            &annotation("use-regex", "true"),
            "/(?<of_a_path>[^/]+)",
        ),
        ingress(
            "three",
            &annotation("server-alias", r"~^(?<of_an_alias>.+)\.test$"),
            "/",
        ),
    ];
    let reviewer = reviewer(others);
    for variable in [
        "of_the_configmap",
        "of_a_server",
        "of_a_path",
        "of_an_alias",
        "http_x_any",
        "best_http_host",
        "request_id",
    ] {
        let value = format!("${variable}");
        let candidate = ingress("new", &annotation("upstream-vhost", &value), "/");
        assert_eq!(reviewer.review(&candidate).refusal(), None, "{variable}");
    }
}

#[test]
fn what_streams_and_files_beside_say_is_left_to_nginx() {
    let reviewer = reviewer(Vec::new());
    for (name, value) in [
        (
            "stream-snippet",
            "server { listen 9000; proxy_pass 10.0.0.1:9000; }",
        ),
        (
            "configuration-snippet",
            "include /etc/nginx/more.conf; return 200 $whatever;",
        ),
    ] {
        let candidate = ingress("new", &annotation(name, value), "/");
        assert_eq!(reviewer.review(&candidate).refusal(), None, "{value}");
    }
}

#[test]
fn many_faults_do_not_take_long_to_be_told() {
    let reviewer = reviewer(Vec::new());
    let uses = (0..20_000).map(|n| format!("set $v{n} $w{n};\n"));
    let snippet: String = uses.collect();
    let candidate = ingress("new", &annotation("configuration-snippet", &snippet), "/");
    let refusal = reviewer.review(&candidate).refusal().unwrap();
    assert_eq!(refusal.lines().count(), 1, "{refusal}");
}
