use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use super::{FAULTY, SHOP, from, manifests, run, site::open_directory};

const ASSUMED: &str = "--assume-nginx=debian-12";

#[test]
fn the_main_file_goes_to_standard_output() {
    let directory = manifests(&[("a.yaml", SHOP)]);
    let words = ["render", &from(&directory), ASSUMED, "--http-port=8080"];
    let said = run(&words);
    assert_eq!((said.code, said.errors.as_str()), (0, ""), "{said:?}");
    assert!(said.text.starts_with("# Configuration checksum: "));
    said.has_line(&["server_name \"shop.test\";"]);
    said.has_line(&["listen 8080;"]);
    assert_eq!(run(&words).text, said.text, "it is the same each time");
}

#[test]
fn what_is_left_out_is_told_beside_it() {
    let directory = manifests(&[("a.yaml", SHOP), ("b.yaml", "kind: [")]);
    let said = run(&["render", &from(&directory), ASSUMED]);
    assert_eq!(said.code, 1);
    assert!(said.errors.starts_with("left out: ") && said.errors.contains("b.yaml:1"));
    said.has_line(&["server_name \"shop.test\";"]);
}

#[test]
fn what_secrets_hold_is_not_shown() {
    let secret = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: none, namespace: shop}\n\
        stringData: {auth: 'user:$apr1$hidden'}\n";
    let text = format!("{FAULTY}{secret}");
    let directory = manifests(&[("a.yaml", SHOP), ("b.yaml", &text)]);
    let json = run(&["render", &from(&directory), ASSUMED, "-o=json"]);
    assert!(!json.text.contains("hidden"), "{}", json.text);
    let json = json.json();
    assert_eq!(json["nginx"]["assumed"], true);
    assert_eq!(json["nginx"]["version"], "1.22.1");
    let files = json["files"].as_object().expect("they are there");
    assert!(
        files["nginx.conf"]
            .as_str()
            .is_some_and(|text| text.contains("auth_basic"))
    );
    let private = files.iter().filter(|(_, text)| text.is_null()).count();
    assert_eq!(
        private,
        2,
        "the passwords and the certificate: {:?}",
        files.keys()
    );
    for other in ["render", "diff"] {
        let set = directory.path().display().to_string();
        let words = match other {
            "diff" => vec!["diff", &set, "examples/quickstart/manifests", ASSUMED],
            _ => vec![other, &set, ASSUMED],
        };
        assert!(!run(&words).text.contains("$hidden"), "{other}");
    }
}

#[test]
fn nginx_takes_the_files() {
    let directory = manifests(&[("a.yaml", SHOP)]);
    let target = open_directory();
    let path = target.path().display();
    let flags = [
        format!("--output-dir={path}"),
        format!("--nginx-dir={path}"),
        "--http-port=18080".to_owned(),
        "--https-port=18443".to_owned(),
    ];
    let flags: Vec<_> = flags.iter().map(String::as_str).collect();
    let source = from(&directory);
    let words = [&["render", source.as_str()], flags.as_slice()].concat();
    let said = run(&words);
    assert_eq!(said.code, 0, "{said:?}");
    for line in said.text.lines() {
        assert!(Path::new(line).is_file(), "{line}");
    }
    let mode = |name: &str| {
        let metadata = fs::metadata(target.path().join(name)).expect("it is there");
        metadata.permissions().mode() & 0o777
    };
    assert_eq!(
        (mode("nginx.conf"), mode("ssl/default.pem")),
        (0o644, 0o600)
    );
    let conf = target.path().join("nginx.conf");
    let tested = Command::new("nginx")
        .arg("-t")
        .arg("-c")
        .arg(&conf)
        .output();
    let tested = tested.expect("NGINX is there");
    assert!(
        tested.status.success(),
        "{}",
        String::from_utf8_lossy(&tested.stderr)
    );
    assert_eq!(run(&words).code, 0, "it may be written again");
}

#[test]
fn files_of_others_stay() {
    let directory = manifests(&[("a.yaml", SHOP)]);
    let target = open_directory();
    let conf = target.path().join("nginx.conf");
    fs::write(&conf, "user www-data;\n").expect("it is writable");
    let flag = format!("--output-dir={}", target.path().display());
    let said = run(&["render", &from(&directory), ASSUMED, &flag]);
    assert_eq!(said.code, 2);
    assert!(said.errors.starts_with("cannot overwrite "), "{said:?}");
    assert_eq!(
        fs::read_to_string(&conf).expect("it is there"),
        "user www-data;\n"
    );
    fs::remove_file(&conf).expect("it is ours");
    fs::create_dir(target.path().join("run")).expect("it is writable");
    fs::write(target.path().join("run/controller.lock"), "").expect("it is writable");
    let said = run(&["render", &from(&directory), ASSUMED, &flag]);
    assert_eq!(said.code, 2);
    assert!(
        said.errors
            .contains("a controller runs NGINX with that directory"),
        "{said:?}"
    );
}
