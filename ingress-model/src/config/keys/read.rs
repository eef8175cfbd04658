//! How the text of a key is read.

use std::net::{IpAddr, Ipv6Addr};

use crate::{
    annotation::grammar::{Grammar, VARIABLES},
    config::{Draft, Risk},
    layout::HttpVersion,
    live::LoadBalance,
    scalar,
    value::{Confidential, Literal, Seconds, Size, Snippet, Template, Time, ValueError},
};

pub(super) use crate::{
    annotation::buffers::{size as buffer, some_size as some_buffer},
    scalar::{header_name, network, switch},
};

/// A boolean; an empty text is false.
pub(super) fn boolean(text: &str) -> Result<bool, ValueError> {
    if text.is_empty() {
        return Ok(false);
    }
    scalar::boolean(text)
}

/// A whole number between two others, these included; an empty text is 0.
pub(super) fn number(text: &str, low: u32, high: u32) -> Result<u32, ValueError> {
    let number = match text {
        "" => 0,
        text => scalar::any_base_integer(text)?,
    };
    scalar::within(number, low, high)
}

/// How many files a worker may open; 0 for none of its own.
pub(super) fn open_files(text: &str) -> Result<Option<u32>, ValueError> {
    // With fewer a worker can hardly open its listeners and logs, and every connection is dropped.
    const FEWEST: u32 = 512;
    match number(text, 0, 16_777_216)? {
        0 => Ok(None),
        files if files < FEWEST => Err(ValueError::Rule(
            "a worker needs at least 512 files (0: as many as the limit leaves)",
        )),
        files => Ok(Some(files)),
    }
}

pub(super) fn seconds(text: &str) -> Result<Seconds, ValueError> {
    number(text, 0, scalar::LONGEST).map(Seconds)
}

/// A status between two others, these included.
pub(super) fn status(text: &str, low: u32, high: u32) -> Result<u16, ValueError> {
    number(text, low, high).map(|number| u16::try_from(number).unwrap_or_default())
}

pub(super) fn port(text: &str) -> Result<u16, ValueError> {
    status(text, 1, u16::MAX.into())
}

/// What `read` makes of the text; an empty one is none.
pub(super) fn optional<T>(
    text: &str,
    read: impl FnOnce(&str) -> Result<T, ValueError>,
) -> Result<Option<T>, ValueError> {
    if text.is_empty() {
        return Ok(None);
    }
    read(text).map(Some)
}

pub(super) fn workers(text: &str) -> Result<Option<u32>, ValueError> {
    match text {
        "auto" => Ok(None),
        text => number(text, 1, 1_024).map(Some),
    }
}

pub(super) fn cpu_masks(text: &str) -> Result<Vec<Literal>, ValueError> {
    words(text, |word| {
        let mask = word.bytes().all(|b| b == b'0' || b == b'1');
        (mask || word == "auto").then_some(()).ok_or_else(|| {
            ValueError::Word(ValueError::excerpt(word), "auto, masks of 0 and 1".into())
        })
    })
}

/// Words with white space between them, each of which passes the check.
fn words(
    text: &str,
    check: impl Fn(&str) -> Result<(), ValueError>,
) -> Result<Vec<Literal>, ValueError> {
    text.split_whitespace()
        .map(|word| check(word).and_then(|()| Literal::parse(word)))
        .collect()
}

pub(super) fn address(text: &str) -> Result<IpAddr, ValueError> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    bare.parse()
        .ok()
        .ok_or_else(|| ValueError::Network(ValueError::excerpt(text)))
}

/// One more address to listen on, of a certain kind.
pub(super) fn add_address(
    draft: &mut Draft,
    text: &str,
    kind: fn(&IpAddr) -> bool,
) -> Result<(), ValueError> {
    let address = address(text)?;
    if !kind(&address) {
        return Err(ValueError::Rule("it is an address of the other IP version"));
    }
    if !draft.render.bind_address.contains(&address) {
        draft.render.bind_address.push(address);
    }
    Ok(())
}

