//! What is wrong with manifests as such.

use super::{SHOP, from, manifests, run};

#[test]
fn the_part_that_cannot_be_read_is_named() {
    let text = format!("{SHOP}---\nkind: Service\nmetadata: {{name: [\n---\nkind: Pod\n");
    let documents = text.lines().filter(|line| *line == "---").count() + 1;
    let line = |number: usize| {
        let mut marks = (1_usize..)
            .zip(text.lines())
            .filter(|(_, line)| *line == "---");
        marks.nth(number - 2).map(|(line, _)| line).unwrap()
    };
    let directory = manifests(&[("a.yaml", &text)]);
    let said = run(&["lint", &from(&directory), "--assume-nginx=debian-12"]);
    assert_eq!(said.code, 1, "{said:?}");
    for (number, below) in [(documents - 1, 2), (documents, 1)] {
        let place = format!("a.yaml:{} ", line(number) + below);
        let part = format!("document {number} of {documents}: ");
        said.has_line(&["error", &place, "BrokenManifest", &part]);
    }
    let whole = run(&["ingresses", &from(&directory)]);
    whole.has_line(&["shop"]);
}

#[test]
fn what_goes_with_a_file_that_cannot_be_read_is_told() {
    let json = r#"{"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}},
        {"apiVersion": "v1", "kind" : "Service", "metadata": {"name": "b"}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c"}},
    ]}"#;
    let item = r#"{"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "d"}},
        {"apiVersion": "v1", "kind": "Service", "metadata": 3}
    ]}"#;
    let directory = manifests(&[("a.json", json), ("item.json", item)]);
    std::fs::write(
        directory.path().join("b.yaml"),
        b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \xe4}\n---\nkind: 'Service'\n",
    )
    .unwrap();
    let said = run(&["lint", &from(&directory), "--assume-nginx=debian-12"]);
    said.has_line(&[
        "error",
        "a.json:5 ",
        "all of the file is left out: Secret 1, Service 2",
    ]);
    said.has_line(&[
        "error",
        "b.yaml ",
        "all of the file is left out: ConfigMap 1, Service 1",
    ]);
    said.has_line(&["error", "item.json:1 ", "item 2 of the list, a Service: "]);
    assert_eq!(
        said.text.matches("all of the file").count(),
        2,
        "{}",
        said.text
    );
}

#[test]
fn kinds_that_others_read_are_told_of() {
    let kinds = [
        ("v1", "Endpoints", "EndpointSlices"),
        ("gateway.networking.k8s.io/v1", "HTTPRoute", "an Ingress"),
        (
            "gateway.networking.k8s.io/v1alpha2",
            "TCPRoute",
            "--tcp-services-configmap",
        ),
        (
            "networking.k8s.io/v1beta1",
            "Ingress",
            "did you mean apiVersion networking.k8s.io/v1",
        ),
        ("apps/v1", "Deployment", ""),
    ];
    let documents = kinds.map(|(version, kind, _)| {
        format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\n")
    });
    let directory = manifests(&[("a.yaml", SHOP), ("b.yaml", &documents.join("---\n"))]);
    let said = run(&["lint", &from(&directory), "--assume-nginx=debian-12"]);
    for (number, (_, kind, advice)) in kinds.iter().enumerate().take(4) {
        let place = format!("b.yaml:{} ", [1, 5, 9, 13][number]);
        said.has_line(&["warning", &place, "UnreadObject", kind, advice]);
    }
    assert_eq!(
        said.text.matches("UnreadObject").count(),
        4,
        "{}",
        said.text
    );
}
