//! Texts that mean something to NGINX, to shells or to Lua.

use proptest::prelude::*;

/// More bytes than anything of a configuration may have.
const MANY: usize = 1 << 20;

/// Texts of which each would add a directive `evil` of its own, if only it could leave its place.
pub(crate) const ESCAPES: &[&str] = &[
    "x#;\nevil on;\n",
    "x;}}}\nevil on;\nhttp { server {",
    "x\" ; evil on; #",
    "x'; evil on; #",
    "x\\\"; evil on; #",
    "x\r\nevil on;",
    "x\revil on;\r",
    "x${evil};evil on;",
    "x\"; } evil { on \"",
    "x; evil on;",
    "x {evil on;}",
    "\u{85}evil\u{2028}on;\u{2029}",
    "\0; evil on;",
    "x\\",
    "\\\\\"; evil on; \"\\\\",
    "]]; evil on; --[[",
    "$(evil)`evil`",
    "ä\u{1f600}; evil on;",
    "",
    " ",
];

/// Each of those alone and behind something acceptable, and a text of a megabyte.
pub(crate) fn around(accepted: &str) -> impl Iterator<Item = String> {
    let escapes = ESCAPES.iter();
    let escapes = escapes.flat_map(move |it| [(*it).to_owned(), format!("{accepted}{it}")]);
    let many = "x;{\"${evil} '\\";
    escapes.chain([many.repeat(MANY / many.len())])
}

/// Any text without control characters.
pub(crate) fn printable() -> impl Strategy<Value = String> {
    let special = prop::sample::select(vec![
        "\"",
        "'",
        "\\",
        ";",
        "{",
        "}",
        "$",
        "${",
        "#",
        " ",
        "~",
        "=",
        "^~",
        "@",
        "(",
        ")",
        "|",
        "*",
        "?",
        "%0a",
        "$1",
        "${2}",
        "$uri",
        "return 200",
        "\\n",
        "\\\"",
        "a",
        "ä",
        "\u{2028}",
        "*/",
        "]]",
        "/",
        "..",
        "=~",
        "\\;",
        "$\"",
        "-",
    ]);
    prop::collection::vec(
        prop_oneof![4 => special.prop_map(String::from), 1 => "[ -~]{0,5}"],
        0..12,
    )
    .prop_map(|parts| parts.concat())
}

/// Any text at all.
pub(crate) fn hostile() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "\"",
        "'",
        "\\",
        ";",
        "{",
        "}",
        "$",
        "${",
        "#",
        " ",
        "\n",
        "\r",
        "\t",
        "\0",
        "\u{1}",
        "\u{7f}",
        "\u{85}",
        "\u{2028}",
        "ä",
        "~",
        "=",
        "@",
        "(",
        ")",
        "|",
        "*",
        "..",
        "../",
        "/",
        "%0a",
        "$1",
        "$uri",
        "]]",
        "-",
        "return 200",
        "add_header X-Marker 1;",
        "}\n}\n",
        "\\\"",
        "evil x;",
        "a",
        "http://a.test/",
    ]);
    prop_oneof![
        6 => prop::collection::vec(pieces, 0..8).prop_map(|pieces| pieces.concat()),
        1 => any::<String>(),
        1 => Just("x;".repeat(3_000)),
    ]
}
