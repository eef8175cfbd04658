//! Which Ingresses are ours: by namespace, by class, and by whether they claim every host.

use std::collections::BTreeSet;

use k8s_openapi::api::{
    core::v1::Namespace,
    networking::v1::{Ingress, IngressClass},
};

use crate::{
    diagnostic::{Diagnostic, Reason, Severity},
    object::{ObjectKind, ObjectMap, ObjectName, ObjectRef},
    options::Options,
};

/// The annotation that named the class before `spec.ingressClassName` did.
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

/// Why an Ingress is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// How bad it is.
    pub(crate) severity: Severity,
    /// The kind.
    pub(crate) reason: Reason,
    /// The field.
    pub(crate) key: String,
    /// The fault.
    pub(crate) message: String,
}

impl Refusal {
    /// As told to the Ingress's author.
    pub(crate) fn diagnostic(self, ingress: &ObjectName) -> Diagnostic {
        let object = ObjectRef::new(ObjectKind::Ingress, ingress.clone());
        Diagnostic::new(object, self.severity, self.reason, self.message).with_key(self.key)
    }
}

/// Tells our Ingresses from those of others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    namespace: Option<String>,
    selected: Option<BTreeSet<String>>,
    class: String,
    classes: Option<Classes>,
    without_class: bool,
    disable_catch_all: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Classes {
    ours: BTreeSet<String>,
    others: BTreeSet<String>,
}

impl Filter {
    /// Our IngressClasses are those whose `spec.controller` is `--controller-class`, and with
    /// `--ingress-class-by-name` the one named like `--ingress-class`.
    ///
    /// ```
    /// use ingress_model::testing::Fixture;
    ///
    ///
    /// let class = "{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: web}, \
    ///              spec: {controller: k8s.io/ingress-nginx}}";
    /// let mut options = ingress_model::Options { ingress_class: "web".into(), ..Default::default() };
    /// let of = |options: &ingress_model::Options| Fixture::from_yaml(class).map(|fixture| {
    ///     fixture.with_options(options.clone()).and_ingress("shop/a", &[], &["a.test/ web:80"]).merge()
    /// });
    /// of(&options)?.assert_hosts(["a.test"]);
    /// options.controller_class = "example.test/other".into();
    /// of(&options)?.assert_hosts([]);
    /// options.ingress_class_by_name = true;
    /// of(&options)?.assert_hosts(["a.test"]);
    /// # Ok::<_, ingress_model::testing::FixtureError>(())
    /// ```
    pub(crate) fn new(
        options: &Options,
        classes: &ObjectMap<IngressClass>,
        namespaces: &ObjectMap<Namespace>,
    ) -> Self {
        let is_ours = |name: &str, class: &IngressClass| {
            let spec = class.spec.as_ref();
            let controller = spec.and_then(|spec| spec.controller.as_deref());
            controller == Some(options.controller_class.as_str())
                || options.ingress_class_by_name && name == options.ingress_class
        };
        let readable = options.ingress_classes_readable.then(|| {
            let (ours, others): (Vec<_>, Vec<_>) = classes
                .iter()
                .partition(|(name, class)| is_ours(name.name(), class));
            let names = |classes: Vec<(&ObjectName, _)>| {
                let names = classes.into_iter().map(|(name, _)| name.name().to_owned());
                names.collect()
            };
            Classes {
                ours: names(ours),
                others: names(others),
            }
        });
        let selected = options.namespace_selector.as_ref().map(|selector| {
            namespaces
                .iter()
                .filter(|(_, namespace)| selector.matches(namespace.metadata.labels.as_ref()))
                .map(|(name, _)| name.name().to_owned())
                .collect()
        });
        Self {
            namespace: options.watch_namespace.clone(),
            selected,
            class: options.ingress_class.clone(),
            classes: readable,
            without_class: options.watch_ingress_without_class,
            disable_catch_all: options.disable_catch_all,
        }
    }

    /// Whether the Ingress is ours, or why not.
    pub(crate) fn check(&self, name: &ObjectName, ingress: &Ingress) -> Result<(), Refusal> {
        self.check_namespace(name)?;
        self.check_class(ingress)?;
        self.check_catch_all(ingress)
    }

