//! Typed access to the annotations of one Ingress. Whatever cannot be used is reported here, by the rule that the
//! registry has for the annotation.

mod idle;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
};

use k8s_openapi::api::networking::v1::Ingress;

use crate::{
    config::{GlobalConfig, Policy},
    diagnostic::{Diagnostic, Reason, Severity},
    object::{ObjectKind, ObjectName, ObjectRef},
    options::Options,
    scalar,
    value::{Literal, Seconds, Size, Snippet, Template, ValueError},
};

use super::{
    grammar::Grammar,
    registry::{self, AnnotationInfo, Misuse, Scope},
    retired,
};

/// The prefix that annotations have unless `--annotations-prefix` says otherwise.
const USUAL_PREFIX: &str = "nginx.ingress.kubernetes.io";

/// An object of another namespace without the administrator's consent.
pub(super) const FOREIGN: ValueError = ValueError::Rule(
    "objects of other namespaces are not allowed (ConfigMap key allow-cross-namespace-resources)",
);

/// Reads the annotations of one Ingress.
pub(super) struct Reader<'a> {
    pub(super) config: &'a GlobalConfig,
    /// `--enable-ssl-passthrough`.
    pub(super) passes_tls: bool,
    ingress: ObjectRef,
    /// Without the slash.
    prefix: &'a str,
    written: &'a Ingress,
    validation: bool,
    /// By name, without prefix.
    present: BTreeMap<&'a str, Entry<'a>>,
    /// Whether any of them has a former name.
    has_former: bool,
    diagnostics: &'a mut Vec<Diagnostic>,
    denied: Option<String>,
    refused: bool,
    /// Annotations that may not be used, for which the Ingress is refused.
    withheld: BTreeSet<&'static str>,
    /// Keys of annotations whose value does not hold.
    unused: BTreeSet<&'a str>,
}

/// An annotation that may be used, and whether its value holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    /// Its name, without prefix; a former name counts as the present one.
    pub(crate) name: &'static str,
    /// As written.
    pub(crate) key: String,
    /// As written, without white space around it.
    pub(crate) value: String,
    /// Whether the value holds, rather than what holds without it.
    pub(crate) holds: bool,
}

