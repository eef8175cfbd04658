use serde_json::Value;

use super::{FAULTY, SHOP, from, manifests, run};

#[test]
fn findings_are_told_with_their_places() {
    let broken = "apiVersion: v1\nkind: Service\nmetadata: {name: [\n";
    let old = "apiVersion: extensions/v1beta1\nkind: Ingress\nmetadata: {name: old}\n";
    let directory = manifests(&[
        ("a.yaml", SHOP),
        ("b.yaml", FAULTY),
        ("broken.yaml", broken),
        ("old.yaml", old),
        ("z.yaml", SHOP),
    ]);
    let said = run(&["lint", &from(&directory), "--assume-nginx=debian-12"]);
    assert_eq!(said.code, 1, "{said:?}");
    let b = |line: u32| format!("{}:{line} ", directory.path().join("b.yaml").display());
    for parts in [
        &["error", "broken.yaml:3", "BrokenManifest"][..],
        &[
            "warning",
            "old.yaml:1",
            "UnreadObject",
            "networking.k8s.io/v1",
        ],
        &[
            "warning",
            "z.yaml:1 ",
            "Ingress shop/shop",
            "RepeatedObject",
            "a.yaml is left out",
        ],
        &[
            "warning",
            "z.yaml:14 ",
            "Ingress shop/shop",
            "PathConflict",
            "shop/late",
        ],
        &[
            "warning",
            &b(9),
            "Ingress shop/late",
            "UnknownAnnotation",
            "proxy-body-size",
        ],
        &[
            "warning",
            &b(10),
            "DeprecatedAnnotation",
            "allowlist-source-range",
        ],
        &["error", &b(12), "auth-secret", "MissingSecret", "shop/none"],
    ] {
        said.has_line(parts);
    }
    let (_, rest) = said.text.split_once(" objects\n").unwrap();
    assert!(
        rest.starts_with("NGINX 1.22.1 is assumed, not asked: "),
        "{rest}"
    );
    assert_eq!(rest.lines().count(), 1, "{rest}");
}

#[test]
fn the_code_is_for_ci() {
    let clean = manifests(&[("a.yaml", SHOP)]);
    let warned = SHOP.replace(
        "  creationTimestamp",
        "  annotations: {nginx.ingress.kubernetes.io/proxy-body-sice: 1m}\n  creationTimestamp",
    );
    let warned = manifests(&[("a.yaml", &warned)]);
    let faulty = manifests(&[("a.yaml", SHOP), ("b.yaml", FAULTY)]);
    for (directory, more, code) in [
        (&clean, &[][..], 0),
        (&clean, &["--deny=warnings"], 0),
        (&warned, &[], 0),
        (&warned, &["--deny=warnings"], 1),
        (&warned, &["--deny=warnings", "--level=error"], 1),
        (&faulty, &[], 1),
        (&faulty, &["-o", "json"], 1),
        (&faulty, &["-o", "sarif"], 1),
        (&faulty, &["--ingress-class=x", "--controller-class=x"], 0),
        (&clean, &["-o", "yaml"], 2),
    ] {
        let source = from(directory);
        let words = [&["lint", &source, "--assume-nginx=full"], more].concat();
        let said = run(&words);
        assert_eq!(said.code, code, "{more:?}: {said:?}");
    }
    assert_eq!(run(&["lint", "--manifests=/nowhere/at/all"]).code, 2);
    let said = run(&["lint", &from(&clean)]);
    assert!(said.text.starts_with("no findings in "), "{said:?}");
}

