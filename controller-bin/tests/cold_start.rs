//! A start with very many Ingresses of which many are at fault: a real controller, a real NGINX and real requests.

mod site;

use site::{
    Site,
    backend::{Backend, annotated, ingress},
};

const CONFIG_MAP_FLAG: &str = "--configmap=default/settings";

const CONFIG_MAP: &str = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: default}
data: {allow-snippet-annotations: "true", annotations-risk-level: Critical}
"#;

/// Snippets that only NGINX knows to be wrong: it reads their values by functions of their own.
const FOR_NGINX: &[(&str, &str)] = &[
    ("configuration-snippet", "allow nonsense;"),
    ("configuration-snippet", "expires 1h 30m;"),
    ("configuration-snippet", "access_log logs/x no_such_format;"),
    ("configuration-snippet", "error_page five /e;"),
    ("configuration-snippet", "rewrite ^/a$ /b sideways;"),
    ("server-snippet", "listen nowhere:99999999;"),
    ("server-snippet", "resolver 1.2.3.4 valid=soon;"),
];

/// Snippets whose faults can be read.
const READABLE: &[(&str, &str)] = &[
    ("configuration-snippet", "limit_req zone=no_such_zone;"),
    ("configuration-snippet", "include /no/such/file.conf;"),
    (
        "configuration-snippet",
        "error_log /no/such/directory/x.log;",
    ),
    (
        "server-snippet",
        "ssl_certificate /no/such.pem; ssl_certificate_key /no/such.pem;",
    ),
    ("configuration-snippet", "root /a; root /b;"),
    ("configuration-snippet", "set $x;"),
    ("configuration-snippet", "proxy_read_timeout soon;"),
    ("configuration-snippet", "proxy_buffer_size 8q;"),
];

/// A thousand hosts without a fault, twelve with a snippet without a fault, and 66 with these faults in turn.
fn manifests(faults: &[(&str, &str)]) -> [(&'static str, String); 3] {
    let host = |name: &str| format!("{name}.test");
    let good = (0..1_000).map(|number| {
        let name = format!("good-{number}");
        ingress(&name, &host(&name), "one", "")
    });
    let innocent = (0..12).map(|number| {
        let name = format!("innocent-{number}");
        let snippet =
            "{nginx.ingress.kubernetes.io/configuration-snippet: 'add_header X-Mine yes;'}";
        annotated(&name, &host(&name), "one", snippet, "/", "")
    });
    let bad = (0..66).zip(faults.iter().cycle());
    let bad = bad.map(|(number, (annotation, value))| {
        let annotations = format!("{{nginx.ingress.kubernetes.io/{annotation}: '{value}'}}");
        let name = format!("bad-{number}");
        annotated(&name, &host(&name), "one", &annotations, "/", "")
    });
    [
        ("good.yaml", good.collect::<Vec<_>>().join("---\n")),
        ("innocent.yaml", innocent.collect::<Vec<_>>().join("---\n")),
        ("bad.yaml", bad.collect::<Vec<_>>().join("---\n")),
    ]
}

/// Starts with such faults; sees that all without are served, and after so many refusals of everything at most.
async fn start(faults: &[(&str, &str)], most_refusals: usize) -> Site {
    let one = Backend::start("one").await;
    let mut files = vec![
        ("one.yaml", one.service("one")),
        ("config.yaml", CONFIG_MAP.to_owned()),
    ];
    files.extend(manifests(faults));
    let site = Site::begin(&[CONFIG_MAP_FLAG, "--v=4"], &files);
    site.ready().await;
    site.answers("good-999.test", "/", 200, "one").await;
    let log = site.log();
    let (before, _) = log.split_once("msg=\"loaded\"").unwrap_or((&log, ""));
    let refusals = before.matches("nginx refuses a configuration").count();
    assert!(refusals <= most_refusals, "{refusals} refusals\n{log}");
    for number in 0..12 {
        site.answers(&format!("innocent-{number}.test"), "/", 200, "one")
            .await;
    }
    for number in [0, 33, 65] {
        site.answers(&format!("bad-{number}.test"), "/", 503, "")
            .await;
    }
    site
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_many_ingresses_with_faults_that_can_be_read_cost_one_more_test() {
    start(READABLE, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_many_ingresses_with_faults_for_nginx_to_find_cost_two_more_tests() {
    let site = start(FOR_NGINX, 2).await;
    // Each is told what NGINX says about itself.
    let said = [
        "invalid parameter \\\"nonsense\\\"",
        "\\\"expires\\\" directive invalid value",
        "unknown log format \\\"no_such_format\\\"",
        "invalid value \\\"five\\\"",
        "invalid parameter \\\"sideways\\\"",
        "invalid port in \\\"nowhere:99999999\\\" of the \\\"listen\\\" directive",
        "invalid parameter: valid=soon",
    ];
    site.until("all have been tried by themselves", async || {
        (site.logged("nginx refuses what an Ingress makes") >= 66).then_some(())
    })
    .await;
    let log = site.log();
    for number in 0..66 {
        let ingress = format!("default/bad-{number}");
        let about = log.lines().find(|line| {
            line.contains("nginx refuses what an Ingress makes")
                && line.split([' ', '"', '=']).any(|word| word == ingress)
        });
        let about = about.unwrap_or_else(|| panic!("nothing is said of {ingress}\n{log}"));
        let said = said[number % said.len()];
        assert!(about.contains(said), "{about}\nrather {said}");
    }
}
