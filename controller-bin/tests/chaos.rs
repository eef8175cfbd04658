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

use std::{collections::BTreeMap, env, fmt, time::Duration};

use rustix::process::Signal;
use site::{
    SOON, Site,
    backend::{Backend, HEADERS, annotated, ingress},
    mount::ReadOnly,
    send,
};
use tokio::time::{Instant, sleep};

const HOSTS: u64 = 6;
const SERVICES: [&str; 2] = ["red", "blue"];

/// The back ends that each Service may have. No two Services share one, so that an answer tells who has given it.
const BACKENDS: [[&str; 2]; 2] = [["red one", "red two"], ["blue one", "blue two"]];

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

/// Something that is not as it should be.
struct Wrong {
    host: u64,
    expected: Expected,
    answer: Option<String>,
}

/// Xorshift: the same numbers for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 16) % limit as u64).unwrap()
    }
}

struct Soak {
    /// Until when NGINX's directory cannot be written. It can be again before the directory is removed.
    read_only: Option<ReadOnly>,
    site: Site,
    dice: Dice,
    backends: Vec<[Backend; 2]>,
    /// The back end that each Service has.
    behind: [usize; 2],
    hosts: BTreeMap<u64, Expected>,
    /// The Services that Ingresses have named since they were last seen to be served.
    named: BTreeMap<u64, Vec<usize>>,
    /// The header that the ConfigMap hides.
    hidden: Option<&'static str>,
}

impl Soak {
    async fn start(seed: u64) -> Self {
        let mut backends = Vec::new();
        for [one, two] in BACKENDS {
            backends.push([Backend::start(one).await, Backend::start(two).await]);
        }
        let files = [
            ("red.yaml", backends[0][0].service("red")),
            ("blue.yaml", backends[1][0].service("blue")),
        ];
        let files: Vec<_> = files
            .iter()
            .map(|(name, text)| (*name, text.as_str()))
            .collect();
        let site = Site::with_flags(&["--configmap=default/settings"], &files).await;
        Self {
            read_only: None,
            site,
            dice: Dice(seed.max(1)),
            backends,
            behind: [0, 0],
            hosts: (0..HOSTS).map(|host| (host, Expected::Nobody)).collect(),
            named: BTreeMap::new(),
            hidden: None,
        }
    }

    /// Does something; answers what.
    async fn disturb(&mut self) -> String {
        let host = self.dice.below(6) as u64;
        let service = self.dice.below(2);
        let file = format!("host-{host}.yaml");
        let (name, domain) = (format!("host-{host}"), format!("host-{host}.test"));
        match self.dice.below(13) {
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
            4 | 5 => {
                self.behind[service] = 1 - self.behind[service];
                let backend = &self.backends[service][self.behind[service]];
                let text = backend.service(SERVICES[service]);
                self.site
                    .write(&format!("{}.yaml", SERVICES[service]), &text);
                format!("endpoints of {} move", SERVICES[service])
            }
            6 => {
                let variable =
                    r#"{nginx.ingress.kubernetes.io/upstream-vhost: "$no_such_variable"}"#;
                let text = annotated(&name, &domain, SERVICES[service], variable, "/", "");
                self.site.write(&file, &text);
                let named = self.named.get(&host).cloned().unwrap_or_default();
                self.hosts.insert(host, Expected::Refused(named));
                format!("host {host} is broken")
            }
            7 => {
                let master = self.site.nginx();
                if master > 0 && site::is_nginx(master) {
                    send(master, Signal::KILL);
                }
                "the master is killed".into()
            }
            8 => {
                if let Some(worker) = self.site.workers().into_iter().next() {
                    send(worker, Signal::KILL);
                }
                "a worker is killed".into()
            }
            9 => {
                // Its successor would give up.
                self.read_only = None;
                self.site.replace().await;
                "the controller is killed".into()
            }
            10 => {
                let (data, hidden) = [
                    ("hide-headers: X-A", Some(HEADERS[0])),
                    ("hide-headers: X-B", Some(HEADERS[1])),
                    ("http-snippet: no_such on;", None),
                ][self.dice.below(3)];
                self.hidden = hidden;
                let text = format!(
                    "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings, namespace: default}}\n\
                     data:\n  {data}\n"
                );
                self.site.write("settings.yaml", &text);
                format!("the ConfigMap says {data}")
            }
            11 => {
                if self.read_only.is_none() {
                    // One that has not begun yet would give up, and be begun again by whoever looks after it.
                    self.site.ready().await;
                    self.read_only = ReadOnly::mount(&self.site.nginx_file(""));
                }
                "nginx's directory cannot be written".into()
            }
            _ => {
                self.site
                    .write("broken.yaml", "kind: Ingress\nmetadata: {name: [\n");
                "a manifest is broken".into()
            }
        }
    }

