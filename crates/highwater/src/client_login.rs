//! Who a command is to the server that it asks, and whom it trusts: from files and the environment,
//! never from the command line's words, which every user of the machine sees.

use std::path::{Path, PathBuf};

use axum::http::HeaderValue;
use clap::Args;
use highwater_access::{Authorization, Password};
use highwater_kafka::{Pem, PemPlace, Tls};

use crate::failure::Failure;

/// The largest file that is taken for a password or a token.
const LONGEST: u64 = 64 << 10;

/// Holds a token itself.
const TOKEN: &str = "HIGHWATER_TOKEN";
/// Holds a password itself.
const PASSWORD: &str = "HIGHWATER_LOGIN_PASSWORD";

/// See the module's text.
#[derive(Debug, Args)]
#[command(next_help_heading = "Login at the server")]
pub(crate) struct LoginArguments {
    /// File with the token to log in with at the server; the environment's HIGHWATER_TOKEN holds one itself.
    #[arg(long, global = true, value_name = "FILE", env = "HIGHWATER_TOKEN_FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// User to log in as at the server, with a password.
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        env = "HIGHWATER_LOGIN",
        conflicts_with = "token_file"
    )]
    pub(crate) login: Option<String>,
    /// File with the password; the environment's HIGHWATER_LOGIN_PASSWORD holds it itself.
    #[arg(long, global = true, value_name = "FILE", env = "HIGHWATER_LOGIN_PASSWORD_FILE")]
    pub(crate) login_password_file: Option<PathBuf>,
    /// Authorities to trust, PEM; those of the system without it.
    #[arg(long, global = true, value_name = "FILE", env = "HIGHWATER_CA_FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Certificate to show, PEM.
    #[arg(long, global = true, value_name = "FILE", env = "HIGHWATER_CLIENT_CERT")]
    pub(crate) client_cert: Option<PathBuf>,
    /// Its key, PEM.
    #[arg(long, global = true, value_name = "FILE", env = "HIGHWATER_CLIENT_KEY")]
    pub(crate) client_key: Option<PathBuf>,
}

impl LoginArguments {
    /// What the requests say.
    pub(crate) fn authorization(&self) -> Result<Option<HeaderValue>, Failure> {
        let variable = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
        let said = match (&self.token_file, &self.login) {
            (Some(path), _) => Authorization::Bearer(secret(path)?.into()),
            (None, Some(name)) => {
                let password = match &self.login_password_file {
                    Some(path) => secret(path)?,
                    None => variable(PASSWORD).ok_or_else(no_password)?,
                };
                if name.contains(':') {
                    return Err(Failure::usage(format!(
                        "user {name} cannot log in with a password over HTTP: its name has a colon"
                    ))
                    .remedy("use a token: highwater user token NAME"));
                }
                Authorization::Basic(name.clone(), Password::new(password.as_bytes()))
            }
            (None, None) => match variable(TOKEN) {
                Some(token) => Authorization::Bearer(token.into()),
                None => return Ok(None),
            },
        };
        let unfit = || Failure::usage("the token or the name cannot stand in a header");
        let mut value = HeaderValue::try_from(said.to_header().as_str()).map_err(|_| unfit())?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    /// How TLS is spoken.
    pub(crate) fn tls(&self) -> Result<Tls, Failure> {
        let pem = |setting, path: &Path| Pem { setting, place: PemPlace::File(path.to_owned()) };
        let identity = match (&self.client_cert, &self.client_key) {
            (Some(cert), Some(key)) => Some((pem("--client-cert", cert), pem("--client-key", key))),
            (None, None) => None,
            _ => return Err(Failure::usage("--client-cert and --client-key go together")),
        };
        let authorities = self.ca_file.as_deref().map(|path| pem("--ca-file", path));
        Ok(Tls { authorities, identity, verify_host: true })
    }
}

fn no_password() -> Failure {
    Failure::usage("--login has no password")
        .remedy(format!("add --login-password-file FILE, or set {PASSWORD}"))
}

/// What a file holds, without the line's end.
fn secret(path: &Path) -> Result<String, Failure> {
    let failed = |why: String| {
        Failure::usage(format!("{} cannot be read: {why}", path.display()))
            .remedy("name a file that holds the secret and nothing else")
    };
    let metadata = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?;
    if metadata.is_file() && metadata.len() > LONGEST {
        return Err(failed("it is larger than any password or token".to_owned()));
    }
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let text = text.trim_end_matches(['\n', '\r']);
    if text.is_empty() { Err(failed("it is empty".to_owned())) } else { Ok(text.to_owned()) }
}
