//! The kinds that a manifest may hold.

use ingress_model::{ObjectKind, ObjectName, ObjectRef};
use k8s_openapi::{
    api::{
        core::v1::{ConfigMap, Namespace, Node, Secret, Service},
        discovery::v1::EndpointSlice,
        networking::v1::{Ingress, IngressClass},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use serde::{Deserialize, Deserializer};

use crate::{
    store::{Change, Store},
    stored::Stored,
};

/// Makes the enum of the kinds and what has to look at each of them.
macro_rules! kinds {
    ($($kind:ident $api_version:literal,)+) => {
        /// An object of a manifest.
        #[expect(clippy::large_enum_variant, reason = "it lives behind a shared pointer")]
        #[derive(Clone, Debug, PartialEq)]
        pub(super) enum Object {
            $($kind($kind),)+
        }

        impl Object {
            /// Reads an object of that kind; `None` for kinds that the controller does not read.
            pub(super) fn read<'de, D: Deserializer<'de>>(
                api_version: &str,
                kind: &str,
                from: D,
            ) -> Option<Result<Self, D::Error>> {
                match (api_version, kind) {
                    $(($api_version, stringify!($kind)) => Some($kind::deserialize(from).map(Self::$kind)),)+
                    _ => None,
                }
            }

            pub(super) fn kind(&self) -> ObjectKind {
                match self {
                    $(Self::$kind(_) => <$kind as Stored>::KIND,)+
                }
            }

            pub(super) fn meta(&self) -> &ObjectMeta {
                match self {
                    $(Self::$kind(object) => &object.metadata,)+
                }
            }

            pub(super) fn meta_mut(&mut self) -> &mut ObjectMeta {
                match self {
                    $(Self::$kind(object) => &mut object.metadata,)+
                }
            }

            /// Puts the object into the store.
            pub(super) fn apply(self, store: &Store) -> Option<Change> {
                match self {
                    $(Self::$kind(object) => store.apply(object),)+
                }
            }
        }

        /// Takes an object out of the store.
        pub(super) fn delete(object: &ObjectRef, store: &Store) -> Option<Change> {
            match object.kind {
                $(ObjectKind::$kind => store.delete::<$kind>(&object.name),)+
                ObjectKind::Pod => None,
            }
        }
    };
}

kinds! {
    Ingress "networking.k8s.io/v1",
    IngressClass "networking.k8s.io/v1",
    Service "v1",
    EndpointSlice "discovery.k8s.io/v1",
    Secret "v1",
    ConfigMap "v1",
    Namespace "v1",
    Node "v1",
}

impl Object {
    /// Kind, namespace and name.
    pub(super) fn reference(&self) -> ObjectRef {
        let meta = self.meta();
        let name = ObjectName::new(
            meta.namespace.as_deref().unwrap_or_default(),
            meta.name.as_deref().unwrap_or_default(),
        );
        ObjectRef::new(self.kind(), name)
    }
}
