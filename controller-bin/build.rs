//! Tells the program which build it is: the commit of its source, where that is known, and the compiler.

use std::{
    env, fs,
    io::{self, Write},
    path::Path,
    process::Command,
};

fn main() -> io::Result<()> {
    let mut told = vec!["cargo::rerun-if-changed=build.rs".to_owned()];
    told.push("cargo::rerun-if-env-changed=BUILD_COMMIT".to_owned());
    let given = env::var("BUILD_COMMIT").ok().filter(|text| is_commit(text));
    let commit = given.or_else(|| checked_out(&mut told));
    if let Some(commit) = commit {
        told.push(format!("cargo::rustc-env=CONTROLLER_COMMIT={commit}"));
    }
    if let Some(compiler) = compiler() {
        told.push(format!("cargo::rustc-env=CONTROLLER_COMPILER={compiler}"));
    }
    io::stdout().write_all((told.join("\n") + "\n").as_bytes())
}

/// The commit that is checked out, read as git has it on the disk. Debug builds do without, or each commit would make
/// them anew.
fn checked_out(told: &mut Vec<String>) -> Option<String> {
    if env::var("PROFILE").ok()? != "release" {
        return None;
    }
    let git = Path::new(&env::var_os("CARGO_MANIFEST_DIR")?).join("../.git");
    let mut read = |name: &str| {
        let path = git.join(name);
        let text = fs::read_to_string(&path).ok()?;
        told.push(format!("cargo::rerun-if-changed={}", path.display()));
        Some(text)
    };
    let head = read("HEAD")?;
    let Some(branch) = head.trim().strip_prefix("ref: ") else {
        return Some(head.trim().to_owned()).filter(|text| is_commit(text));
    };
    let commit = read(branch).map(|text| text.trim().to_owned());
    let commit = commit.or_else(|| {
        let packed = read("packed-refs")?;
        let mut lines = packed.lines();
        let commit = lines.find_map(|line| line.strip_suffix(branch)?.strip_suffix(' '));
        commit.map(str::to_owned)
    });
    commit.filter(|text| is_commit(text))
}

fn is_commit(text: &str) -> bool {
    (7..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What the compiler calls itself.
fn compiler() -> Option<String> {
    let output = Command::new(env::var_os("RUSTC")?)
        .arg("--version")
        .output();
    let text = String::from_utf8(output.ok()?.stdout).ok()?;
    let line = text.lines().next()?.trim();
    line.starts_with("rustc ").then(|| line.to_owned())
}
