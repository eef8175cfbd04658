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
    /// The versions whose certificates were usable in the merge before.
    before: ObjectMap<Secret>,
    /// The versions whose certificates are usable, or were before.
    last_good: ObjectMap<Secret>,
    /// Whether Secrets were looked at for the first time, or changed, since `last_good` was found out.
    looked_anew: bool,
    certificates: HashMap<ObjectName, Result<Arc<ServerCertificate>, Arc<str>>>,
    authorities: HashMap<ObjectName, Result<Arc<Authority>, Arc<str>>>,
}

impl Secrets {
    /// Takes other Secrets, and forgets what was read from those that changed.
    pub(crate) fn update(
        &mut self,
        objects: &ObjectMap<Secret>,
        before: &ObjectMap<Secret>,
        changes: &[Change<'_, Secret>],
    ) {
        self.objects = objects.clone();
        let is_known = self.before.is_same(before) || self.last_good.is_same(before);
        self.looked_anew |= !changes.is_empty() || !is_known;
        self.before = before.clone();
        for change in changes {
            self.certificates.remove(change.name);
            self.authorities.remove(change.name);
        }
    }

    /// Whether a Secret was looked at that holds no certificate that could be used.
    pub(crate) fn is_unusable(&self, name: &ObjectName) -> bool {
        self.certificates.get(name).is_some_and(Result::is_err)
    }

    /// The certificate for servers in a Secret.
    pub(crate) fn certificate(&mut self, name: &ObjectName) -> Lookup<ServerCertificate> {
        self.looked_anew |= !self.certificates.contains_key(name);
        lookup(
            &self.objects,
            &mut self.certificates,
            name,
            ServerCertificate::read,
        )
    }

    /// The certificate that a Secret held before an update that cannot be used.
    ///
    /// ```
    /// use ingress_model::testing::Fixture;
    ///
    /// let text = "
    /// {apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, namespace: shop},
    ///  spec: {ingressClassName: nginx, tls: [{hosts: [a.test], secretName: a}], rules: [{host: a.test}]}}
    /// ---
    /// {apiVersion: v1, kind: Secret, metadata: {name: a, namespace: shop}, data: {tls.crt: '', tls.key: ''}}
    /// ";
    /// // There was none.
    /// let served = Fixture::from_yaml(text)?.merge();
    /// served.assert_diagnostics(["Ingress shop/a: spec.tls: Secret shop/a cannot be used: it has no tls.crt; host a.test is \
    ///                             served with the default certificate (InvalidSecret)"]);
    /// # Ok::<_, ingress_model::testing::FixtureError>(())
    /// ```
    pub(crate) fn earlier_certificate(&self, name: &ObjectName) -> Option<Arc<ServerCertificate>> {
        let secret = self.before.get(name)?;
        ServerCertificate::read(name, secret).map(Arc::new).ok()
    }

    /// The versions of Secrets whose certificates are usable, or were before an update that cannot be used.
    pub(crate) fn last_good(&mut self) -> ObjectMap<Secret> {
        if self.looked_anew {
            let good = self.certificates.iter().filter_map(|(name, read)| {
                let versions = if read.is_ok() {
                    &self.objects
                } else {
                    &self.before
                };
                Some((name.clone(), Arc::clone(versions.get(name)?)))
            });
            self.last_good = good.collect();
            self.looked_anew = false;
        }
        self.last_good.clone()
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
