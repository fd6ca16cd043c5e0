//! What the guard and the server add to every route. The routes describe only what is their own.

use utoipa::PartialSchema as _;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{Content, Header, Object, OpenApi, Ref, RefOr, Response, Schema, Type};

use crate::frontend::PlainError;

/// What may be said in the place of any route that needs a key.
const REFUSALS: [(&str, &str); 6] = [
    FOREIGN,
    ("400", "The request cannot be read, or carries two different keys"),
    ("401", "No key, or none that is known"),
    ("429", "Too many requests"),
    ("500", "Our own fault; the log has the request's number"),
    ("503", "Too many connections, or the gateway is shutting down"),
];

/// The one that open routes have too.
const FOREIGN: (&str, &str) = ("403", "A host or an origin that is not allowed");

/// The same where a body is taken.
const REFUSALS_OF_BODIES: [(&str, &str); 2] = [("413", "The body is too large"), ("415", "The body is not JSON")];

const NUMBER: (&str, &str) = ("x-request-id", "The number of the request, which the log has too");
const RETRY: (&str, &str) = ("retry-after", "When to try again, in seconds");
const RATES: [(&str, &str); 3] = [
    ("x-ratelimit-limit", "How many requests this address may send in a window"),
    ("x-ratelimit-remaining", "How many of them are left"),
    ("x-ratelimit-reset", "In how many seconds there is room again"),
];

const ERROR: &str = "Error";

/// Completes the description of every operation.
pub fn complete(api: &mut OpenApi) {
    let components = api.components.get_or_insert_default();
    components.schemas.insert(ERROR.to_owned(), PlainError::schema());
    for (name, meaning) in RATES.into_iter().chain([NUMBER, RETRY]) {
        let mut header = Header::new(RefOr::T(Schema::Object(Object::with_type(Type::String))));
        header.description = Some(meaning.to_owned());
        components.headers.insert(name.to_owned(), RefOr::T(header));
    }
    for (status, meaning) in REFUSALS.into_iter().chain(REFUSALS_OF_BODIES) {
        let mut refusal = Response::new(meaning);
        complete_response(status, &mut refusal, Needs::Key);
        components.responses.insert(component(status), RefOr::T(refusal));
    }
    for item in api.paths.paths.values_mut() {
        for operation in [&mut item.get, &mut item.post, &mut item.delete].into_iter().flatten() {
            complete_operation(operation);
        }
    }
}

/// What a route asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Key,
    Nothing,
}

fn complete_operation(operation: &mut Operation) {
    let needs = if operation.security.is_some() { Needs::Nothing } else { Needs::Key };
    for (status, response) in &mut operation.responses.responses {
        if let RefOr::T(response) = response {
            complete_response(status, response, needs);
        }
    }
    let of_body = operation.request_body.is_some().then_some(REFUSALS_OF_BODIES);
    let refusals = match needs {
        Needs::Key => &REFUSALS[..],
        Needs::Nothing => &[FOREIGN],
    };
    for (status, _) in refusals.iter().copied().chain(of_body.into_iter().flatten()) {
        let known = operation.responses.responses.entry(status.to_owned());
        known.or_insert_with(|| RefOr::Ref(Ref::from_response_name(component(status))));
    }
}

fn complete_response(status: &str, response: &mut Response, needs: Needs) {
    let mut name = |(name, _): (&str, &str)| {
        response.headers.insert(name.to_owned(), RefOr::Ref(Ref::new(format!("#/components/headers/{name}"))));
    };
    name(NUMBER);
    if needs == Needs::Key {
        RATES.into_iter().for_each(&mut name);
    }
    if ["429", "503"].contains(&status) {
        name(RETRY);
    }
    if status >= "400" && response.content.is_empty() {
        let error = Content::new(Some(Ref::from_schema_name(ERROR)));
        response.content.insert("application/json".to_owned(), RefOr::T(error));
    }
}

fn component(status: &str) -> String {
    format!("Refused{status}")
}
