//! What a request brings, refused in Kafka Connect's shape when it cannot be read.

use std::collections::BTreeMap;

use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use bytes::Bytes;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde_json::Value;

use crate::pipeline::Properties;
use crate::rest_error::Refusal;

/// Parts of the path.
pub(crate) struct Segments<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Segments<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        if !is_encoded(parts.uri.path()) {
            let text = "The path has a % that is not followed by two hexadecimal digits";
            return Err(Refusal::BadRequest(text.to_owned()));
        }
        match Path::from_request_parts(parts, state).await {
            Ok(Path(segments)) => Ok(Self(segments)),
            Err(error) => Err(Refusal::Http(error.status(), error.body_text())),
        }
    }
}

/// Whether every `%` of a path begins an encoded byte.
fn is_encoded(path: &str) -> bool {
    let mut parts = path.split('%');
    parts.next();
    parts.all(|part| {
        let digits = part.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

/// The query.
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Query::from_request_parts(parts, state).await {
            Ok(Query(query)) => Ok(Self(query)),
            Err(error) => Err(Refusal::Http(error.status(), error.body_text())),
        }
    }
}

/// A truth value of a query. What is not `true`, in any case, is false, as with Kafka Connect.
///
/// # Errors
/// None of ours.
pub(crate) fn truth<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(String::deserialize(deserializer)?.eq_ignore_ascii_case("true"))
}

/// What a path takes for a body.
pub(crate) trait Form: DeserializeOwned {
    /// Its form, for who has sent another.
    const FORM: &'static str;
}

/// A JSON body.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: Form, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let json = is_json(&request);
        let bytes = Bytes::from_request(request, state)
            .await
            .map_err(|error| Refusal::Http(error.status(), error.body_text()))?;
        if !json && !bytes.is_empty() {
            let text = "HTTP 415 Unsupported Media Type: the body must be application/json";
            return Err(Refusal::Http(StatusCode::UNSUPPORTED_MEDIA_TYPE, text.to_owned()));
        }
        serde_json::from_slice(&bytes)
            .map(Self)
            .map_err(|error| Refusal::Unreadable { why: error.to_string(), form: T::FORM })
    }
}

fn is_json(request: &Request) -> bool {
    let given = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media = given.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    media.eq_ignore_ascii_case("application/json")
}

/// Text where a number or a truth value stands for its text, as Kafka Connect reads it; none for null.
#[derive(Default)]
pub(crate) struct Text(pub(crate) Option<String>);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Null => Ok(Self(None)),
            Value::String(text) => Ok(Self(Some(text))),
            scalar @ (Value::Bool(_) | Value::Number(_)) => Ok(Self(Some(scalar.to_string()))),
            Value::Array(_) | Value::Object(_) => {
                Err(D::Error::custom("an object or array where text is wanted"))
            }
        }
    }
}

/// A flat map of [`Text`].
pub(crate) type Given = BTreeMap<String, Text>;

impl Form for Given {
    const FORM: &'static str =
        r#"{"KEY": VALUE, …}, in which each value is a text, a number, true, false or null"#;
}

/// The body that is a configuration and nothing else.
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct Configuration(pub(crate) Given);

impl Form for Configuration {
    const FORM: &'static str = r#"the keys alone, {"KEY": VALUE, …}, without "name" and "config" around them, each value a text, a number, true, false or null"#;
}

/// A whole configuration, in which null is no value.
///
/// # Errors
/// The key that is null.
pub(crate) fn whole(given: Given) -> Result<Properties, Refusal> {
    let text = |(key, Text(value)): (String, Text)| match value {
        Some(value) => Ok((key, value)),
        None => Err(Refusal::BadRequest(format!(
            "Null value can not be supplied as the configuration value of {key}"
        ))),
    };
    given.into_iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_text_and_the_rest_is_refused() {
        let given: Given =
            serde_json::from_str(r#"{"a": 3, "b": true, "c": 1.50, "d": "x"}"#).unwrap();
        let found: Vec<_> = whole(given).unwrap().into_values().collect();
        assert_eq!(found, ["3", "true", "1.50", "x"]);
        for wrong in [r#"{"a": []}"#, r#"{"a": {}}"#, "[]", "null"] {
            assert!(serde_json::from_str::<Given>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_null_is_named() {
        let given: Given = serde_json::from_str(r#"{"a": "1", "gone": null}"#).unwrap();
        assert!(matches!(whole(given), Err(Refusal::BadRequest(text)) if text.contains("gone")));
    }

    #[test]
    fn a_path_is_percent_encoded_or_refused() {
        for (path, good) in
            [("/a%20b", true), ("/a", true), ("/%zz", false), ("/a%", false), ("/%2", false)]
        {
            assert_eq!(is_encoded(path), good, "{path}");
        }
    }
}
