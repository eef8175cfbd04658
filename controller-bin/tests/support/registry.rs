//! The rules of the write verbs: who owns which field, optimistic concurrency, what counts as a
//! change.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{ByteString, jiff::Timestamp};
use serde_json::{Value, json};

use super::{
    error::ApiError,
    resource::Resource,
    store::{Key, Object, Store, key_of, text},
};

/// Where a write goes.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) resource: &'static Resource,
    /// Empty for cluster-wide kinds.
    pub(crate) namespace: String,
    /// Empty for POST, which takes the name from the object.
    pub(crate) name: String,
    /// Whether `/status` is written instead of the object.
    pub(crate) status: bool,
    /// Whether to answer without storing anything.
    pub(crate) dry_run: bool,
}

/// How a PATCH body is to be read. Apply and strategic merge are treated as JSON merge: right for
/// maps and for lists the API declares atomic, such as those of an Ingress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchKind {
    Merge,
    /// Server-side apply, which creates what is not there.
    Apply,
}

impl Place {
    fn key(&self) -> Key {
        (self.namespace.clone(), self.name.clone())
    }

    fn current(&self, store: &Store) -> Result<Object, ApiError> {
        store
            .get(self.resource, &self.key())
            .cloned()
            .ok_or_else(|| ApiError::not_found(self.resource, &self.name))
    }

    fn write(&self, store: &mut Store, object: Value) -> Object {
        if self.dry_run {
            Arc::new(object)
        } else {
            store.put(self.resource, key_of(&object), object)
        }
    }
}

/// POST.
pub(crate) fn create(
    store: &mut Store,
    place: &Place,
    mut object: Value,
) -> Result<Object, ApiError> {
    let resource = place.resource;
    check_type(resource, &object)?;
    check_namespace(place, &object)?;
    if !text(&object, "/metadata/resourceVersion").is_empty() {
        let message = "resourceVersion should not be set on objects to be created";
        return Err(ApiError::bad_request(message));
    }
    complete(resource, &place.namespace, &mut object);
    let number = store.next_uid();
    let (name, prefix) = (
        text(&object, "/metadata/name"),
        text(&object, "/metadata/generateName"),
    );
    let name = match (name, prefix) {
        ("", "") => {
            let cause = "metadata.name: Required value: name or generateName is required";
            return Err(ApiError::invalid(resource, "", cause));
        }
        ("", prefix) => format!("{prefix}{number:05x}"),
        (name, _) => name.to_owned(),
    };
    check_name(resource, &name)?;
    if store
        .get(resource, &(place.namespace.clone(), name.clone()))
        .is_some()
    {
        return Err(ApiError::already_exists(resource, &name));
    }
    let metadata = &mut object["metadata"];
    metadata["name"] = json!(name);
    metadata["uid"] = json!(uid(number));
    metadata["creationTimestamp"] = json!(now());
    remove(metadata, "deletionTimestamp");
    if resource.has_generation {
        metadata["generation"] = json!(1);
    }
    if resource.has_status {
        remove(&mut object, "status");
    }
    Ok(place.write(store, object))
}

/// PUT.
pub(crate) fn update(
    store: &mut Store,
    place: &Place,
    mut object: Value,
) -> Result<Object, ApiError> {
    let (resource, name) = (place.resource, place.name.as_str());
    check_type(resource, &object)?;
    check_namespace(place, &object)?;
    let named = text(&object, "/metadata/name");
    if named != name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({named}) does not match the name on the URL ({name})"
        )));
    }
    let current = place.current(store)?;
    let version = text(&object, "/metadata/resourceVersion");
    if version.is_empty() && !resource.allows_unconditional_update() {
        let cause = "metadata.resourceVersion: Invalid value: 0: must be specified for an update";
        return Err(ApiError::invalid(resource, name, cause));
    }
    if !version.is_empty() && version != text(&current, "/metadata/resourceVersion") {
        return Err(ApiError::conflict(resource, name));
    }
    let uid = text(&object, "/metadata/uid");
    if !uid.is_empty() && uid != text(&current, "/metadata/uid") {
        return Err(ApiError::failed_precondition(
            resource,
            name,
            "Precondition failed: UID",
        ));
    }
    complete(resource, &place.namespace, &mut object);
    let next = if place.status {
        with_field(Value::clone(&current), "status", object.get("status"))
    } else {
        let next = if resource.has_status {
            with_field(object, "status", current.get("status"))
        } else {
            object
        };
        with_server_fields(next, &current)
    };
    Ok(replace(store, place, &current, next))
}

