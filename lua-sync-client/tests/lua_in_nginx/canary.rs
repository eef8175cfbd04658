//! Which requests go to the canary of a backend.

use serde_json::{Value, json};

use crate::support::{
    http,
    nginx::Nginx,
    upstream::{Upstream, backend},
};

fn policy(weight: u32) -> Value {
    json!({"weight": weight, "weightTotal": 100, "header": "", "headerValue": "", "headerPattern": "", "cookie": ""})
}

/// Posts a backend `main` with the canary `canary` under `policy`.
fn post(nginx: &Nginx, canary_peers: &[Upstream], policy: &Value) {
    let mut main = backend("main", &[Upstream::start("main")]);
    main["alternativeBackends"] = json!(["canary", "another"]);
    let mut canary = backend("canary", canary_peers);
    canary["noServer"] = json!(true);
    canary["trafficShapingPolicy"] = policy.clone();
    let another = backend("another", &[Upstream::start("another")]);
    nginx.post_backends(&[another, canary, main]);
}

#[test]
fn by_header_and_cookie() {
    let nginx = Nginx::start();
    let canary = [Upstream::start("canary")];
    let mut rules = policy(0);
    rules["header"] = json!("X-Use-Canary");
    rules["cookie"] = json!("use_canary");
    post(&nginx, &canary, &rules);
    for (headers, expected) in [
        (vec![], "main"),
        (vec![("X-Use-Canary", "always")], "canary"),
        (vec![("x-use-canary", "always")], "canary"),
        (vec![("X-Use-Canary", "never")], "main"),
        (vec![("X-Use-Canary", "Always")], "main"),
        (vec![("Cookie", "x=y; use_canary=always")], "canary"),
        (vec![("Cookie", "use_canary=never")], "main"),
        (
            vec![("X-Use-Canary", "never"), ("Cookie", "use_canary=always")],
            "main",
        ),
        (
            vec![("X-Use-Canary", "x"), ("Cookie", "use_canary=always")],
            "canary",
        ),
    ] {
        let response = nginx.get_with("main", &headers);
        assert_eq!(response.body, expected, "{headers:?}");
        let named = if expected == "canary" { "canary" } else { "" };
        assert_eq!(response.header("X-Canary"), named, "{headers:?}");
    }

    rules["headerValue"] = json!("blue");
    post(&nginx, &canary, &rules);
    assert_eq!(
        nginx.get_with("main", &[("X-Use-Canary", "blue")]).body,
        "canary"
    );
    assert_eq!(
        nginx.get_with("main", &[("X-Use-Canary", "always")]).body,
        "main"
    );

    rules["headerValue"] = json!("");
    rules["headerPattern"] = json!("^(blue|green)$");
    post(&nginx, &canary, &rules);
    assert_eq!(
        nginx.get_with("main", &[("X-Use-Canary", "green")]).body,
        "canary"
    );
    assert_eq!(
        nginx.get_with("main", &[("X-Use-Canary", "red")]).body,
        "main"
    );
}

#[test]
fn by_weight() {
    let nginx = Nginx::start();
    let canary = [Upstream::start("canary")];
    let share = |weight| {
        post(&nginx, &canary, &policy(weight));
        let bodies = (0..200).map(|_| nginx.get("main").body);
        bodies.filter(|body| body == "canary").count()
    };
    assert_eq!(share(0), 0);
    assert_eq!(share(100), 200);
    // Six standard deviations around the mean.
    assert!((60..=140).contains(&share(50)));
}

#[test]
fn a_canary_without_endpoints_or_policy_gets_nothing() {
    let nginx = Nginx::start();
    post(&nginx, &[], &policy(100));
    assert_eq!(nginx.get("main").body, "main");
    assert!(nginx.log().contains("canary canary has no endpoints"));
    post(&nginx, &[Upstream::start("canary")], &Value::Null);
    assert_eq!(nginx.get("main").body, "main");
    // The canary alone is a backend like any other.
    assert_eq!(nginx.get("canary").body, "canary");
    let mut main = backend("main", &[Upstream::start("main")]);
    main["alternativeBackends"] = json!(["gone"]);
    nginx.post_backends(&[main]);
    assert_eq!(nginx.get("main").body, "main");
}

#[test]
fn the_decision_outlives_an_authentication_subrequest() {
    let nginx = Nginx::start();
    post(&nginx, &[Upstream::start("canary")], &policy(100));
    let response = http::request(nginx.http, "GET", "/guarded", &[("X-Backend", "main")], "");
    assert_eq!((response.status, response.body.as_str()), (200, "canary"));
}
