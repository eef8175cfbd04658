//! Buffers of request bodies and of responses, and files for what does not fit.

use crate::{
    layout::ProxySettings,
    value::{Size, ValueError},
};

use super::{
    proxy::other,
    reader::Reader,
    registry::{ANNOTATION, AnnotationInfo, Misuse},
};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "client-body-buffer-size",
        value: "size",
        default: "8k",
        config_key: Some("client-body-buffer-size"),
        misuse: Misuse::Refuse,
        example: "16k",
        doc: "How much of a request body is kept in memory.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-request-buffering",
        value: "`on` or `off`",
        default: "on",
        config_key: Some("proxy-request-buffering"),
        example: "off",
        doc: "Whether request bodies are read whole before an endpoint is asked.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-buffering",
        value: "`on` or `off`",
        default: "off",
        config_key: Some("proxy-buffering"),
        example: "on",
        doc: "Whether responses are buffered.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-buffer-size",
        value: "size",
        default: "4k",
        config_key: Some("proxy-buffer-size"),
        example: "16k",
        doc: "Size of the buffer for the head of a response, of the authenticating service's too, and of each further buffer.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-buffers-number",
        value: "whole number",
        default: "4",
        config_key: Some("proxy-buffers-number"),
        example: "8",
        doc: "How many buffers a response has.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-busy-buffers-size",
        value: "size",
        default: "twice the buffer size",
        config_key: Some("proxy-busy-buffers-size"),
        example: "8k",
        doc: "How much may be on its way to the client while the response is still being read.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-max-temp-file-size",
        value: "size",
        default: "1024m",
        config_key: Some("proxy-max-temp-file-size"),
        example: "64m",
        doc: "How much of a response may be put in a temporary file; 0: nothing.",
        ..ANNOTATION
    },
];

/// Most buffers that one response may have.
const MOST_BUFFERS: u32 = 65_536;

/// Reads what differs from the ConfigMap's settings. Sizes that contradict each other fall back together.
pub(super) fn read(reader: &mut Reader<'_>, own: &mut ProxySettings, above: &ProxySettings) {
    own.buffering = other(reader.switch("proxy-buffering"), above.buffering.as_ref());
    own.request_buffering = other(
        reader.switch("proxy-request-buffering"),
        above.request_buffering.as_ref(),
    );
    own.buffer_size = other(
        buffer(reader, "proxy-buffer-size"),
        above.buffer_size.as_ref(),
    );
    own.buffers_number = other(
        reader.number("proxy-buffers-number", 2, MOST_BUFFERS),
        above.buffers_number.as_ref(),
    );
    own.busy_buffers_size = other(
        buffer(reader, "proxy-busy-buffers-size"),
        above.busy_buffers_size.as_ref(),
    );
    own.max_temp_file_size = other(
        buffer(reader, "proxy-max-temp-file-size"),
        above.max_temp_file_size.as_ref(),
    );
    if let Err(error) = check(own, above) {
        for name in BUFFERS {
            reader.fall_back(name, &error);
        }
        own.buffer_size = None;
        own.buffers_number = None;
        own.busy_buffers_size = None;
        own.max_temp_file_size = None;
    }
}

/// The annotations, and the keys of the ConfigMap, that [`check`] looks at together.
pub(crate) const BUFFERS: [&str; 4] = [
    "proxy-buffer-size",
    "proxy-buffers-number",
    "proxy-busy-buffers-size",
    "proxy-max-temp-file-size",
];

/// Whether NGINX takes these buffers together, `above` filling in what is not set (NGINX source:
/// `ngx_http_proxy_merge_loc_conf`).
///
/// # Errors
/// When the sizes contradict each other.
pub(crate) fn check(own: &ProxySettings, above: &ProxySettings) -> Result<(), ValueError> {
    let bytes =
        |own: &Option<Size>, above: &Option<Size>| own.as_ref().or(above.as_ref()).map(Size::bytes);
    let number = own
        .buffers_number
        .or(above.buffers_number)
        .map_or(4, u64::from);
    let Some(buffer) = bytes(&own.buffer_size, &above.buffer_size) else {
        return Ok(());
    };
    let busy = bytes(&own.busy_buffers_size, &above.busy_buffers_size)
        .unwrap_or_else(|| buffer.saturating_mul(2));
    let file = bytes(&own.max_temp_file_size, &above.max_temp_file_size).unwrap_or(0);
    if buffer == 0 {
        return Err(ValueError::Rule("proxy buffers cannot have no bytes"));
    }
    if busy < buffer {
        return Err(ValueError::Rule(
            "proxy-busy-buffers-size is smaller than proxy-buffer-size",
        ));
    }
    if busy > buffer.saturating_mul(number.saturating_sub(1)) {
        return Err(ValueError::Rule(
            "proxy-busy-buffers-size (by default two buffers) is larger than all proxy buffers but one",
        ));
    }
    if file != 0 && file < buffer {
        return Err(ValueError::Rule(
            "proxy-max-temp-file-size is smaller than proxy-buffer-size, but not 0",
        ));
    }
    Ok(())
}