/// How many, and how large.
pub(super) fn header_buffers(text: &str) -> Result<(u32, Size), ValueError> {
    let (count, size) = text
        .split_once(char::is_whitespace)
        .ok_or(ValueError::Rule("it is not a number and a size"))?;
    let size = buffer(size.trim_start())?;
    // NGINX refuses buffers that are smaller than a connection's pool.
    if size.bytes() < 512 {
        return Err(ValueError::Rule("a buffer has at least 512 bytes"));
    }
    Ok((number(count, 1, 1_024)?, size))
}

pub(super) fn variable(text: &str) -> Result<Template, ValueError> {
    if !text.starts_with('$') {
        return Err(ValueError::Rule("a variable begins with $"));
    }
    VARIABLES.check(text)?;
    Template::parse(text)
}

pub(super) fn tls_versions(text: &str) -> Result<Vec<Literal>, ValueError> {
    let versions = [
        ("SSLv3", ()),
        ("TLSv1", ()),
        ("TLSv1.1", ()),
        ("TLSv1.2", ()),
        ("TLSv1.3", ()),
    ];
    if text.is_empty() {
        return Err(ValueError::Empty);
    }
    words(text, |word| scalar::word(word, &versions))
}

pub(super) fn curves(text: &str) -> Result<Literal, ValueError> {
    const CURVES: Grammar = Grammar::new("-_:", "letters, digits, -, _ and :");
    if text.is_empty() {
        return Err(ValueError::Empty);
    }
    CURVES.check(text)?;
    Literal::parse(text)
}

pub(super) fn redirect_code(text: &str) -> Result<u16, ValueError> {
    let codes = [("301", 301), ("302", 302), ("307", 307), ("308", 308)];
    scalar::word(text, &codes)
}

pub(super) fn http_version(text: &str) -> Result<HttpVersion, ValueError> {
    let versions = [("1.0", HttpVersion::Http10), ("1.1", HttpVersion::Http11)];
    scalar::word(text, &versions)
}

pub(super) fn load_balance(text: &str) -> Result<Option<LoadBalance>, ValueError> {
    let algorithms = [
        ("round_robin", LoadBalance::RoundRobin),
        ("ewma", LoadBalance::Ewma),
    ];
    optional(text, |text| scalar::word(text, &algorithms))
}

pub(super) fn risk(text: &str) -> Result<Risk, ValueError> {
    let levels = [
        ("low", Risk::Low),
        ("medium", Risk::Medium),
        ("high", Risk::High),
        ("critical", Risk::Critical),
    ];
    scalar::word(&text.to_ascii_lowercase(), &levels)
}

/// A text or a pattern that is compared with something of a request: what NGINX would read if the item stood in its
/// configuration as it is, where quotes around it are none of it.
pub(super) fn entry(item: &str) -> Result<Literal, ValueError> {
    let quoted = ['"', '\'']
        .iter()
        .find_map(|quote| item.strip_prefix(*quote)?.strip_suffix(*quote));
    let mut text = String::with_capacity(item.len());
    let mut characters = quoted.unwrap_or(item).chars();
    while let Some(character) = characters.next() {
        let rest = characters.as_str();
        if character == '\\' && rest.starts_with(['"', '\'', '\\']) {
            text.extend(characters.next());
        } else {
            text.push(character);
        }
    }
    Literal::parse(&text)
}

/// An item, whatever it is.
#[expect(
    clippy::unnecessary_wraps,
    reason = "every reader of an item has this form"
)]
pub(super) fn text(text: &str) -> Result<String, ValueError> {
    Ok(text.to_owned())
}

const MEDIA_TYPE: Grammar = Grammar::new("-_.+/*", "letters, digits and -_.+/*");

pub(super) fn media_type(text: &str) -> Result<Literal, ValueError> {
    if text.is_empty() {
        return Err(ValueError::Empty);
    }
    MEDIA_TYPE.check(text)?;
    Literal::parse(text)
}

