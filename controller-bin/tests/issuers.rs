//! Certificates that lack those of their issuers, which a server gives out.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod site;

use axum::{Router, routing::get};
use rcgen::{BasicConstraints, CertificateParams, CustomExtension, DnType, IsCa, Issuer, KeyPair};
use site::{
    Site,
    backend::{Backend, ingress},
    http,
};
use tokio::net::TcpListener;

/// What a certificate says of where its issuer's is (RFC 5280, 4.2.2.1).
fn issued_by(address: &str) -> CustomExtension {
    let wrap = |kind: u8, content: Vec<u8>| {
        [vec![kind, u8::try_from(content.len()).unwrap()], content].concat()
    };
    // id-ad-caIssuers.
    let method = wrap(0x06, vec![0x2b, 6, 1, 5, 5, 7, 48, 2]);
    let location = wrap(0x86, address.as_bytes().to_vec());
    let access = wrap(0x30, [method, location].concat());
    let mut extension =
        CustomExtension::from_oid_content(&[1, 3, 6, 1, 5, 5, 7, 1, 1], wrap(0x30, access));
    extension.set_criticality(false);
    extension
}

/// An authority of that name.
fn authority(name: &str) -> CertificateParams {
    let mut parameters = CertificateParams::new([]).unwrap();
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_is_completed_from_where_the_certificate_says() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let keys: [KeyPair; 3] = std::array::from_fn(|_| KeyPair::generate().unwrap());
    let [root_key, middle_key, own_key] = &keys;

    let root = authority("root").self_signed(root_key).unwrap();
    let mut middle = authority("middle");
    middle
        .custom_extensions
        .push(issued_by(&format!("{server}/root")));
    let by_root = Issuer::new(authority("root"), root_key);
    let middle = middle.signed_by(middle_key, &by_root).unwrap();
    let mut own = CertificateParams::new(["shop.test".to_owned()]).unwrap();
    own.custom_extensions
        .push(issued_by(&format!("{server}/middle")));
    let by_middle = Issuer::new(authority("middle"), middle_key);
    let own = own.signed_by(own_key, &by_middle).unwrap();

    let (trusted, given) = (root.der().clone(), middle.der().to_vec());
    let of_root = root.pem();
    let router = Router::new()
        .route("/middle", get(async move || given))
        .route("/root", get(async move || of_root));
    tokio::spawn(async move { axum::serve(listener, router).await });

    let indented = |pem: String| pem.replace('\n', "\n    ");
    let secret = format!(
        "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata: {{name: shop, namespace: default}}\nstringData:\n  \
         tls.crt: |\n    {}\n  tls.key: |\n    {}\n",
        indented(own.pem()),
        indented(own_key.serialize_pem()),
    );
    let one = Backend::start("one").await;
    let tls = "tls: [{hosts: [shop.test], secretName: shop}]";
    let files = [
        ("service.yaml", &*one.service("one")),
        ("ingress.yaml", &*ingress("shop", "shop.test", "one", tls)),
        ("secret.yaml", &*secret),
    ];
    let ask = async |site: &Site| {
        let response = http::get_tls(site.ports.https, "shop.test", "/", &trusted).await?;
        (response.status == 200).then_some(())
    };
    let site = Site::with_flags(&["--enable-ssl-chain-completion"], &files).await;
    site.until(
        "clients that know the root trust the certificate",
        async || ask(&site).await,
    )
    .await;
    assert_eq!(site.logged(" loaded "), 1, "{}", site.log());

    let site = Site::with_flags(&[], &files).await;
    site.answers("shop.test", "/", 308, "").await;
    assert!(ask(&site).await.is_none(), "nobody has asked for it");
}