/// A size in bytes, k or m: directives about memory do not know g.
fn buffer(reader: &mut Reader<'_>, name: &str) -> Option<Size> {
    reader.value(name, size)
}

/// As [`Size::parse`], but without the unit g, which NGINX does not take for memory.
///
/// # Errors
/// When the text is not such a size.
pub(crate) fn size(text: &str) -> Result<Size, ValueError> {
    if text.ends_with(['g', 'G']) {
        return Err(ValueError::Rule(
            "the unit g is not taken here: write it in m",
        ));
    }
    Size::parse(text)
}

/// As [`size`], but not zero: NGINX reads nothing into such a buffer, and its connections end unanswered.
///
/// # Errors
/// When the text is not such a size.
pub(crate) fn some_size(text: &str) -> Result<Size, ValueError> {
    let size = size(text)?;
    if size.bytes() == 0 {
        return Err(ValueError::Rule("a buffer cannot have no bytes"));
    }
    Ok(size)
}

/// A size that NGINX does not take here, also for spaces in it, falls back; text that is no size is worse.
pub(super) fn of_body(reader: &mut Reader<'_>) -> Option<Size> {
    const NAME: &str = "client-body-buffer-size";
    let read = reader.value(NAME, |text| {
        let joined = text.replace(' ', "");
        let bytes = joined.strip_suffix(['b', 'B']);
        let is_size =
            Size::parse(&joined).is_ok() || bytes.is_some_and(|it| it.parse::<u64>().is_ok());
        match some_size(text) {
            Err(error) if !is_size => Err(error),
            read => Ok(read),
        }
    });
    match read? {
        Ok(size) => Some(size),
        Err(error) => {
            reader.fall_back(NAME, &error);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotation::testing::{faults, settings};

    fn proxy(annotations: &[(&str, &str)]) -> ProxySettings {
        settings(annotations).unwrap().location.proxy.clone()
    }

    #[test]
    fn memory_is_not_counted_in_gigabytes() {
        for name in [
            "proxy-buffer-size",
            "client-body-buffer-size",
            "proxy-max-temp-file-size",
        ] {
            assert_eq!(settings(&[(name, "8g")]), settings(&[]), "{name}");
            assert_eq!(settings(&[(name, "1b")]), settings(&[]), "{name}");
            assert_eq!(settings(&[(name, "8 k")]), settings(&[]), "{name}");
            let empty = settings(&[(name, "0")]);
            let may_be_empty = name == "proxy-max-temp-file-size";
            assert_eq!(empty != settings(&[]), may_be_empty, "{name}");
        }
        let body = settings(&[("proxy-body-size", "8g")]).unwrap();
        assert_eq!(body.location.body_size, Some(Size::parse("8g").unwrap()));
    }

    #[test]
    fn a_body_buffer_of_no_size_leaves_the_ingress_out() {
        for bad in ["lots", "8kb", "-8k", "8k;", "b"] {
            assert_eq!(
                settings(&[("client-body-buffer-size", bad)]),
                None,
                "{bad:?}"
            );
        }
    }

    #[test]
    fn buffers_that_contradict_each_other_fall_back_together() {
        for bad in [
            &[
                ("proxy-buffer-size", "4k"),
                ("proxy-busy-buffers-size", "1m"),
            ][..],
            &[("proxy-busy-buffers-size", "2k")],
            &[("proxy-buffers-number", "2")],
            &[("proxy-buffer-size", "0")],
            &[
                ("proxy-buffers-number", "8"),
                ("proxy-max-temp-file-size", "1k"),
            ],
        ] {
            assert_eq!(settings(bad), settings(&[]), "{bad:?}");
            assert_eq!(faults(bad).len(), bad.len(), "{bad:?}");
        }
        let good = [
            ("proxy-buffer-size", "16k"),
            ("proxy-busy-buffers-size", "32k"),
        ];
        assert_eq!(proxy(&good).busy_buffers_size, Some(Size::kib(32)));
        assert_eq!(
            proxy(&[("proxy-buffer-size", "64k")]).buffer_size,
            Some(Size::kib(64))
        );
    }
}
