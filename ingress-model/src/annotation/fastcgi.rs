//! Parameters of FastCGI.

use crate::{config::Risk, layout::FastCgi, object::ObjectName};

use super::{
    grammar::Grammar,
    reader::Reader,
    registry::{ANNOTATION, AnnotationInfo, Misuse, Need},
};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "fastcgi-index",
        needs: &[Need::one_of("backend-protocol", &["FCGI"])],
        value: "letters, digits and `.-_`",
        default: "none",
        risk: Risk::Medium,
        misuse: Misuse::Refuse,
        example: "index.php",
        doc: "File that stands for a directory.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "fastcgi-params-configmap",
        needs: &[Need::one_of("backend-protocol", &["FCGI"])],
        value: "`name` or `namespace/name`",
        default: "none",
        risk: Risk::Medium,
        misuse: Misuse::Deny,
        example: "shop/params",
        doc: "ConfigMap with FastCGI parameters.",
        ..ANNOTATION
    },
];

const FILE: Grammar = Grammar::new("-._", "letters, digits, -, . and _");

pub(super) fn read(reader: &mut Reader<'_>) -> FastCgi {
    FastCgi {
        index: reader.literal("fastcgi-index", FILE),
        params: Vec::new(),
    }
}

/// The ConfigMap with the parameters.
pub(super) fn params(reader: &mut Reader<'_>) -> Option<ObjectName> {
    reader.object("fastcgi-params-configmap")
}

#[cfg(test)]
mod tests {
    use crate::{annotation::testing::settings, object::ObjectName};

    #[test]
    fn parameters_come_from_the_own_namespace() {
        let read = |text| settings(&[("fastcgi-params-configmap", text)]).unwrap();
        for name in ["params", "shop/params"] {
            let params = read(name).references.fastcgi_params;
            assert_eq!(params, Some(ObjectName::new("shop", "params")));
        }
        assert!(read("other/params").location.denied.is_some());
        assert!(read("a b").location.denied.is_some());
    }

    #[test]
    fn the_index_is_a_file() {
        let read = |text| settings(&[("fastcgi-index", text)]);
        let index = read("index.php").unwrap().location.fastcgi.index.clone();
        assert_eq!(index.unwrap().as_str(), "index.php");
        assert_eq!(read("a/b;"), None);
    }
}
