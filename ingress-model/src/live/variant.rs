//! Backends that serve several Ingresses, each in its own way.

use std::borrow::Cow;

use serde::Serialize;

use super::{Backend, CookieAffinity, Endpoint, HashBy, Live, LoadBalance, UpstreamName};
use crate::object::ObjectName;

/// How the requests for some Ingresses' paths are balanced over a backend that they share with others.
///
/// The backend itself says what holds for the oldest Ingress, and for all that want the same. What is not here is the
/// same for all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Variant {
    /// The Ingresses, sorted; never none, and none of them has another variant of the backend.
    pub ingresses: Vec<ObjectName>,
    /// The peers, where they are not the backend's (`service-upstream`).
    pub endpoints: Option<Vec<Endpoint>>,
    /// How peers are picked; `None`: one after the other.
    pub load_balance: Option<LoadBalance>,
    /// Picking peers by hash.
    pub hash_by: Option<HashBy>,
    /// Keeping clients on their peers.
    pub affinity: Option<Box<CookieAffinity>>,
    /// Canary backends that take a part of the requests. Only the first one is considered.
    pub alternatives: Vec<UpstreamName>,
}

impl Backend {
    /// The backend as requests for paths of an Ingress are balanced over it.
    ///
    /// ```
    /// use ingress_model::{ObjectName, live::LoadBalance, testing::Fixture};
    ///
    /// let served = Fixture::default()
    ///     .and_ingress("shop/a", &[], &["a.test/ web:80"])
    ///     .and_ingress("shop/b", &[("load-balance", "ewma")], &["b.test/ web:80"])
    ///     .merge();
    /// let web = &served.outcome().model.live.backends["shop-web-80"];
    /// assert_eq!(web.of_ingress(&ObjectName::new("shop", "a")).load_balance, None);
    /// assert_eq!(web.of_ingress(&ObjectName::new("shop", "b")).load_balance, Some(LoadBalance::Ewma));
    /// ```
    #[must_use]
    pub fn of_ingress(&self, ingress: &ObjectName) -> Cow<'_, Self> {
        let mut variants = self.variants.iter();
        match variants.find(|variant| variant.ingresses.binary_search(ingress).is_ok()) {
            None => Cow::Borrowed(self),
            Some(variant) => Cow::Owned(self.varied(variant)),
        }
    }

    fn varied(&self, variant: &Variant) -> Self {
        let endpoints = variant.endpoints.as_ref().unwrap_or(&self.endpoints);
        Self {
            name: self.name.clone(),
            port: self.port.clone(),
            external_name: self.external_name,
            endpoints: endpoints.clone(),
            ssl_passthrough: self.ssl_passthrough,
            load_balance: variant.load_balance,
            hash_by: variant.hash_by.clone(),
            affinity: variant.affinity.clone(),
            canary: self.canary,
            traffic_shaping: self.traffic_shaping.clone(),
            alternatives: variant.alternatives.clone(),
            variants: Vec::new(),
        }
    }
}

impl Live {
    /// The backend of a location, as requests for it are balanced: the one of this name, for the Ingress that the
    /// location belongs to.
    #[must_use]
    pub fn backend(
        &self,
        name: &UpstreamName,
        ingress: Option<&ObjectName>,
    ) -> Option<Cow<'_, Backend>> {
        let backend = self.backends.get(name)?;
        Some(match ingress {
            Some(ingress) => backend.of_ingress(ingress),
            None => Cow::Borrowed(backend),
        })
    }
}
