//! Errors of this version: a code, a message, and details in an object.

use serde_json::{Value, json};

use crate::a2a::error::{Fault, details};

pub fn error(fault: &Fault) -> Value {
    json!({ "code": fault.reason.code(), "message": fault.message, "data": { "details": details(fault) } })
}
