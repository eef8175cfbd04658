//! The ConfigMap of settings: it comes, changes and goes while NGINX runs, and one bad value spoils nothing else.

mod site;

use site::{
    Site,
    backend::{Backend, HEADERS, ingress},
};

fn config_map(data: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings, namespace: default}}\ndata: {{{data}}}\n"
    )
}

/// Waits until responses have these of the headers that the back end sends, and no others.
async fn shows(site: &Site, what: &str, wanted: &[&str]) {
    site.until(what, async || {
        let head = site.get("shop.test", "/").await?.head.to_ascii_lowercase();
        let shown = HEADERS
            .into_iter()
            .filter(|name| head.contains(&format!("\r\n{name}: ")));
        shown.eq(wanted.iter().copied()).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configmap_acts_as_it_comes_changes_and_goes() {
    let one = Backend::start("one").await;
    let [a, b] = HEADERS;
    let site = Site::with_flags(
        &["--configmap=default/settings"],
        &[
            ("service.yaml", &one.service("one")),
            ("ingress.yaml", &ingress("shop", "shop.test", "one", "")),
        ],
    )
    .await;
    shows(&site, "nothing is hidden without a ConfigMap", &[a, b]).await;

    let faulty = format!("hide-headers: {a}, keep-alive: long, proxy-body-sice: 8m");
    site.write("settings.yaml", &config_map(&faulty));
    shows(&site, "the good key acts beside bad ones", &[b]).await;
    for text in ["keep-alive", "did you mean proxy-body-size?"] {
        assert_ne!(site.logged(text), 0, "{text} in {}", site.log());
    }

    site.write("settings.yaml", &config_map(&format!("hide-headers: {b}")));
    shows(&site, "the edit acts", &[a]).await;

    site.remove("settings.yaml");
    shows(&site, "the defaults hold again", &[a, b]).await;
}
