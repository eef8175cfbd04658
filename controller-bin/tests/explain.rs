//! The subcommand `explain`, as users run it; and its answers beside those of a real NGINX.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a failure here fails the test"
)]

mod site;
#[allow(unused_imports, reason = "each test binary uses a part of it")]
mod support;

use std::{fs, path::Path};

use controller_bin::Command;
use serde_json::Value;
use site::{Site, backend::Backend, controller, open_directory};
use support::{ApiDouble, Verb};
use tempfile::TempDir;

const SHOP: &str = "
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: shop
  namespace: shop
  annotations: {nginx.ingress.kubernetes.io/proxy-body-size: 8m}
spec:
  ingressClassName: nginx
  tls: [{hosts: [shop.test], secretName: shop}]
  rules:
  - host: shop.test
    http:
      paths:
      - {path: /cart, pathType: Prefix, backend: {service: {name: cart, port: {number: 80}}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: other, namespace: shop}
spec:
  ingressClassName: other
  rules: [{host: shop.test}]
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: config, namespace: shop}
data: {proxy-read-timeout: '90', proxy-bodi-size: 1m, ssl-session-ticket-key: dGlja2V0}
---
apiVersion: v1
kind: Secret
metadata: {name: shop, namespace: shop}
stringData: {tls.crt: hidden-text, tls.key: hidden-text}
";

fn manifests(files: &[(&str, &str)]) -> TempDir {
    let directory = open_directory();
    for (name, text) in files {
        fs::write(directory.path().join(name), text).expect("it is writable");
    }
    directory
}

/// Runs the program: its code, and what it wrote to standard output and standard error.
fn run(directory: &Path, words: &[&str]) -> (i32, String, String) {
    let output = controller()
        .arg("explain")
        .arg(format!("--manifests={}", directory.display()))
        .args(words)
        .output()
        .expect("it can be run");
    let text = |bytes| String::from_utf8(bytes).expect("it is text");
    let code = output.status.code().expect("it ends by itself");
    (code, text(output.stdout), text(output.stderr))
}

/// What is told as JSON.
fn told(words: &[&str]) -> Value {
    let words = ["test", "explain", "--output=json"].iter().chain(words);
    let Ok(Command::Look(explain)) = Command::try_parse_from(words) else {
        panic!("the words are understood")
    };
    let mut json = Vec::new();
    explain.tell(&mut json).expect("it can be read");
    serde_json::from_slice(&json).expect("it is JSON")
}

#[test]
fn the_code_says_whether_anything_serves_it() {
    let directory = manifests(&[("shop.yaml", SHOP)]);
    for (words, code) in [
        (&["shop.test/cart"][..], 0),
        (&["http://SHOP.test:8080/cart/7?x=y"], 0),
        (&["shop.test"], 0),
        (&[], 0),
        (&["shop.test/"], 1),
        (&["shop.test/%zz"], 1),
        (&["other.test"], 1),
        (&["other.test/healthz"], 0),
        (
            &[
                "shop.test/cart",
                "--ingress-class=x",
                "--controller-class=x",
            ],
            1,
        ),
        (&["shop.test/cart", "--watch-namespace=x"], 1),
        (&["--config", "--configmap=shop/config"], 0),
        (&["--config", "--configmap=shop/none"], 1),
        (&["--config"], 2),
        (&["--no-such-flag"], 2),
        (&["-o", "json", "shop.test/cart"], 0),
    ] {
        let (found, text, errors) = run(directory.path(), words);
        assert_eq!(found, code, "{words:?}\n{text}{errors}");
        assert_eq!(text.is_empty(), code == 2, "{words:?}");
        assert_eq!(errors.is_empty(), code != 2, "{words:?}\n{errors}");
    }
    let (code, text, errors) = run(Path::new("/nowhere/at/all"), &[]);
    assert_eq!((code, text.as_str()), (2, ""));
    assert!(errors.starts_with("cannot read the directory of manifests /nowhere/at/all: "));
}

