//! The model as it is shown and compared: always in the same order, without what Secrets hold.

use std::{collections::BTreeMap, sync::Arc};

use ingress_model::{
    Backend, Host, Layout, Live, SharedMap,
    live::{CertificateId, UpstreamName},
};
use jiff::Timestamp;
use serde::Serialize;
use x509_parser::pem::parse_x509_pem;

/// The model.
#[derive(Debug, Serialize)]
pub(crate) struct ModelView<'a> {
    layout: &'a Layout,
    live: LiveView<'a>,
}

#[derive(Debug, Serialize)]
struct LiveView<'a> {
    backends: &'a SharedMap<UpstreamName, Arc<Backend>>,
    certificates: BTreeMap<&'a str, CertificateView>,
    servers: &'a BTreeMap<Host, CertificateId>,
    tcp: &'a BTreeMap<u16, Arc<Backend>>,
    udp: &'a BTreeMap<u16, Arc<Backend>>,
    passthrough: &'a BTreeMap<Host, Option<Arc<Backend>>>,
}

/// What tells a certificate from others of the same Secret.
#[derive(Debug, Default, Serialize)]
struct CertificateView {
    serial: Option<String>,
    not_after: Option<String>,
}

impl<'a> ModelView<'a> {
    /// What files show, and what is told.
    pub(crate) fn new(layout: &'a Layout, live: &'a Live) -> Self {
        let certificates = live.certificates.iter().map(|(id, certificate)| {
            // Each controller makes one of its own.
            let is_made = id.as_str() == CertificateId::GENERATED;
            let view = if is_made {
                CertificateView::default()
            } else {
                CertificateView::of(&certificate.pem)
            };
            (id.as_str(), view)
        });
        Self {
            layout,
            live: LiveView {
                backends: &live.backends,
                certificates: certificates.collect(),
                servers: &live.servers,
                tcp: &live.tcp,
                udp: &live.udp,
                passthrough: &live.passthrough,
            },
        }
    }
}

impl CertificateView {
    /// Of the first certificate of a PEM text.
    fn of(pem: &str) -> Self {
        let Ok((_, block)) = parse_x509_pem(pem.as_bytes()) else {
            return Self::default();
        };
        let Ok(certificate) = block.parse_x509() else {
            return Self::default();
        };
        let not_after = Timestamp::from_second(certificate.validity().not_after.timestamp());
        Self {
            serial: Some(certificate.raw_serial_as_string()),
            not_after: not_after.ok().map(|time| time.to_string()),
        }
    }
}
