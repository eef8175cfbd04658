//! From an HTTP request to its answer.

use axum::{
    Json, Router,
    body::{Body, to_bytes},
    extract::{ConnectInfo, Request, State as Extension},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use super::{
    error::ApiError,
    faults::Fault,
    list::{self, Form},
    registry::{self, PatchKind, Place},
    request::{Call, Verb},
    resource::{Resource, discovery},
    server::Breaker,
    state::Shared,
    watch,
};

/// The API server's own limit on request bodies, in bytes.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// Serves the state.
pub(crate) fn router(shared: Shared) -> Router {
    Router::new().fallback(answer).with_state(shared)
}

async fn answer(
    Extension(shared): Extension<Shared>,
    ConnectInfo(connection): ConnectInfo<Breaker>,
    request: Request,
) -> Response {
    let (head, body) = request.into_parts();
    let call = Call::parse(&head.method, &head.uri);
    let body = read_body(&head.headers, body).await;
    let (number, fault) = shared.write(|state| {
        (
            state.arrived(&call, body.as_ref().ok()),
            state.faults.take(&call),
        )
    });
    let mut lost = false;
    let refusal = match fault {
        None => None,
        Some(Fault::Answer(error)) => Some(error.into_response()),
        Some(Fault::Expire) => Some(expire(&shared, &call)),
        Some(Fault::Delay(time)) => {
            tokio::time::sleep(time).await;
            None
        }
        Some(Fault::Hold(mut released)) => {
            // Nothing is ever sent: it ends, with an error, when the test drops the hold.
            drop(released.changed().await);
            None
        }
        Some(Fault::Drop) => break_off(&connection).await,
        Some(Fault::LoseAnswer) => {
            lost = true;
            None
        }
    };
    let response = refusal.unwrap_or_else(|| {
        body.and_then(|body| serve(&shared, &call, &head.headers, body))
            .unwrap_or_else(ApiError::into_response)
    });
    shared.write(|state| state.answered(number, response.status().as_u16()));
    if lost {
        return break_off(&connection).await;
    }
    response
}

fn serve(
    shared: &Shared,
    call: &Call,
    headers: &HeaderMap,
    body: Value,
) -> Result<Response, ApiError> {
    let Some(resource) = call.resource else {
        return match (call.verb, discovery(&call.path)) {
            (Verb::Get, Some(document)) => Ok(Json(document).into_response()),
            _ => Err(ApiError::no_such_path()),
        };
    };
    let place = place(resource, call)?;
    let writable = resource.namespaced == call.namespace.is_some();
    match call.verb {
        Verb::Get => get(shared, &place, form(headers)),
        Verb::List => shared
            .read(|state| list::list(&state.store, resource, call, form(headers)))
            .map(ok),
        Verb::Watch => watch::open(shared, resource, call, form(headers)).map(stream),
        Verb::Create if writable => {
            let object = shared.write(|state| registry::create(&mut state.store, &place, body))?;
            Ok((StatusCode::CREATED, Json(object)).into_response())
        }
        Verb::Update => shared
            .write(|state| registry::update(&mut state.store, &place, body))
            .map(ok),
        Verb::Patch => {
            let kind = patch_kind(resource, call, headers)?;
            let (object, created) =
                shared.write(|state| registry::patch(&mut state.store, &place, kind, body))?;
            let code = if created {
                StatusCode::CREATED
            } else {
                StatusCode::OK
            };
            Ok((code, Json(object)).into_response())
        }
        Verb::Delete if !place.status => delete(shared, &place, &body),
        Verb::Create | Verb::Delete | Verb::Other => Err(ApiError::method_not_allowed()),
    }
}

fn get(shared: &Shared, place: &Place, form: Form) -> Result<Response, ApiError> {
    let key = (place.namespace.clone(), place.name.clone());
    let object = shared.read(|state| state.store.get(place.resource, &key).cloned());
    let object = object.ok_or_else(|| ApiError::not_found(place.resource, &place.name))?;
    Ok(ok(list::show(&object, form)))
}

fn delete(shared: &Shared, place: &Place, options: &Value) -> Result<Response, ApiError> {
    let kept = shared.write(|state| registry::delete(&mut state.store, place, options))?;
    let success = || {
        json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {
                "name": place.name,
                "group": place.resource.group,
                "kind": place.resource.plural,
            },
        })
    };
    Ok(kept.map_or_else(|| ok(success()), ok))
}

fn place(resource: &'static Resource, call: &Call) -> Result<Place, ApiError> {
    let status = match call.subresource.as_deref() {
        None => false,
        Some("status") if resource.has_status => true,
        Some(_) => return Err(ApiError::no_such_path()),
    };
    Ok(Place {
        resource,
        namespace: call.namespace.clone().unwrap_or_default(),
        name: call.name.clone().unwrap_or_default(),
        status,
        dry_run: call.parameter("dryRun") == "All",
    })
}

fn patch_kind(
    resource: &Resource,
    call: &Call,
    headers: &HeaderMap,
) -> Result<PatchKind, ApiError> {
    match content_type(headers) {
        "application/merge-patch+json" | "application/strategic-merge-patch+json" => {
            Ok(PatchKind::Merge)
        }
        "application/apply-patch+yaml" if call.parameter("fieldManager").is_empty() => {
            let cause = "fieldManager: Required value: is required for apply patch";
            Err(ApiError::invalid(resource, "", cause))
        }
        "application/apply-patch+yaml" => Ok(PatchKind::Apply),
        other => Err(ApiError::unsupported_media_type(other)),
    }
}

fn expire(shared: &Shared, call: &Call) -> Response {
    if call.verb == Verb::Watch {
        return stream(watch::expired(call));
    }
    if let Some((_, after)) = call.parameter("continue").split_once(':') {
        return ApiError::continue_expired(format!("0:{after}")).into_response();
    }
    let wanted = call.parameter("resourceVersion").parse().unwrap_or(0);
    let current = shared.read(|state| state.store.version());
    ApiError::too_old(wanted, current).into_response()
}

/// Never returns: the connection's task is dropped with the connection.
async fn break_off<T>(connection: &Breaker) -> T {
    connection.trip();
    std::future::pending().await
}

async fn read_body(headers: &HeaderMap, body: Body) -> Result<Value, ApiError> {
    let bytes = to_bytes(body, BODY_LIMIT)
        .await
        .map_err(|error| ApiError::bad_request(format!("failed to read the body: {error}")))?;
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let unreadable = |error: &dyn std::fmt::Display| {
        ApiError::bad_request(format!("the body could not be parsed: {error}"))
    };
    match content_type(headers) {
        kind if kind.is_empty() || kind.ends_with("json") => {
            serde_json::from_slice(&bytes).map_err(|error| unreadable(&error))
        }
        kind if kind.ends_with("yaml") => {
            let text = String::from_utf8_lossy(&bytes);
            serde_saphyr::from_str(&text).map_err(|error| unreadable(&error))
        }
        other => Err(ApiError::unsupported_media_type(other)),
    }
}

fn content_type(headers: &HeaderMap) -> &str {
    let value = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    value
        .and_then(|value| value.split(';').next())
        .unwrap_or_default()
        .trim()
}

fn form(headers: &HeaderMap) -> Form {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok());
    if accept.is_some_and(|accept| accept.contains("as=PartialObjectMetadata")) {
        Form::MetadataOnly
    } else {
        Form::Whole
    }
}

fn ok(body: impl serde::Serialize) -> Response {
    Json(body).into_response()
}

fn stream(body: Body) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}
