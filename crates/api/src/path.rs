//! A name that stands in the path of a request.

use axum::extract::path::ErrorKind;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::response::Response;

use crate::guard::envelope;
use crate::identity::RequestId;
use crate::problem::{Kind, Problem};

/// The only name in the path of its route. What is no text is refused in our own words.
pub struct PathName(pub String);

impl<S: Send + Sync> FromRequestParts<S> for PathName {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let refused = match Path::from_request_parts(parts, state).await {
            Ok(Path(name)) => return Ok(Self(name)),
            Err(refused) => refused,
        };
        let id = parts.extensions.get().copied().unwrap_or_else(RequestId::fresh);
        Err(envelope::response(&problem(refused), &id))
    }
}

fn problem(refused: PathRejection) -> Problem {
    match refused {
        PathRejection::FailedToDeserializePathParams(refused) => match refused.into_kind() {
            ErrorKind::InvalidUtf8InPathParam { key } => {
                Problem::invalid(key, "the name in the path is not UTF-8; percent-encode the bytes of its UTF-8")
            }
            other => Problem::new(Kind::Invalid, format!("the path does not name anything: {other}")),
        },
        other => Problem::new(Kind::Internal, other.body_text()),
    }
}
