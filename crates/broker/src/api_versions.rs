//! ApiVersions: what is offered.

use highwater_protocol::{ApiVersion, ApiVersionsRequest, ApiVersionsResponse, ErrorCode};

use crate::dispatch::OFFERED;

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
    let entry = |api: highwater_protocol::ApiKey| ApiVersion {
        api_key: api as i16,
        min_version: *api.advertised().start(),
        max_version: *api.advertised().end(),
    };
    OFFERED.into_iter().map(entry).collect()
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
