//! LIST: pages of a consistent snapshot, and what `resourceVersion` asks of it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    error::ApiError,
    request::Call,
    resource::Resource,
    selector::Selector,
    store::{Key, Object, Store},
};

/// How objects are to be shown: whole, or their metadata only (`as=PartialObjectMetadata`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    MetadataOnly,
}

/// Where a page starts: the snapshot's version (0 for the latest) and the last key already sent.
struct Page {
    version: u64,
    after: Key,
}

/// Answers a LIST.
///
/// # Errors
/// 400 and 422 for parameters that make no sense together, 410 when the snapshot is gone, 504 for
/// a version not yet reached.
pub(crate) fn list(
    store: &Store,
    resource: &'static Resource,
    call: &Call,
    form: Form,
) -> Result<Value, ApiError> {
    check_parameters(resource, call)?;
    let selector = selector(resource, call)?;
    let limit = call.parameter("limit").parse::<usize>().unwrap_or(0);
    let page = page(call)?;
    let (version, objects) = match &page {
        Some(page) => {
            let version = if page.version == 0 {
                store.version()
            } else {
                page.version
            };
            let expired = || {
                ApiError::continue_expired(token(&Page {
                    version: 0,
                    after: page.after.clone(),
                }))
            };
            (
                version,
                store
                    .table(resource)
                    .objects_at(version)
                    .ok_or_else(expired)?,
            )
        }
        None => snapshot(store, resource, call, limit)?,
    };

    let mut rest = objects
        .iter()
        .filter(|(key, _)| page.as_ref().is_none_or(|page| **key > page.after))
        .filter(|(_, object)| selector.matches(object));
    let taken: Vec<(&Key, &Object)> = rest
        .by_ref()
        .take(if limit == 0 { usize::MAX } else { limit })
        .collect();
    let remaining = rest.count();

    let mut metadata = json!({"resourceVersion": version.to_string()});
    if let (true, Some((key, _))) = (remaining > 0, taken.last()) {
        metadata["continue"] = json!(token(&Page {
            version,
            after: Key::clone(key)
        }));
        if !selector.filters() {
            metadata["remainingItemCount"] = json!(remaining);
        }
    }
    let items: Vec<Value> = taken
        .into_iter()
        .map(|(_, object)| item(object, form))
        .collect();
    let (api_version, kind) = match form {
        Form::Whole => (resource.api_version(), format!("{}List", resource.kind)),
        Form::MetadataOnly => (
            "meta.k8s.io/v1".to_owned(),
            "PartialObjectMetadataList".to_owned(),
        ),
    };
    Ok(json!({"kind": kind, "apiVersion": api_version, "metadata": metadata, "items": items}))
}

/// The selector of a LIST or WATCH.
pub(crate) fn selector(resource: &Resource, call: &Call) -> Result<Selector, ApiError> {
    let (labels, fields) = (
        call.parameter("labelSelector"),
        call.parameter("fieldSelector"),
    );
    Selector::parse(resource, call.namespace.as_deref(), labels, fields)
}

/// An object in the asked form.
pub(crate) fn show(object: &Value, form: Form) -> Value {
    match form {
        Form::Whole => object.clone(),
        Form::MetadataOnly => json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": object["metadata"],
        }),
    }
}

/// The version a request names; 0 when it names none.
pub(crate) fn wanted_version(resource: &Resource, call: &Call) -> Result<u64, ApiError> {
    let version = call.parameter("resourceVersion");
    if version.is_empty() {
        return Ok(0);
    }
    version.parse().map_err(|_not_a_number| {
        let cause = format!("resourceVersion: Invalid value: {version:?}: must be a number");
        ApiError::invalid(resource, "", &cause)
    })
}

/// The state an unpaged request or a first page shows.
fn snapshot(
    store: &Store,
    resource: &'static Resource,
    call: &Call,
    limit: usize,
) -> Result<(u64, BTreeMap<Key, Object>), ApiError> {
    let wanted = wanted_version(resource, call)?;
    if wanted > store.version() {
        return Err(ApiError::too_large(wanted, store.version()));
    }
    // A version with a limit but no match rule means exactly that version, for older clients.
    let exact = match call.parameter("resourceVersionMatch") {
        "Exact" => true,
        "" => limit > 0 && wanted > 0,
        _ => false,
    };
    let table = store.table(resource);
    if !exact {
        return Ok((store.version(), table.objects().clone()));
    }
    let objects = table
        .objects_at(wanted)
        .ok_or_else(|| ApiError::too_old(wanted, table.floor()))?;
    Ok((wanted, objects))
}

fn check_parameters(resource: &Resource, call: &Call) -> Result<(), ApiError> {
    let version = call.parameter("resourceVersion");
    let paged = !call.parameter("continue").is_empty();
    if paged && !version.is_empty() && version != "0" {
        let message = "specifying resource version is not allowed when using continue";
        return Err(ApiError::bad_request(message));
    }
    let cause = match call.parameter("resourceVersionMatch") {
        _ if call.query.contains_key("sendInitialEvents") => {
            "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"
        }
        "" => return Ok(()),
        _ if paged => "resourceVersionMatch: Forbidden: forbidden when continue is provided",
        _ if version.is_empty() => {
            "resourceVersionMatch: Forbidden: forbidden unless resourceVersion is provided"
        }
        "Exact" if version == "0" => {
            "resourceVersionMatch: Forbidden: \"Exact\" is forbidden for resourceVersion \"0\""
        }
        "Exact" | "NotOlderThan" => return Ok(()),
        _ => {
            "resourceVersionMatch: Unsupported value: supported values: \"Exact\", \"NotOlderThan\""
        }
    };
    Err(ApiError::invalid(resource, "", cause))
}

/// Items of a typed list carry no type of their own.
fn item(object: &Value, form: Form) -> Value {
    let mut shown = show(object, form);
    if let (Form::Whole, Some(fields)) = (form, shown.as_object_mut()) {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
    shown
}

/// Namespaces and names hold no `:`.
fn token(page: &Page) -> String {
    format!("{}:{}:{}", page.version, page.after.0, page.after.1)
}

fn page(call: &Call) -> Result<Option<Page>, ApiError> {
    let token = call.parameter("continue");
    if token.is_empty() {
        return Ok(None);
    }
    let parsed = match token.split(':').collect::<Vec<_>>().as_slice() {
        [version, namespace, name] => version.parse().ok().map(|version| Page {
            version,
            after: ((*namespace).to_owned(), (*name).to_owned()),
        }),
        _ => None,
    };
    let page = parsed.ok_or_else(|| ApiError::bad_request("continue key is not valid"))?;
    Ok(Some(page))
}