#[test]
fn a_request_is_explained_for_people() {
    let directory = manifests(&[("shop.yaml", SHOP)]);
    let (_, text, _) = run(
        directory.path(),
        &["shop.test/cart/7", "--configmap=shop/config"],
    );
    for line in [
        "request      shop.test/cart/7",
        "server       shop.test",
        "location     /cart/",
        "defined by   Ingress shop/shop, path /cart (Prefix)",
        "answer       503: no endpoints",
        "certificate  made by the controller",
        "plain HTTP   redirected to HTTPS",
        "proxy-body-size     8m     Ingress shop/shop, nginx.ingress.kubernetes.io/proxy-body-size",
        "proxy-read-timeout  90     ConfigMap shop/config, proxy-read-timeout",
        "Ingress shop/other  MissingClass  spec.ingressClassName  IngressClass other does not exist",
    ] {
        assert!(
            text.lines().any(|found| found.starts_with(line)),
            "{line}\n{text}"
        );
    }
    let (_, all, _) = run(directory.path(), &["shop.test/cart/7", "--defaults"]);
    assert!(all.lines().count() > text.lines().count() + 50, "{all}");
}

#[test]
fn shares_and_settings_are_told_as_they_are() {
    let canary = "
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: next
  namespace: shop
  annotations:
    nginx.ingress.kubernetes.io/canary: 'true'
    nginx.ingress.kubernetes.io/canary-by-header: x-region
    WHAT
    nginx.ingress.kubernetes.io/canary-by-cookie: next
spec:
  ingressClassName: nginx
  rules:
  - host: shop.test
    http:
      paths:
      - {path: /cart, pathType: Prefix, backend: {service: {name: next, port: {number: 80}}}}
";
    for (what, told) in [
        ("", "requests with header x-region: always, "),
        (
            "nginx.ingress.kubernetes.io/canary-by-header-value: eu",
            "requests with header x-region: eu, ",
        ),
        (
            "nginx.ingress.kubernetes.io/canary-by-header-pattern: ^eu",
            "requests whose header x-region matches ^eu, ",
        ),
    ] {
        let canary = canary.replace("WHAT", what);
        let directory = manifests(&[("next.yaml", &canary), ("shop.yaml", SHOP)]);
        let (_, text, _) = run(directory.path(), &["shop.test/cart"]);
        let told = format!("{told}requests with cookie next=always (none)");
        assert!(text.contains(&told), "{told}\n{text}");
    }
    // The path has a size of its own, of which the host as a whole knows nothing.
    let directory = manifests(&[("shop.yaml", SHOP)]);
    let (_, text, _) = run(directory.path(), &["shop.test"]);
    assert!(
        text.contains("\nAll settings of the host as a whole have their defaults; "),
        "{text}"
    );
}

#[test]
fn the_readme_shows_what_is_printed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let manifests = root.join("examples/quickstart/manifests");
    let (_, text, _) = run(&manifests, &["shop.localhost/cart/7"]);
    let readme = fs::read_to_string(root.join("README.md")).expect("it is there");
    assert!(readme.contains(&text), "{text}");
}

#[test]
fn the_keys_of_the_configmap_are_explained() {
    let directory = manifests(&[("shop.yaml", SHOP)]);
    let (_, text, _) = run(directory.path(), &["--config", "--configmap=shop/config"]);
    for line in [
        "proxy-read-timeout      90           accepted",
        "proxy-bodi-size         1m           unknown",
        "ssl-session-ticket-key  (not shown)  ",
    ] {
        assert!(
            text.lines().any(|found| found.starts_with(line)),
            "{line}\n{text}"
        );
    }
    assert!(text.contains("did you mean proxy-body-size?"), "{text}");
}

#[test]
fn a_broken_manifest_is_named_and_the_others_are_explained() {
    let broken = "apiVersion: v1\nkind: Service\nmetadata: {name: [\n";
    let directory = manifests(&[("shop.yaml", SHOP), ("broken.yaml", broken)]);
    let (code, text, _) = run(directory.path(), &["shop.test/cart"]);
    assert_eq!(code, 0, "{text}");
    let place = format!("{}:3", directory.path().join("broken.yaml").display());
    assert!(text.contains(&place), "{place}\n{text}");
    assert!(text.contains("Ingress shop/shop"), "{text}");
    let manifests = format!("--manifests={}", directory.path().display());
    let json = told(&[&manifests, "shop.test/cart"]);
    let reported = json["broken_manifests"][0].as_str().expect("it is named");
    assert!(reported.starts_with(&place), "{reported}");
    assert_eq!(json["request"]["location"]["by"], "exact");
}

