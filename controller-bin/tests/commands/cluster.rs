//! Against an API server.

use serde_json::Value;

use super::{
    FAULTY, SHOP, run,
    support::{ApiDouble, Verb},
};

async fn ask(api: &ApiDouble, words: &[&str]) -> super::Said {
    let host = format!("--apiserver-host={}", api.url());
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    tokio::task::spawn_blocking(move || {
        let words: Vec<_> = words
            .iter()
            .map(String::as_str)
            .chain([host.as_str()])
            .collect();
        run(&words)
    })
    .await
    .expect("it ends")
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_a_cluster_are_looked_at_and_left_alone() {
    let api = ApiDouble::start().await;
    api.apply_yaml(SHOP);
    api.apply_yaml(FAULTY);
    api.apply_yaml(
        "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: nginx}\n\
         spec: {controller: k8s.io/ingress-nginx}\n",
    );
    let lint = ask(&api, &["lint", "-o=json"]).await.json();
    let findings = lint["findings"].as_array().expect("it is a list");
    let misspelt = findings
        .iter()
        .find(|finding| finding["reason"] == "UnknownAnnotation")
        .expect("it is told");
    assert_eq!(misspelt["object"]["name"], "shop/late");
    assert_eq!(misspelt.get("file"), None, "a cluster has no files");
    let ingresses = ask(&api, &["ingresses", "-o=json"]).await.json();
    assert_eq!(ingresses.as_array().map(Vec::len), Some(2), "{ingresses}");
    let migrate = ask(&api, &["migrate", "-o=json"]).await.json();
    assert_eq!(
        migrate["ingresses"].as_array().map(Vec::len),
        Some(2),
        "{migrate}"
    );
    assert_eq!(migrate["installation"]["workload"], Value::Null);
    let reads = [Verb::Get, Verb::List, Verb::Watch];
    let requests = api.requests();
    assert!(
        requests
            .iter()
            .all(|request| reads.contains(&request.call.verb))
    );
}