    /// `--watch-namespace` names the only namespace that counts; with `--watch-namespace-selector` those count whose
    /// labels match, an unknown one not.
    ///
    /// ```
    /// use ingress_model::testing::Fixture;
    ///
    /// let options = ingress_model::Options { watch_namespace: Some("shop".into()), ..Default::default() };
    /// let served = Fixture::default()
    ///     .with_options(options)
    ///     .and_ingress("shop/a", &[], &["a.test/ web:80"])
    ///     .and_ingress("bank/b", &[], &["b.test/ web:80"])
    ///     .merge();
    /// served.assert_hosts(["a.test"]);
    /// ```
    fn check_namespace(&self, name: &ObjectName) -> Result<(), Refusal> {
        let namespace = name.namespace();
        let outside = self
            .namespace
            .as_deref()
            .is_some_and(|only| only != namespace);
        let unselected = self
            .selected
            .as_ref()
            .is_some_and(|selected| !selected.contains(namespace));
        if outside || unselected {
            return Err(Refusal {
                severity: Severity::Info,
                reason: Reason::ForeignNamespace,
                key: "metadata.namespace".into(),
                message: format!("namespace {namespace} is not watched"),
            });
        }
        Ok(())
    }

    /// The class decides in this order: `spec.ingressClassName` has to be an IngressClass of ours, whatever the
    /// annotation says; else the annotation `kubernetes.io/ingress.class` has to be `--ingress-class`; else the Ingress
    /// is ours with `--watch-ingress-without-class` only. Where IngressClasses cannot be read, the first step is left
    /// out.
    ///
    /// ```
    /// use ingress_model::testing::Fixture;
    ///
    /// // The annotation does not count where the field names a class.
    /// let text = "{apiVersion: networking.k8s.io/v1, kind: Ingress, \
    ///             metadata: {name: a, namespace: shop, annotations: {kubernetes.io/ingress.class: nginx}}, \
    ///             spec: {ingressClassName: other, rules: [{host: a.test}]}}";
    /// Fixture::from_yaml(text)?.merge().assert_hosts([]);
    /// Fixture::from_yaml(&text.replace("ingressClassName: other, ", ""))?.merge().assert_hosts(["a.test"]);
    /// # Ok::<_, ingress_model::testing::FixtureError>(())
    /// ```
    fn check_class(&self, ingress: &Ingress) -> Result<(), Refusal> {
        let spec = ingress.spec.as_ref();
        let class = spec.and_then(|spec| spec.ingress_class_name.as_deref());
        let class = class.filter(|class| !class.is_empty());
        if let (Some(class), Some(classes)) = (class, &self.classes) {
            return check_class_name(class, classes);
        }
        let annotations = ingress.metadata.annotations.as_ref();
        let (key, message) = match annotations.and_then(|all| all.get(CLASS_ANNOTATION)) {
            Some(class) if *class == self.class => return Ok(()),
            Some(class) => (
                CLASS_ANNOTATION,
                format!("class {class:?} is not {:?}", self.class),
            ),
            None if self.without_class => return Ok(()),
            None => ("spec.ingressClassName", "no class is named".to_owned()),
        };
        Err(Refusal {
            severity: Severity::Info,
            reason: Reason::ForeignClass,
            key: key.into(),
            message,
        })
    }

    /// With `--disable-catch-all`, an Ingress that has a default backend is ignored.
    ///
    /// ```
    /// use ingress_model::testing::Fixture;
    ///
    /// let options = ingress_model::Options { disable_catch_all: true, ..Default::default() };
    /// let text = "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, namespace: shop}, \
    ///             spec: {ingressClassName: nginx, defaultBackend: {service: {name: web, port: {number: 80}}}}}";
    /// let fixture = Fixture::from_yaml(text)?;
    /// fixture.merge().assert_locations("", ["/ shop/a shop-web-80"]);
    /// fixture.with_options(options).merge().assert_locations("", ["/ - upstream-default-backend"]);
    /// # Ok::<_, ingress_model::testing::FixtureError>(())
    /// ```
    fn check_catch_all(&self, ingress: &Ingress) -> Result<(), Refusal> {
        let spec = ingress.spec.as_ref();
        if self.disable_catch_all && spec.is_some_and(|spec| spec.default_backend.is_some()) {
            return Err(Refusal {
                severity: Severity::Error,
                reason: Reason::CatchAllDisabled,
                key: "spec.defaultBackend".into(),
                message: "default backends are not allowed (flag --disable-catch-all)".into(),
            });
        }
        Ok(())
    }
}

