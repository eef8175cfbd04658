//! Tracing with OpenTelemetry.

use crate::{config::Risk, layout::Tracing};

use super::{
    grammar::Grammar,
    reader::Reader,
    registry::{ANNOTATION, AnnotationInfo, Misuse, Need},
};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "enable-opentelemetry",
        value: "boolean",
        default: "as the ConfigMap has it",
        config_key: Some("enable-opentelemetry"),
        example: "true",
        doc: "Whether requests are traced.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "opentelemetry-trust-incoming-span",
        needs: &[Need::on("enable-opentelemetry")],
        value: "boolean",
        default: "true",
        config_key: Some("opentelemetry-trust-incoming-span"),
        example: "false",
        doc: "Whether a trace that the client began is continued.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "opentelemetry-operation-name",
        needs: &[Need::on("enable-opentelemetry")],
        value: "letters, digits, `_` and `-`",
        default: "none",
        config_key: Some("opentelemetry-operation-name"),
        risk: Risk::Medium,
        misuse: Misuse::Refuse,
        example: "shop",
        doc: "Name of the span.",
        ..ANNOTATION
    },
];

const NAME: Grammar = Grammar::new("-_", "letters, digits, - and _");

/// The others mean nothing unless `enable-opentelemetry` is true.
pub(super) fn read(reader: &mut Reader<'_>) -> Tracing {
    let enable = reader.boolean("enable-opentelemetry");
    if enable != Some(true) {
        return Tracing {
            enable,
            ..Tracing::default()
        };
    }
    Tracing {
        enable,
        trust_incoming_span: reader.boolean("opentelemetry-trust-incoming-span"),
        operation_name: reader.literal("opentelemetry-operation-name", NAME),
    }
}

#[cfg(test)]
mod tests {
    use crate::annotation::testing::settings;

    #[test]
    fn details_need_the_switch() {
        let off = [
            ("enable-opentelemetry", "false"),
            ("opentelemetry-operation-name", "a b;"),
        ];
        assert_eq!(settings(&off).unwrap().location.tracing.enable, Some(false));
        let on = [
            ("enable-opentelemetry", "true"),
            ("opentelemetry-operation-name", "shop"),
        ];
        let tracing = settings(&on).unwrap().location.tracing.clone();
        assert_eq!(tracing.operation_name.unwrap().as_str(), "shop");
    }
}
