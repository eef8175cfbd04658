//! What SECURITY.md promises about the machine: a real controller, a real NGINX and real requests.

#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

mod site;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use rustix::process::{Signal, geteuid};
use site::{
    Site,
    backend::{Backend, annotated, ingress},
    controller, http, send,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// A password's hash, as htpasswd(1) makes it.
const HASH: &str = "$apr1$keepthis$SeCrEtHaShOfApAsSwOrD1";

/// Secrets of an Ingress: a pair and a password. Answers the manifest and what must be shown to nobody.
fn secrets() -> (String, Vec<String>) {
    let pair = rcgen::generate_simple_self_signed(["a.test".to_owned()]).unwrap();
    let indented = |pem: String| pem.replace('\n', "\n    ");
    let key = pair.signing_key.serialize_pem();
    let manifest = format!(
        "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata: {{name: pair}}\nstringData:\n  \
         tls.crt: |\n    {}\n  tls.key: |\n    {}\n---\n\
         apiVersion: v1\nkind: Secret\nmetadata: {{name: users}}\nstringData: {{auth: 'mira:{HASH}'}}\n",
        indented(pair.cert.pem()),
        indented(key.clone()),
    );
    let lines = key.lines().filter(|line| !line.starts_with('-'));
    let mut secret: Vec<_> = lines.map(str::to_owned).collect();
    secret.push(HASH.to_owned());
    (manifest, secret)
}

const BASIC: &str = r"{nginx.ingress.kubernetes.io/auth-type: basic,
    nginx.ingress.kubernetes.io/auth-secret: users}";

const TLS: &str = "tls: [{hosts: [a.test], secretName: pair}]";

