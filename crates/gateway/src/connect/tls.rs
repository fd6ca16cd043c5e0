//! Whose certificates are believed.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::exit::CommandError;

/// With the authorities of this file, or with those that this machine trusts.
pub fn connector(ca: Option<&Path>) -> Result<TlsConnector, CommandError> {
    let roots = match ca {
        Some(file) => of_file(file)?,
        None => of_this_machine()?,
    };
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| CommandError::usage(format!("TLS cannot be used: {error}")))?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    // The WebSocket begins with a request of HTTP/1.1, which some proxies speak only when asked to.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn of_file(file: &Path) -> Result<RootCertStore, CommandError> {
    let wrong = |problem: String| CommandError::usage(format!("the certificate file `{}`: {problem}", file.display()));
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = read.map_err(|error| wrong(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(wrong("no certificate is in it; it must hold the authority's as PEM".to_owned()));
    }
    Ok(roots)
}

fn of_this_machine() -> Result<RootCertStore, CommandError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let way_out = "install `ca-certificates`, or name an authority with `--ca FILE`";
        return Err(CommandError::usage(format!("this machine trusts no certificate authority; {way_out}")));
    }
    Ok(roots)
}
