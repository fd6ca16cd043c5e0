//! Errors of this version: a code, a message, and details in a list; in the binding that speaks plain HTTP the same with a
//! status.

use serde_json::{Value, json};

use crate::a2a::error::{Fault, details};

pub fn error(fault: &Fault) -> Value {
    json!({ "code": fault.reason.code(), "message": fault.message, "data": details(fault) })
}

/// The body of an error over plain HTTP.
pub fn http(fault: &Fault) -> Value {
    let status = fault.reason.status();
    json!({ "error": {
        "code": status.as_u16(),
        "status": status.canonical_reason().unwrap_or("error").replace(' ', "_").to_uppercase(),
        "message": fault.message,
        "details": details(fault),
    } })
}
