//! ApiVersions: what is offered.

use highwater_protocol::{ApiKey, ApiVersion, ApiVersionsRequest, ApiVersionsResponse, ErrorCode};

/// The first version in which a client names its software (KIP-511).
const NAMED_SINCE: i16 = 3;

pub(crate) fn answer(version: i16, request: &ApiVersionsRequest) -> ApiVersionsResponse {
    let named = is_name(&request.client_software_name) && is_name(&request.client_software_version);
    if version >= NAMED_SINCE && !named {
        return ApiVersionsResponse {
            error_code: ErrorCode::INVALID_REQUEST,
            ..Default::default()
        };
    }
    ApiVersionsResponse { api_keys: offered(), ..Default::default() }
}

/// The answer to a version that we do not speak; it is read as one of version 0.
pub(crate) fn unsupported() -> ApiVersionsResponse {
    ApiVersionsResponse {
        error_code: ErrorCode::UNSUPPORTED_VERSION,
        api_keys: offered(),
        ..Default::default()
    }
}

fn offered() -> Vec<ApiVersion> {
    let entry = |api: &ApiKey| ApiVersion {
        api_key: *api as i16,
        min_version: *api.advertised().start(),
        max_version: *api.advertised().end(),
    };
    ApiKey::ALL.iter().map(entry).collect()
}

/// Letters, digits, hyphens and dots, the last two not at the ends (KIP-511).
fn is_name(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    let (Some(first), Some(last)) = (text.bytes().next(), text.bytes().last()) else {
        return false;
    };
    first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() && text.bytes().all(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "<!-- offered:begin -->\n";
    const END: &str = "<!-- offered:end -->";

    /// `HIGHWATER_WRITE_DOCS=1` writes the table of what is offered into the documentation.
    #[test]
    fn the_documentation_says_what_is_offered() {
        let path =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/kafka-compatibility.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (before, rest) = page.split_once(BEGIN).unwrap();
        let (found, after) = rest.split_once(END).unwrap();
        let mut table = "| key | API | versions |\n|---|---|---|\n".to_owned();
        for &api in ApiKey::ALL {
            let (first, last) =
                (api.advertised().start().to_owned(), api.advertised().end().to_owned());
            table.push_str(&format!("| {} | {api:?} | {first} to {last} |\n", api as i16));
        }
        if std::env::var_os("HIGHWATER_WRITE_DOCS").is_some() {
            std::fs::write(path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        } else {
            assert_eq!(found, table, "HIGHWATER_WRITE_DOCS=1 writes it anew");
        }
    }

    #[test]
    fn software_names() {
        for good in ["a", "librdkafka", "apache-kafka-java", "2.16.1", "v1.0-rc.1"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "-a", "a-", ".1", "a b", "ä", "a\n"] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
