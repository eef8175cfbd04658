//! What is sent to `/configuration/backends` and `/configuration/servers`, and what `/configuration/revision` says.

use std::{collections::BTreeMap, fmt, sync::Arc};

use ingress_model::live::{Certificate, Live, LiveDelta};
use serde::{Deserialize, Serialize};

use super::backend::Backend;
use crate::revision::{Revision, Revisions};

/// Stands for a certificate's identity where a host has no certificate (any more).
pub const NO_CERTIFICATE: &str = "-1";

/// A certificate chain with its private key, PEM. Never printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pem(pub Arc<str>);

/// Body of `POST /configuration/servers`: what it does not name stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Servers {
    /// Certificates by identity.
    pub certificates: BTreeMap<String, Pem>,
    /// Host → identity of its certificate, or [`NO_CERTIFICATE`].
    pub servers: BTreeMap<String, String>,
}

/// Body of `PATCH /configuration/backends`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackendsPatch {
    /// The revision that the change starts from.
    pub base: Revision,
    /// The revision after it.
    pub revision: Revision,
    /// Backends that are new or changed.
    #[serde(default)]
    pub upsert: Vec<Backend>,
    /// Names of backends that are gone.
    #[serde(default)]
    pub remove: Vec<String>,
}

/// Body of `PATCH /configuration/servers`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServersPatch {
    /// The revision that the change starts from; `None`: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<Revision>,
    /// The revision after it.
    pub revision: Revision,
    /// Whether everything that is not named here goes away.
    #[serde(default)]
    pub replace: bool,
    /// Certificates that are new or changed, by identity.
    #[serde(default)]
    pub certificates: BTreeMap<String, Pem>,
    /// Hosts whose certificate is new or another one.
    #[serde(default)]
    pub servers: BTreeMap<String, String>,
    /// Hosts that have no certificate any more.
    #[serde(default)]
    pub remove_servers: Vec<String>,
    /// Certificates that are gone.
    #[serde(default)]
    pub remove_certificates: Vec<String>,
}

/// Answer of `GET /configuration/revision`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Revision of the backends; 0 when they came without one, or not at all.
    pub backends: Revision,
    /// Revision of the servers and their certificates.
    pub servers: Revision,
    /// Differs when the shared dictionaries were lost: NGINX was started anew or a dictionary was resized.
    pub instance: String,
    /// Process ID of NGINX's master.
    pub pid: u32,
    /// Of the configuration files that the answering worker runs with; empty when they name none.
    #[serde(default)]
    pub checksum: String,
}

/// Body of an answer 200 or 409 to a `PATCH`.
#[derive(Debug, Deserialize)]
pub(crate) struct RevisionAnswer {
    pub(crate) revision: Revision,
}

/// Body of an answer 507.
#[derive(Debug, Deserialize)]
pub(crate) struct FullDictionary {
    pub(crate) dictionary: String,
    pub(crate) needed: u64,
    pub(crate) capacity: u64,
}

/// Body of `POST /configuration/backends`: all backends, sorted by name.
#[must_use]
pub fn backends(live: &Live) -> Vec<Backend> {
    live.backends
        .values()
        .map(|backend| Backend::from(&**backend))
        .collect()
}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pem(…)")
    }
}

impl BackendsPatch {
    /// The backends' part of `delta`.
    #[must_use]
    pub fn new(delta: &LiveDelta, base: Revision, revision: Revision) -> Self {
        Self {
            base,
            revision,
            upsert: delta
                .set_backends
                .iter()
                .map(|backend| Backend::from(&**backend))
                .collect(),
            remove: delta
                .remove_backends
                .iter()
                .map(ToString::to_string)
                .collect(),
        }
    }
}

impl ServersPatch {
    /// The part of `delta` that is about servers and certificates.
    #[must_use]
    pub fn new(delta: &LiveDelta, base: Revision, revision: Revision) -> Self {
        Self {
            base: Some(base),
            revision,
            replace: false,
            certificates: by_id(&delta.set_certificates),
            servers: delta
                .set_servers
                .iter()
                .map(|(host, id)| (host.to_string(), id.as_str().to_owned()))
                .collect(),
            remove_servers: delta
                .remove_servers
                .iter()
                .map(ToString::to_string)
                .collect(),
            remove_certificates: delta
                .remove_certificates
                .iter()
                .map(|id| id.as_str().to_owned())
                .collect(),
        }
    }

    /// All servers and certificates of `live`, in place of whatever is there.
    #[must_use]
    pub fn replacing(live: &Live, revision: Revision) -> Self {
        let Servers {
            certificates,
            servers,
        } = Servers::from(live);
        Self {
            revision,
            replace: true,
            certificates,
            servers,
            ..Self::default()
        }
    }
}

