//! What a client says in PLAIN: `[authzid] NUL user NUL password` (RFC 4616).

use crate::password::Password;
use crate::refusal::Refusal;

/// User and password of a PLAIN message. Who wants to act for another user is refused, as Apache
/// Kafka does.
pub(crate) fn parse(message: &[u8]) -> Result<(&str, Password), Refusal> {
    let wrong = Refusal::Malformed("PLAIN is [user] NUL user NUL password");
    let mut parts = message.split(|byte| *byte == 0);
    let (Some(authzid), Some(user), Some(password), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(wrong);
    };
    let user = std::str::from_utf8(user).map_err(|_| wrong)?;
    if user.is_empty() || password.is_empty() {
        return Err(wrong);
    }
    if !authzid.is_empty() && authzid != user.as_bytes() {
        return Err(Refusal::Malformed("a login for another user is not offered"));
    }
    Ok((user, Password::new(password)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn user_and_password_are_read() {
        for message in [&b"\0ann\0secret"[..], b"ann\0ann\0secret"] {
            let (user, password) = parse(message).unwrap();
            assert_eq!((user, password.bytes()), ("ann", &b"secret"[..]));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for message in [
            &b""[..],
            b"ann",
            b"\0ann",
            b"\0\0secret",
            b"\0ann\0",
            b"bob\0ann\0secret",
            b"\0ann\0secret\0",
            b"\0\xff\0secret",
        ] {
            assert!(parse(message).is_err(), "{message:?}");
        }
    }
}
