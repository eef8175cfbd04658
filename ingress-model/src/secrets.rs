//! The Secrets that Ingresses refer to, each read once as long as it does not change.

use std::sync::Arc;

use hashbrown::HashMap;
use k8s_openapi::api::core::v1::Secret;

use crate::{
    certificate::{self, SecretError, ServerCertificate},
    changes::Change,
    layout::Authority,
    object::{ObjectMap, ObjectName},
};

/// What a Secret gave: nothing since it does not exist, something usable, or the reason why it is not.
pub(crate) type Lookup<T> = Option<Result<Arc<T>, Arc<str>>>;

/// Secrets that were read.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    objects: ObjectMap<Secret>,
    certificates: HashMap<ObjectName, Result<Arc<ServerCertificate>, Arc<str>>>,
    authorities: HashMap<ObjectName, Result<Arc<Authority>, Arc<str>>>,
}

impl Secrets {
    /// Takes other Secrets, and forgets what was read from those that changed.
    pub(crate) fn update(&mut self, objects: &ObjectMap<Secret>, changes: &[Change<'_, Secret>]) {
        self.objects = objects.clone();
        for change in changes {
            self.certificates.remove(change.name);
            self.authorities.remove(change.name);
        }
    }

    /// The certificate for servers in a Secret.
    pub(crate) fn certificate(&mut self, name: &ObjectName) -> Lookup<ServerCertificate> {
        lookup(
            &self.objects,
            &mut self.certificates,
            name,
            ServerCertificate::read,
        )
    }

    /// The authorities for client certificates in a Secret.
    pub(crate) fn authority(&mut self, name: &ObjectName) -> Lookup<Authority> {
        lookup(
            &self.objects,
            &mut self.authorities,
            name,
            certificate::authority,
        )
    }
}

fn lookup<T>(
    objects: &ObjectMap<Secret>,
    known: &mut HashMap<ObjectName, Result<Arc<T>, Arc<str>>>,
    name: &ObjectName,
    read: impl Fn(&ObjectName, &Secret) -> Result<T, SecretError>,
) -> Lookup<T> {
    let secret = objects.get(name)?;
    let found = known.entry_ref(name).or_insert_with(|| {
        read(name, secret)
            .map(Arc::new)
            .map_err(|error| error.to_string().into())
    });
    Some(found.clone())
}
