//! How long reviews of the webhook take: median and 99th percentile with 20 at one time, beside more and more Ingresses.
//!
//! It fails when the 99th percentile is above [`LIMIT`]. Without cargo's `--bench`, which `cargo test` leaves out, it
//! only shows that it runs: a build that is not optimised says nothing about speed.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark reports to the terminal, and ends with the first error"
)]

use std::{
    env,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use controller_bin::{
    admission::{Inspector, Limits, Review, Reviewer},
    store::Store,
};
use futures::future::join_all;
use ingress_model::Options;
use k8s_openapi::api::networking::v1::Ingress;
use nginx_render::{Capabilities, Environment, syntax::Directives};
use serde_json::json;
use tokio::{runtime::Runtime, sync::Semaphore};

/// What an author may have to wait for at most.
const LIMIT: Duration = Duration::from_millis(50);

/// How many reviews there are at one time.
const CONCURRENT: usize = 20;

/// How many reviews each of them makes: so many that one pause of the machine does not decide.
const EACH: usize = 250;

fn main() -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    if !env::args().any(|argument| argument == "--bench") {
        times(10);
        return code;
    }
    println!("{:>10} {:>12} {:>12}", "ingresses", "p50", "p99");
    for count in [100, 1_000, 5_000] {
        let mut times = times(count);
        times.sort();
        let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
        println!("{count:>10} {:>12?} {:>12?}", at(50), at(99));
        if at(99) > LIMIT {
            code = ExitCode::FAILURE;
        }
    }
    code
}

fn times(count: usize) -> Vec<Duration> {
    let store = Arc::new(Store::awaiting(["bench".to_owned()]));
    for number in 0..count {
        store.apply(ingress(number, "/"));
    }
    store.listed("bench");
    let options = Options {
        watch_ingress_without_class: true,
        ..Options::default()
    };
    let reviewer = Reviewer::new(Arc::clone(&store), options).with_inspector(Inspector {
        capabilities: Capabilities::parse(
            "configure arguments: --add-module=/src/lua-nginx-module",
            [],
        ),
        environment: Environment::default(),
        directives: Directives::default(),
    });
    // The index is made when the first question comes.
    assert_eq!(reviewer.review(&ingress(0, "/first")).refusal(), None);
    let reviewer = Arc::new(reviewer);
    // As the webhook's server does it: so many at one time, first come, first served.
    let places = Arc::new(Semaphore::new(Limits::default().reviews));
    let runtime = Runtime::new().unwrap();
    let one = async |number: usize| {
        let (reviewer, candidate) = (Arc::clone(&reviewer), ingress(number % count, "/other"));
        let began = Instant::now();
        let place = Arc::clone(&places).acquire_owned().await.unwrap();
        let review = runtime.spawn_blocking(move || {
            let _place = place;
            reviewer.review(&candidate)
        });
        assert!(review.await.unwrap().is_allowed());
        began.elapsed()
    };
    let one = &one;
    let each = |client: usize| async move {
        let mut times = Vec::new();
        for number in 0..EACH {
            times.push(one(client * EACH + number).await);
        }
        times
    };
    let times = runtime.block_on(join_all((0..CONCURRENT).map(each)));
    times.into_iter().flatten().collect()
}

fn ingress(number: usize, path: &str) -> Ingress {
    let backend = json!({"service": {"name": "app", "port": {"number": 80}}});
    let paths = json!([{"path": path, "pathType": "Prefix", "backend": backend}]);
    let ingress = json!({
        "metadata": {
            "namespace": "shop",
            "name": format!("app-{number}"),
            "uid": format!("00000000-0000-4000-8000-{number:012}"),
            "annotations": {"nginx.ingress.kubernetes.io/proxy-read-timeout": "30"},
        },
        "spec": {"rules": [{"host": format!("app-{number}.test"), "http": {"paths": paths}}]},
    });
    serde_json::from_value(ingress).unwrap()
}
