//! What NGINX itself says about configurations with such texts: never that something is out of place.

use std::{path::Path, process::Command};

use ingress_model::{Options, Outcome};
use nginx_render::{Capabilities, Environment, Ports, Renderer};

use crate::{
    hostile::ESCAPES,
    rows::{self, ROWS},
    support::{self, environment, installed},
};

/// What NGINX says of a text that has left its place.
const OUT_OF_PLACE: &[&str] = &[
    "unknown directive",
    "unexpected",
    "is not terminated",
    "is not allowed here",
    "invalid number of arguments",
    "has no opening",
    "evil on",
];

/// What NGINX refuses in a configuration, if it refuses it.
fn refusal(outcome: &Outcome, capabilities: &Capabilities, directory: &Path) -> Option<String> {
    let environment = Environment {
        ipv6: false,
        ports: Ports {
            http: 18_080,
            https: 18_443,
            status: 18_246,
            default_server: 18_181,
            passthrough: None,
        },
        ..environment(directory)
    };
    let mut renderer = Renderer::new(capabilities.clone(), environment);
    let rendered = renderer.render(&outcome.model.layout).unwrap();
    let main = support::write(&rendered, directory);
    let output = Command::new("nginx").arg("-t").arg("-c").arg(main).output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (!output.status.success()).then_some(said)
}

/// Each annotation, unchecked, with each text that has no character which would be refused even so.
#[test]
fn nothing_is_out_of_place() {
    let capabilities = installed().expect("nginx with Lua is installed");
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        annotation_validation: false,
        ..rows::options()
    };
    let texts = || {
        let texts = ESCAPES.iter();
        texts.filter(|text| !text.contains(|c: char| c == '$' || c.is_control()))
    };
    let (mut accepted, mut faults) = (0, Vec::new());
    for (name, value, _, _, companions) in
        ROWS.iter().filter(|(name, ..)| !name.contains("snippet"))
    {
        let mut last = rows::outcome(companions, &options).model.layout;
        for text in texts() {
            let value = format!("{value}{text}");
            let set = [*companions, &[(*name, value.as_str())]].concat();
            let outcome = rows::outcome(&set, &options);
            // It is refused, or Lua is told.
            if outcome.model.layout == last {
                continue;
            }
            last = outcome.model.layout.clone();
            match refusal(&outcome, &capabilities, directory.path()) {
                None => accepted += 1,
                // OpenSSL repeats what it does not understand.
                Some(said) if said.contains("SSL_CTX_set_cipher_list") => {}
                Some(said) if OUT_OF_PLACE.iter().any(|text| said.contains(text)) => {
                    faults.push(format!("{name}: {value:?}: {said}"));
                }
                // A wrong URL, say: it concerns nobody else.
                Some(_) => {}
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(accepted > 50, "{accepted} are few");
}
