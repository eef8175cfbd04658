//! What NGINX refuses: told of by those who read the configuration as NGINX would, and by a running controller.

use super::{
    SHOP, from, manifests, run,
    site::{
        Site,
        backend::{Backend, annotated, ingress},
        http, open_directory,
    },
};

const SETTINGS: &str = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\n\
    data: {allow-snippet-annotations: 'true', annotations-risk-level: Critical}\n";

const ASSUMED: &str = "--assume-nginx=debian-12";

/// [`SHOP`], whose Ingress has a snippet that NGINX refuses.
fn refused() -> String {
    let annotation = "  annotations: {nginx.ingress.kubernetes.io/configuration-snippet: 'location /x {'}\n  creationTimestamp";
    SHOP.replace("  creationTimestamp", annotation) + SETTINGS
}

#[test]
fn an_ingress_that_nginx_would_refuse_is_not_said_to_be_served() {
    let directory = manifests(&[("a.yaml", &refused())]);
    let source = from(&directory);
    let flags = [source.as_str(), "--configmap=shop/settings", ASSUMED];
    let ask = |words: &[&str]| run(&[words, &flags].concat());

    let said = ask(&["explain", "shop.test/cart"]);
    assert_eq!(said.code, 0, "{said:?}");
    said.has_line(&[
        "answer",
        "503",
        "nginx refuses the configuration of this Ingress",
    ]);
    said.has_line(&[
        "Ingress shop/shop",
        "RefusedByNginx",
        "configuration-snippet",
        "its paths answer 503",
    ]);
    let said = ask(&["explain"]);
    said.has_line(&["shop.test", "/cart", "shop/shop", "503"]);
    let json = ask(&["explain", "-o=json", "shop.test/cart"]).json();
    assert_eq!(json["request"]["answer"]["kind"], "closed", "{json}");

    let said = ask(&["ingresses"]);
    said.has_line(&[
        "shop",
        "shop.test",
        "no: RefusedByNginx: ",
        "its paths answer 503",
    ]);
    let json = ask(&["ingresses", "-o=json"]).json();
    assert_eq!(json[0]["served"], false, "{json}");

    let said = ask(&["render"]);
    assert_eq!(said.code, 1, "{}", said.errors);
    let start = "nginx would refuse: Ingress shop/shop: configuration-snippet: ";
    assert!(said.errors.starts_with(start), "{}", said.errors);

    let said = ask(&["migrate"]);
    said.has_line(&["shop/shop", "to be checked"]);
    said.has_line(&["shop/shop", "RefusedByNginx", "configuration-snippet"]);
}

#[test]
fn a_key_that_nginx_would_refuse_is_said_not_to_hold() {
    let settings = SETTINGS.replace("data: {", "data: {http-snippet: 'no_such_directive on;', ");
    let directory = manifests(&[("a.yaml", &format!("{SHOP}{settings}"))]);
    let flags = [&from(&directory), "--configmap=shop/settings"];
    let said = run(&[&["explain", "--config"], &flags[..]].concat());
    said.has_line(&[
        "http-snippet",
        "refused: the default holds",
        "nginx refuses it",
        "no_such_directive",
    ]);
    let said = run(&[&["explain"], &flags[..]].concat());
    said.has_line(&["ConfigMap shop/settings", "RefusedByNginx", "http-snippet"]);
    let said = run(&[&["migrate"], &flags[..]].concat());
    said.has_line(&["http-snippet", "refused", "no_such_directive"]);
}

#[test]
fn a_difference_tells_what_nginx_would_refuse_of_it() {
    let (old, new) = (
        manifests(&[("a.yaml", SHOP)]),
        manifests(&[("a.yaml", &refused())]),
    );
    let paths = [&old, &new].map(|directory| directory.path().display().to_string());
    let words = [
        "diff",
        &paths[0],
        &paths[1],
        "--configmap=shop/settings",
        ASSUMED,
    ];
    let said = run(&words);
    assert_eq!(said.code, 1, "{said:?}");
    said.has_line(&["nginx would refuse"]);
    said.has_line(&["  Ingress shop/shop, configuration-snippet: "]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_controller_is_asked_what_its_nginx_refuses() {
    let backend = Backend::start("one").await;
    let service = backend.service("one");
    let good = ingress("a", "a.test", "one", "");
    let snippet =
        "{nginx.ingress.kubernetes.io/configuration-snippet: 'return 200 $no_such_variable;'}";
    let bad = annotated("b", "b.test", "one", snippet, "/", "");
    let settings = SETTINGS.replace("namespace: shop", "namespace: default");
    let flags = ["--configmap=default/settings"];
    let files = [
        ("a.yaml", good.as_str()),
        ("b.yaml", &bad),
        ("service.yaml", &service),
        ("settings.yaml", &settings),
    ];
    let site = Site::with_flags(&flags, &files).await;
    site.answers("a.test", "/", 200, "one").await;
    site.answers("b.test", "/", 503, "").await;
    let source = format!(
        "--manifests={}",
        site.directory().join("manifests").display()
    );
    let port = format!("--healthz-port={}", site.ports.healthz);
    let flags = [flags[0], &source, &port, "--running"];
    let ask = |words: &[&str]| run(&[words, &flags].concat());

    let said = ask(&["explain", "b.test/"]);
    assert_eq!(said.code, 0, "{said:?}");
    said.has_line(&["answer", "503"]);
    said.has_line(&[
        "Ingress default/b",
        "RefusedByNginx",
        "no_such_variable",
        "its paths answer 503",
    ]);
    let said = ask(&["ingresses"]);
    said.has_line(&["a.test", "yes"]);
    said.has_line(&["b.test", "no: RefusedByNginx: ", "no_such_variable"]);

    // A version that was served goes on being served, and that is the one which is explained.
    let later = bad
        .replace("host: b.test", "host: a.test")
        .replace("name: b", "name: a");
    site.write("a.yaml", &later);
    site.until("the new version is kept apart", async || {
        let said = ask(&["ingresses"]);
        said.text
            .contains("its version before is served")
            .then_some(())
    })
    .await;
    let said = ask(&["ingresses"]);
    said.has_line(&[
        "a.test",
        "yes: RefusedByNginx: ",
        "its version before is served",
    ]);
    let said = ask(&["explain", "a.test/"]);
    said.has_line(&["answer", "1 endpoint"]);

    site.remove("b.yaml");
    site.until("it is said to be gone", async || {
        let said = "an Ingress that nginx refused is not there any more";
        (site.logged(said) == 1).then_some(())
    })
    .await;
    assert!(!ask(&["ingresses"]).text.contains("b.test"));

    // Pages in a browser that reach us under a name of theirs are told nothing; what is not there is not there for anybody.
    for (path, host, status) in [
        ("/debug/isolated", "localhost", 200),
        ("/debug/isolated", "evil.test", 403),
        ("/debug/model", "evil.test", 403),
        ("/debug/flags", "evil.test", 403),
        ("/nowhere", "evil.test", 404),
    ] {
        let answer = http::get(site.ports.healthz, host, path).await;
        assert_eq!(
            answer.map(|answer| answer.status),
            Some(status),
            "{host}{path}"
        );
    }

    // One that does not run cannot tell.
    let nobody = open_directory();
    let said = run(&["ingresses", &from(&nobody), "--running", "--healthz-port=1"]);
    assert_eq!((said.code, said.text.as_str()), (2, ""), "{said:?}");
    let start = "cannot ask the running controller at port 1 (--healthz-port): ";
    assert!(said.errors.starts_with(start), "{said:?}");
}
