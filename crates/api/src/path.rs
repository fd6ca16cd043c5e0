//! A name that stands in the path of a request.

use axum::extract::path::ErrorKind;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;

use crate::problem::{Kind, Problem};

/// The only name in the path of its route. A name that is not UTF-8 is refused.
pub struct PathName(pub String);

impl<S: Send + Sync> FromRequestParts<S> for PathName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Path::from_request_parts(parts, state).await.map(|Path(name)| Self(name)).map_err(problem)
    }
}

fn problem(refused: PathRejection) -> Problem {
    match refused {
        PathRejection::FailedToDeserializePathParams(refused) => match refused.into_kind() {
            ErrorKind::InvalidUtf8InPathParam { key } => {
                Problem::invalid(key, "the name in the path is not UTF-8; percent-encode the bytes of its UTF-8")
            }
            other => Problem::new(Kind::Invalid, format!("invalid path: {other}")),
        },
        other => Problem::new(Kind::Internal, other.body_text()),
    }
}
