//! What each key changes, recorded, and tested by this machine's NGINX.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    thread,
};

use ingress_model::Outcome;
use nginx_render::{Rendered, Renderer};

use super::{
    complete_environment, merge, nginx_test, render,
    rows::{ROWS, Row},
    support::{installed, write},
};

/// The keys that a row needs besides its own.
fn companions((_, _, companions, _): &Row) -> BTreeMap<&'static str, &'static str> {
    companions.iter().copied().collect()
}

/// What a row's ConfigMap says.
fn data(row: &Row) -> BTreeMap<&'static str, &'static str> {
    let mut data = companions(row);
    data.insert(row.0, row.1);
    data
}

/// All that NGINX reads, line by line, each with the file that it stands in. The number that stands for all of it is left
/// out.
fn lines(rendered: &Rendered) -> Vec<String> {
    let number = rendered.checksum.to_string();
    let main = rendered.main.lines().map(|line| line.trim().to_owned());
    let files = rendered.files.iter().flat_map(|(path, file)| {
        let text = String::from_utf8_lossy(&file.bytes).replace(',', ",\n");
        // Certificates are others each time, and keys are no text.
        let text = if text.contains("-----BEGIN") {
            "PEM"
        } else if text.contains('\0') {
            "a key"
        } else {
            &text
        };
        let lines: Vec<_> = text
            .lines()
            .map(|line| format!("{path}: {}", line.trim()))
            .collect();
        lines
    });
    let all = main.chain(files);
    all.filter(|line| !line.contains(&number)).collect()
}

/// The lines that are in one list more often than in the other, in their order.
fn surplus(of: &[String], over: &[String], sign: char) -> String {
    let mut counts: BTreeMap<&str, i32> = BTreeMap::new();
    for line in over {
        *counts.entry(line).or_default() -= 1;
    }
    for line in of {
        *counts.entry(line).or_default() += 1;
    }
    let mut text = String::new();
    for line in of {
        let count = counts.insert(line, 0).unwrap_or_default();
        match count {
            ..=0 => {}
            1 => writeln!(text, "{sign} {line}").unwrap(),
            _ => writeln!(text, "{sign} {line} ({count} times)").unwrap(),
        }
    }
    text
}

#[test]
fn what_each_key_changes() {
    let mut bases: BTreeMap<_, (Outcome, Vec<String>)> = BTreeMap::new();
    let mut text = String::new();
    for row in ROWS {
        let (outcome_before, before) = bases.entry(companions(row)).or_insert_with_key(|base| {
            let outcome = merge(base, true);
            let lines = lines(&render(&outcome));
            (outcome, lines)
        });
        let outcome = merge(&data(row), false);
        let after = lines(&render(&outcome));
        writeln!(text, "{}: {}", row.0, row.1).unwrap();
        for (name, value) in row.2 {
            writeln!(text, "  beside {name}: {value}").unwrap();
        }
        if outcome.model.live != outcome_before.model.live {
            text.push_str("  told without a load\n");
        }
        text += &surplus(before, &after, '-');
        text += &surplus(&after, before, '+');
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("keys", text));
}

/// What this machine's NGINX has against these rows, each with its key and without.
fn refused(rows: &[Row]) -> Vec<String> {
    let capabilities = installed().expect("nginx with Lua is installed");
    let directory = tempfile::tempdir().unwrap();
    let environment = complete_environment(directory.path());
    let mut renderer = Renderer::new(capabilities, environment);
    let mut tested = BTreeSet::new();
    let mut faults = Vec::new();
    for map in rows.iter().flat_map(|row| [companions(row), data(row)]) {
        let layout = merge(&map, true).model.layout;
        let rendered = renderer.render(&layout).unwrap();
        if tested.insert(rendered.checksum)
            && let Err(said) = nginx_test(&write(&rendered, directory.path()))
        {
            faults.push(format!("{map:?}: {said}"));
        }
    }
    assert!(tested.len() > rows.len() / 2, "{}", tested.len());
    faults
}

#[test]
fn nginx_takes_each_key_by_itself() {
    let (some, others) = ROWS.split_at(ROWS.len() / 2);
    let mut faults = thread::scope(|scope| {
        let others = scope.spawn(|| refused(others));
        let mut faults = refused(some);
        faults.extend(others.join().unwrap());
        faults
    });
    faults.sort();
    assert!(faults.is_empty(), "{faults:#?}");
}
