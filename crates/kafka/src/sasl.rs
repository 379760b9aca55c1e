//! Logging in at a broker (KIP-43, KIP-152), and how long that lasts (KIP-368).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use highwater_protocol::{
    ErrorCode, SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest, Secret,
};

use crate::connection::{CallError, Connection};
use crate::error::told;
use crate::{Mechanism, Sasl, scram};

/// Bytes of a nonce: as many as nobody guesses.
const NONCE: usize = 24;

/// Logs in over a connection on which nothing else is asked meanwhile. Returns how long it lasts,
/// where it ends.
pub(crate) async fn log_in(
    connection: &Connection,
    sasl: &Sasl,
) -> Result<Option<Duration>, CallError> {
    choose(connection, sasl.mechanism).await?;
    let last = match sasl.mechanism {
        Mechanism::Plain => show(connection, sasl).await?,
        Mechanism::ScramSha256 | Mechanism::ScramSha512 => prove(connection, sasl).await?,
    };
    let lifetime = u64::try_from(last.session_lifetime_ms).unwrap_or(0);
    Ok((lifetime > 0).then(|| Duration::from_millis(lifetime)))
}

async fn choose(connection: &Connection, mechanism: Mechanism) -> Result<(), CallError> {
    let name = mechanism.name();
    let request = SaslHandshakeRequest { mechanism: name.to_owned() };
    let answer = connection.call_alone(&request).await?;
    let denied = |why: String| Err(connection.denied(&why));
    match answer.error_code {
        ErrorCode::NONE => Ok(()),
        ErrorCode::UNSUPPORTED_SASL_MECHANISM => denied(format!(
            "it takes sasl.mechanism {} and not {name}",
            told(&answer.mechanisms.join(", "))
        )),
        ErrorCode::ILLEGAL_SASL_STATE => denied(
            "it does not ask for a login on this port: security.protocol is PLAINTEXT or SSL"
                .to_owned(),
        ),
        code => denied(format!("it does not take a login: {code}")),
    }
}

/// Shows the password itself (RFC 4616).
async fn show(connection: &Connection, sasl: &Sasl) -> Result<SaslAuthenticateResponse, CallError> {
    let message = format!("\0{}\0{}", sasl.username, sasl.password.reveal());
    say(connection, sasl, message.into_bytes()).await
}

/// Proves to know the password, and has the broker prove that it does.
async fn prove(
    connection: &Connection,
    sasl: &Sasl,
) -> Result<SaslAuthenticateResponse, CallError> {
    let nonce = STANDARD_NO_PAD.encode(rand::random::<[u8; NONCE]>());
    let (begun, first) = scram::begin(sasl.mechanism, &sasl.username, &nonce);
    let told = text(say(connection, sasl, first.into_bytes()).await?.auth_bytes);
    let password = sasl.password.clone();
    // The rounds take milliseconds and more, which other connections shall not wait for.
    let proved = tokio::task::spawn_blocking(move || begun.prove(password.reveal(), &told)).await;
    let proved = proved.map_err(|error| CallError::Lost(error.to_string()))?;
    let (proved, proof) = proved.map_err(|error| refused(connection, sasl, &error.to_string()))?;
    let mut answer = say(connection, sasl, proof.into_bytes()).await?;
    let told = text(std::mem::take(&mut answer.auth_bytes));
    proved.check(&told).map_err(|error| refused(connection, sasl, &error.to_string()))?;
    Ok(answer)
}

fn text(bytes: Secret) -> String {
    String::from_utf8_lossy(&bytes.0).into_owned()
}

async fn say(
    connection: &Connection,
    sasl: &Sasl,
    message: Vec<u8>,
) -> Result<SaslAuthenticateResponse, CallError> {
    let request = SaslAuthenticateRequest { auth_bytes: Secret(Bytes::from(message)) };
    let answer = connection.call_alone(&request).await?;
    if answer.error_code.is_ok() {
        return Ok(answer);
    }
    let code = answer.error_code.to_string();
    Err(refused(connection, sasl, &told(answer.error_message.as_deref().unwrap_or(&code))))
}

fn refused(connection: &Connection, sasl: &Sasl, why: &str) -> CallError {
    let (user, mechanism) = (&sasl.username, sasl.mechanism.name());
    connection.denied(&format!("user {user} is not let in by {mechanism}: {why}"))
}
