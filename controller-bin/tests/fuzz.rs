//! What comes from outside, changed at random: the targets of `fuzz/`, from its corpus, on any compiler. `FUZZ_SECONDS`
//! and `FUZZ_SEED` say for how long and how each is changed, always alike without them; cargo-fuzz runs the same
//! targets with instrumentation.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failure here fails the test, and the figures are what it is made for"
)]

#[path = "../fuzz/src/lib.rs"]
#[allow(
    unreachable_pub,
    clippy::panic,
    clippy::must_use_candidate,
    reason = "it is a crate of its own, which ends where it finds something"
)]
mod targets;

use std::{
    collections::HashSet,
    env, fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    time::{Duration, Instant},
};

/// Pieces that mean something to somebody.
const WORDS: &[&str] = &[
    "injected on;",
    "\"; injected on; \"",
    "'; injected on; '",
    "}\ninjected on;\n{",
    "\\n",
    "\\",
    "\"",
    "'",
    ";",
    "{",
    "}",
    "#",
    "$",
    "${",
    "$1",
    "$host",
    "\n",
    "\r\n",
    "\0",
    "\u{feff}",
    "\u{2028}",
    "é",
    "%0a",
    "%22",
    "~",
    "~*",
    "^/",
    "(",
    ")",
    "[",
    "*",
    "/",
    "//",
    "/../",
    ":",
    ": ",
    ",",
    " ",
    "\t",
    "-",
    "--- ",
    "&a ",
    "*a",
    "<<: ",
    "|",
    ">",
    "true",
    "false",
    "null",
    "on",
    "off",
    "0",
    "-1",
    "4294967296",
    "1e999",
    "18446744073709551616",
    "5m",
    "10.0.0.0/8",
    "::1/128",
    "http://",
    "https://a.test",
    "unix:/x",
    "a.test",
    "*.a.test",
    "default/app",
    "aaaaaaaaaaaaaaaa",
    "[]",
    "{}",
    "[[[[[[[[",
    "-----BEGIN CERTIFICATE-----",
    "-----END CERTIFICATE-----",
    "-----BEGIN PRIVATE KEY-----",
];

/// Most inputs that are kept for further changes.
const MOST_KEPT: usize = 4_000;

/// The longest input that is tried.
const LONGEST: usize = 6_000;

/// Xorshift: the same numbers for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 16) % limit.max(1) as u64).unwrap()
    }

    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let from = self.below(length + 1);
        let most = [4, 64, length][self.below(3)];
        from..(from + self.below(most + 1)).min(length)
    }

    /// Changes an input in one of the ways in which inputs go wrong.
    fn change(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        let at = self.below(input.len() + 1);
        match self.below(7) {
            0 | 1 => {
                let word = WORDS[self.below(WORDS.len())];
                input.splice(at..at, word.bytes());
            }
            2 => {
                let word = WORDS[self.below(WORDS.len())];
                let range = self.range(input.len());
                input.splice(range, word.bytes());
            }
            3 => {
                let range = self.range(input.len());
                input.drain(range);
            }
            4 => {
                let range = self.range(input.len());
                let piece = input[range].to_vec();
                input.splice(at..at, piece);
            }
            5 => {
                let range = self.range(other.len());
                input.splice(at..at, other[range].iter().copied());
            }
            _ => {
                let byte = u8::try_from(self.below(256)).unwrap();
                if let Some(there) = input.get_mut(at) {
                    *there ^= byte;
                }
            }
        }
        input.truncate(LONGEST);
    }
}

fn given(variable: &str) -> Option<u64> {
    let given = env::var(variable).ok()?;
    let number = given.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable} has to be a number")))
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let entries = fs::read_dir(directory.join(target)).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

/// Tries so many inputs at most, unless `FUZZ_SECONDS` says for how long.
fn fuzz(name: &str, most: usize) {
    let (_, target) = targets::TARGETS
        .iter()
        .find(|(target, _)| *target == name)
        .unwrap();
    let attempt = |input: &[u8]| {
        catch_unwind(AssertUnwindSafe(|| target(input))).unwrap_or_else(|_printed| {
            let found = env::temp_dir().join(format!("{name}.found"));
            fs::write(&found, input).unwrap();
            panic!(
                "the input is kept as {}; mend what it has found and put it into the corpus",
                found.display()
            );
        })
    };
    let mut inputs = corpus(name);
    assert!(!inputs.is_empty());
    let mut seen: HashSet<u64> = inputs.iter().map(|input| attempt(input)).collect();
    let mut dice = Dice(given("FUZZ_SEED").unwrap_or(1).max(1));
    let mut executions = inputs.len();
    let began = Instant::now();
    let seconds = given("FUZZ_SECONDS").map(Duration::from_secs);
    // Without a time it is the same everywhere, however fast a machine is.
    let goes_on = |executions| match seconds {
        Some(time) => began.elapsed() < time,
        None => executions < most,
    };
    while goes_on(executions) {
        let mut input = inputs[dice.below(inputs.len())].clone();
        let other = dice.below(inputs.len());
        for _ in 0..=dice.below(6) {
            dice.change(&mut input, &inputs[other]);
        }
        executions += 1;
        // What has led somewhere new is changed further.
        if seen.insert(attempt(&input)) && inputs.len() < MOST_KEPT {
            inputs.push(input);
        }
    }
    println!(
        "{name}: {executions} executions, {} outcomes, 0 finds",
        seen.len()
    );
}

#[test]
fn manifests() {
    fuzz("manifests", 400);
}

#[test]
fn annotations() {
    fuzz("annotations", 200);
}

#[test]
fn admission_reviews() {
    fuzz("admission_review", 20_000);
}

#[test]
fn certificates() {
    fuzz("certificates", 200);
}

#[test]
fn config_maps() {
    fuzz("config_map", 200);
}

#[test]
fn request_records() {
    fuzz("request_records", 50_000);
}
