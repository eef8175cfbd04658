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
    // Rules that come with a distribution may not be there, and NGINX refuses to start without them: only those that an
    // Ingress brings are used.
    let (Some(rules), Some(ingress), false) = (
        &modsecurity.rules,
        &location.ingress,
        modsecurity.core_rules,
    ) else {
        return Err(Unprintable::NoRules);
    };
    let path = format!(
        "modsecurity/{}_{}.conf",
        ingress.namespace(),
        ingress.name()
    );
    let path = RelativePath::new(&path).ok_or(Unprintable::FileName)?;
    let absolute = plain(&format!("{}/{path}", context.environment.nginx_dir))?;
    directives.push(directive("modsecurity_rules_file", [absolute]));
    let text = format!("{}\n", rules.as_str());
    extras.add_file(path, FileContent::public(text), source);
    Ok(directives)
}
