//! Answers to cross-origin requests.

use ingress_model::layout::Cors;

use crate::{
    capabilities::Module,
    value::{Printed, Unprintable, concatenated, constant, copy, literal, plain, word},
};

use super::{
    Context,
    directive::{Directive, directive},
};

/// What a location says about other origins.
pub(crate) struct CorsView {
    /// What an origin that may ask has to match; `None`: every origin may.
    pub(crate) origins: Option<Printed>,
    /// Headers for those who may ask.
    pub(crate) headers: Vec<Directive>,
    /// Further headers of the answer to a preflight request.
    pub(crate) preflight: Vec<Directive>,
}

impl CorsView {
    pub(crate) fn new(cors: &Cors, context: &Context<'_>) -> Result<Self, Unprintable> {
        let origins = cors.origins.as_ref().map(|origins| {
            let patterns: Vec<String> = origins
                .iter()
                .map(ingress_model::layout::Origin::pattern)
                .collect();
            // Nobody may ask when the list is empty.
            let pattern = if patterns.is_empty() {
                "(?!)".into()
            } else {
                patterns.join("|")
            };
            plain(&format!("^(?:{pattern})$"))
        });
        let origin = if origins.is_some() {
            "$http_origin"
        } else {
            "*"
        };
        let mut headers = vec![response_header(
            context,
            "Access-Control-Allow-Origin",
            &constant(format!("\"{origin}\"")),
        )?];
        let mut add = |name, value: &str| {
            headers.push(response_header(context, name, &literal(value)?)?);
            Ok(())
        };
        if cors.credentials {
            add("Access-Control-Allow-Credentials", "true")?;
        }
        add("Access-Control-Allow-Methods", cors.methods.as_str())?;
        add("Access-Control-Allow-Headers", cors.headers.as_str())?;
        if let Some(expose) = &cors.expose {
            add("Access-Control-Expose-Headers", expose.as_str())?;
        }
        add("Access-Control-Max-Age", &cors.max_age.to_string())?;
        let text = |name, value: &str| response_header(context, name, &literal(value)?);
        Ok(Self {
            origins: origins.transpose()?,
            headers,
            preflight: vec![
                text("Content-Type", "text/plain charset=UTF-8")?,
                text("Content-Length", "0")?,
            ],
        })
    }
}

/// A response header, in place of one that the endpoint sends where NGINX has a module for that. `name` is a header's
/// name, `value` a quoted text.
///
/// # Errors
/// When the name cannot stand in the configuration.
pub(crate) fn response_header(
    context: &Context<'_>,
    name: &str,
    value: &Printed,
) -> Result<Directive, Unprintable> {
    let name = literal(name)?;
    if context.capabilities.has(Module::HeadersMore) {
        let separator = constant(": ".into());
        return Ok(directive(
            "more_set_headers",
            [concatenated(&[&name, &separator, value])],
        ));
    }
    Ok(directive("add_header", [name, copy(value), word("always")]))
}
