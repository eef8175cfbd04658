//! A MaxMind database, as small as NGINX's module takes it (MaxMind DB file format specification).

/// A database in which no address is found.
pub(crate) fn empty() -> Vec<u8> {
    let text = |text: &str| [&[0x40 | length(text.len())], text.as_bytes()].concat();
    let number = |kind: u8, value: u8| vec![kind << 5 | 1, value];
    let pairs = [
        ("node_count", number(6, 1)),
        ("record_size", number(5, 24)),
        ("ip_version", number(5, 6)),
        ("database_type", text("GeoLite2-ASN")),
        // An array and a number of 64 bits, whose kinds do not fit into the first byte.
        ("languages", vec![0, 4]),
        ("binary_format_major_version", number(5, 2)),
        ("binary_format_minor_version", number(5, 0)),
        ("build_epoch", vec![1, 2, 1]),
        ("description", vec![0xe0]),
    ];
    let node = [0, 0, 1, 0, 0, 1];
    let mut bytes = [&node[..], &[0; 16], &[0xe0]].concat();
    bytes.extend(b"\xab\xcd\xefMaxMind.com");
    bytes.push(0xe0 | length(pairs.len()));
    for (key, value) in pairs {
        bytes.extend(text(key));
        bytes.extend(value);
    }
    bytes
}

/// Lengths from 29 on would have to be written otherwise.
fn length(length: usize) -> u8 {
    u8::try_from(length)
        .ok()
        .filter(|length| *length < 29)
        .unwrap()
}
