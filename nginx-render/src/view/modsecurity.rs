//! ModSecurity.

use std::sync::Arc;

use ingress_model::{Location, layout::ModSecurity};

use crate::{
    capabilities::Module,
    rendered::{FileContent, RelativePath},
    source_map::{END, Note, Source, Sources},
    value::{Unprintable, constant, lines, plain, switch, template},
};

use super::{
    Context, SnippetView,
    directive::{Directive, directive},
    extras::Extras,
    note,
};

/// The file that names those of the core rule set, below NGINX's directory.
pub(crate) const CORE_RULES: &str = "modsecurity/owasp-crs.conf";

/// The rules of the key `modsecurity-snippet` where they are too long for one word of NGINX's.
pub(crate) const RULES: &str = "modsecurity/snippet.conf";

/// Whether requests are looked at unless a location says otherwise.
pub(crate) fn is_on(context: &Context<'_>) -> bool {
    context.config.enable_modsecurity && context.capabilities.has(Module::ModSecurity)
}

/// What the http block says.
#[derive(Default)]
pub(crate) struct ModSecurityView {
    pub(crate) settings: Vec<Directive>,
    pub(crate) rules: Option<SnippetView>,
}

impl ModSecurityView {
    /// # Errors
    /// When a path cannot stand in the configuration.
    pub(crate) fn new(
        context: &Context<'_>,
        sources: &mut Sources,
        notes: &mut Vec<Note>,
    ) -> Result<Self, Unprintable> {
        let config = context.config;
        let mut say = |what, text: &str| notes.push(note(what, text.into()));
        if !config.enable_modsecurity {
            return Ok(Self::default());
        }
        if !is_on(context) {
            say(
                "enable-modsecurity",
                "requests are not looked at: NGINX has no module for ModSecurity",
            );
            return Ok(Self::default());
        }
        let mut settings = vec![directive("modsecurity", [switch(true)])];
        let mut rules = None;
        if let Some(snippet) = &config.modsecurity_snippet {
            match lines(snippet.as_str()) {
                Ok(text) => {
                    let source = Source {
                        host: None,
                        path: None,
                        ingress: None,
                        what: "modsecurity-snippet",
                    };
                    rules = Some(SnippetView {
                        begin: sources.begin_raw(Arc::new(source)),
                        text: constant(format!("modsecurity_rules {};", text.0)),
                        end: END,
                    });
                }
                Err(_) => settings.push(file(context, RULES)?),
            }
        } else if let Some(path) = &context.environment.modsecurity.recommended {
            settings.push(directive("modsecurity_rules_file", [plain(path)?]));
        } else {
            say(
                "enable-modsecurity",
                "ModSecurity has no rules: this machine has no modsecurity.conf",
            );
        }
        if config.enable_owasp_modsecurity_crs {
            if context.environment.modsecurity.core.is_empty() {
                say(
                    "enable-owasp-modsecurity-crs",
                    "this machine does not have the OWASP core rule set",
                );
            } else {
                settings.push(file(context, CORE_RULES)?);
            }
        }
        Ok(Self { settings, rules })
    }
}

/// The files that go with what the http block and locations say.
pub(crate) fn files(context: &Context<'_>) -> Vec<(&'static str, FileContent)> {
    let mut files = Vec::new();
    if !context.capabilities.has(Module::ModSecurity) {
        return files;
    }
    let core = &context.environment.modsecurity.core;
    if !core.is_empty() {
        let includes = core.iter().map(|path| format!("Include {path}\n"));
        files.push((
            CORE_RULES,
            FileContent::public(includes.collect::<String>()),
        ));
    }
    let snippet = context.config.modsecurity_snippet.as_ref();
    if let Some(snippet) = snippet.filter(|snippet| lines(snippet.as_str()).is_err()) {
        let text = format!("{}\n", snippet.as_str());
        files.push((RULES, FileContent::public(text)));
    }
    files
}

/// What a location says. Where requests cannot be looked at as they are to be, that is noted and they are served:
/// ModSecurity only comes on top of access checks.
///
/// # Errors
/// When a setting cannot stand in the configuration.
pub(crate) fn directives(
    modsecurity: &ModSecurity,
    location: &Location,
    context: &Context<'_>,
    source: &Arc<Source>,
    extras: &mut Extras,
) -> Result<Vec<Directive>, Unprintable> {
    let is_asked_for = modsecurity.enable == Some(true);
    let has_module = context.capabilities.has(Module::ModSecurity);
    if !has_module {
        if is_asked_for {
            let text = "requests are not looked at: NGINX has no module for ModSecurity";
            extras.note(source, "enable-modsecurity", text);
        }
        return Ok(Vec::new());
    }
    let above = is_on(context);
    let mut directives = Vec::new();
    // Without one that has it on, the module is not loaded, and NGINX does not know the directive.
    let switched = modsecurity.enable.filter(|on| *on || above);
    directives.extend(switched.map(|on| directive("modsecurity", [switch(on)])));
    if !modsecurity.enable.unwrap_or(above) {
        return Ok(directives);
    }
    if let Some(id) = &modsecurity.transaction_id {
        directives.push(directive(
            "modsecurity_transaction_id",
            [template(id.as_str())?],
        ));
    }
    // Rules of the levels are added up, and one that is there twice is refused.
    let machine = &context.environment.modsecurity;
    if let (Some(rules), Some(ingress)) = (&modsecurity.rules, &location.ingress) {
        let path = format!(
            "modsecurity/{}_{}.conf",
            ingress.namespace(),
            ingress.name()
        );
        let path = RelativePath::new(&path).ok_or(Unprintable::FileName)?;
        directives.push(file(context, path.as_str())?);
        let text = format!("{}\n", rules.as_str());
        extras.add_file(path, FileContent::public(text), source);
    } else if !above {
        if let Some(path) = &machine.recommended {
            directives.push(directive("modsecurity_rules_file", [plain(path)?]));
        } else {
            let text = "ModSecurity has no rules: this machine has no modsecurity.conf";
            extras.note(source, "enable-modsecurity", text);
        }
    }
    let has_core = above && context.config.enable_owasp_modsecurity_crs;
    if modsecurity.core_rules && !has_core {
        if machine.core.is_empty() {
            let text = "this machine does not have the OWASP core rule set";
            extras.note(source, "enable-owasp-core-rules", text);
        } else {
            directives.push(file(context, CORE_RULES)?);
        }
    }
    Ok(directives)
}

/// `modsecurity_rules_file` for a file below NGINX's directory.
fn file(context: &Context<'_>, path: &str) -> Result<Directive, Unprintable> {
    let path = plain(&format!("{}/{path}", context.environment.nginx_dir))?;
    Ok(directive("modsecurity_rules_file", [path]))
}
