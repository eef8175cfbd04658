//! The protocol spoken to the endpoints.

use crate::{layout::BackendProtocol, scalar};

use super::{
    reader::Reader,
    registry::{ANNOTATION, AnnotationInfo},
};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[AnnotationInfo {
    name: "backend-protocol",
    value: "`HTTP`, `HTTPS`, `AUTO_HTTP`, `GRPC`, `GRPCS` or `FCGI`, in any case",
    default: "HTTP",
    example: "GRPC",
    doc: "Protocol spoken to the endpoints.",
    ..ANNOTATION
}];

/// In any case: ingress-nginx's users write it in lower case as well.
const PROTOCOLS: &[(&str, BackendProtocol)] = &[
    ("HTTP", BackendProtocol::Http),
    ("HTTPS", BackendProtocol::Https),
    ("AUTO_HTTP", BackendProtocol::AutoHttp),
    ("GRPC", BackendProtocol::Grpc),
    ("GRPCS", BackendProtocol::Grpcs),
    ("FCGI", BackendProtocol::Fcgi),
];

pub(super) fn read(reader: &mut Reader<'_>) -> BackendProtocol {
    reader
        .value("backend-protocol", |text| {
            scalar::word(&text.to_ascii_uppercase(), PROTOCOLS)
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotation::testing::{faults, settings};

    #[test]
    fn in_any_case() {
        for (text, want) in [
            ("HTTP", BackendProtocol::Http),
            ("https", BackendProtocol::Https),
            ("Auto_Http", BackendProtocol::AutoHttp),
            ("grpc", BackendProtocol::Grpc),
            (" GRPCS ", BackendProtocol::Grpcs),
            ("fcgi", BackendProtocol::Fcgi),
            ("AJP", BackendProtocol::Http),
        ] {
            let settings = settings(&[("backend-protocol", text)]).unwrap();
            assert_eq!(settings.location.backend_protocol, want, "{text:?}");
        }
        assert_eq!(faults(&[("backend-protocol", "AJP")]).len(), 1);
    }
}