    /// What a host answers, if that is not what it should.
    async fn wrong(&self, host: u64, expected: &Expected) -> Option<Wrong> {
        let answer = self.site.get(&format!("host-{host}.test"), "/").await;
        let is_right = answer.as_ref().is_some_and(|answer| {
            let is_from = |service: &usize| {
                let backend = BACKENDS[*service][self.behind[*service]];
                answer.status == 200 && answer.body.starts_with(backend) && self.hides(&answer.head)
            };
            match expected {
                Expected::Nobody => answer.status == 404,
                Expected::Service(service) => is_from(service),
                Expected::Refused(named) => answer.status == 503 || named.iter().any(is_from),
            }
        });
        (!is_right).then(|| Wrong {
            host,
            expected: expected.clone(),
            answer: answer.map(|answer| format!("{}\n{}", answer.head, answer.body)),
        })
    }

    /// Whether those headers are hidden that the ConfigMap hides, and no others.
    fn hides(&self, head: &str) -> bool {
        let head = head.to_ascii_lowercase();
        let mut headers = HEADERS.iter();
        headers.all(|name| head.contains(&format!("\n{name}:")) == (self.hidden != Some(name)))
    }

    /// What is not as it should be, even after a while. All has to be right at one time.
    async fn lost(&mut self) -> Vec<Wrong> {
        self.read_only = None;
        let deadline = Instant::now() + SOON;
        let lost = loop {
            let mut wrong = Vec::new();
            for (host, expected) in &self.hosts {
                wrong.extend(self.wrong(*host, expected).await);
            }
            if wrong.is_empty() || Instant::now() > deadline {
                break wrong;
            }
            sleep(Duration::from_millis(5)).await;
        };
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

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answer = self.answer.as_deref().unwrap_or("nothing");
        let expected = &self.expected;
        write!(
            f,
            "host {} should be {expected:?} and answers {answer}",
            self.host
        )
    }
}

fn number(variable: &str, usual: u64) -> u64 {
    let given = env::var(variable).ok();
    given.map_or(usual, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} has to be a number"))
    })
}

/// Fails when an update is lost.
#[expect(
    clippy::print_stdout,
    reason = "the figures are what a soak is made for"
)]
async fn soak(rounds: u64, seed: u64) {
    let mut soak = Soak::start(seed).await;
    let (mut survived, mut lost) = (0, 0);
    for round in 0..rounds {
        let mut done = Vec::new();
        for _ in 0..=soak.dice.below(3) {
            done.push(soak.disturb().await);
        }
        let wrong = soak.lost().await;
        if wrong.is_empty() {
            survived += done.len();
            continue;
        }
        lost = wrong.len();
        println!("{}\nround {round}: {}", soak.site.log(), done.join(", "));
        for wrong in wrong {
            println!("{wrong}");
        }
        break;
    }
    println!("seed {seed}, {rounds} rounds: faults survived {survived}, updates lost {lost}");
    assert_eq!(lost, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_update_is_lost_in_a_few_rounds() {
    soak(15, 7).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a soak of minutes: make chaos"]
async fn no_update_is_lost_whatever_happens() {
    soak(number("CHAOS_ROUNDS", 250), number("CHAOS_SEED", 1)).await;
}
