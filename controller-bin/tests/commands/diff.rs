use super::{FAULTY, SHOP, from, manifests, run};

const ASSUMED: &str = "--assume-nginx=debian-12";

#[test]
fn equal_sets_do_not_differ() {
    let (one, other) = (
        manifests(&[("a.yaml", SHOP)]),
        manifests(&[("b.yaml", SHOP)]),
    );
    let paths = [one.path(), other.path()].map(|path| path.display().to_string());
    let said = run(&["diff", &paths[0], &paths[1]]);
    assert_eq!(
        (said.code, said.text.as_str()),
        (0, "no difference\n"),
        "{said:?}"
    );
}

#[test]
fn endpoints_change_without_a_reload() {
    let old = manifests(&[("a.yaml", SHOP)]);
    let new = manifests(&[("a.yaml", &SHOP.replace("10.0.0.2", "10.0.0.3"))]);
    let paths = [old.path(), new.path()].map(|path| path.display().to_string());
    let said = run(&["diff", &paths[0], &paths[1], ASSUMED]);
    assert_eq!(said.code, 1, "{said:?}");
    let head = format!(
        "no reload\ntold to the running NGINX:\n  backend shop-web-80 set\n\n\
         --- {}/model.json\n+++ {}/model.json\n@@ ",
        paths[0], paths[1]
    );
    assert!(said.text.starts_with(&head), "{}", said.text);
    said.has_line(&["-", "\"address\": \"10.0.0.2\""]);
    said.has_line(&["+", "\"address\": \"10.0.0.3\""]);
    assert!(!said.text.contains("nginx.conf"), "{}", said.text);
}

#[test]
fn a_reload_has_its_reasons() {
    let old = manifests(&[("a.yaml", SHOP)]);
    let new = manifests(&[("a.yaml", SHOP), ("b.yaml", FAULTY)]);
    let path = new.path().display().to_string();
    let words = ["diff", &from(&old), &path, ASSUMED];
    let said = run(&words);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.text.starts_with("reload, since:\n"), "{}", said.text);
    said.has_line(&["  upstream of path /cart of host shop.test changed"]);
    said.has_line(&["--- ", "/nginx.conf"]);
    said.has_line(&["+", "return 503"]);
    let json = run(&[&words[..], &["-o=json"]].concat()).json();
    assert_eq!(json["reload"], true);
    assert_eq!(json["reasons"][0]["reason"], "location_changed");
    assert!(
        json["configuration"]
            .as_str()
            .is_some_and(|text| text.contains("@@"))
    );
    let brief = run(&[&words[..], &["--brief"]].concat());
    assert!(!brief.text.contains("@@"), "{}", brief.text);
    assert_eq!(
        brief.text,
        said.text
            .split("\n\n")
            .next()
            .unwrap_or_default()
            .to_owned()
            + "\n"
    );
    let narrow = run(&[&words[..], &["--context=0"]].concat());
    assert!(narrow.text.len() < said.text.len());
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let one = manifests(&[("a.yaml", SHOP)]);
    let path = one.path().display().to_string();
    for words in [
        &["diff"][..],
        &["diff", "--running=false", &from(&one)],
        &["diff", &path, &path, &path],
        &["diff", &path, &path, "--running"],
        &["diff", &path, "/nowhere/at/all"],
        &[
            "diff",
            "--running",
            &from(&one),
            "--nginx-dir=/nowhere/at/all",
        ],
    ] {
        let said = run(words);
        assert_eq!(
            (said.code, said.text.as_str()),
            (2, ""),
            "{words:?}: {said:?}"
        );
        assert!(!said.errors.is_empty(), "{words:?}");
    }
}
