//! Booleans, numbers, times and lists as users write them in annotations and in the ConfigMap.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::{
    annotation::grammar::Grammar,
    object::ObjectName,
    value::{Literal, Seconds, ValueError},
};

/// A boolean as Go reads it: `1`, `t`, `T`, `TRUE`, `true`, `True` and their opposites.
pub(crate) fn boolean(text: &str) -> Result<bool, ValueError> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        _ => Err(ValueError::Boolean(ValueError::excerpt(text))),
    }
}

/// `on` or `off`.
pub(crate) fn switch(text: &str) -> Result<bool, ValueError> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(ValueError::Word(
            ValueError::excerpt(text),
            "on, off".into(),
        )),
    }
}

/// A decimal whole number, a sign in front of it or not.
pub(crate) fn integer(text: &str) -> Result<i64, ValueError> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let decimal = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    decimal
        .then(|| text.parse().ok())
        .flatten()
        .ok_or_else(|| ValueError::Integer(ValueError::excerpt(text)))
}

/// A whole number as the ConfigMap may have it: also `0x10`, `0o17`, `0b11`, and `017` for the octal number.
pub(crate) fn any_base_integer(text: &str) -> Result<i64, ValueError> {
    let fault = || ValueError::Integer(ValueError::excerpt(text));
    let (sign, digits) = match text.split_at_checked(1) {
        Some(("-", digits)) => (-1, digits),
        Some(("+", digits)) => (1, digits),
        _ => (1, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.split_at_checked(2) {
        Some(("0x", digits)) => (16, digits),
        Some(("0o", digits)) => (8, digits),
        Some(("0b", digits)) => (2, digits),
        _ if lower.len() > 1 && lower.starts_with('0') => (8, &*lower),
        _ => (10, &*lower),
    };
    if digits.starts_with(['+', '-']) {
        return Err(fault());
    }
    i64::from_str_radix(digits, radix)
        .map(|number| sign * number)
        .ok()
        .ok_or_else(fault)
}

/// A number between two others, these included.
pub(crate) fn within(number: i64, low: u32, high: u32) -> Result<u32, ValueError> {
    u32::try_from(number)
        .ok()
        .filter(|number| (low..=high).contains(number))
        .ok_or_else(|| ValueError::Range(number, low.into(), high.into()))
}

/// Longest time that settings may have: NGINX counts milliseconds in 31 bits on some platforms.
pub(crate) const LONGEST: u32 = 2_000_000;

/// A time as NGINX reads it where it counts in seconds: as [`milliseconds`], without `ms`.
pub(crate) fn time(text: &str) -> Result<Seconds, ValueError> {
    let fault = || ValueError::Time(ValueError::excerpt(text));
    if text.contains("ms") {
        return Err(fault());
    }
    let seconds = u32::try_from(milliseconds(text)? / 1_000);
    seconds.map(Seconds).ok().ok_or_else(fault)
}

/// A time as NGINX reads it (NGINX docs: "Configuration file measurement units"): numbers with the units `ms`, `s`, `m`,
/// `h`, `d`, `w`, `M`, `y`, larger units first; a number alone is in seconds. At most as many seconds as 32 bits can
/// count.
pub(crate) fn milliseconds(text: &str) -> Result<u64, ValueError> {
    const LONGEST: u64 = 1_000 * u32::MAX as u64;
    let fault = || ValueError::Time(ValueError::excerpt(text));
    let mut total: u64 = 0;
    let mut smaller_than = u64::MAX;
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(ValueError::Empty);
    }
    while !rest.is_empty() {
        let length = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, tail) = rest.split_at_checked(length).ok_or_else(fault)?;
        let number: u64 = digits.parse().ok().ok_or_else(fault)?;
        let (unit, length) = match tail.bytes().next() {
            Some(b'm') if tail.starts_with("ms") => (1, 2),
            None | Some(b's') => (1_000, 1),
            Some(b'm') => (60_000, 1),
            Some(b'h') => (3_600_000, 1),
            Some(b'd') => (86_400_000, 1),
            Some(b'w') => (604_800_000, 1),
            Some(b'M') => (2_592_000_000, 1),
            Some(b'y') => (31_536_000_000, 1),
            Some(_) => return Err(fault()),
        };
        if unit >= smaller_than {
            return Err(fault());
        }
        smaller_than = unit;
        total = number
            .checked_mul(unit)
            .and_then(|milliseconds| total.checked_add(milliseconds))
            .filter(|total| *total <= LONGEST)
            .ok_or_else(fault)?;
        rest = tail.get(length..).unwrap_or_default().trim_start();
    }
    Ok(total)
}

/// The items of a list with commas between them, each trimmed, empty ones left out.
pub(crate) fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
}

