//! Numbers, sizes and times, as NGINX reads them (NGINX docs, "Configuration file measurement units").

/// How finely a time may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    Seconds,
    Milliseconds,
}

/// Units of times, with what they begin with, the largest first.
const UNITS: &[(&str, u64)] = &[
    ("y", 31_536_000_000),
    ("M", 2_592_000_000),
    ("w", 604_800_000),
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// Whether a text is a number.
pub(super) fn is_number(text: &str) -> bool {
    scaled(text, 1).is_some()
}

/// Whether a text is a size, which may be one of gigabytes where large ones are taken.
pub(super) fn is_size(text: &str, large: bool) -> bool {
    let (digits, factor) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (text.get(..text.len() - 1), 1 << 10),
        Some(b'm' | b'M') => (text.get(..text.len() - 1), 1 << 20),
        Some(b'g' | b'G') if large => (text.get(..text.len() - 1), 1 << 30),
        _ => (Some(text), 1),
    };
    digits.is_some_and(|digits| scaled(digits, factor).is_some())
}

/// Whether a text is a time: numbers with units, the largest unit first, each once. The last one may be without: seconds.
pub(super) fn is_time(text: &str, time: Time) -> bool {
    let mut rest = text;
    let mut largest = u64::MAX;
    let mut total = 0_i64;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, behind) = rest.split_at(digits);
        let letters = behind.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, behind) = behind.split_at(letters);
        let factor = match unit {
            "" if behind.is_empty() => Some(1_000),
            unit => UNITS
                .iter()
                .find(|(known, _)| *known == unit)
                .map(|it| it.1),
        };
        let Some(factor) = factor
            .filter(|factor| *factor < largest && (time == Time::Milliseconds || *factor >= 1_000))
        else {
            return false;
        };
        let Some(sum) = scaled(number, factor).and_then(|it| total.checked_add(it)) else {
            return false;
        };
        (total, largest) = (sum, factor);
        rest = behind.trim_start_matches(' ');
    }
    !text.is_empty()
}

fn scaled(digits: &str, factor: u64) -> Option<i64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: i64 = digits.parse().ok().filter(|_| is_number)?;
    number.checked_mul(i64::try_from(factor).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_sizes_have_no_other_letters() {
        assert!(is_number("0") && is_number("42"));
        assert!(!is_number("") && !is_number("-1") && !is_number("+1") && !is_number("4k"));
        assert!(!is_number("99999999999999999999"));
        assert!(is_size("8k", false) && is_size("1M", false) && is_size("0", false));
        assert!(is_size("2g", true) && !is_size("2g", false));
        assert!(!is_size("k", false) && !is_size("8kb", true) && !is_size("", true));
    }

    #[test]
    fn times_have_units_the_largest_first() {
        for good in [
            "30", "30s", "1h 30m", "1h30m", "1d1h1m1s", "500ms", "1s 5ms", "0",
        ] {
            assert!(is_time(good, Time::Milliseconds), "{good}");
        }
        for bad in [
            "", "s", "abc", "1x", "1m1h", "1s1s", "1 h", "-1", "10 20", "1ms1",
        ] {
            assert!(!is_time(bad, Time::Milliseconds), "{bad}");
        }
        assert!(is_time("1m30", Time::Seconds) && !is_time("500ms", Time::Seconds));
    }
}
