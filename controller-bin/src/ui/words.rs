//! Times, numbers and shares as people say them.

use std::time::Duration;

use ingress_model::live::TrafficShaping;
use jiff::Timestamp;

/// How long something took: `1.2 ms`, `3.4 s`.
pub(super) fn took(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        1.0.. => format!("{seconds:.1} s"),
        0.01.. => format!("{:.0} ms", seconds * 1e3),
        _ => format!("{:.1} ms", seconds * 1e3),
    }
}

/// How long ago something was, or is to come: `5 min`, `3 d`.
pub(super) fn span(seconds: i64) -> String {
    let seconds = seconds.abs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Between two moments.
pub(super) fn ago(then: Timestamp, now: Timestamp) -> String {
    format!("{} ago", span(now.as_second() - then.as_second()))
}

/// A day.
pub(super) fn day(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d").to_string()
}

/// A moment, in UTC.
pub(super) fn moment(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// A number and the word for what is counted, in the plural unless it is one.
pub(super) fn count(number: usize, word: &str) -> String {
    let ending = match (number, word.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{number} {word}{ending}")
}

/// Which requests a canary gets; `explain` says it in full.
pub(super) fn share(shaping: &TrafficShaping) -> String {
    let TrafficShaping {
        weight,
        weight_total,
        ..
    } = shaping;
    let by = |what: &str, name: &str| (!name.is_empty()).then(|| format!("by {what} {name}"));
    let parts = [
        by("header", &shaping.header),
        by("cookie", &shaping.cookie),
        (*weight > 0).then(|| format!("{weight} of {weight_total}")),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        return "no requests".to_owned();
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        assert_eq!(took(Duration::from_micros(1234)), "1.2 ms");
        assert_eq!(took(Duration::from_millis(345)), "345 ms");
        assert_eq!(took(Duration::from_millis(3456)), "3.5 s");
        for (seconds, want) in [
            (5, "5 s"),
            (-300, "5 min"),
            (7300, "2 h"),
            (864_000, "10 d"),
        ] {
            assert_eq!(span(seconds), want);
        }
        let words = [(1, "Ingress"), (2, "Ingress"), (0, "host"), (1, "host")];
        let words = words.map(|(number, word)| count(number, word));
        assert_eq!(words, ["1 Ingress", "2 Ingresses", "0 hosts", "1 host"]);
    }

    #[test]
    fn shares_name_what_decides() {
        let by_header = TrafficShaping {
            header: "x-region".into(),
            ..TrafficShaping::default()
        };
        assert_eq!(share(&TrafficShaping::default()), "no requests");
        assert_eq!(share(&by_header), "by header x-region");
        let by_all = TrafficShaping {
            weight: 5,
            weight_total: 100,
            cookie: "next".into(),
            ..by_header
        };
        assert_eq!(
            share(&by_all),
            "by header x-region, by cookie next, 5 of 100"
        );
    }
}