fn check_class_name(class: &str, classes: &Classes) -> Result<(), Refusal> {
    if classes.ours.contains(class) {
        return Ok(());
    }
    let (severity, reason, message) = if classes.others.contains(class) {
        let message = format!("IngressClass {class} is of another controller");
        (Severity::Info, Reason::ForeignClass, message)
    } else {
        let message = format!("IngressClass {class} does not exist");
        (Severity::Warning, Reason::MissingClass, message)
    };
    Err(Refusal {
        severity,
        reason,
        key: "spec.ingressClassName".into(),
        message,
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::networking::v1::{IngressBackend, IngressClassSpec, IngressSpec};

    use super::*;
    use crate::selector::LabelSelector;

    fn classes() -> ObjectMap<IngressClass> {
        [
            ("ours", "k8s.io/ingress-nginx"),
            ("theirs", "x.test/y"),
            ("nginx", "x.test/y"),
        ]
        .map(|(name, controller)| {
            let class = IngressClass {
                spec: Some(IngressClassSpec {
                    controller: Some(controller.into()),
                    ..IngressClassSpec::default()
                }),
                ..IngressClass::default()
            };
            (ObjectName::cluster(name), std::sync::Arc::new(class))
        })
        .into_iter()
        .collect()
    }

    fn ingress(class: Option<&str>, annotation: Option<&str>) -> Ingress {
        let mut ingress = Ingress {
            spec: Some(IngressSpec {
                ingress_class_name: class.map(Into::into),
                ..IngressSpec::default()
            }),
            ..Ingress::default()
        };
        ingress.metadata.annotations =
            annotation.map(|value| [(CLASS_ANNOTATION.to_owned(), value.to_owned())].into());
        ingress
    }

    fn check(options: &Options, ingress: &Ingress) -> Result<(), Reason> {
        Filter::new(options, &classes(), &ObjectMap::default())
            .check(&ObjectName::new("shop", "web"), ingress)
            .map_err(|refusal| refusal.reason)
    }

    #[test]
    fn the_class_is_found_in_order() {
        let plain = Options::default();
        let by_name = Options {
            ingress_class_by_name: true,
            ..Options::default()
        };
        let without = Options {
            watch_ingress_without_class: true,
            ..Options::default()
        };
        let unreadable = Options {
            ingress_classes_readable: false,
            ..Options::default()
        };
        for (options, class, annotation, want) in [
            (&plain, Some("ours"), None, Ok(())),
            (&plain, Some("ours"), Some("other"), Ok(())),
            (
                &plain,
                Some("theirs"),
                Some("nginx"),
                Err(Reason::ForeignClass),
            ),
            (
                &plain,
                Some("none"),
                Some("nginx"),
                Err(Reason::MissingClass),
            ),
            (&plain, Some("nginx"), None, Err(Reason::ForeignClass)),
            (&by_name, Some("nginx"), None, Ok(())),
            (&plain, None, Some("nginx"), Ok(())),
            (&plain, Some(""), Some("nginx"), Ok(())),
            (&plain, None, Some(""), Err(Reason::ForeignClass)),
            (&without, None, Some(""), Err(Reason::ForeignClass)),
            (&plain, None, None, Err(Reason::ForeignClass)),
            (&without, None, None, Ok(())),
            (&without, Some("theirs"), None, Err(Reason::ForeignClass)),
            (&unreadable, Some("theirs"), Some("nginx"), Ok(())),
            (&unreadable, Some("ours"), None, Err(Reason::ForeignClass)),
        ] {
            assert_eq!(
                check(options, &ingress(class, annotation)),
                want,
                "{class:?} {annotation:?}"
            );
        }
    }

    #[test]
    fn the_namespace_has_to_be_watched() {
        let only = |namespace: &str| Options {
            watch_namespace: Some(namespace.into()),
            ..Options::default()
        };
        let ours = ingress(Some("ours"), None);
        assert_eq!(check(&only("shop"), &ours), Ok(()));
        assert_eq!(check(&only("bank"), &ours), Err(Reason::ForeignNamespace));

        let options = Options {
            namespace_selector: Some(LabelSelector::parse("team=shop").unwrap()),
            ..Options::default()
        };
        assert_eq!(check(&options, &ours), Err(Reason::ForeignNamespace));
        let mut namespaces = ObjectMap::default();
        let mut namespace = Namespace::default();
        namespace.metadata.labels = Some([("team".to_owned(), "shop".to_owned())].into());
        namespaces.insert(ObjectName::cluster("shop"), namespace);
        let filter = Filter::new(&options, &classes(), &namespaces);
        assert_eq!(filter.check(&ObjectName::new("shop", "web"), &ours), Ok(()));
    }

    #[test]
    fn default_backends_may_be_disabled() {
        let options = Options {
            disable_catch_all: true,
            ..Options::default()
        };
        let mut ours = ingress(Some("ours"), None);
        assert_eq!(check(&options, &ours), Ok(()));
        if let Some(spec) = &mut ours.spec {
            spec.default_backend = Some(IngressBackend::default());
        }
        assert_eq!(check(&options, &ours), Err(Reason::CatchAllDisabled));
        assert_eq!(check(&Options::default(), &ours), Ok(()));
    }
}
