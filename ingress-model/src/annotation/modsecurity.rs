//! ModSecurity, the web application firewall.

use crate::{config::Risk, layout::ModSecurity};

use super::{
    grammar::VARIABLES,
    reader::Reader,
    registry::{ANNOTATION, AnnotationInfo, Need},
};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "enable-modsecurity",
        value: "boolean",
        default: "as the ConfigMap has it",
        config_key: Some("enable-modsecurity"),
        example: "true",
        doc: "Whether ModSecurity looks at requests.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "enable-owasp-core-rules",
        needs: &[IN_FORCE],
        value: "boolean",
        default: "false",
        config_key: Some("enable-owasp-modsecurity-crs"),
        example: "true",
        doc: "Whether ModSecurity has the OWASP core rule set.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "modsecurity-transaction-id",
        needs: &[IN_FORCE],
        value: "letters, digits and `-_${}`",
        default: "none",
        risk: Risk::High,
        example: "$request_id",
        doc: "Identity of a request in ModSecurity's log.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "modsecurity-snippet",
        needs: &[IN_FORCE],
        value: "raw configuration",
        default: "none",
        config_key: Some("modsecurity-snippet"),
        risk: Risk::Critical,
        example: "SecRuleEngine On",
        doc: "Rules for ModSecurity, instead of its file of rules.",
        ..ANNOTATION
    },
];

/// Without its switch ModSecurity does nothing.
const IN_FORCE: Need =
    Need::on("enable-modsecurity").or_above(|config| config.render.enable_modsecurity);

pub(super) fn read(reader: &mut Reader<'_>) -> ModSecurity {
    ModSecurity {
        enable: reader.boolean("enable-modsecurity"),
        core_rules: reader.boolean("enable-owasp-core-rules").unwrap_or(false),
        transaction_id: reader.template("modsecurity-transaction-id", VARIABLES),
        rules: reader.snippet("modsecurity-snippet"),
    }
}
