//! `sasl.jaas.config`: one login module, its flag and its options, as Java writes them.

use crate::{Mechanism, Password};

/// The module of a user with a password that is shown to the broker.
const PLAIN: &str = "org.apache.kafka.common.security.plain.PlainLoginModule";
/// The module of a user with a password that is not.
const SCRAM: &str = "org.apache.kafka.common.security.scram.ScramLoginModule";

/// What it says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) username: String,
    pub(crate) password: Password,
    scram: bool,
}

impl Login {
    /// Whether it can be used with a mechanism.
    pub(crate) const fn fits(&self, mechanism: Mechanism) -> bool {
        self.scram != matches!(mechanism, Mechanism::Plain)
    }
}

/// Reads it; else what is wrong, without quoting anything that may be a secret.
pub(crate) fn parse(text: &str) -> Result<Login, String> {
    let text = text.trim();
    let text = text.strip_suffix(';').ok_or("must end with a semicolon")?;
    let (module, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let scram = match module {
        PLAIN => false,
        SCRAM => true,
        _ => return Err(format!("names a login module that is neither {PLAIN} nor {SCRAM}")),
    };
    let rest = rest.trim_start();
    let (flag, mut rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if !["required", "requisite", "sufficient", "optional"].contains(&flag) {
        return Err("must say required behind the login module".to_owned());
    }
    let (mut username, mut password) = (None, None);
    while !rest.trim_start().is_empty() {
        let (name, value, behind) = option(rest.trim_start())?;
        match name {
            "username" => username = Some(value),
            "password" => password = Some(value),
            "tokenauth" => return Err("asks for tokenauth, which is not known here".to_owned()),
            // It is not named: of a password that lacks its quotes it would be a part.
            _ => return Err("has an option that is neither username nor password".to_owned()),
        }
        rest = behind;
    }
    let username = username.filter(|name| !name.is_empty()).ok_or("has no username")?;
    let password = Password::from(password.ok_or("has no password")?);
    Ok(Login { username, password, scram })
}

/// One `name="value"`, and what stands behind it.
fn option(text: &str) -> Result<(&str, String, &str), String> {
    let (name, rest) = text.split_once('=').ok_or("has something that is not NAME=\"VALUE\"")?;
    let (name, rest) = (name.trim_end(), rest.trim_start());
    let quote = rest.chars().next().filter(|char| matches!(char, '"' | '\''));
    let Some(quote) = quote else {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (value, behind) = rest.split_at(end);
        if value.contains(['"', '\'', ';', '=', '\\']) {
            return Err("has a value that needs quotes".to_owned());
        }
        return Ok((name, value.to_owned(), behind));
    };
    let mut value = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => value.push(escaped(chars.next().map(|(_, char)| char))?),
            char if char == quote => {
                let behind = rest.get(at + 1..).unwrap_or_default();
                return Ok((name, value, behind));
            }
            char => value.push(char),
        }
    }
    Err("has a quote that does not end".to_owned())
}

/// What stands behind a backslash, as Java's `StreamTokenizer` reads it.
fn escaped(sign: Option<char>) -> Result<char, String> {
    match sign {
        Some('n') => Ok('\n'),
        Some('t') => Ok('\t'),
        Some('r') => Ok('\r'),
        Some('f') => Ok('\u{c}'),
        Some('b') => Ok('\u{8}'),
        Some('a') => Ok('\u{7}'),
        Some('v') => Ok('\u{b}'),
        Some('0'..='7') => Err("has a character as an octal number, which is not read".to_owned()),
        Some(other) => Ok(other),
        None => Err("has a quote that does not end".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(options: &str) -> Result<Login, String> {
        parse(&format!("{SCRAM} required {options};"))
    }

    #[test]
    fn a_user_and_a_password_are_read() {
        let read = login("username=\"app\" password=\"a\\\"b;c = d\\\\\"").unwrap();
        assert_eq!((read.username.as_str(), read.password.reveal()), ("app", "a\"b;c = d\\"));
        assert!(read.fits(Mechanism::ScramSha256) && !read.fits(Mechanism::Plain));
        let bare = parse(&format!("  {PLAIN}\n  required\n  password='x y'\n  username=app ; "));
        assert_eq!(bare.unwrap().password.reveal(), "x y");
        assert_eq!(login("username=a password=\"b\\tc\"").unwrap().password.reveal(), "b\tc");
    }

    #[test]
    fn what_is_wrong_is_said_without_its_secret() {
        for (options, part) in [
            ("username=\"app\"", "no password"),
            ("password=\"s3cret\"", "no username"),
            ("username=\"app\" password=\"s3cret", "does not end"),
            ("username=\"app\" password=\"s3cret\" tokenauth=true", "tokenauth"),
            ("username=\"app\" s3cret", "is not NAME"),
            ("username=\"app\" password=my s3cret=x", "neither username nor password"),
            ("username=app; password=s3cret", "needs quotes"),
            ("username=app password=s3cret\"x", "needs quotes"),
            ("username=app password=\"s3cret\\101\"", "octal"),
        ] {
            let wrong = login(options).unwrap_err();
            assert!(wrong.contains(part) && !wrong.contains("s3cret"), "{wrong}");
        }
        assert!(parse("x required").unwrap_err().contains("semicolon"));
        let other = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true;";
        assert!(parse(other).unwrap_err().contains("neither"));
        assert!(parse(&format!("{SCRAM} username=a;")).unwrap_err().contains("required"));
    }
}