pub(super) fn media_types(text: &str) -> Result<Vec<Literal>, ValueError> {
    if text.is_empty() {
        return Err(ValueError::Empty);
    }
    words(text, |word| MEDIA_TYPE.check(word))
}

pub(super) fn log_level(text: &str) -> Result<Literal, ValueError> {
    let levels = [
        "debug", "info", "notice", "warn", "error", "crit", "alert", "emerg",
    ]
    .map(|level| (level, level));
    scalar::word(text, &levels).map(Literal::constant)
}

/// A line of a log: line breaks of the text (YAML block scalars have them) become spaces.
pub(super) fn log_format(text: &str) -> Result<Template, ValueError> {
    if text.is_empty() {
        return Err(ValueError::Empty);
    }
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    Template::parse(&lines.join(" "))
}

/// Parameters that NGINX's `access_log` knows besides path and format, except `if=`, which is taken already.
pub(super) fn access_log_params(text: &str) -> Result<Vec<Literal>, ValueError> {
    words(text, |word| match word.split_once('=') {
        None if word == "gzip" => Ok(()),
        Some(("gzip", level)) => number(level, 1, 9).map(drop),
        Some(("buffer", size)) => buffer(size).map(drop),
        Some(("flush", interval)) => Time::parse(interval).map(drop),
        _ => Err(ValueError::Word(
            ValueError::excerpt(word),
            "buffer=, flush=, gzip, gzip=".into(),
        )),
    })
}

/// Sets both logs; keys of one of them follow in the table.
pub(super) fn access_log_path(draft: &mut Draft, text: &str) -> Result<(), ValueError> {
    let path = optional(text, Literal::parse)?;
    draft.render.access_log_path.clone_from(&path);
    draft.render.stream_access_log_path = path;
    Ok(())
}

/// Switches both logs; keys of one of them follow in the table.
pub(super) fn disable_access_log(draft: &mut Draft, text: &str) -> Result<(), ValueError> {
    let disable = boolean(text)?;
    draft.render.disable_access_log = disable;
    draft.render.disable_stream_access_log = disable;
    Ok(())
}

/// A host name or an address.
pub(super) fn host(text: &str) -> Result<Literal, ValueError> {
    const NAME: Grammar = Grammar::new("-_.", "letters, digits and -_.");
    let address = text.trim_start_matches('[').trim_end_matches(']');
    if address.parse::<Ipv6Addr>().is_err() {
        NAME.check(text)?;
    }
    Literal::parse(text)
}

pub(super) fn hash_size(text: &str) -> Result<u32, ValueError> {
    number(text, 1, 16_777_216)
}

/// Base64 of a key of 48 or 80 bytes (NGINX docs: `ssl_session_ticket_key`).
pub(super) fn ticket_key(text: &str) -> Result<Confidential, ValueError> {
    const FAULT: ValueError = ValueError::Rule("it is not the base64 of 48 or 80 bytes");
    // 48 bytes take 64 characters; 80 take 107, and one to fill up.
    let digits = match text.len() {
        64 => text,
        108 => text.strip_suffix('=').ok_or(FAULT)?,
        _ => return Err(FAULT),
    };
    let base64 = digits
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b == b'+' || b == b'/');
    base64.then(|| Confidential::new(text)).ok_or(FAULT)
}

/// A sampler of the OpenTelemetry module.
pub(super) fn sampler(text: &str) -> Result<Literal, ValueError> {
    let samplers = ["AlwaysOn", "AlwaysOff", "TraceIdRatioBased"].map(|sampler| (sampler, sampler));
    scalar::word(text, &samplers).map(Literal::constant)
}