/// PATCH. The flag tells whether the object was created.
pub(crate) fn patch(
    store: &mut Store,
    place: &Place,
    kind: PatchKind,
    mut body: Value,
) -> Result<(Object, bool), ApiError> {
    check_type(place.resource, &body)?;
    if kind == PatchKind::Apply && !place.status && place.current(store).is_err() {
        body["metadata"]["name"] = json!(place.name);
        return create(store, place, body).map(|object| (object, true));
    }
    let mut merged = Value::clone(&*place.current(store)?);
    merge(&mut merged, body);
    update(store, place, merged).map(|object| (object, false))
}

/// DELETE. An object with finalizers stays, marked, until they are gone; then it is the answer.
pub(crate) fn delete(
    store: &mut Store,
    place: &Place,
    options: &Value,
) -> Result<Option<Object>, ApiError> {
    let current = place.current(store)?;
    for field in ["uid", "resourceVersion"] {
        let wanted = text(&options["preconditions"], &format!("/{field}"));
        if !wanted.is_empty() && wanted != text(&current["metadata"], &format!("/{field}")) {
            let why = format!("the {field} in the precondition does not match the object's");
            return Err(ApiError::failed_precondition(
                place.resource,
                &place.name,
                &why,
            ));
        }
    }
    if is_held(&current) {
        let mut marked = Value::clone(&current);
        marked["metadata"]["deletionTimestamp"] = json!(now());
        marked["metadata"]["deletionGracePeriodSeconds"] = json!(0);
        return Ok(Some(replace(store, place, &current, marked)));
    }
    if !place.dry_run {
        store.remove(place.resource, &place.key());
    }
    Ok(None)
}

/// Stores an object as a test states it, whatever was there: no check, and status,
/// `creationTimestamp` and `uid` are the test's to choose. What it leaves out is kept or made up.
///
/// # Panics
/// When the double serves no such kind.
pub(crate) fn impose(store: &mut Store, mut object: Value) -> Object {
    let (api_version, kind) = (text(&object, "/apiVersion"), text(&object, "/kind"));
    let resource = Resource::of_kind(api_version, kind)
        .unwrap_or_else(|| panic!("the API double serves no {kind:?} of {api_version:?}"));
    let namespace = match (resource.namespaced, text(&object, "/metadata/namespace")) {
        (false, _) => String::new(),
        (true, "") => "default".to_owned(),
        (true, namespace) => namespace.to_owned(),
    };
    complete(resource, &namespace, &mut object);
    let (_, name) = key_of(&object);
    let place = Place {
        resource,
        namespace,
        name,
        status: false,
        dry_run: false,
    };
    let Some(current) = store.get(resource, &place.key()).cloned() else {
        let number = store.next_uid();
        let generation = if resource.has_generation {
            json!(1)
        } else {
            Value::Null
        };
        for (field, value) in [
            ("uid", json!(uid(number))),
            ("creationTimestamp", json!(now())),
            ("generation", generation),
        ] {
            default_field(&mut object["metadata"], field, &value);
        }
        return place.write(store, object);
    };
    for field in [
        "uid",
        "creationTimestamp",
        "generation",
        "deletionTimestamp",
    ] {
        default_field(&mut object["metadata"], field, &current["metadata"][field]);
    }
    default_field(&mut object, "status", &current["status"]);
    replace(store, &place, &current, object)
}

