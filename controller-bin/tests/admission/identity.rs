//! The webhook's certificate and address.

use std::{sync::Arc, time::Duration};

use controller_bin::admission::{AdmissionError, AdmissionServer, Limits};
use ingress_model::Verdict;
use k8s_openapi::api::networking::v1::Ingress;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use crate::webhook::{Client, PATIENCE, Pair, Webhook, pair, post, review, settings, write};

#[tokio::test]
async fn a_renewed_certificate_is_taken_over() {
    let limits = Limits {
        renewal: Duration::from_millis(10),
        ..Limits::default()
    };
    let webhook = Webhook::start(limits, |_: &Ingress| Verdict::default()).await;
    let directory = webhook.directory.path();
    let old = Client::trusting(&webhook.certificate());
    let renewed = pair();
    let new = Client::trusting(&renewed.certificate);
    assert!(old.connect(webhook.address).await.is_ok());
    assert!(new.connect(webhook.address).await.is_err());

    write(directory, &renewed.certificate, &renewed.key);
    let taken_over = async {
        while new.connect(webhook.address).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, taken_over).await.unwrap();
    assert!(old.connect(webhook.address).await.is_err());
}

#[tokio::test]
async fn what_cannot_be_used_is_said_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let (one, other) = (pair(), pair());
    let bind = async |address: &str| {
        let settings = settings(address, directory, Limits::default());
        let reviewer = Arc::new(|_: &Ingress| Verdict::default());
        AdmissionServer::bind(settings, reviewer).await
    };
    let fault = async || {
        let error = bind("127.0.0.1:0").await.unwrap_err();
        let AdmissionError::Identity(cause) = error else {
            panic!("{error:?}");
        };
        cause.to_string()
    };
    assert!(fault().await.starts_with("cannot read"));
    write(directory, "nothing", &one.key);
    assert!(fault().await.contains("a certificate as PEM in"));
    write(directory, &one.certificate, "nothing");
    assert!(fault().await.contains("a key as PEM in"));
    write(directory, &one.certificate, &other.key);
    assert!(fault().await.contains("with the key"));

    write(directory, &one.certificate, &one.key);
    for address in [":0", "127.0.0.1:0", "localhost:0"] {
        let server = bind(address).await.unwrap();
        assert_ne!(server.address().port(), 0);
        assert_eq!(server.address().ip().is_unspecified(), address == ":0");
    }
    for address in ["", ":", "8443", ":https", ":99999", "127.0.0.1"] {
        let error = bind(address).await.unwrap_err();
        assert!(
            error.to_string().contains(&format!("{address:?}")),
            "{error}"
        );
    }
    let taken = bind("127.0.0.1:0").await.unwrap();
    let error = bind(&taken.address().to_string()).await.unwrap_err();
    assert!(matches!(error, AdmissionError::Listen { .. }));
}

/// An authority's certificate, and a pair that it has signed.
fn authority() -> (String, Pair) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::from_params(&params, key);
    let key = KeyPair::generate().unwrap();
    let signed = CertificateParams::new(vec!["apiserver.test".into()]).unwrap();
    let signed = signed.signed_by(&key, &issuer).unwrap();
    let pair = Pair {
        certificate: signed.pem(),
        key: key.serialize_pem(),
    };
    (certificate, pair)
}

#[tokio::test]
async fn only_clients_of_the_authority_are_answered() {
    let (trusted, ours) = authority();
    let (_, theirs) = authority();
    let allow = |_: &Ingress| Verdict::default();
    let webhook = Webhook::start_for(Limits::default(), allow, Some(&trusted)).await;
    let client = || Client::trusting(&webhook.certificate());
    let answer = async |client: Client| {
        // The refusal may come when the connection is made, or with the first that is read from it.
        let Ok(mut stream) = client.connect(webhook.address).await else {
            return String::new();
        };
        let request = post(review("new", "/").to_string().as_bytes());
        let _refused = stream.write_all(&request).await;
        let mut answer = Vec::new();
        let _refused = timeout(PATIENCE, stream.read_to_end(&mut answer))
            .await
            .unwrap();
        String::from_utf8(answer).unwrap()
    };
    assert_eq!(answer(client()).await, "");
    assert_eq!(answer(client().showing(&theirs)).await, "");
    let allowed = answer(client().showing(&ours)).await;
    assert!(allowed.starts_with("HTTP/1.1 200"), "{allowed}");
}