/// All files below a directory, links and sockets left out.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(files(&entry.path()));
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_in_no_log_and_in_no_explanation() {
    let one = Backend::start("one").await;
    let (secrets, hidden) = secrets();
    let site = Site::with_flags(
        &["--v=9"],
        &[
            ("service.yaml", one.service("one")),
            ("secrets.yaml", secrets.clone()),
            ("a.yaml", annotated("a", "a.test", "one", BASIC, "/", TLS)),
        ],
    )
    .await;
    site.answers("a.test", "/", 308, "").await;
    // What goes wrong is logged with more words.
    site.write("secrets.yaml", &secrets.replace("BEGIN", "BROKEN"));
    site.write("b.yaml", &ingress("b", "b.test", "one", ""));
    site.answers("b.test", "/", 200, "one").await;
    site.write("secrets.yaml", &secrets);
    send(site.nginx(), Signal::KILL);
    site.write("c.yaml", &ingress("c", "c.test", "one", ""));
    site.answers("c.test", "/", 200, "one").await;
    let mut said = site.log();
    for format in ["table", "json"] {
        let explained = controller()
            .arg("explain")
            .arg(format!(
                "--manifests={}",
                site.directory().join("manifests").display()
            ))
            .args(["a.test/", &format!("--output={format}")])
            .output()
            .unwrap();
        said.push_str(&String::from_utf8_lossy(&explained.stdout));
        said.push_str(&String::from_utf8_lossy(&explained.stderr));
        assert!(explained.status.success(), "{said}");
    }
    assert!(said.contains("a.test"), "{said}");
    for secret in &hidden {
        assert!(!said.contains(secret), "{secret} is shown");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_with_secrets_are_for_nginx_only() {
    let one = Backend::start("one").await;
    let (secrets, hidden) = secrets();
    let site = Site::with_manifests(&[
        ("service.yaml", &one.service("one")),
        ("secrets.yaml", &secrets),
        ("a.yaml", &annotated("a", "a.test", "one", BASIC, "/", TLS)),
    ])
    .await;
    site.answers("a.test", "/", 308, "").await;
    let mut private = 0;
    for file in files(&site.nginx_file("")) {
        // What is written aside for a moment may be gone.
        let Ok(text) = fs::read(&file) else { continue };
        let text = String::from_utf8_lossy(&text).into_owned();
        if hidden.iter().any(|secret| text.contains(secret)) || text.contains("PRIVATE KEY-----") {
            let mode = fs::metadata(&file).unwrap().permissions().mode() & 0o777;
            assert!(
                [0o600, 0o640].contains(&mode),
                "{} has mode {mode:o}",
                file.display()
            );
            private += 1;
        }
    }
    assert!(private > 0, "passwords are in a file");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_server_is_for_local_callers_only() {
    let site = Site::with_manifests(&[]).await;
    let status = site.ports.status;
    let asked = async |host: &str, path: &str| http::get(status, host, path).await.unwrap().status;
    for path in ["/configuration/backends", "/configuration/general"] {
        for host in ["127.0.0.1", "localhost"] {
            assert_eq!(asked(host, path).await, 200, "{host}{path}");
        }
        for host in ["rebound.test", "127.0.0.1.rebound.test", "10.0.0.1"] {
            assert_ne!(asked(host, path).await, 200, "{host}{path}");
        }
    }
    // Another address of the same interface.
    assert!(TcpStream::connect(("127.0.0.2", status)).await.is_err());
    assert!(
        TcpStream::connect(("127.0.0.2", site.ports.http))
            .await
            .is_ok()
    );
}

/// Whoever may write Ingresses may have NGINX copy requests with their bodies to any address.
#[tokio::test(flavor = "multi_thread")]
async fn no_mirror_tells_the_status_server_anything() {
    let (site, _one) = Site::with_one("app").await;
    let target = format!("http://127.0.0.1:{}", site.ports.status);
    let annotations = [
        ("mirror", format!("{target}/configuration/backends")),
        (
            "variable",
            "http://$http_x_target/configuration/backends".into(),
        ),
    ];
    for (name, target) in &annotations {
        let annotations = format!(
            "{{nginx.ingress.kubernetes.io/mirror-target: '{target}', \
             nginx.ingress.kubernetes.io/mirror-host: 127.0.0.1}}"
        );
        let host = format!("{name}.test");
        let file = format!("{name}.yaml");
        let manifest = annotated(name, &host, "app", &annotations, "/", "");
        site.write(&file, &manifest);
        site.answers(&host, "/", 200, "one").await;
        let request = format!(
            "POST / HTTP/1.1\r\nHost: {host}\r\nX-Target: 127.0.0.1:{}\r\nX-Sent-From:\r\n\
             Content-Length: 2\r\nConnection: close\r\n\r\n[]",
            site.ports.status
        );
        // A worker that ends does not know the host.
        site.until("the request is copied", async || {
            let mut stream = TcpStream::connect(("127.0.0.1", site.ports.http))
                .await
                .ok()?;
            stream.write_all(request.as_bytes()).await.ok()?;
            let mut answer = String::new();
            // The connection is closed once the copy has been answered, too.
            stream.read_to_string(&mut answer).await.ok()?;
            answer.starts_with("HTTP/1.1 200").then_some(())
        })
        .await;
        let told = http::get(site.ports.status, "127.0.0.1", "/configuration/backends");
        assert!(told.await.unwrap().body.contains("default-app-80"));
    }
    assert_eq!(
        site.logged("does not have what it was told"),
        0,
        "{}",
        site.log()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_have_no_rights() {
    assert!(
        geteuid().is_root(),
        "this test needs root: workers run as the same user otherwise"
    );
    let site = Site::with_manifests(&[]).await;
    // They give up their rights before they call themselves workers.
    let workers = site
        .until("workers run", async || {
            let workers = site.workers();
            let have_begun = workers.iter().all(|pid| {
                let title = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                title.starts_with(b"nginx: worker process")
            });
            (have_begun && !workers.is_empty()).then_some(workers)
        })
        .await;
    for worker in workers {
        let status = fs::read_to_string(format!("/proc/{worker}/status")).unwrap();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap().trim().to_owned()
        };
        assert!(!field("Uid:").split('\t').any(|uid| uid == "0"), "{status}");
        assert_eq!(field("CapEff:"), "0000000000000000");
    }
}
