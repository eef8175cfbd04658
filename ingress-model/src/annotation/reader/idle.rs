//! Annotations that do nothing as they stand: what they need is missing, or their prefix is none that is read.

use crate::diagnostic::{Reason, Severity};

use super::{
    super::{
        need::{self, Need},
        registry::{self, AnnotationInfo, Misuse, Scope},
        retired,
    },
    Reader,
};

impl<'a> Reader<'a> {
    /// Reports an annotation of another prefix whose author most likely meant us.
    pub(super) fn tell_of_stranger(&mut self, key: &str, prefix: &str, name: &str) {
        // Who writes it for another controller as well says it under our prefix too.
        if !retired::is_meant(prefix, name) || self.is_written(name) {
            return;
        }
        let message = retired::hint(name).unwrap_or_else(|| {
            format!("is not read: annotations begin with {}/ here", self.prefix)
        });
        self.tell(key, Severity::Warning, Reason::UnknownAnnotation, message);
    }

    /// Whether there is such an annotation of our prefix.
    fn is_written(&self, name: &str) -> bool {
        let own = |key: &String| key.split_once('/') == Some((self.prefix, name));
        let keys = self.written.metadata.annotations.iter();
        keys.flat_map(|all| all.keys()).any(own)
    }

    /// Reports annotations that mean nothing without another one that does not say what they need.
    pub(super) fn report_lonely(&mut self) {
        let lonely: Vec<(&'a str, &'static AnnotationInfo)> = self
            .present
            .iter()
            .filter_map(|(name, entry)| {
                let info = registry::find(name)?;
                self.is_lonely(info).then_some((entry.key, info))
            })
            .collect();
        for (key, info) in lonely {
            self.unused.insert(key);
            let needed = need::list(info.needs, "");
            // Whoever wrote it may think that the paths are guarded.
            let guard = |need: &Need| {
                registry::find(need.name).is_some_and(|needed| needed.misuse != Misuse::FallBack)
            };
            let is_global = info.needs.iter().any(|need| need.name == "auth-url")
                && self.policy().global_auth.is_some();
            let and = if is_global {
                "; the ConfigMap's global-auth-url is asked as the ConfigMap says"
            } else if info.misuse == Misuse::Deny && info.needs.iter().any(guard) {
                ": it protects nothing"
            } else {
                ""
            };
            let is_off = |need: &Need| need.is_switch() && self.has(need.name);
            let severity = if info.needs.iter().any(is_off) {
                Severity::Info
            } else {
                Severity::Warning
            };
            // What stands for a host may act on paths of other Ingresses.
            let is_choice = info.needs.iter().any(Need::is_choice);
            let whereon = if is_choice && info.scope == Scope::Location {
                " on paths"
            } else {
                ""
            };
            let message = format!("has no effect{whereon} without {needed}{and}");
            self.tell(key, severity, Reason::InvalidAnnotation, message);
        }
    }

    /// Whether nothing says what the annotation needs.
    pub(super) fn is_lonely(&self, info: &AnnotationInfo) -> bool {
        let is_met = |need: &Need| {
            let entry = self.entry(need.name);
            need.is_met(entry.map(|entry| entry.value), self.config)
        };
        !info.needs.is_empty() && !info.needs.iter().any(is_met)
    }
}