/// An annotation as written.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    key: &'a str,
    pub(super) value: &'a str,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        ingress: &'a Ingress,
        options: &'a Options,
        config: &'a GlobalConfig,
        diagnostics: &'a mut Vec<Diagnostic>,
    ) -> Self {
        let name = ObjectName::new(
            ingress.metadata.namespace.as_deref().unwrap_or_default(),
            ingress.metadata.name.as_deref().unwrap_or_default(),
        );
        let mut reader = Self {
            config,
            passes_tls: options.ssl_passthrough,
            ingress: ObjectRef::new(ObjectKind::Ingress, name),
            prefix: &options.annotations_prefix,
            written: ingress,
            validation: options.annotation_validation,
            present: BTreeMap::new(),
            has_former: false,
            diagnostics,
            denied: None,
            refused: false,
            withheld: BTreeSet::new(),
            unused: BTreeSet::new(),
        };
        for (key, value) in ingress.metadata.annotations.iter().flatten() {
            match key.split_once('/') {
                Some((prefix, name)) if prefix == options.annotations_prefix => {
                    reader.admit(name, Entry { key, value });
                }
                Some((USUAL_PREFIX, _)) => reader.tell(
                    key,
                    Severity::Info,
                    Reason::UnknownAnnotation,
                    format!(
                        "is not read: annotations begin with {}/ here",
                        options.annotations_prefix
                    ),
                ),
                Some((prefix, name)) => reader.tell_of_stranger(key, prefix, name),
                None => {}
            }
        }
        reader.report_lonely();
        reader
    }

    /// Takes an annotation, if it may be used.
    fn admit(&mut self, name: &'a str, entry: Entry<'a>) {
        let key = entry.key;
        let policy = self.policy();
        let info = registry::find(name);
        if let Some(word) = policy
            .word_blocklist
            .iter()
            .find(|word| !word.is_empty() && entry.value.contains(word.as_str()))
        {
            let fault = format!(
                "holds {word:?}, which the administrator does not allow; the Ingress is not served"
            );
            self.withheld.extend(info.map(|info| info.name));
            self.refuse(key, Reason::RefusedAnnotation, fault);
            return;
        }
        let Some(info) = info else {
            let message = retired::hint(name).unwrap_or_else(|| {
                let hint = registry::suggestion(name)
                    .map(|name| format!("; did you mean {name}?"))
                    .unwrap_or_default();
                format!("there is no such annotation{hint}")
            });
            self.tell(key, Severity::Warning, Reason::UnknownAnnotation, message);
            return;
        };
        if name.ends_with("-snippet") && !policy.allow_snippet_annotations {
            self.tell(
                key,
                Severity::Warning,
                Reason::RefusedAnnotation,
                "is ignored: snippets are not allowed (ConfigMap key allow-snippet-annotations)"
                    .into(),
            );
            return;
        }
        if info.risk > policy.annotations_risk_level {
            let fault = format!(
                "has the risk {:?}, but only annotations up to {:?} are allowed (ConfigMap key \
                 annotations-risk-level); the Ingress is not served",
                info.risk, policy.annotations_risk_level
            );
            self.withheld.insert(info.name);
            self.refuse(key, Reason::RefusedAnnotation, fault);
            return;
        }
        self.has_former |= info.name != name;
        self.present.insert(name, entry);
    }

    pub(super) fn policy(&self) -> &'a Policy {
        &self.config.policy
    }

    /// The Ingress.
    pub(super) fn name(&self) -> &ObjectName {
        &self.ingress.name
    }

    /// The paths of the Ingress's rules, as written.
    pub(super) fn paths(&self) -> impl Iterator<Item = &'a str> {
        let rules = self
            .written
            .spec
            .iter()
            .flat_map(|spec| &spec.rules)
            .flatten();
        let paths = rules
            .filter_map(|rule| rule.http.as_ref())
            .flat_map(|http| &http.paths);
        paths.map(|path| path.path.as_deref().unwrap_or_default())
    }

    /// Whether the Ingress must not be served at all.
    pub(super) fn is_refused(&self) -> bool {
        self.refused
    }

    /// Why its locations are closed, if they are.
    pub(super) fn denied(&self) -> Option<String> {
        self.denied.clone()
    }

    /// Whether the annotation has a value that is not empty, or one that may not be used.
    pub(super) fn asks_for(&self, name: &str) -> bool {
        self.says(name) || self.withheld.contains(name)
    }

    /// Whether an annotation whose name begins so may not be used.
    pub(super) fn is_withheld(&self, beginning: &str) -> bool {
        self.withheld.iter().any(|name| name.starts_with(beginning))
    }

    /// Whether the value turned out not to be usable; not that it is empty or means nothing without another annotation.
    pub(super) fn is_misused(&self, name: &str) -> bool {
        let is_lonely = registry::find(name).is_some_and(|info| self.is_lonely(info));
        let entry = self.entry(name).filter(|_| !is_lonely && self.says(name));
        entry.is_some_and(|entry| self.unused.contains(entry.key))
    }

    /// What became of the annotations, once they are read.
    pub(super) fn uses(&self) -> Vec<Use> {
        let present = self.present.iter();
        let uses = present.filter_map(|(name, entry)| {
            let info = registry::find(name)?;
            // Of an annotation and its former name one is read.
            let is_read = self
                .entry(info.name)
                .is_some_and(|read| read.key == entry.key);
            Some(Use {
                name: info.name,
                key: entry.key.to_owned(),
                value: entry.value.trim().to_owned(),
                holds: is_read && !self.unused.contains(entry.key),
            })
        });
        uses.collect()
    }

    /// The annotation as written, or a former name's; an empty one counts if there is nothing better.
    pub(super) fn entry(&self, name: &str) -> Option<Entry<'a>> {
        if !self.has_former {
            return self.present.get(name).copied();
        }
        let info = registry::find(name)?;
        let names = || std::iter::once(&info.name).chain(info.aliases);
        let entries = || names().filter_map(|name| self.present.get(name).copied());
        entries()
            .find(|entry| !entry.value.trim().is_empty())
            .or_else(|| entries().next())
    }

    /// Whether the annotation is there, with whatever value.
    pub(super) fn has(&self, name: &str) -> bool {
        self.entry(name).is_some()
    }

    /// Whether the annotation has a value that is not empty.
    pub(super) fn says(&self, name: &str) -> bool {
        self.entry(name)
            .is_some_and(|entry| !entry.value.trim().is_empty())
    }

    /// Whether the annotation is there, but empty.
    pub(super) fn is_blank(&self, name: &str) -> bool {
        self.has(name) && !self.says(name)
    }

    /// What `parse` makes of the trimmed value; what it cannot use is reported and has the registry's consequence.
    /// An empty value is as good as none.
    pub(super) fn value<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&'a str) -> Result<T, ValueError>,
    ) -> Option<T> {
        let entry = self.entry(name)?;
        let text = entry.value.trim();
        if text.is_empty() {
            self.unused.insert(entry.key);
            self.tell(
                entry.key,
                Severity::Info,
                Reason::InvalidAnnotation,
                "is empty and has no effect".into(),
            );
            return None;
        }
        match parse(text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.misused(name, &error);
                None
            }
        }
    }

    pub(super) fn boolean(&mut self, name: &str) -> Option<bool> {
        self.value(name, scalar::boolean)
    }

    /// `on` or `off`.
    pub(super) fn switch(&mut self, name: &str) -> Option<bool> {
        self.value(name, scalar::switch)
    }

    /// A whole number between two others, these included.
    pub(super) fn number(&mut self, name: &str, low: u32, high: u32) -> Option<u32> {
        self.value(name, |text| {
            scalar::within(scalar::integer(text)?, low, high)
        })
    }

    /// Whole seconds; a time too long for NGINX is the longest there is.
    pub(super) fn seconds(&mut self, name: &str) -> Option<Seconds> {
        let longest = scalar::LONGEST;
        let number = self.value(name, scalar::integer)?;
        if number > longest.into() {
            let message = format!("{number} s is longer than NGINX counts; it is {longest} s");
            self.warn(name, message);
            return Some(Seconds(longest));
        }
        self.value(name, |_| scalar::within(number, 0, longest))
            .map(Seconds)
    }

    pub(super) fn size(&mut self, name: &str) -> Option<Size> {
        self.value(name, Size::parse)
    }

    /// One of the words.
    pub(super) fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Option<T> {
        self.value(name, |text| scalar::word(text, words))
    }

    /// Text of certain characters, if annotations are validated at all; never control characters.
    pub(super) fn text(&mut self, name: &str, grammar: Grammar) -> Option<&'a str> {
        let validation = self.validation;
        self.value(name, |text| {
            if validation {
                grammar.check(text)?;
            }
            Literal::parse(text).map(|_| text)
        })
    }

    /// Such text, without variables.
    pub(super) fn literal(&mut self, name: &str, grammar: Grammar) -> Option<Literal> {
        let text = self.text(name, grammar)?;
        self.value(name, |_| Literal::parse(text))
    }

    /// Such text, with variables.
    pub(super) fn template(&mut self, name: &str, grammar: Grammar) -> Option<Template> {
        let text = self.text(name, grammar)?;
        self.value(name, |_| Template::parse(text))
    }

    /// Raw configuration.
    pub(super) fn snippet(&self, name: &str) -> Option<Snippet> {
        Snippet::new(self.entry(name)?.value)
    }

    /// `namespace/name`, or the name of an object in the Ingress's namespace. Objects of other namespaces need the
    /// administrator's consent.
    pub(super) fn object(&mut self, name: &str) -> Option<ObjectName> {
        self.named_object(name, true)
    }

    /// As [`Reader::object`], but with the namespace always.
    pub(super) fn qualified_object(&mut self, name: &str) -> Option<ObjectName> {
        self.named_object(name, false)
    }

    fn named_object(&mut self, name: &str, bare: bool) -> Option<ObjectName> {
        let ingress = self.ingress.name.clone();
        let foreign_allowed = self.policy().allow_cross_namespace_resources;
        self.value(name, |text| {
            let object = if bare && scalar::is_label(text, 253) {
                ingress.sibling(text)
            } else {
                scalar::object_name(text)?
            };
            if object.namespace() != ingress.namespace() && !foreign_allowed {
                return Err(FOREIGN);
            }
            Ok(object)
        })
    }

    /// Whether values are checked for the characters that they may have.
    pub(super) fn validates(&self) -> bool {
        self.validation
    }

    /// Reports that the value cannot be used, with the registry's consequence.
    pub(super) fn misused(&mut self, name: &str, fault: &dyn Display) {
        if let Some(info) = registry::find(name) {
            self.misused_as(info, info.misuse, fault);
        }
    }

    /// Reports that the value cannot be used and that the fall-back holds.
    pub(super) fn fall_back(&mut self, name: &str, fault: &dyn Display) {
        if let Some(info) = registry::find(name) {
            self.misused_as(info, Misuse::FallBack, fault);
        }
    }

    /// Reports that the locations are closed for a reason beyond the value.
    pub(super) fn deny_because(&mut self, name: &str, fault: &'static str) {
        if let Some(info) = registry::find(name) {
            self.misused_as(info, Misuse::Deny, &ValueError::Rule(fault));
        }
    }

    /// Reports something that is served otherwise than its author may think.
    pub(super) fn warn(&mut self, name: &str, message: String) {
        if let Some(entry) = self.entry(name) {
            self.tell(
                entry.key,
                Severity::Warning,
                Reason::InvalidAnnotation,
                message,
            );
        }
    }

    /// Reports that a value that could be used does not hold.
    pub(super) fn ineffective(&mut self, name: &str, message: &str) {
        if let Some(entry) = self.entry(name) {
            self.unused.insert(entry.key);
            self.warn(name, message.into());
        }
    }

    fn misused_as(&mut self, info: &AnnotationInfo, misuse: Misuse, fault: &dyn Display) {
        let Some(entry) = self.entry(info.name) else {
            return;
        };
        let key = entry.key;
        self.unused.insert(key);
        let takes = info.value;
        match misuse {
            Misuse::FallBack => self.tell(
                key,
                Severity::Warning,
                Reason::InvalidAnnotation,
                format!("{fault}; the default holds (it takes: {takes})"),
            ),
            Misuse::Deny => {
                let closed = match info.scope {
                    Scope::Server => "its hosts are closed",
                    Scope::Location | Scope::Backend | Scope::Ingress => "its locations are closed",
                };
                self.tell(
                    key,
                    Severity::Error,
                    Reason::InvalidAnnotation,
                    format!("{fault}; {closed} (it takes: {takes})"),
                );
                if info.scope != Scope::Server {
                    self.deny(format!("annotation {key} cannot be used: {fault}"));
                }
            }
            Misuse::Refuse => self.refuse(
                key,
                Reason::InvalidAnnotation,
                format!("{fault}; the Ingress is not served (it takes: {takes})"),
            ),
        }
    }

    /// Closes the locations; the first reason stays.
    pub(super) fn deny(&mut self, reason: String) {
        self.denied.get_or_insert(reason);
    }

    fn refuse(&mut self, key: &str, reason: Reason, message: String) {
        self.refused = true;
        self.tell(key, Severity::Error, reason, message);
    }

    fn tell(&mut self, key: &str, severity: Severity, reason: Reason, message: String) {
        let about = self.ingress.clone();
        self.diagnostics
            .push(Diagnostic::new(about, severity, reason, message).with_key(key));
    }
}
