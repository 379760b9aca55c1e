//! A line as the value of a record, and back: text as the JSON converter without schemas writes it.

use std::borrow::Cow;

use bytes::Bytes;

/// The value of a record that holds this line.
pub(crate) fn encode(line: &str) -> Bytes {
    // Texts always serialise.
    serde_json::to_vec(line).unwrap_or_default().into()
}

/// The line that a value makes: the text itself, or other JSON as it stands.
///
/// # Errors
/// Why it is not readable.
pub(crate) fn decode(value: Option<&Bytes>) -> Result<Cow<'_, str>, String> {
    // What Java makes of a value that is none.
    let Some(value) = value else { return Ok(Cow::Borrowed("null")) };
    if value.first() == Some(&b'"') {
        return serde_json::from_slice(value).map(Cow::Owned).map_err(|error| error.to_string());
    }
    let json: serde_json::Value =
        serde_json::from_slice(value).map_err(|error| error.to_string())?;
    Ok(Cow::Owned(json.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_line_is_read_back_as_it_was_written(line in ".{0,40}") {
            let value = encode(&line);
            prop_assert_eq!(decode(Some(&value)).unwrap(), line);
        }
    }

    #[test]
    fn other_values_are_lines_as_they_stand() {
        assert_eq!(decode(None).unwrap(), "null");
        let value = Bytes::from("{\"id\": 7,\n \"name\": \"x\"}");
        assert_eq!(decode(Some(&value)).unwrap(), r#"{"id":7,"name":"x"}"#);
        assert!(decode(Some(&Bytes::from("\"no end"))).is_err());
        assert!(decode(Some(&Bytes::from("no json"))).is_err());
    }
}
