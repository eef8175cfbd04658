//! ModSecurity in a location.

use std::sync::Arc;

use ingress_model::{Location, layout::ModSecurity};

use crate::{
    capabilities::Module,
    rendered::{FileContent, RelativePath},
    source_map::Source,
    value::{Unprintable, plain, switch, template},
};

use super::{
    Context,
    directive::{Directive, directive},
    extras::Extras,
};

/// What a location says.
///
/// # Errors
/// When requests are to be looked at and cannot be: the location must not be served then.
pub(crate) fn directives(
    modsecurity: &ModSecurity,
    location: &Location,
    context: &Context<'_>,
    source: &Arc<Source>,
    extras: &mut Extras,
) -> Result<Vec<Directive>, Unprintable> {
    let is_asked_for = modsecurity.enable == Some(true);
    let has_module = context.capabilities.has(Module::ModSecurity);
    if is_asked_for && !has_module {
        return Err(Unprintable::Missing(Module::ModSecurity));
    }
    if !has_module {
        return Ok(Vec::new());
    }
    let mut directives = Vec::new();
    directives.extend(
        modsecurity
            .enable
            .map(|on| directive("modsecurity", [switch(on)])),
    );
    if !is_asked_for {
        return Ok(directives);
    }
    if let Some(id) = &modsecurity.transaction_id {
        directives.push(directive(
            "modsecurity_transaction_id",
            [template(id.as_str())?],
        ));
    }
    let rules = &context.environment.modsecurity;
    let mut include = |path: &str| {
        directives.push(directive("modsecurity_rules_file", [plain(path)?]));
        Ok(())
    };
    match (&modsecurity.rules, &location.ingress) {
        (Some(own), Some(ingress)) => {
            let path = format!(
                "modsecurity/{}_{}.conf",
                ingress.namespace(),
                ingress.name()
            );
            let path = RelativePath::new(&path).ok_or(Unprintable::FileName)?;
            include(&format!("{}/{path}", context.environment.nginx_dir))?;
            let text = format!("{}\n", own.as_str());
            extras.add_file(
                path,
                FileContent {
                    text,
                    private: false,
                },
                source,
            );
        }
        (_, _) => rules.rules.as_deref().map_or(Ok(()), &mut include)?,
    }
    if modsecurity.core_rules {
        rules.core_rules.as_deref().map_or(Ok(()), &mut include)?;
    }
    Ok(directives)
}