#[test]
fn levels_choose_what_is_told_and_not_what_counts() {
    let foreign = FAULTY.replace("ingressClassName: nginx", "ingressClassName: other");
    let class = "---\napiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: other}\n\
        spec: {controller: example.test/other}\n---\napiVersion: networking.k8s.io/v1\nkind: IngressClass\n\
        metadata: {name: nginx}\nspec: {controller: k8s.io/ingress-nginx}\n";
    let foreign = format!("{foreign}{class}");
    let directory = manifests(&[("a.yaml", SHOP), ("b.yaml", &foreign)]);
    let lint = |level: &str| run(&["lint", &from(&directory), "-o=json", level]).json();
    let notes = lint("--level=note");
    let reasons: Vec<_> = notes["findings"]
        .as_array()
        .expect("it is a list")
        .iter()
        .map(|finding| finding["reason"].as_str().expect("it has one"))
        .collect();
    assert!(reasons.contains(&"ForeignClass"), "{reasons:?}");
    assert!(
        !reasons.contains(&"DeprecatedAnnotation"),
        "it is not ours: {reasons:?}"
    );
    let warnings = lint("--level=warning");
    assert_eq!(warnings["notes"], notes["notes"]);
    assert_eq!(
        warnings["findings"].as_array().map(Vec::len),
        Some(0),
        "{warnings}"
    );
}

/// Checks what the schema of SARIF 2.1.0 (OASIS) requires of the parts that are used. Members that it does not know are
/// refused by it, and here.
#[expect(
    clippy::indexing_slicing,
    reason = "indexing a JSON value does not panic"
)]
fn is_sarif(log: &Value) {
    let has = |value: &Value, required: &[&str], allowed: &[&str]| {
        let members = value.as_object().expect("it is an object");
        for member in required {
            assert!(
                members.contains_key(*member),
                "{member} is missing: {value}"
            );
        }
        for member in members.keys() {
            let known = required.iter().chain(allowed);
            assert!(
                known.into_iter().any(|known| known == member),
                "{member}: {value}"
            );
        }
    };
    let list = |value: &Value| value.as_array().expect("it is a list").clone();
    has(log, &["version", "runs"], &["$schema"]);
    assert_eq!(log["version"], "2.1.0");
    for run in list(&log["runs"]) {
        has(&run, &["tool"], &["results"]);
        has(&run["tool"], &["driver"], &[]);
        has(
            &run["tool"]["driver"],
            &["name"],
            &["semanticVersion", "rules"],
        );
        for rule in list(&run["tool"]["driver"]["rules"]) {
            has(&rule, &["id"], &["shortDescription"]);
            has(&rule["shortDescription"], &["text"], &[]);
        }
        for result in list(&run["results"]) {
            has(
                &result,
                &["message"],
                &["ruleId", "ruleIndex", "level", "locations"],
            );
            has(&result["message"], &["text"], &[]);
            let level = result["level"].as_str().expect("it is a text");
            assert!(
                ["none", "note", "warning", "error"].contains(&level),
                "{level}"
            );
            assert!(result["ruleIndex"].is_u64(), "{result}");
            for location in list(&result["locations"]) {
                has(&location, &[], &["physicalLocation", "logicalLocations"]);
                if let Some(place) = location.get("physicalLocation") {
                    has(place, &["artifactLocation"], &["region"]);
                    has(&place["artifactLocation"], &["uri"], &[]);
                    if let Some(region) = place.get("region") {
                        has(region, &["startLine"], &["startColumn"]);
                    }
                }
                let logical = location.get("logicalLocations");
                for object in logical.into_iter().flat_map(list) {
                    has(&object, &["fullyQualifiedName", "kind"], &[]);
                }
            }
        }
    }
}

