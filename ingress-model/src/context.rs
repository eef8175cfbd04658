//! What is the same for all Ingresses of a merge: flags, the ConfigMap, classes and the controller's zone.

use std::sync::Arc;

use k8s_openapi::api::networking::v1::Ingress;

use crate::{
    annotation::{self, IngressSettings},
    class::Filter,
    config::GlobalConfig,
    diagnostic::{Diagnostic, Reason, Severity},
    layout::LocationSettings,
    object::{ObjectKind, ObjectName, ObjectRef},
    options::Options,
    snapshot::Snapshot,
};

/// The label of a node that says where it stands.
const ZONE: &str = "topology.kubernetes.io/zone";

/// The prefix of annotations that is usual for this kind of controller.
const USUAL_PREFIX: &str = "nginx.ingress.kubernetes.io";

/// What every rule may look at. If it changes, everything is read again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) options: Options,
    pub(crate) config: GlobalConfig,
    pub(crate) filter: Filter,
    /// The zone of the controller's node, if endpoints are chosen by it.
    pub(crate) zone: Option<String>,
    /// Settings of the location for requests that nobody defines.
    pub(crate) root_settings: Arc<LocationSettings>,
    /// What an Ingress without annotations says.
    pub(crate) plain: Option<Arc<IngressSettings>>,
}

impl Context {
    /// Reads what the snapshot has for all; faults of the ConfigMap are reported.
    pub(crate) fn read(
        snapshot: &Snapshot,
        options: &Options,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Self {
        let config = config(snapshot, options, diagnostics);
        let is_logged = config.render.enable_access_log_for_default_backend;
        let root_settings = LocationSettings {
            access_log: (!is_logged).then_some(false),
            ..LocationSettings::default()
        };
        Self {
            options: options.clone(),
            filter: Filter::new(options, &snapshot.ingress_classes, &snapshot.namespaces),
            zone: zone(snapshot, options),
            plain: annotation::parse(&Ingress::default(), options, &config, &mut Vec::new())
                .map(Arc::new),
            config,
            root_settings: Arc::new(root_settings),
        }
    }

    /// Whether an annotation of this name may mean something to us: it has our prefix, or another one that is reported
    /// where its author most likely meant us.
    pub(crate) fn may_be_ours(&self, key: &str) -> bool {
        let is_prefix = |prefix: &str| {
            let rest = key.strip_prefix(prefix);
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        let is_meant = |(prefix, name): (&str, &str)| annotation::is_meant(prefix, name);
        is_prefix(&self.options.annotations_prefix)
            || is_prefix(USUAL_PREFIX)
            || key.split_once('/').is_some_and(is_meant)
    }

    /// Whether nothing that this was read from is different in the newer snapshot.
    pub(crate) fn is_current(&self, old: &Snapshot, new: &Snapshot, options: &Options) -> bool {
        let map = options.config_map.as_ref();
        let config_of = |snapshot: &Snapshot| {
            let map = map.and_then(|name| snapshot.config_maps.get(name));
            map.map(Arc::as_ptr)
        };
        self.options == *options
            && config_of(old) == config_of(new)
            && self.config.policy.references.are_current(old, new)
            && old.ingress_classes.is_same(&new.ingress_classes)
            && (options.namespace_selector.is_none() || old.namespaces.is_same(&new.namespaces))
            && (options.node.is_none() || old.nodes.is_same(&new.nodes))
    }

    /// The objects that it was read from.
    pub(crate) fn dependencies(&self) -> Vec<ObjectRef> {
        let options = &self.options;
        let maps = [
            &options.config_map,
            &options.tcp_services,
            &options.udp_services,
        ];
        let maps = maps.into_iter().flatten();
        let maps = maps.map(|name| ObjectRef::new(ObjectKind::ConfigMap, name.clone()));
        let service = options.default_backend_service.iter();
        let service = service.map(|name| ObjectRef::new(ObjectKind::Service, name.clone()));
        let secret = options.default_ssl_certificate.iter();
        let secret = secret.map(|name| ObjectRef::new(ObjectKind::Secret, name.clone()));
        let referred = self.config.policy.references.objects();
        maps.chain(service).chain(secret).chain(referred).collect()
    }
}

/// A ConfigMap that does not exist sets nothing.
fn config(
    snapshot: &Snapshot,
    options: &Options,
    diagnostics: &mut Vec<Diagnostic>,
) -> GlobalConfig {
    let Some(name) = &options.config_map else {
        return GlobalConfig::default();
    };
    let Some(map) = snapshot.config_maps.get(name) else {
        diagnostics.push(Diagnostic::new(
            ObjectRef::new(ObjectKind::ConfigMap, name.clone()),
            Severity::Warning,
            Reason::MissingConfigMap,
            "it does not exist; defaults hold",
        ));
        return GlobalConfig::default();
    };
    let mut config = GlobalConfig::parse(map, diagnostics);
    config.resolve(name, snapshot, diagnostics);
    config
}

fn zone(snapshot: &Snapshot, options: &Options) -> Option<String> {
    let node = snapshot
        .nodes
        .get(&ObjectName::cluster(options.node.as_ref()?))?;
    node.metadata.labels.as_ref()?.get(ZONE).cloned()
}
