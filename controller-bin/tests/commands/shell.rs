use super::{run, site::open_directory};

const SUBCOMMANDS: [&str; 13] = [
    "explain",
    "lint",
    "render",
    "diff",
    "migrate",
    "ingresses",
    "endpoints",
    "backends",
    "certs",
    "conf",
    "general",
    "completions",
    "man",
];

#[test]
fn shells_complete_all_subcommands() {
    for shell in ["bash", "zsh", "fish"] {
        let said = run(&["completions", shell]);
        assert_eq!((said.code, said.errors.as_str()), (0, ""), "{shell}");
        for name in SUBCOMMANDS.iter().chain(&["assume-nginx", "http-port"]) {
            assert!(said.text.contains(name), "{shell}: {name}");
        }
    }
    assert_eq!(run(&["completions"]).code, 2);
}

#[test]
fn the_manual_has_a_page_for_each_subcommand() {
    let said = run(&["man"]);
    assert_eq!((said.code, said.errors.as_str()), (0, ""));
    assert!(
        said.text.contains(".TH nginx-ingress-controller 1"),
        "{}",
        said.text
    );
    for name in SUBCOMMANDS {
        let escaped = name.replace('-', "\\-");
        assert!(said.text.contains(&escaped), "{name}");
        let page = run(&["man", name]);
        assert_eq!(page.code, 0, "{name}");
        let title = format!(".TH nginx-ingress-controller-{name} 1");
        assert!(page.text.contains(&title), "{name}: {}", page.text);
    }
    let said = run(&["man", "none"]);
    assert_eq!(
        (said.code, said.errors.as_str()),
        (2, "there is no subcommand none\n")
    );
}

#[test]
fn the_help_lists_all_subcommands() {
    let said = run(&["--help"]);
    for name in SUBCOMMANDS {
        said.has_line(&["  ", name, " "]);
    }
}

/// What was misspelt is said before anything is written.
#[test]
fn a_controller_without_manifests_lays_nothing_out() {
    let directory = open_directory();
    let nginx = directory.path().join("nginx");
    let said = run(&[
        "--manifests=/nowhere/at/all",
        &format!("--nginx-dir={}", nginx.display()),
    ]);
    assert_eq!(said.code, 1, "{said:?}");
    let all = said.text + &said.errors;
    assert!(
        all.contains("the directory of manifests /nowhere/at/all"),
        "{all}"
    );
    assert!(!nginx.exists(), "{all}");
}

#[test]
fn the_version_names_the_build_and_nginx() {
    let said = run(&["--version"]);
    assert_eq!(said.code, 0);
    said.has_line(&["nginx-ingress-controller ", env!("CARGO_PKG_VERSION")]);
    said.has_line(&["commit: "]);
    said.has_line(&["built: ", std::env::consts::ARCH, "rustc 1."]);
    said.has_line(&["nginx version: nginx/", "1."]);
    said.has_line(&["not with this nginx: ", "use-http3"]);
    said.has_line(&["modules", "Lua"]);
    let said = run(&["--version", "--nginx-binary=/none/such"]);
    assert_eq!(said.code, 0);
    said.has_line(&["cannot run /none/such"]);
}
