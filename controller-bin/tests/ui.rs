//! The page for people, with a real NGINX.

mod site;

use site::{Site, backend::Backend, backend::annotated, backend::ingress, http::Response};

const CLASS: &str = "
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
";

const BROKEN: &str = "{nginx.ingress.kubernetes.io/upstream-hash-by: '$no_such_variable<b>', nginx.ingress.kubernetes.io/no-such-thing: x}";

async fn site(flags: &[&str]) -> (Site, Backend) {
    let backend = Backend::start("one").await;
    let objects = [
        CLASS.to_owned(),
        backend.service("one"),
        ingress("older", "shop.test", "one", ""),
        ingress("newer", "shop.test", "one", ""),
        ingress("lost", "lost.test", "nobody", "")
            .replace("pathType: ImplementationSpecific", "pathType: Prefix"),
        annotated("odd", "odd.test", "one", BROKEN, "/<script>", ""),
    ];
    let text = objects.join("---\n");
    let site = Site::with_flags(flags, &[("objects.yaml", &text)]).await;
    (site, backend)
}

async fn page(site: &Site, host: &str, path: &str) -> Response {
    site.until("the page is answered", async || {
        site::http::get(site.ports.healthz, host, path).await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_shows_what_is_served_and_what_is_not() {
    let (site, _backend) = site(&["--enable-ui"]).await;
    let all = page(&site, "localhost", "/ui").await;
    assert_eq!(all.status, 200, "{}", all.body);
    for text in [
        "● serving",
        "shop.test",
        "lost.test",
        "one:80",
        "nobody:80",
        // How paths are written to be matched, and how they are.
        "<span class=\"mark\">Prefix</span>",
        "<span class=\"mark\">ImplementationSpecific, as Prefix</span>",
        // The conflict, its winner and its loser.
        "path / (Prefix)",
        "default/newer",
        "default/older",
        // What is wrong with objects.
        "MissingService",
        "UnknownAnnotation",
        // The first load.
        "first configuration",
    ] {
        assert!(all.body.contains(text), "{text:?} in {}", all.body);
    }
    let head = all.head.to_ascii_lowercase();
    for header in [
        "content-type: text/html",
        "content-security-policy: default-src 'none'",
        "cache-control: no-store",
    ] {
        assert!(head.contains(header), "{header:?} in {head}");
    }
    assert!(!all.body.contains("<script"), "texts are escaped");
    let found = page(&site, "127.0.0.1:10254", "/ui?search=lost").await.body;
    assert!(found.contains("<strong>lost.test</strong>"), "{found}");
    assert!(!found.contains("<strong>shop.test</strong>"), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nginx_refuses_is_shown_with_what_becomes_of_it() {
    let settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: default}\n\
        data: {allow-snippet-annotations: 'true', annotations-risk-level: Critical}\n";
    let snippet = "{nginx.ingress.kubernetes.io/configuration-snippet: 'no_such_directive;'}";
    let files = [
        ("settings.yaml", settings.to_owned()),
        (
            "bad.yaml",
            annotated("bad", "bad.test", "one", snippet, "/", ""),
        ),
    ];
    let flags = ["--enable-ui", "--configmap=default/settings"];
    let site = Site::with_flags(&flags, &files).await;
    let shown = page(&site, "localhost", "/ui").await.body;
    for text in [
        "nginx refuses the Ingress: its paths answer 503",
        "no_such_directive",
        "<td>its paths answer 503</td>",
    ] {
        assert!(shown.contains(text), "{text:?} in {shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_is_for_this_machine_and_only_if_asked_for() {
    let (site, _backend) = site(&["--enable-ui"]).await;
    let refused = page(&site, "rebound.test", "/ui").await;
    assert_eq!(refused.status, 403);
    assert!(!refused.body.contains("shop.test"));
    // The other pages of the port are for everybody.
    assert_eq!(page(&site, "rebound.test", "/healthz").await.status, 200);
    assert_eq!(page(&site, "rebound.test", "/nowhere").await.status, 404);
    drop(site);
    let (site, _backend) = self::site(&[]).await;
    assert_eq!(page(&site, "localhost", "/ui").await.status, 404);
}