impl Status {
    /// The revisions of both halves.
    #[must_use]
    pub fn revisions(&self) -> Revisions {
        Revisions {
            backends: self.backends,
            servers: self.servers,
        }
    }
}

impl From<&Live> for Servers {
    fn from(live: &Live) -> Self {
        Self {
            certificates: by_id(live.certificates.values()),
            servers: live
                .servers
                .iter()
                .map(|(host, id)| (host.to_string(), id.as_str().to_owned()))
                .collect(),
        }
    }
}

fn by_id<'a>(certificates: impl IntoIterator<Item = &'a Certificate>) -> BTreeMap<String, Pem> {
    certificates
        .into_iter()
        .map(|certificate| {
            (
                certificate.id.as_str().to_owned(),
                Pem(Arc::clone(&certificate.pem)),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use ingress_model::{
        Host,
        live::{self, CertificateId, UpstreamName},
    };

    use super::*;

    fn certificate(id: &str, pem: &str) -> Certificate {
        Certificate {
            id: CertificateId::new(id),
            pem: pem.into(),
        }
    }

    fn live() -> Live {
        let mut live = Live::default();
        for name in ["b", "a"] {
            let backend = live::Backend::new(UpstreamName::new(name));
            live.backends
                .insert(backend.name.clone(), Arc::new(backend));
        }
        let certificate = certificate("uid-1", "PEM\n1");
        live.servers
            .insert(Host::parse("*.shop.test").unwrap(), certificate.id.clone());
        live.certificates
            .insert(certificate.id.clone(), certificate);
        live
    }

    fn same_json(got: &impl Serialize, want: &str) {
        assert_eq!(serde_json::to_string(got).unwrap(), want);
    }

    #[test]
    fn the_list_of_backends_is_sorted_by_name() {
        let names: Vec<String> = backends(&live()).into_iter().map(|b| b.name).collect();
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn servers_are_posted_as_documented() {
        same_json(
            &Servers::from(&live()),
            r#"{"certificates":{"uid-1":"PEM\n1"},"servers":{"*.shop.test":"uid-1"}}"#,
        );
        same_json(&Servers::default(), r#"{"certificates":{},"servers":{}}"#);
    }

    #[test]
    fn servers_are_replaced_whatever_the_revision_is() {
        same_json(
            &ServersPatch::replacing(&live(), Revision::new(9)),
            concat!(
                r#"{"revision":9,"replace":true,"certificates":{"uid-1":"PEM\n1"},"#,
                r#""servers":{"*.shop.test":"uid-1"},"remove_servers":[],"remove_certificates":[]}"#
            ),
        );
    }

    #[test]
    fn patches_name_what_is_set_and_removed() {
        let host = |name| Host::parse(name).unwrap();
        let delta = LiveDelta {
            remove_backends: vec![UpstreamName::new("gone")],
            set_certificates: vec![certificate("uid-2", "PEM 2")],
            remove_certificates: vec![CertificateId::new("uid-1")],
            set_servers: vec![(host("a.test"), CertificateId::new("uid-2"))],
            remove_servers: vec![host("b.test")],
            ..LiveDelta::default()
        };
        let (base, revision) = (Revision::new(4), Revision::new(5));
        same_json(
            &BackendsPatch::new(&delta, base, revision),
            r#"{"base":4,"revision":5,"upsert":[],"remove":["gone"]}"#,
        );
        let patch = ServersPatch::new(&delta, base, revision);
        let json = concat!(
            r#"{"base":4,"revision":5,"replace":false,"certificates":{"uid-2":"PEM 2"},"#,
            r#""servers":{"a.test":"uid-2"},"remove_servers":["b.test"],"remove_certificates":["uid-1"]}"#
        );
        same_json(&patch, json);
        assert_eq!(serde_json::from_str::<ServersPatch>(json).unwrap(), patch);
    }

    #[test]
    fn debug_output_shows_no_key() {
        let patch = ServersPatch::replacing(&live(), Revision::new(1));
        let text = format!("{patch:?} {:?}", Servers::from(&live()));
        assert!(
            text.contains("uid-1") && !text.contains("PEM\\n1"),
            "{text}"
        );
    }

    #[test]
    fn a_status_is_read() {
        let status: Status = serde_json::from_str(
            r#"{"backends":17961234567890,"servers":0,"instance":"a-b-c","pid":77,"checksum":"x"}"#,
        )
        .unwrap();
        assert_eq!(
            status.revisions(),
            Revisions {
                backends: Revision::new(17_961_234_567_890),
                servers: Revision::new(0)
            }
        );
    }
}
