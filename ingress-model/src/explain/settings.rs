//! The settings of a location, and where each comes from.

use k8s_openapi::api::{core::v1::ConfigMap, networking::v1::Ingress};
use serde::Serialize;

use crate::{
    annotation::{self, AnnotationInfo, Scope, Use},
    config::{Fate, GlobalConfig, KeyUse, key_uses},
    layout::{Location, Server},
    object::{ObjectKind, ObjectName},
    provenance::Subject,
    specification::NOT_FOR_STRANGERS,
};

use super::Explainer;

/// A setting and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// The annotation that sets it, without prefix.
    pub name: &'static str,
    /// As written there where it is set; in words where nobody sets it. `None` where nobody but NGINX may see it.
    pub value: Option<String>,
    /// Who sets it.
    pub source: SettingSource,
    /// What there is to say about an annotation, above all why it does not hold.
    pub notes: Vec<String>,
}

/// Who sets a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum SettingSource {
    /// An annotation.
    Annotation {
        /// Of which Ingress.
        ingress: ObjectName,
        /// The annotation as written.
        key: String,
    },
    /// A key of the controller's ConfigMap.
    ConfigMap {
        /// The ConfigMap.
        config_map: ObjectName,
        /// The key as written.
        key: String,
    },
    /// Nobody.
    Default,
}

/// Annotations that only choose Ingresses are shown where somebody wrote them.
fn is_shown(info: &AnnotationInfo, used: Option<&Use>) -> bool {
    used.is_some() || info.scope != Scope::Ingress
}

impl Explainer<'_> {
    /// The settings of a location, those of its server included.
    ///
    /// A setting of a location or of its backend is what the annotation of the location's own Ingress says; a setting of
    /// the server what the Ingress says that [holds](crate::Provenance) it. Where there is no such annotation, or its
    /// value cannot be used, it is what the ConfigMap's key says that the annotation falls back to; where that cannot be
    /// used either, the default.
    pub(super) fn settings(&self, server: &Server, location: Option<&Location>) -> Vec<Setting> {
        let (config, keys) = self.config_map();
        let uses = |name: Option<&ObjectName>| {
            let ingress = name.and_then(|name| self.served(name));
            ingress.map_or_else(Vec::new, |ingress| {
                annotation::uses(ingress, self.options, &config)
            })
        };
        let own = location.and_then(|location| location.ingress.as_ref());
        let own_uses = uses(own);
        let for_strangers = server.host.is_catch_all()
            && own
                .and_then(|name| self.served(name))
                .is_some_and(is_catch_all);
        let mut settings = Vec::new();
        for info in annotation::annotations() {
            let holder = match info.scope {
                Scope::Server => self.holder(server, info.name).or(own),
                Scope::Location | Scope::Backend | Scope::Ingress => own,
            };
            let held;
            let uses = if holder == own {
                &own_uses
            } else {
                held = uses(holder);
                &held
            };
            let mut named: Vec<_> = uses.iter().filter(|used| used.name == info.name).collect();
            named.sort_by_key(|used| !used.holds);
            let used = named.first().copied();
            if !is_shown(info, used) || (location.is_none() && info.scope != Scope::Server) {
                continue;
            }
            let is_left_out = for_strangers && NOT_FOR_STRANGERS.contains(&info.name);
            let notes = holder.map_or_else(Vec::new, |ingress| {
                let mut notes = self.notes(ingress, &named);
                if is_left_out && used.is_some() {
                    notes.push("not for requests to hosts that nobody defines".to_owned());
                }
                if info.name == "ssl-passthrough"
                    && let Some(upstream) = self.passthrough(server, server.host.as_str())
                {
                    notes.push(format!(
                        "TLS goes to {upstream} as it is: no certificate of the controller is shown, and settings act \
                         on plain HTTP alone"
                    ));
                }
                notes
            });
            let annotated = used.filter(|used| used.holds && !is_left_out).zip(holder);
            let (value, source) = annotated.map_or_else(
                || self.without_annotation(info, &keys),
                |(used, ingress)| {
                    let source = SettingSource::Annotation {
                        ingress: ingress.clone(),
                        key: used.key.clone(),
                    };
                    (Some(used.value.clone()), source)
                },
            );
            settings.push(Setting {
                name: info.name,
                value,
                source,
                notes,
            });
        }
        settings
    }

    /// The ConfigMap as read.
    fn config_map(&self) -> (GlobalConfig, Vec<KeyUse>) {
        let map = self.options.config_map.as_ref();
        let map = map.and_then(|name| self.snapshot.config_maps.get(name));
        let read = |map: &ConfigMap| (GlobalConfig::parse(map, &mut Vec::new()), key_uses(map));
        map.map(|map| read(map)).unwrap_or_default()
    }

    /// The Ingress whose annotation holds for a server, where one has to. All `auth-tls-*` belong to who has
    /// `auth-tls-secret`.
    fn holder(&self, server: &Server, name: &str) -> Option<&ObjectName> {
        let name = if name.starts_with("auth-tls-") {
            "auth-tls-secret"
        } else {
            name
        };
        let decisions = self.outcome.provenance.of(&server.host).iter();
        decisions
            .filter(|decision| matches!(decision.subject, Subject::Setting(held) if held == name))
            .map(|decision| &decision.winner)
            .next()
    }

    fn without_annotation(
        &self,
        info: &AnnotationInfo,
        keys: &[KeyUse],
    ) -> (Option<String>, SettingSource) {
        let accepted = |used: &&KeyUse| {
            let is_it = info.config_key == Some(used.key.to_ascii_lowercase().as_str());
            is_it && matches!(used.fate, Fate::Accepted | Fate::InPart)
        };
        let set = keys.iter().find(accepted);
        match set.zip(self.options.config_map.as_ref()) {
            Some((used, config_map)) => {
                let source = SettingSource::ConfigMap {
                    config_map: config_map.clone(),
                    key: used.key.clone(),
                };
                (used.value.clone(), source)
            }
            None => (Some(info.default.to_owned()), SettingSource::Default),
        }
    }

    /// What was said about annotations of an Ingress.
    fn notes(&self, ingress: &ObjectName, uses: &[&Use]) -> Vec<String> {
        let said = self.outcome.diagnostics.iter().filter(|said| {
            let key = said.key.as_deref();
            let is_about = |used: &&Use| key == Some(used.key.as_str()) || key == Some(used.name);
            said.object.kind == ObjectKind::Ingress
                && said.object.name == *ingress
                && uses.iter().any(is_about)
        });
        said.map(|said| said.message.clone()).collect()
    }
}

/// Whether an Ingress is for every host that nobody defines.
fn is_catch_all(ingress: &Ingress) -> bool {
    let spec = ingress.spec.as_ref();
    spec.is_some_and(|spec| {
        spec.default_backend.is_some() && spec.rules.as_ref().is_none_or(Vec::is_empty)
    })
}