#[test]
fn code_scanners_are_told_rules_and_regions() {
    let directory = manifests(&[("a.yaml", SHOP), ("b.yaml", FAULTY)]);
    let log = run(&["lint", &from(&directory), "-o=sarif"]).json();
    is_sarif(&log);
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"]
        .as_array()
        .expect("it is a list");
    let results = run["results"].as_array().expect("it is a list");
    assert!(!results.is_empty());
    for result in results {
        let index = result["ruleIndex"].as_u64().expect("it is a number");
        let rule = &rules[usize::try_from(index).expect("it is small")];
        assert_eq!(rule["id"], result["ruleId"]);
        let place = &result["locations"][0]["physicalLocation"];
        let uri = place["artifactLocation"]["uri"]
            .as_str()
            .expect("it is a text");
        assert!(
            uri.starts_with("file:///") && uri.contains(".yaml"),
            "{uri}"
        );
        assert!(place["region"]["startLine"].as_u64() > Some(0), "{result}");
    }
    let misspelt = results
        .iter()
        .find(|result| result["ruleId"] == "UnknownAnnotation")
        .expect("it is told");
    let region = &misspelt["locations"][0]["physicalLocation"]["region"];
    assert_eq!(
        (region["startLine"].as_u64(), region["startColumn"].as_u64()),
        (Some(9), Some(5))
    );
}

#[test]
fn snippets_that_nginx_would_refuse_are_found_without_it() {
    let snippet = SHOP.replace(
        "  creationTimestamp",
        "  annotations: {nginx.ingress.kubernetes.io/configuration-snippet: 'location /x {'}\n  creationTimestamp",
    );
    let settings = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: shop}\n\
        data: {allow-snippet-annotations: 'true', annotations-risk-level: Critical, proxy-bodi-size: 1m}\n";
    let text = format!("{snippet}{settings}");
    let directory = manifests(&[("a.yaml", &text)]);
    let words = [
        "lint",
        &from(&directory),
        "--configmap=shop/c",
        "--assume-nginx=debian-12",
    ];
    let said = run(&words);
    assert_eq!(said.code, 1, "{said:?}");
    said.has_line(&[
        "error",
        "a.yaml:6",
        "Ingress shop/shop",
        "configuration-snippet",
        "RefusedByNginx",
    ]);
    said.has_line(&[
        "warning",
        "a.yaml",
        "ConfigMap shop/c",
        "UnknownConfigKey",
        "proxy-body-size",
    ]);
}

#[test]
fn a_snippet_that_nginx_would_refuse_hides_no_other_fault() {
    let annotated = |name: &str, annotation: &str| {
        SHOP.replace("shop.test", &format!("{name}.test"))
            .replace("name: shop", &format!("name: {name}"))
            .replace(
                "  creationTimestamp",
                &format!("  annotations: {{nginx.ingress.kubernetes.io/{annotation}}}\n  creationTimestamp"),
            )
    };
    let snippet = annotated("snippet", "configuration-snippet: 'server { }'");
    let regex = annotated(
        "regex",
        "use-regex: 'true', nginx.ingress.kubernetes.io/rewrite-target: /$1",
    )
    .replace(
        "{path: /, pathType: Prefix,",
        "{path: '/x[', pathType: ImplementationSpecific,",
    );
    let settings = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: shop}\n\
        data: {allow-snippet-annotations: 'true', annotations-risk-level: Critical, strict-validate-path-type: 'false'}\n";
    let settings = settings.to_owned();
    let directory = manifests(&[
        ("a.yaml", &snippet),
        ("b.yaml", &regex),
        ("c.yaml", &settings),
    ]);
    let words = [
        "lint",
        &from(&directory),
        "--configmap=shop/c",
        "--assume-nginx=debian-12",
    ];
    let said = run(&words);
    assert_eq!(said.code, 1, "{said:?}");
    said.has_line(&[
        "Ingress",
        "/snippet",
        "RefusedByNginx",
        "may not stand here",
    ]);
    said.has_line(&[
        "Ingress",
        "/regex",
        "RefusedByNginx",
        "is no regular expression",
    ]);
}