/// A decimal fraction from 0 to 1.
pub(super) fn ratio(text: &str) -> Result<Literal, ValueError> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let decimal = fraction.bytes().all(|b| b.is_ascii_digit());
    let zeros = fraction.bytes().all(|b| b == b'0');
    if whole == "0" && decimal || whole == "1" && zeros {
        return Literal::parse(text);
    }
    Err(ValueError::Rule("it is not a decimal fraction from 0 to 1"))
}

/// The size of a cache of TLS sessions: NGINX wants eight pages of memory.
pub(super) fn session_cache_size(text: &str) -> Result<Size, ValueError> {
    const SMALLEST: u64 = 8 * 4_096;
    buffer(text).and_then(|size| {
        if size.bytes() < SMALLEST {
            return Err(ValueError::Rule("a cache of sessions has at least 32k"));
        }
        Ok(size)
    })
}

/// How long a session can be resumed, which NGINX counts in seconds.
pub(super) fn session_timeout(text: &str) -> Result<Time, ValueError> {
    scalar::time(text).and_then(|_| Time::parse(text))
}

/// A duration as Go reads it (`1m30s`, `500ms`), in whole seconds from 1 on, rounded up; a number alone is in seconds.
pub(super) fn duration(text: &str) -> Result<Seconds, ValueError> {
    let fault = || ValueError::Time(ValueError::excerpt(text));
    let mut nanoseconds: u128 = 0;
    let mut rest = text;
    if rest.is_empty() {
        return Err(ValueError::Empty);
    }
    while !rest.is_empty() {
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let number = rest.find(|c| !is_number(c)).unwrap_or(rest.len());
        let (number, tail) = rest.split_at_checked(number).ok_or_else(fault)?;
        let unit = tail.find(is_number).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at_checked(unit).ok_or_else(fault)?;
        let unit: u128 = match unit {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "" if rest == text => 1_000_000_000,
            _ => return Err(fault()),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let part = |digits: &str| match digits {
            "" => Some(0),
            digits => digits.parse::<u64>().ok(),
        };
        let scale = u32::try_from(fraction.len())
            .ok()
            .and_then(|digits| 10_u128.checked_pow(digits));
        let (Some(whole), Some(fraction), Some(scale)) = (part(whole), part(fraction), scale)
        else {
            return Err(fault());
        };
        nanoseconds += u128::from(whole) * unit + u128::from(fraction) * unit / scale;
        rest = tail;
    }
    let seconds = nanoseconds.div_ceil(1_000_000_000);
    let seconds = i64::try_from(seconds).ok().ok_or_else(fault)?;
    scalar::within(seconds, 1, scalar::LONGEST).map(Seconds)
}

/// `name: size`; a size without unit is in megabytes, as ingress-nginx has it. Printed in its units as well.
pub(super) fn shared_dict(item: &str) -> Result<(String, Size), ValueError> {
    const NAME: Grammar = Grammar::new("_", "letters, digits and _");
    let item: String = item.split_whitespace().collect();
    let (name, size) = item
        .split_once(':')
        .ok_or(ValueError::Rule("an item is not of the form name: size"))?;
    if name.is_empty() {
        return Err(ValueError::Empty);
    }
    NAME.check(name)?;
    let size = if size.ends_with(|c: char| c.is_ascii_digit()) {
        buffer(&format!("{size}m"))?
    } else {
        buffer(size)?
    };
    let bytes = size.bytes();
    if !(SMALLEST_DICT..=LARGEST_DICT).contains(&bytes) {
        return Err(ValueError::Rule("a size is not between 12k and 200m"));
    }
    let size = match (bytes % (1 << 20), bytes % (1 << 10)) {
        (0, _) => Size::parse(&format!("{}M", bytes >> 20))?,
        (_, 0) => Size::parse(&format!("{}K", bytes >> 10))?,
        _ => size,
    };
    Ok((name.to_owned(), size))
}

/// The smallest shared dictionary that NGINX's Lua module has room to set up, in bytes: three pages.
const SMALLEST_DICT: u64 = 12 << 10;

/// The largest shared dictionary, in bytes: 200 MiB.
const LARGEST_DICT: u64 = 200 << 20;

#[expect(
    clippy::unnecessary_wraps,
    reason = "every reader of a key has this form"
)]
pub(super) fn snippet(text: &str) -> Result<Option<Snippet>, ValueError> {
    Ok(Snippet::new(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionaries() {
        let read = |text| {
            let (name, size) = shared_dict(text).ok()?;
            Some(format!("{name}={size}"))
        };
        assert_eq!(read("a: 30").unwrap(), "a=30M");
        assert_eq!(read("b:512k").unwrap(), "b=512K");
        assert_eq!(read("c : 2M").unwrap(), "c=2M");
        assert_eq!(read("d: 2048k").unwrap(), "d=2M");
        assert_eq!(read("e e : 12 k").unwrap(), "ee=12K");
        for bad in [
            "", "a", "a: x", "a;b: 1", "a: 201", "a: 11k", ": 1", "a: 1g",
        ] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn entries_are_read_as_nginx_reads_words() {
        for (item, want) in [
            ("BetaBot", "BetaBot"),
            ("\"~*bad bot\"", "~*bad bot"),
            ("'Evil Bot'", "Evil Bot"),
            (r"~*old\/1\.0\ build", r"~*old\/1\.0\ build"),
            (r"a\\b", r"a\b"),
            (r#"say \"x\""#, r#"say "x""#),
            ("\"", "\""),
            ("a\"b", "a\"b"),
            ("''", ""),
        ] {
            assert_eq!(entry(item).unwrap().as_str(), want, "{item}");
        }
    }

    #[test]
    fn durations_are_those_of_go() {
        for (text, want) in [
            ("5s", Some(5)),
            ("10", Some(10)),
            ("500ms", Some(1)),
            ("1.5s", Some(2)),
            ("1m30s", Some(90)),
            ("1h0.5m", Some(3_630)),
            (".5m", Some(30)),
            ("", None),
            ("0s", None),
            ("s", None),
            ("1", Some(1)),
            ("1m30", None),
            ("-1s", None),
            ("1d", None),
            ("1..5s", None),
            ("99999999h", None),
            ("5s;", None),
        ] {
            assert_eq!(duration(text).ok(), want.map(Seconds), "{text:?}");
        }
    }

    #[test]
    fn log_lines_are_one_line() {
        let format = log_format("{\"a\": \"$host\",\n \"b\": 1}\n").unwrap();
        assert_eq!(format.as_str(), "{\"a\": \"$host\",  \"b\": 1}");
        assert!(log_format("a\u{0}b").is_err());
    }

    #[test]
    fn parameters_of_the_access_log() {
        assert_eq!(
            access_log_params("buffer=16k gzip=5 flush=1m gzip")
                .unwrap()
                .len(),
            4
        );
        for bad in ["if=$loggable", "gzip=0", "buffer=1x", "/tmp/x", "flush=;"] {
            assert!(access_log_params(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn fractions() {
        for (text, good) in [
            ("0", true),
            ("0.5", true),
            ("1", true),
            ("1.00", true),
            ("1.5", false),
            ("2", false),
            ("-0.5", false),
            ("0.5e1", false),
            ("", false),
        ] {
            assert_eq!(ratio(text).is_ok(), good, "{text:?}");
        }
    }

    #[test]
    fn ticket_keys() {
        assert!(ticket_key(&"A".repeat(64)).is_ok());
        assert!(ticket_key(&format!("{}=", "A".repeat(107))).is_ok());
        for bad in ["", "AAAA", &"A".repeat(108), &"?".repeat(64)] {
            assert!(ticket_key(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn hosts_and_addresses() {
        for good in ["logs.test", "192.0.2.1", "2001:db8::1", "[2001:db8::1]"] {
            assert!(host(good).is_ok(), "{good}");
        }
        for bad in ["a b", "a;", "a:1"] {
            assert!(host(bad).is_err(), "{bad}");
        }
    }
}