#[test]
fn what_secrets_hold_is_not_shown() {
    let directory = manifests(&[("shop.yaml", SHOP)]);
    for words in [
        &["shop.test/cart"][..],
        &["shop.test"],
        &[],
        &["--config", "--configmap=shop/config"],
    ] {
        for output in ["table", "json"] {
            let words = [words, &["--defaults", "-o", output]].concat();
            let (_, text, errors) = run(directory.path(), &words);
            for hidden in ["hidden-text", "dGlja2V0"] {
                assert!(
                    !text.contains(hidden) && !errors.contains(hidden),
                    "{words:?}"
                );
            }
        }
    }
}

#[test]
fn text_of_manifests_does_nothing_to_a_terminal() {
    let colourful = SHOP.replace("8m", "\"8m\\e[31m\\n\"");
    let directory = manifests(&[("shop.yaml", &colourful)]);
    let (_, text, _) = run(directory.path(), &["shop.test/cart"]);
    assert!(!text.contains('\u{1b}'), "{text:?}");
    assert!(text.contains("proxy-body-size"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_a_cluster_are_explained() {
    let api = ApiDouble::start().await;
    api.apply_yaml(SHOP);
    let host = format!("--apiserver-host={}", api.url());
    let json = tokio::task::spawn_blocking(move || told(&[&host, "shop.test/cart"]))
        .await
        .expect("it ends");
    assert_eq!(
        json["request"]["location"]["ingress"], "shop/shop",
        "{json}"
    );
    assert_eq!(json["request"]["answer"]["kind"], "no_endpoints", "{json}");
    let reads = [Verb::Get, Verb::List, Verb::Watch];
    let requests = api.requests();
    assert!(
        requests
            .iter()
            .all(|request| reads.contains(&request.call.verb))
    );
}

/// A host and its paths: path type, path and the Service.
struct Rules {
    host: &'static str,
    annotations: &'static str,
    paths: &'static [(&'static str, &'static str, &'static str)],
}

/// Each path goes to a Service of its own, so that its answer tells which one was chosen.
const RULES: &[Rules] = &[
    Rules {
        host: "plain.test",
        annotations: "{}",
        paths: &[
            ("Prefix", "/", "root"),
            ("Prefix", "/a", "a"),
            ("Exact", "/a/b", "a-b-exact"),
            ("Prefix", "/a/b", "a-b"),
            ("Exact", "/A", "upper"),
            ("Prefix", "/sp ace", "space"),
        ],
    },
    Rules {
        host: "exact.test",
        annotations: "{}",
        paths: &[
            ("Exact", "/only", "only"),
            ("Exact", "/only/", "only-slash"),
        ],
    },
    Rules {
        host: "regex.test",
        annotations: "{nginx.ingress.kubernetes.io/use-regex: 'true'}",
        paths: &[
            ("ImplementationSpecific", "/api/v[0-9]+/", "version"),
            ("ImplementationSpecific", "/api", "api"),
            ("Exact", "/exact", "exact"),
            (
                "ImplementationSpecific",
                "/(img|css)/.*\\.(png|css)$",
                "files",
            ),
            ("ImplementationSpecific", "/img", "images"),
            ("Prefix", "/a|/b", "either"),
        ],
    },
    Rules {
        host: "*.wild.test",
        annotations: "{}",
        paths: &[("Prefix", "/", "wild")],
    },
    Rules {
        host: "named.test",
        annotations: "{nginx.ingress.kubernetes.io/server-alias: 'other.test,*.deep.test'}",
        paths: &[("Prefix", "/", "named")],
    },
    Rules {
        host: "bare.test",
        annotations: "{nginx.ingress.kubernetes.io/from-to-www-redirect: 'true'}",
        paths: &[("Prefix", "/", "bare")],
    },
    Rules {
        host: "root.test",
        annotations: "{nginx.ingress.kubernetes.io/app-root: /app}",
        paths: &[("Prefix", "/app", "app")],
    },
    Rules {
        host: "",
        annotations: "{}",
        paths: &[("Prefix", "/lost", "lost")],
    },
];

const REQUESTS: &[(&str, &[&str])] = &[
    (
        "plain.test",
        &[
            "/",
            "/a",
            "/a/",
            "/ab",
            "/A",
            "/A/",
            "/a/b",
            "/a/b/",
            "/a/bc",
            "/a/b/c",
            "//a//b",
            "/x/../a/b/c",
            "/a/./b",
            "/a%2fb",
            "/%61",
            "/sp%20ace",
            "/sp%20ace/x",
            "/sp+ace",
            "/a?/b",
            "/..",
            "/%zz",
            "/a/..",
            "/%C3%A4",
        ],
    ),
    ("exact.test", &["/only", "/only/", "/only/x", "/"]),
    (
        "regex.test",
        &[
            "/api/v1/x",
            "/API/V22/",
            "/api/vx/",
            "/apix",
            "/exact",
            "/exactly",
            "/EXACT/x",
            "/img/x.png",
            "/img/x.gif",
            "/css/x.PNG",
            "/css/x.gif",
            "/a",
            "/b",
            "/x/b",
            "/",
            "//api//v1//",
        ],
    ),
    ("a.wild.test", &["/", "/x"]),
    ("A_1.WILD.test", &["/"]),
    ("a.b.wild.test", &["/", "/lost"]),
    ("wild.test", &["/"]),
    ("named.test", &["/x"]),
    ("other.test", &["/x"]),
    ("x.deep.test", &["/x"]),
    ("x.y.deep.test", &["/x"]),
    ("deep.test", &["/x"]),
    ("plain.test.", &["/a"]),
    ("bare.test", &["/"]),
    ("www.bare.test", &["/", "/x"]),
    ("root.test", &["/", "/app/x", "/x"]),
    ("unknown.test", &["/", "/lost", "/lost/x", "/healthz"]),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_real_nginx_chooses_what_is_explained() {
    let mut backends = Vec::new();
    let mut text = Vec::new();
    for (number, rules) in RULES.iter().enumerate() {
        let Rules {
            host,
            annotations,
            paths,
        } = rules;
        text.push(format!(
            "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: i{number}, annotations: {annotations}}}\n\
             spec:\n  ingressClassName: nginx\n  rules:\n  - host: '{host}'\n    http:\n      paths:\n"
        ));
        for (path_type, path, service) in *paths {
            text.push(format!(
                "      - {{path: '{path}', pathType: {path_type}, backend: {{service: {{name: {service}, port: {{number: 80}}}}}}}}\n"
            ));
        }
        for (_, _, service) in *paths {
            let backend = Backend::start(service).await;
            text.push(format!("---\n{}", backend.service(service)));
            backends.push(backend);
        }
    }
    let directory = manifests(&[("all.yaml", &text.concat())]);
    let source = format!("--manifests={}", directory.path().display());
    let site = Site::start(open_directory(), &[&source]);
    site.ready().await;
    site.answers("plain.test", "/", 200, "root").await;

    let mut differences = Vec::new();
    let mut compared = 0;
    for (host, paths) in REQUESTS {
        for path in *paths {
            let response = site.get(host, path).await.expect("NGINX answers");
            let found = match response.status {
                200 => response
                    .body
                    .split(' ')
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
                status => status.to_string(),
            };
            let request = format!("{host}{path}");
            let json = tokio::task::block_in_place(|| told(&[&source, &request]));
            let request = &json["request"];
            let explained = match request["answer"]["kind"].as_str() {
                Some("endpoint") => request["upstream"]["service"]["name"]
                    .to_string()
                    .replace('"', ""),
                Some("not_found") => "404".to_owned(),
                Some("redirect") => request["answer"]["status"].to_string(),
                // NGINX's own location answers without a text.
                Some("controller") => String::new(),
                None if json["bad_request"].is_object() => "400".to_owned(),
                other => format!("{other:?}"),
            };
            compared += 1;
            if found != explained {
                differences.push(format!(
                    "{host}{path}: NGINX {found:?}, explained {explained:?}"
                ));
            }
        }
    }
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
    assert_eq!(
        compared,
        REQUESTS.iter().map(|(_, paths)| paths.len()).sum::<usize>()
    );
}