/// A network, or an address for the network of that address alone; its host bits do not count.
pub(crate) fn network(text: &str) -> Result<IpNet, ValueError> {
    let network = text.parse::<IpNet>().ok();
    network
        .map(|network| network.trunc())
        .or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
        .ok_or_else(|| ValueError::Network(ValueError::excerpt(text)))
}

/// Networks and addresses, sorted, each once.
pub(crate) fn networks(text: &str) -> Result<Vec<IpNet>, ValueError> {
    let mut networks = items(text)
        .map(network)
        .collect::<Result<Vec<IpNet>, ValueError>>()?;
    networks.sort_unstable();
    networks.dedup();
    Ok(networks)
}

/// `namespace/name`.
pub(crate) fn object_name(text: &str) -> Result<ObjectName, ValueError> {
    ObjectName::parse(text)
        .filter(|name| is_label(name.namespace(), 63) && is_label(name.name(), 253))
        .ok_or_else(|| ValueError::ObjectName(ValueError::excerpt(text)))
}

/// Whether the text can be the name of an object (RFC 1123: lower-case letters, digits, `-` and `.`).
pub(crate) fn is_label(text: &str, longest: usize) -> bool {
    (1..=longest).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.')
}

/// The name of a header: letters, digits, `-` and `_`.
pub(crate) fn header_name(text: &str) -> Result<Literal, ValueError> {
    const NAME: Grammar = Grammar::new("-_", "letters, digits, - and _");
    if text.is_empty() {
        return Err(ValueError::Empty);
    }
    NAME.check(text)?;
    Literal::parse(text)
}

/// A list of header names.
pub(crate) fn header_names(text: &str) -> Result<Vec<Literal>, ValueError> {
    items(text).map(header_name).collect()
}

/// One of the words.
pub(crate) fn word<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T, ValueError> {
    let found = words.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        ValueError::Word(ValueError::excerpt(text), words.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn booleans_are_those_of_go() {
        for text in ["1", "t", "T", "TRUE", "true", "True"] {
            assert_eq!(boolean(text), Ok(true));
        }
        for text in ["0", "f", "F", "FALSE", "false", "False"] {
            assert_eq!(boolean(text), Ok(false));
        }
        for text in ["", "yes", "on", "tRUE", " true", "2"] {
            assert!(boolean(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn integers() {
        for (text, decimal, any_base) in [
            ("0", Some(0), Some(0)),
            ("12", Some(12), Some(12)),
            ("+3", Some(3), Some(3)),
            ("-3", Some(-3), Some(-3)),
            ("010", Some(10), Some(8)),
            ("0x10", None, Some(16)),
            ("-0X1f", None, Some(-31)),
            ("0b11", None, Some(3)),
            ("0o17", None, Some(15)),
            ("08", Some(8), None),
            ("", None, None),
            ("-", None, None),
            ("--1", None, None),
            ("0x-1", None, None),
            ("1 ", None, None),
            ("1s", None, None),
            ("99999999999999999999", None, None),
        ] {
            assert_eq!(integer(text).ok(), decimal, "{text:?}");
            assert_eq!(any_base_integer(text).ok(), any_base, "{text:?}");
        }
    }

    #[test]
    fn times_are_those_of_nginx() {
        for (text, want) in [
            ("90", Some(90)),
            ("90s", Some(90)),
            ("10m", Some(600)),
            ("1h", Some(3_600)),
            ("1h 30m", Some(5_400)),
            ("1d12h", Some(129_600)),
            ("2w", Some(1_209_600)),
            ("", None),
            ("s", None),
            ("30m 1h", None),
            ("1m1m", None),
            ("500ms", None),
            ("-1", None),
            ("1s;", None),
            ("99999999999", None),
            ("9999999w", None),
        ] {
            assert_eq!(time(text).ok(), want.map(Seconds), "{text:?}");
        }
    }

    #[test]
    fn networks_are_normalised() {
        let text = "10.1.2.3/8, 192.0.2.7,,2001:db8::1/32,10.0.0.0/8";
        let networks: Vec<String> = networks(text)
            .unwrap()
            .iter()
            .map(IpNet::to_string)
            .collect();
        assert_eq!(networks, ["10.0.0.0/8", "192.0.2.7/32", "2001:db8::/32"]);
        for bad in ["10.0.0.0/33", "300.1.1.1", "a", "10.0.0.0/", "1.2.3"] {
            assert!(network(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn objects_are_named_with_their_namespace() {
        assert!(object_name("shop/users").is_ok());
        for bad in ["", "users", "a/b/c", "A/b", "a/b c", "a/", "/b", "a/..;"] {
            assert!(object_name(bad).is_err(), "{bad:?}");
        }
    }
}