#[test]
fn what_an_api_server_would_refuse_is_an_error() {
    let wrong = SHOP
        .replace("ingressClassName: nginx", "ingressClasName: nginx")
        .replace("host: shop.test", "host: Shop.test:80")
        .replace(
            "  creationTimestamp",
            "  annotations: {nginx.ingress.kubernetes.io/ssl-redirect: true}\n  creationTimestamp",
        )
        .replace(
            "{path: /cart, pathType: Prefix,",
            "{path: cart, pathType: Prefix,",
        );
    let directory = manifests(&[("a.yaml", &wrong)]);
    let said = run(&["lint", &from(&directory), "--assume-nginx=debian-12"]);
    assert_eq!(said.code, 1, "{said:?}");
    let line = |line: u32| format!("a.yaml:{line} ");
    for parts in [
        &[
            line(9).as_str(),
            "spec.ingressClasName",
            "UnknownField",
            "did you mean ingressClassName?",
        ][..],
        &[
            &line(11),
            "spec.rules[0].host",
            "RefusedByApiServer",
            "port",
        ],
        &[&line(6), "ssl-redirect", "RefusedByApiServer", "quotes"],
        &[
            &line(15),
            "spec.rules[0].http.paths[1].path",
            "an API server would refuse this: \"cart\" does not begin with '/'",
        ],
    ] {
        said.has_line(&[&["error"], parts].concat());
    }
}

#[test]
fn what_the_webhook_would_refuse_is_found_in_time() {
    let regex = SHOP.replace(
        "{path: /cart, pathType: Prefix,",
        "{path: '/cart(/|$)(.*)', pathType: Prefix,",
    );
    assert_ne!(regex, SHOP);
    let config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config, namespace: shop}\n\
        data: {strict-validate-path-type: 'false'}\n";
    let directory = manifests(&[("a.yaml", &regex), ("config.yaml", config)]);
    let lint = ["lint", &from(&directory), "--assume-nginx=debian-12"];
    run(&lint).has_line(&[
        "warning",
        "a.yaml:14 ",
        "spec.rules[0].http.paths[1].path",
        "RefusedByWebhook",
        "need pathType ImplementationSpecific",
    ]);
    let lax = [&lint[..], &["--configmap=shop/config", "--level=note"]].concat();
    let said = run(&lax);
    said.has_line(&["note", "OddPath", "the webhook warns of it"]);
    assert!(!said.text.contains("RefusedByWebhook"), "{}", said.text);
    let specific = regex.replace(
        "(.*)', pathType: Prefix",
        "(.*)', pathType: ImplementationSpecific",
    );
    let directory = manifests(&[("a.yaml", &specific)]);
    let said = run(&["lint", &from(&directory), "--level=note"]);
    assert!(!said.text.contains("OddPath"), "{}", said.text);
    assert!(!said.text.contains("RefusedByWebhook"), "{}", said.text);
}

#[test]
fn many_findings_are_counted_by_reason() {
    let line = "    nginx.ingress.kubernetes.io/whitelist-source-range: 10.0.0.0/8\n";
    let ingress = |i: usize, more: &str| {
        let text = SHOP.split("---\n").next().unwrap_or_default();
        let text = text.replace("name: shop\n", &format!("name: shop-{i}\n"));
        let text = text.replace("shop.test", &format!("shop-{i}.test"));
        text.replace(
            "  creationTimestamp",
            &format!("  annotations:\n{more}  creationTimestamp"),
        )
    };
    let rest = SHOP.split_once("---\n").map_or("", |(_, rest)| rest);
    let files = |count: usize| {
        let texts = (0..count).map(|i| ingress(i, line));
        format!("{}---\n{rest}", texts.collect::<Vec<_>>().join("---\n"))
    };
    let few = manifests(&[("a.yaml", &files(20))]);
    let many = manifests(&[("a.yaml", &files(21))]);
    let few = run(&["lint", &from(&few), "--assume-nginx=debian-12"]);
    assert!(few.text.ends_with(" was not checked\n"), "{}", few.text);
    let many = run(&["lint", &from(&many), "--assume-nginx=debian-12"]);
    assert!(
        many.text
            .ends_with("COUNT  LEVEL    REASON\n21     warning  DeprecatedAnnotation\n"),
        "{}",
        many.text
    );
}
