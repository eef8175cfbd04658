//! What NGINX refuses harms nobody else: a real controller, a real NGINX and real requests.

mod site;

use site::{
    Site,
    backend::{Backend, annotated, ingress},
};

const REGEX: &str = r#"{nginx.ingress.kubernetes.io/use-regex: "true"}"#;
const UNKNOWN_VARIABLE: &str = r#"{nginx.ingress.kubernetes.io/upstream-vhost: "$no_such"}"#;

/// The ConfigMap of [`CONFIG_MAP_FLAG`], with this in its `data`.
fn config_map(data: &str) -> String {
    format!(
        "apiVersion: v1
kind: ConfigMap
metadata: {{name: settings, namespace: default}}
data: {data}
"
    )
}

const CONFIG_MAP_FLAG: &str = "--configmap=default/settings";

#[tokio::test(flavor = "multi_thread")]
async fn the_last_good_version_goes_on_being_served() {
    let one = Backend::start("one").await;
    let two = Backend::start("two").await;
    let site = Site::with_flags(
        &[],
        &[
            ("one.yaml", one.service("one")),
            ("two.yaml", two.service("two")),
            ("app.yaml", ingress("app", "app.test", "one", "")),
        ],
    )
    .await;
    site.answers("app.test", "/", 200, "one").await;
    site.write(
        "app.yaml",
        &annotated("app", "app.test", "two", REGEX, "/(broken", ""),
    );
    site.write("other.yaml", &ingress("other", "other.test", "two", ""));
    site.answers("other.test", "/", 200, "two").await;
    site.answers("app.test", "/", 200, "one").await;
    assert!(
        site.logged("its version before is served") > 0,
        "{}",
        site.log()
    );
    // Another broken version changes nothing, the next good one does.
    site.write(
        "app.yaml",
        &annotated("app", "app.test", "two", UNKNOWN_VARIABLE, "/", ""),
    );
    site.write("other.yaml", &ingress("other", "later.test", "two", ""));
    site.answers("later.test", "/", 200, "two").await;
    site.answers("app.test", "/", 200, "one").await;
    site.write("app.yaml", &ingress("app", "app.test", "two", ""));
    site.answers("app.test", "/", 200, "two").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_answers_503_where_that_is_asked_for() {
    let one = Backend::start("one").await;
    let site = Site::with_flags(
        &["--on-invalid=503"],
        &[
            ("one.yaml", one.service("one")),
            ("app.yaml", ingress("app", "app.test", "one", "")),
        ],
    )
    .await;
    site.answers("app.test", "/", 200, "one").await;
    site.write(
        "app.yaml",
        &annotated("app", "app.test", "one", UNKNOWN_VARIABLE, "/", ""),
    );
    site.answers("app.test", "/", 503, "").await;
    site.write("app.yaml", &ingress("app", "app.test", "one", ""));
    site.answers("app.test", "/", 200, "one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_the_configmap_is_left_out() {
    let one = Backend::start("one").await;
    let site = Site::with_flags(
        &[CONFIG_MAP_FLAG],
        &[
            ("one.yaml", one.service("one")),
            ("app.yaml", ingress("app", "app.test", "one", "")),
            ("config.yaml", config_map("{hide-headers: X-Hidden}")),
        ],
    )
    .await;
    site.answers("app.test", "/", 200, "one").await;
    site.write(
        "config.yaml",
        &config_map(r#"{http-snippet: "no_such_directive on;"}"#),
    );
    site.write("later.yaml", &ingress("later", "later.test", "one", ""));
    site.answers("later.test", "/", 200, "one").await;
    site.answers("app.test", "/", 200, "one").await;
    assert!(site.logged("its default holds") > 0, "{}", site.log());
    // One that names no line is found as well.
    site.write(
        "config.yaml",
        &config_map(r#"{http-snippet: "map $no_such_variable $mine { default 1; }", log-format-upstream: "$not_there"}"#),
    );
    site.write("later.yaml", &ingress("later", "newer.test", "one", ""));
    site.answers("newer.test", "/", 200, "one").await;
    site.answers("app.test", "/", 200, "one").await;
    site.write(
        "config.yaml",
        &config_map(r#"{http-snippet: "map $host $mine { default 1; }"}"#),
    );
    site.until("the key is in force again", async || {
        let text = std::fs::read_to_string(site.nginx_file("nginx.conf")).ok()?;
        text.contains("map $host $mine").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ciphers_that_do_not_exist_close_nobody() {
    let one = Backend::start("one").await;
    let site = Site::with_flags(
        &[],
        &[
            ("one.yaml", one.service("one")),
            ("good.yaml", ingress("good", "good.test", "one", "")),
        ],
    )
    .await;
    let ciphers = r#"{nginx.ingress.kubernetes.io/ssl-ciphers: "NO-SUCH-CIPHER"}"#;
    site.write(
        "app.yaml",
        &annotated("app", "app.test", "one", ciphers, "/", ""),
    );
    site.write("later.yaml", &ingress("later", "later.test", "one", ""));
    site.answers("later.test", "/", 200, "one").await;
    site.answers("app.test", "/", 200, "one").await;
    site.answers("good.test", "/", 200, "one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_bad_ingress_among_a_thousand_costs_one_more_test() {
    let one = Backend::start("one").await;
    let mut files = vec![("one.yaml", one.service("one"))];
    let many: Vec<_> = (0..1_000)
        .map(|number| {
            ingress(
                &format!("app-{number}"),
                &format!("app-{number}.test"),
                "one",
                "",
            )
        })
        .collect();
    files.push(("many.yaml", many.join("---\n")));
    files.push((
        "bad.yaml",
        annotated("bad", "bad.test", "one", REGEX, "/x[", ""),
    ));
    let site = Site::with_flags(&[], &files).await;
    site.answers("app-999.test", "/", 200, "one").await;
    assert_eq!(
        site.logged("nginx refuses what an Ingress makes"),
        1,
        "{}",
        site.log()
    );
    site.answers("bad.test", "/x[", 503, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_bad_ingresses_cost_one_more_test_at_the_start_if_their_faults_can_be_read() {
    let one = Backend::start("one").await;
    let mut files = vec![
        ("one.yaml", one.service("one")),
        ("good.yaml", ingress("good", "good.test", "one", "")),
        (
            "config.yaml",
            config_map(r#"{allow-snippet-annotations: "true", annotations-risk-level: Critical}"#),
        ),
    ];
    let faults = [
        ("upstream-vhost", "$no_such"),
        ("upstream-vhost", "${no_such_either}.test"),
        ("upstream-vhost", "$remote_adr"),
        ("configuration-snippet", "return 200 $nothing;"),
        ("configuration-snippet", "no_such_directive on;"),
        ("server-snippet", "if ($nobody) { return 403; }"),
        ("server-snippet", "location /x { return 204;"),
    ];
    let manifests: Vec<_> = (0..faults.len()).map(|n| format!("bad-{n}.yaml")).collect();
    for (number, (name, value)) in faults.iter().enumerate() {
        let annotations = format!("{{nginx.ingress.kubernetes.io/{name}: '{value}'}}");
        let (object, host) = (format!("bad-{number}"), format!("bad-{number}.test"));
        let text = annotated(&object, &host, "one", &annotations, "/", "");
        files.push((&manifests[number], text));
    }
    let site = Site::with_flags(&[CONFIG_MAP_FLAG], &files).await;
    site.answers("good.test", "/", 200, "one").await;
    for number in 0..faults.len() {
        site.answers(&format!("bad-{number}.test"), "/", 503, "")
            .await;
    }
    // One of the variables is a word of NGINX's program, and may be one: NGINX has to say that it is none.
    let tests = site.logged("nginx refuses a configuration");
    assert_eq!(tests, 2, "{}", site.log());
    assert!(
        site.logged("unknown variable \\\"$remote_adr\\\"; did you mean $remote_addr?") > 0,
        "{}",
        site.log()
    );
    for (number, manifest) in manifests.iter().enumerate() {
        let (object, host) = (format!("bad-{number}"), format!("bad-{number}.test"));
        site.write(manifest, &ingress(&object, &host, "one", ""));
    }
    for number in 0..faults.len() {
        site.answers(&format!("bad-{number}.test"), "/", 200, "one")
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_culprits_of_all_kinds_stop_nobody_at_the_start() {
    let one = Backend::start("one").await;
    let settings = config_map(
        r#"{allow-snippet-annotations: "true", annotations-risk-level: Critical, http-snippet: "no_such on;",
            server-snippet: "proxy_read_timeout abc;", location-snippet: "add_header X $no_such;",
            ssl-ciphers: NO-SUCH-CIPHER, main-snippet: "env;"}"#,
    );
    let faults = [
        ("configuration-snippet", "proxy_read_timeout abc;"),
        ("configuration-snippet", "set $x;"),
        ("configuration-snippet", "root /a; root /b;"),
        ("server-snippet", "listen 99999999;"),
        (
            "server-snippet",
            "location / { return 204; } location / { return 205; }",
        ),
        ("ssl-ciphers", "NOR-THIS-ONE"),
        ("stream-snippet", "server { listen nowhere; }"),
        ("upstream-vhost", "$no_such"),
    ];
    let mut files = vec![
        ("one.yaml", one.service("one")),
        ("good.yaml", ingress("good", "good.test", "one", "")),
        ("config.yaml", settings),
    ];
    let manifests: Vec<_> = (0..faults.len()).map(|n| format!("bad-{n}.yaml")).collect();
    for (number, (name, value)) in faults.iter().enumerate() {
        let annotations = format!("{{nginx.ingress.kubernetes.io/{name}: '{value}'}}");
        let (object, host) = (format!("bad-{number}"), format!("bad-{number}.test"));
        let text = annotated(&object, &host, "one", &annotations, "/", "");
        files.push((&manifests[number], text));
    }
    let site = Site::with_flags(&[CONFIG_MAP_FLAG], &files).await;
    site.answers("good.test", "/", 200, "one").await;
    for key in [
        "http-snippet",
        "server-snippet",
        "location-snippet",
        "ssl-ciphers",
        "main-snippet",
    ] {
        assert!(
            site.logged(&format!("key=\"{key}\"")) > 0,
            "{key}: {}",
            site.log()
        );
    }
    for (number, (name, _)) in faults.iter().enumerate() {
        // What nothing depends on is left out alone.
        let status = if matches!(*name, "ssl-ciphers" | "stream-snippet") {
            200
        } else {
            503
        };
        site.answers(&format!("bad-{number}.test"), "/", status, "")
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_variable_of_the_configmap_is_not_held_against_those_whose_part_of_the_files_names_it() {
    let one = Backend::start("one").await;
    let headers = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: headers, namespace: default}\n\
        data: {X-Team: $no_such}\n";
    let vhost = "{nginx.ingress.kubernetes.io/upstream-vhost: inner.test}";
    let site = Site::with_flags(
        &[CONFIG_MAP_FLAG],
        &[
            ("one.yaml", one.service("one")),
            ("headers.yaml", headers.to_owned()),
            (
                "app.yaml",
                annotated("app", "app.test", "one", vhost, "/", ""),
            ),
            (
                "config.yaml",
                config_map("{proxy-set-headers: default/headers}"),
            ),
        ],
    )
    .await;
    site.answers("app.test", "/", 200, "one").await;
    assert_eq!(
        site.logged("nginx refuses what an Ingress makes"),
        0,
        "{}",
        site.log()
    );
    assert!(site.logged("its default holds") > 0, "{}", site.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn nginx_recovers_when_a_configmap_is_mended_that_no_worker_could_start_with() {
    let one = Backend::start("one").await;
    let broken = config_map(r#"{main-snippet: "working_directory /none/such;"}"#);
    let files = [
        ("one.yaml", one.service("one")),
        ("app.yaml", ingress("app", "app.test", "one", "")),
        ("config.yaml", broken),
    ];
    let site = Site::begin(&[CONFIG_MAP_FLAG], &files);
    site.until("the fault is told", async || {
        (site.logged("workers of nginx end as soon as they run") > 0).then_some(())
    })
    .await;
    assert_eq!(site.logged("last good"), 0, "there is none: {}", site.log());
    site.write("config.yaml", &config_map("{}"));
    site.answers("app.test", "/", 200, "one").await;
    site.ready().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snippet_that_listens_where_somebody_else_does_stops_nobody() {
    let one = Backend::start("one").await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let site = Site::with_flags(
        &[CONFIG_MAP_FLAG],
        &[
            ("one.yaml", one.service("one")),
            ("app.yaml", ingress("app", "app.test", "one", "")),
            ("config.yaml", config_map("{}")),
        ],
    )
    .await;
    site.answers("app.test", "/", 200, "one").await;
    // A test of the files does not find that out.
    let server = format!("server {{ listen 127.0.0.1:{port}; return 204; }}");
    site.write(
        "config.yaml",
        &config_map(&format!(r#"{{http-snippet: "{server}"}}"#)),
    );
    site.write("later.yaml", &ingress("later", "later.test", "one", ""));
    site.answers("later.test", "/", 200, "one").await;
    site.answers("app.test", "/", 200, "one").await;
    assert!(
        site.logged("its default holds: bind()") > 0,
        "{}",
        site.log()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_zone_of_an_ingress_that_becomes_another_one_stops_nobody() {
    let one = Backend::start("one").await;
    let zone = |key: &str| {
        let snippet = format!("limit_conn_zone {key} zone=z:1m;");
        let annotations = format!("{{nginx.ingress.kubernetes.io/stream-snippet: '{snippet}'}}");
        annotated("zone", "zone.test", "one", &annotations, "/", "")
    };
    let files = [
        (
            "config.yaml",
            config_map(r#"{allow-snippet-annotations: "true", annotations-risk-level: Critical}"#),
        ),
        ("one.yaml", one.service("one")),
        ("zone.yaml", zone("$remote_addr")),
    ];
    let site = Site::with_flags(&[CONFIG_MAP_FLAG], &files).await;
    site.answers("zone.test", "/", 200, "one").await;
    site.write("zone.yaml", &zone("$binary_remote_addr"));
    site.write("new.yaml", &ingress("new", "new.test", "one", ""));
    site.answers("new.test", "/", 200, "one").await;
    assert!(
        site.logged("nginx refuses what an Ingress makes") > 0,
        "{}",
        site.log()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn whom_nginx_refuses_guards_paths_among_expressions_too() {
    let one = Backend::start("one").await;
    let guard = r#"{nginx.ingress.kubernetes.io/use-regex: "true",
        nginx.ingress.kubernetes.io/configuration-snippet: "limit_req zone=nosuch;"}"#;
    let files = [
        (
            "config.yaml",
            config_map(r#"{allow-snippet-annotations: "true", annotations-risk-level: Critical}"#),
        ),
        ("one.yaml", one.service("one")),
        ("open.yaml", ingress("open", "host.test", "one", "")),
        (
            "guard.yaml",
            annotated("guard", "host.test", "one", guard, "/admin/(.*)", ""),
        ),
    ];
    let site = Site::with_flags(&[CONFIG_MAP_FLAG], &files).await;
    site.answers("host.test", "/", 200, "one").await;
    site.answers("host.test", "/admin/x", 503, "").await;
}

/// NGINX takes a `listen` at an address that is within one of ours, and gives it everybody's requests; those of the
/// controller, too, if it is the one of the status server.
#[tokio::test(flavor = "multi_thread")]
async fn a_snippet_takes_no_address_and_no_name_of_others() {
    let one = Backend::start("one").await;
    let two = Backend::start("two").await;
    let allowed = "{allow-snippet-annotations: 'true', annotations-risk-level: Critical}";
    let site = Site::with_flags(
        &[CONFIG_MAP_FLAG],
        &[
            ("one.yaml", one.service("one")),
            ("two.yaml", two.service("two")),
            ("app.yaml", ingress("app", "b.test", "one", "")),
            ("config.yaml", config_map(allowed)),
        ],
    )
    .await;
    site.answers("b.test", "/", 200, "one").await;
    let snippets = [
        format!("listen 127.0.0.1:{};", site.ports.http),
        format!("listen 127.0.0.1:{};", site.ports.status),
        "server_name b.test;".to_owned(),
    ];
    for (snippet, round) in snippets.iter().zip(1..) {
        let annotations = format!("{{nginx.ingress.kubernetes.io/server-snippet: '{snippet}'}}");
        let thief = annotated("thief", "a.test", "two", &annotations, "/", "");
        site.write("thief.yaml", &thief);
        let later = format!("later{round}.test");
        site.write("later.yaml", &ingress("later", &later, "one", ""));
        site.answers(&later, "/", 200, "one").await;
        site.answers("a.test", "/", 503, "").await;
        site.answers("b.test", "/", 200, "one").await;
    }
    // Endpoints still change, and who mends it is served.
    site.write("service.yaml", &two.service("one"));
    site.remove("one.yaml");
    site.answers("b.test", "/", 200, "two").await;
    site.write("thief.yaml", &ingress("thief", "a.test", "two", ""));
    site.answers("a.test", "/", 200, "two").await;
    assert!(
        site.logged("is one of the controller's") > 0 && site.logged("another server's name") > 0,
        "{}",
        site.log()
    );
}
