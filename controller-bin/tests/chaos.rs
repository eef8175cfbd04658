//! A soak: random faults and changes of objects against a real NGINX, and after each round requests that tell whether
//! what is served is what the objects ask for. `CHAOS_ROUNDS` and `CHAOS_SEED` say how long and which; the same seed
//! makes the same rounds.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failure here fails the test"
)]

mod site;

use std::{collections::BTreeMap, env, fs};

use rustix::process::Signal;
use site::{
    SOON, Site,
    backend::{Backend, annotated, ingress},
    open_directory, send,
};
use tokio::time::{Instant, sleep};

const HOSTS: u64 = 6;
const SERVICES: [&str; 2] = ["red", "blue"];

/// What a host should answer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Expected {
    /// No Ingress is there.
    Nobody,
    /// The Service of this number.
    Service(usize),
    /// NGINX refuses the Ingress: 503, or a Service that an earlier version named and that may have been served.
    Refused(Vec<usize>),
}

/// Xorshift: the same numbers for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % limit
    }
}

struct Soak {
    site: Site,
    dice: Dice,
    backends: Vec<Backend>,
    /// The back end that each Service has.
    behind: [usize; 2],
    hosts: BTreeMap<u64, Expected>,
    /// The Services that Ingresses have named since they were last seen to be served.
    named: BTreeMap<u64, Vec<usize>>,
}

const NAMES: [&str; 2] = ["one", "two"];

impl Soak {
    async fn start(seed: u64) -> Self {
        let backends = vec![Backend::start("one").await, Backend::start("two").await];
        let directory = open_directory();
        let manifests = directory.path().join("manifests");
        fs::create_dir(&manifests).unwrap();
        let flags = [
            format!("--manifests={}", manifests.display()),
            "--configmap=default/settings".to_owned(),
        ];
        let flags: Vec<_> = flags.iter().map(String::as_str).collect();
        let site = Site::start(directory, &flags);
        for (service, backend) in SERVICES.iter().zip(&backends) {
            site.write(&format!("{service}.yaml"), &backend.service(service));
        }
        site.ready().await;
        Self {
            site,
            dice: Dice(seed.max(1)),
            backends,
            behind: [0, 1],
            hosts: (0..HOSTS).map(|host| (host, Expected::Nobody)).collect(),
            named: BTreeMap::new(),
        }
    }

    /// Does something; answers what.
    fn disturb(&mut self) -> String {
        let host = self.dice.below(HOSTS);
        let service = usize::try_from(self.dice.below(2)).unwrap();
        let file = format!("host-{host}.yaml");
        let (name, domain) = (format!("host-{host}"), format!("host-{host}.test"));
        match self.dice.below(10) {
            0..=2 => {
                let text = ingress(&name, &domain, SERVICES[service], "");
                self.site.write(&file, &text);
                self.hosts.insert(host, Expected::Service(service));
                self.named.entry(host).or_default().push(service);
                format!("host {host} goes to {}", SERVICES[service])
            }
            3 => {
                if self.hosts.insert(host, Expected::Nobody) != Some(Expected::Nobody) {
                    self.site.remove(&file);
                }
                format!("host {host} goes")
            }
            4 => {
                self.behind[service] = 1 - self.behind[service];
                let backend = &self.backends[self.behind[service]];
                let text = backend.service(SERVICES[service]);
                self.site
                    .write(&format!("{}.yaml", SERVICES[service]), &text);
                format!("endpoints of {} move", SERVICES[service])
            }
            5 => {
                let variable =
                    r#"{nginx.ingress.kubernetes.io/upstream-vhost: "$no_such_variable"}"#;
                let text = annotated(&name, &domain, SERVICES[service], variable, "/", "");
                self.site.write(&file, &text);
                let named = self.named.get(&host).cloned().unwrap_or_default();
                self.hosts.insert(host, Expected::Refused(named));
                format!("host {host} is broken")
            }
            6 => {
                let master = self.site.nginx();
                if master > 0 && site::is_nginx(master) {
                    send(master, Signal::KILL);
                }
                "the master is killed".into()
            }
            7 => {
                if let Some(worker) = self.site.workers().into_iter().next() {
                    send(worker, Signal::KILL);
                }
                "a worker is killed".into()
            }
            8 => {
                let data = [
                    "hide-headers: X-A",
                    "hide-headers: X-B",
                    "http-snippet: no_such on;",
                ][usize::try_from(self.dice.below(3)).unwrap()];
                let text = format!(
                    "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings, namespace: default}}\n\
                     data:\n  {data}\n"
                );
                self.site.write("settings.yaml", &text);
                format!("the ConfigMap says {data}")
            }
            _ => {
                self.site
                    .write("broken.yaml", "kind: Ingress\nmetadata: {name: [\n");
                "a manifest is broken".into()
            }
        }
    }

    /// Whether a host answers what it should.
    async fn is_right(&self, host: u64, expected: &Expected) -> bool {
        let Some(answer) = self.site.get(&format!("host-{host}.test"), "/").await else {
            return false;
        };
        let is_from = |service: &usize| {
            answer.status == 200 && answer.body.starts_with(NAMES[self.behind[*service]])
        };
        match expected {
            Expected::Nobody => answer.status == 404,
            Expected::Service(service) => is_from(service),
            Expected::Refused(named) => answer.status == 503 || named.iter().any(is_from),
        }
    }

    /// The hosts that do not answer what they should, even after a while.
    async fn lost(&mut self) -> Vec<(u64, Expected)> {
        let deadline = Instant::now() + SOON;
        let mut lost = Vec::new();
        for (host, expected) in &self.hosts {
            while !self.is_right(*host, expected).await {
                if Instant::now() > deadline {
                    lost.push((*host, expected.clone()));
                    break;
                }
                sleep(std::time::Duration::from_millis(5)).await;
            }
        }
        for (host, expected) in &self.hosts {
            let served = match expected {
                Expected::Nobody => Vec::new(),
                Expected::Service(service) => vec![*service],
                Expected::Refused(named) => named.clone(),
            };
            self.named.insert(*host, served);
        }
        lost
    }
}

fn number(variable: &str, usual: u64) -> u64 {
    let given = env::var(variable).ok();
    given.map_or(usual, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} has to be a number"))
    })
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a soak of minutes: make chaos"]
#[expect(
    clippy::print_stdout,
    reason = "the figures are what a soak is made for"
)]
async fn no_update_is_lost_whatever_happens() {
    let rounds = number("CHAOS_ROUNDS", 20);
    let seed = number("CHAOS_SEED", 1);
    let mut soak = Soak::start(seed).await;
    let (mut survived, mut lost) = (0, 0);
    for round in 0..rounds {
        let count = 1 + soak.dice.below(3);
        let done: Vec<_> = (0..count).map(|_| soak.disturb()).collect();
        let missing = soak.lost().await;
        if missing.is_empty() {
            survived += done.len();
        } else {
            lost += missing.len();
            println!("round {round}: {} — wrong: {missing:?}", done.join(", "));
        }
    }
    println!(
        "seed {seed}: {survived} faults and changes survived in {rounds} rounds, {lost} updates lost"
    );
    if lost > 0 {
        println!("{}", soak.site.log());
    }
    assert_eq!(lost, 0);
}