/// Puts the next state of an object in place of the current one, unless nothing has changed: then
/// there is neither a new version nor an event, as in the API server.
fn replace(store: &mut Store, place: &Place, current: &Object, mut next: Value) -> Object {
    next["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"].clone();
    if next == **current {
        return Arc::clone(current);
    }
    if place.resource.has_generation && content(&next) != content(current) {
        let generation = current["metadata"]["generation"]
            .as_u64()
            .unwrap_or_default();
        next["metadata"]["generation"] = json!(generation + 1);
    }
    if next["metadata"].get("deletionTimestamp").is_some() && !is_held(&next) {
        if !place.dry_run {
            store.remove(place.resource, &place.key());
        }
        return Arc::new(next);
    }
    place.write(store, next)
}

/// RFC 7386.
fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            remove(target, &key);
        } else {
            merge(&mut target[key], value);
        }
    }
}

/// Fills in what a decoder knows without being told: the type, the namespace, plain secret data.
fn complete(resource: &Resource, namespace: &str, object: &mut Value) {
    object["apiVersion"] = json!(resource.api_version());
    object["kind"] = json!(resource.kind);
    if resource.namespaced {
        object["metadata"]["namespace"] = json!(namespace);
    }
    if resource.kind == "Secret" {
        if let Some(Value::Object(plain)) = object.get("stringData").cloned() {
            for (key, value) in plain {
                let bytes = value.as_str().unwrap_or_default().as_bytes().to_vec();
                object["data"][key] = json!(ByteString(bytes));
            }
        }
        remove(object, "stringData");
        default_field(object, "type", &json!("Opaque"));
    }
}

/// Takes over from the current object what a client cannot change.
fn with_server_fields(mut object: Value, current: &Value) -> Value {
    for field in [
        "uid",
        "creationTimestamp",
        "generation",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        object["metadata"] = with_field(
            object["metadata"].take(),
            field,
            current["metadata"].get(field),
        );
    }
    object
}

fn with_field(mut object: Value, field: &str, value: Option<&Value>) -> Value {
    match value {
        Some(value) => object[field] = value.clone(),
        None => remove(&mut object, field),
    }
    object
}

fn default_field(object: &mut Value, field: &str, value: &Value) {
    if object.get(field).is_none_or(Value::is_null) && !value.is_null() {
        object[field] = value.clone();
    }
}

fn remove(object: &mut Value, field: &str) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove(field);
    }
}

/// What `metadata.generation` counts the changes of.
fn content(object: &Value) -> BTreeMap<&String, &Value> {
    let aside = ["apiVersion", "kind", "metadata", "status"];
    let fields = object.as_object().into_iter().flatten();
    fields
        .filter(|(field, _)| !aside.contains(&field.as_str()))
        .collect()
}

fn is_held(object: &Value) -> bool {
    object["metadata"]["finalizers"]
        .as_array()
        .is_some_and(|held| !held.is_empty())
}

fn check_type(resource: &Resource, object: &Value) -> Result<(), ApiError> {
    if !object.is_object() || !object["metadata"].is_object() && !object["metadata"].is_null() {
        let message = "the body or its metadata is not an object";
        return Err(ApiError::bad_request(message));
    }
    for (field, expected) in [
        ("/apiVersion", resource.api_version().as_str()),
        ("/kind", resource.kind),
    ] {
        let given = text(object, field);
        if !given.is_empty() && given != expected {
            return Err(ApiError::bad_request(format!(
                "{} in the data ({given}) does not match the expected one ({expected})",
                field.trim_start_matches('/')
            )));
        }
    }
    Ok(())
}

fn check_namespace(place: &Place, object: &Value) -> Result<(), ApiError> {
    let given = text(object, "/metadata/namespace");
    if given.is_empty() || given == place.namespace {
        return Ok(());
    }
    let message =
        "the namespace of the provided object does not match the namespace sent on the request";
    Err(ApiError::bad_request(message))
}

/// Names are DNS subdomains.
fn check_name(resource: &Resource, name: &str) -> Result<(), ApiError> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if name.len() <= 253
        && name.chars().all(allowed)
        && name.starts_with(edge)
        && name.ends_with(edge)
    {
        return Ok(());
    }
    let cause = format!(
        "metadata.name: Invalid value: {name:?}: a lowercase RFC 1123 subdomain must consist of \
         lower case alphanumeric characters, '-' or '.'"
    );
    Err(ApiError::invalid(resource, name, &cause))
}

fn uid(number: u64) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}

fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
