//! `GET /acp/proof`: how `gembridge connect` finds out, before it sends a key, that what listens on a port of this
//! machine is its user's own gateway and not another program that came first.
//!
//! At each start the gateway writes a new secret into its private folder. A client that can read that folder sends a
//! nonce and gets an HMAC of the nonce and of the address that it reached. The address is part of it so that another
//! listener cannot pass the question on to the gateway and the answer back.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Extension, Json, Router};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::keys::Digest;
use crate::problem::{Kind, Problem};
use crate::server::Peer;

/// Where it is asked for.
pub const PATH: &str = "/acp/proof";

/// Nothing else is ever authenticated with the secret; this keeps it so.
const DOMAIN: &[u8] = b"gembridge local proof v1\0";

/// Known to the gateway and to processes that can read its private folder. New at each start.
#[derive(Clone)]
pub struct LocalSecret([u8; 32]);

/// Chosen by the client, so that no earlier answer fits.
#[derive(Clone, Copy, Debug)]
pub struct Nonce([u8; 32]);

/// What the gateway answers.
#[derive(Debug, Deserialize, Serialize)]
pub struct Proof {
    proof: String,
}

impl LocalSecret {
    pub fn generate() -> std::io::Result<Self> {
        random().map(Self)
    }

    /// As it stands in its file.
    pub fn to_hex(&self) -> String {
        Digest::from_bytes(self.0).to_hex()
    }

    pub fn from_hex(text: &str) -> Option<Self> {
        Digest::from_hex(text.trim()).map(|digest| Self(digest.into_bytes()))
    }

    /// For a client that is connected to this address of the gateway.
    pub fn prove(&self, nonce: &Nonce, reached: SocketAddr) -> Proof {
        Proof { proof: self.mac(nonce, reached).to_hex() }
    }

    pub fn accepts(&self, proof: &Proof, nonce: &Nonce, reached: SocketAddr) -> bool {
        Digest::from_hex(&proof.proof).is_some_and(|given| given.matches(&self.mac(nonce, reached)))
    }

    fn mac(&self, nonce: &Nonce, reached: SocketAddr) -> Digest {
        // IPv4 that reached a listener for both families has one spelling.
        let reached = SocketAddr::new(reached.ip().to_canonical(), reached.port());
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        mac.update(DOMAIN);
        mac.update(&nonce.0);
        mac.update(reached.to_string().as_bytes());
        Digest::from_bytes(mac.finalize().into_bytes().into())
    }
}

impl fmt::Debug for LocalSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalSecret(…)")
    }
}

impl Nonce {
    pub fn generate() -> std::io::Result<Self> {
        random().map(Self)
    }

    pub fn to_hex(self) -> String {
        Digest::from_bytes(self.0).to_hex()
    }
}

fn random() -> std::io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes)
}

/// An open route: it belongs behind `Entry::Open`.
pub fn routes(secret: LocalSecret) -> Router {
    Router::new().route(PATH, get(prove)).with_state(Arc::new(secret))
}

#[derive(Deserialize)]
pub(super) struct Asked {
    nonce: Option<String>,
}

/// Proves to a program of the gateway's own user that it has reached the gateway. `gembridge connect` asks before it
/// sends a key.
#[utoipa::path(
    get, path = PATH, tag = "acp", operation_id = "proveGateway", security(()),
    params(("nonce" = String, Query, description = "64 hexadecimal digits, new for each request")),
    responses(
        (status = 200, description = "HMAC-SHA-256 of the nonce and the address that was reached, under a secret in the state folder"),
        (status = 400, description = "No nonce, or none of that form"),
    )
)]
pub(super) async fn prove(
    State(secret): State<Arc<LocalSecret>>,
    asked: Result<Query<Asked>, QueryRejection>,
    Extension(peer): Extension<Peer>,
) -> Response {
    let nonce = asked.ok().and_then(|Query(asked)| Digest::from_hex(asked.nonce.as_deref()?));
    let nonce = nonce.map(|digest| Nonce(digest.into_bytes()));
    let (Some(nonce), Some(reached)) = (nonce, peer.local) else {
        return Problem::new(Kind::Invalid, "`nonce` must be 64 hexadecimal digits").into_response();
    };
    ([(header::CACHE_CONTROL, "no-store")], Json(secret.prove(&nonce, reached))).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f12_a_proof_holds_for_its_secret_its_nonce_and_its_address_alone() {
        let (secret, nonce) = (LocalSecret::generate().unwrap(), Nonce::generate().unwrap());
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let here = at("127.0.0.1:11434");
        let proof = secret.prove(&nonce, here);
        assert!(secret.accepts(&proof, &nonce, here));
        assert!(secret.accepts(&proof, &nonce, at("[::ffff:127.0.0.1]:11434")), "the same address");
        for elsewhere in ["127.0.0.1:11435", "[::1]:11434", "10.0.0.1:11434"] {
            assert!(!secret.accepts(&proof, &nonce, at(elsewhere)), "{elsewhere}");
        }
        assert!(!secret.accepts(&proof, &Nonce::generate().unwrap(), here));
        assert!(!LocalSecret::generate().unwrap().accepts(&proof, &nonce, here));
        for forged in [String::new(), "0".repeat(64), "é".repeat(32)] {
            assert!(!secret.accepts(&Proof { proof: forged }, &nonce, here));
        }
        let kept = LocalSecret::from_hex(&format!("{}\n", secret.to_hex())).unwrap();
        assert!(kept.accepts(&proof, &nonce, here));
        assert_eq!(format!("{secret:?}"), "LocalSecret(…)");
    }
}
