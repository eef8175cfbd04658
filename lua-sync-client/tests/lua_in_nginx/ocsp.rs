//! What the issuer of a certificate says of it, stapled to handshakes. The responder is openssl's.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::json;
use tempfile::TempDir;

use crate::support::{
    eventually,
    nginx::{Nginx, Setup, free_ports},
};

/// An authority with one certificate of `a.test`, and a port for its responder.
struct Authority {
    directory: TempDir,
    port: u16,
}

/// A running responder; dropping it stops it.
struct Responder(Child);

impl Drop for Responder {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Authority {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let [port] = free_ports();
        let authority = Self { directory, port };
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
        authority.openssl(&format!(
            "req -x509 {key} -subj /CN=Authority -keyout ca.key -out ca.pem"
        ));
        authority.openssl(&format!(
            "req -x509 {key} -subj /CN=a.test -CA ca.pem -CAkey ca.key -set_serial 0x1001 \
             -addext authorityInfoAccess=OCSP;URI:http://127.0.0.1:{}/ocsp -keyout a.key -out a.pem",
            authority.port
        ));
        authority
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn openssl(&self, arguments: &str) {
        let output = Command::new("openssl")
            .args(arguments.split_whitespace())
            .current_dir(self.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments}: {output:?}");
    }

    /// Starts a responder that gives this state of the certificate (`V` valid, `R` revoked), for some minutes.
    fn respond(&self, state: &str) -> Responder {
        let revoked = if state == "R" { "260101000000Z" } else { "" };
        let line = format!("{state}\t491231235959Z\t{revoked}\t1001\tunknown\t/CN=a.test\n");
        fs::write(self.path().join("index.txt"), line).unwrap();
        let port = self.port.to_string();
        let child = Command::new("openssl")
            .args(
                "ocsp -index index.txt -CA ca.pem -rsigner ca.pem -rkey ca.key -nmin 5 -port"
                    .split(' '),
            )
            .arg(&port)
            .current_dir(self.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let responder = Responder(child);
        // It takes one connection at a time, so that one without a request would hold up the next.
        eventually("the responder to answer", || {
            let asked = Command::new("openssl")
                .args([
                    "ocsp", "-issuer", "ca.pem", "-cert", "a.pem", "-CAfile", "ca.pem",
                ])
                .args(["-url", &format!("http://127.0.0.1:{port}/ocsp")])
                .current_dir(self.path())
                .stderr(Stdio::null())
                .output()
                .unwrap();
            asked.status.success().then_some(())
        });
        responder
    }

    /// An NGINX that shows the certificate with its issuer, or alone.
    fn nginx(&self, with_issuer: bool) -> Nginx {
        let nginx = Nginx::start_with(Setup {
            ocsp: true,
            workers: 2,
            ..Setup::default()
        });
        let files: &[&str] = if with_issuer {
            &["a.pem", "ca.pem", "a.key"]
        } else {
            &["a.pem", "a.key"]
        };
        let pem: String = files
            .iter()
            .map(|file| fs::read_to_string(self.path().join(file)).unwrap())
            .collect();
        let update = json!({"certificates": {"u": pem}, "servers": {"a.test": "u"}});
        let answer = nginx.configure("POST", "/configuration/servers", &update.to_string());
        assert_eq!(answer.status, 201);
        nginx
    }
}

/// What a client that asks for the state of the certificate is shown. Fails when there is no certificate.
fn handshake(nginx: &Nginx, version: &str) -> String {
    let output = Command::new("openssl")
        .args(["s_client", "-status", "-servername", "a.test", version])
        .arg("-connect")
        .arg(format!("127.0.0.1:{}", nginx.https))
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("subject=CN = a.test"), "{text}");
    text
}

fn is_stapled(nginx: &Nginx, version: &str) -> bool {
    let text = handshake(nginx, version);
    let stapled = text.contains("OCSP Response Status: successful");
    assert_ne!(stapled, text.contains("no response sent"), "{text}");
    assert_eq!(stapled, text.contains("Cert Status: good"), "{text}");
    stapled
}

#[test]
fn a_good_state_is_stapled_as_soon_as_it_is_known() {
    let authority = Authority::new();
    let responder = authority.respond("V");
    let nginx = authority.nginx(true);
    assert!(
        !is_stapled(&nginx, "-tls1_3"),
        "the first handshake waits for nobody"
    );
    eventually("a stapled response", || {
        is_stapled(&nginx, "-tls1_3").then_some(())
    });
    // It is kept, by all workers, whether or not the responder is there.
    drop(responder);
    for version in ["-tls1_2", "-tls1_3", "-tls1_2", "-tls1_3"] {
        assert!(is_stapled(&nginx, version), "{version}");
    }
}

#[test]
fn a_revoked_certificate_is_shown_without_a_response() {
    let authority = Authority::new();
    let _responder = authority.respond("R");
    let nginx = authority.nginx(true);
    assert!(!is_stapled(&nginx, "-tls1_3"));
    eventually("the reason in the log", || {
        nginx.log().contains("\"revoked\"").then_some(())
    });
    assert!(!is_stapled(&nginx, "-tls1_3"));
}

#[test]
fn a_responder_that_is_away_fails_no_handshake() {
    let authority = Authority::new();
    let nginx = authority.nginx(true);
    assert!(!is_stapled(&nginx, "-tls1_2"));
    eventually("the reason in the log", || {
        nginx.log().contains("no OCSP response").then_some(())
    });
    assert!(!is_stapled(&nginx, "-tls1_3"));
}

#[test]
fn without_the_issuer_nothing_is_asked() {
    let authority = Authority::new();
    let nginx = authority.nginx(false);
    for _ in 0..3 {
        assert!(!is_stapled(&nginx, "-tls1_3"));
    }
    assert_eq!(nginx.log().matches("has no OCSP responder").count(), 1);
    assert!(!nginx.log().contains("no OCSP response"), "{}", nginx.log());
}
