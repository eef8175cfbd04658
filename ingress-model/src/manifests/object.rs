//! The kinds that a manifest may hold.

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
    object::{ObjectKind, ObjectName, ObjectRef},
    snapshot::Snapshot,
};

/// Makes the enum of the kinds and what has to look at each of them.
macro_rules! kinds {
    ($($kind:ident $api_version:literal $field:ident,)+) => {
        /// An object of a manifest.
        #[expect(clippy::large_enum_variant, reason = "it lives behind a shared pointer")]
        #[derive(Clone, Debug, PartialEq)]
        pub enum Object {
            $(
                #[doc = concat!("`", $api_version, "` ", stringify!($kind), ".")]
                $kind($kind),
            )+
        }

        /// API version and kind of each.
        pub(super) const KINDS: &[(&str, &str)] = &[$(($api_version, stringify!($kind)),)+];

        impl Object {
            /// Reads an object of that kind; `None` for kinds that the rules do not read.
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

            /// The kind of that name, if the rules read it.
            pub(super) fn kind_called(name: &str) -> Option<ObjectKind> {
                match name {
                    $(stringify!($kind) => Some(ObjectKind::$kind),)+
                    _ => None,
                }
            }

            /// The kind.
            #[must_use]
            pub fn kind(&self) -> ObjectKind {
                match self {
                    $(Self::$kind(_) => ObjectKind::$kind,)+
                }
            }

            /// The metadata.
            #[must_use]
            pub fn meta(&self) -> &ObjectMeta {
                match self {
                    $(Self::$kind(object) => &object.metadata,)+
                }
            }

            /// The metadata, to be changed.
            #[must_use]
            pub fn meta_mut(&mut self) -> &mut ObjectMeta {
                match self {
                    $(Self::$kind(object) => &mut object.metadata,)+
                }
            }

            /// Adds the object to a snapshot, in place of one with its kind and name.
            pub fn insert(self, snapshot: &mut Snapshot) {
                let name = self.reference().name;
                match self {
                    $(Self::$kind(object) => {
                        snapshot.$field.insert(name, object);
                    })+
                }
            }
        }
    };
}

kinds! {
    Ingress "networking.k8s.io/v1" ingresses,
    IngressClass "networking.k8s.io/v1" ingress_classes,
    Service "v1" services,
    EndpointSlice "discovery.k8s.io/v1" endpoint_slices,
    Secret "v1" secrets,
    ConfigMap "v1" config_maps,
    Namespace "v1" namespaces,
    Node "v1" nodes,
}

impl Object {
    /// Kind, namespace and name.
    #[must_use]
    pub fn reference(&self) -> ObjectRef {
        let meta = self.meta();
        let name = ObjectName::new(
            meta.namespace.as_deref().unwrap_or_default(),
            meta.name.as_deref().unwrap_or_default(),
        );
        ObjectRef::new(self.kind(), name)
    }
}
