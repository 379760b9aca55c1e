//! ApiVersions: what is offered, and who asks at a version of another time.

use bytes::{BufMut, BytesMut};
use highwater_protocol::{ApiKey, ApiVersionsRequest, ApiVersionsResponse, ErrorCode, Message};
use tokio::io::AsyncWriteExt;

use crate::server::Server;

fn named(name: &str, version: &str) -> ApiVersionsRequest {
    ApiVersionsRequest {
        client_software_name: name.to_owned(),
        client_software_version: version.to_owned(),
    }
}

#[tokio::test]
async fn every_version_lists_what_is_offered() {
    let server = Server::start().await;
    let mut client = server.client().await;
    for version in 0..=4 {
        let answer = client.call(version, &named("test", "1.0")).await;
        assert!(answer.error_code.is_ok());
        let range = |api: ApiKey| {
            let of = answer.api_keys.iter().find(|one| one.api_key == api as i16);
            of.map(|one| (one.min_version, one.max_version))
        };
        assert_eq!(range(ApiKey::Produce), Some((0, 11)), "0, so that librdkafka compresses");
        assert_eq!(range(ApiKey::ListOffsets), Some((1, 11)));
        assert_eq!(range(ApiKey::Fetch), Some((4, 12)));
        assert_eq!(range(ApiKey::FindCoordinator), Some((0, 4)));
        // Versions above would be those of the second transaction protocol.
        assert_eq!(range(ApiKey::AddPartitionsToTxn), Some((0, 3)));
        assert_eq!(range(ApiKey::EndTxn), Some((0, 4)));
    }
}

#[tokio::test]
async fn software_without_a_name_is_refused() {
    let server = Server::start().await;
    let mut client = server.client().await;
    for request in [named("", "1"), named("a", ""), named("a b", "1"), named("-a", "1")] {
        let answer = client.call(3, &request).await;
        assert_eq!(answer.error_code, ErrorCode::INVALID_REQUEST, "{request:?}");
        let answer = client.call(2, &request).await;
        assert!(answer.error_code.is_ok(), "version 2 has no names");
    }
}

/// KIP-511: the answer has the form of version 0, whatever was asked.
#[tokio::test]
async fn a_version_of_another_time_is_answered() {
    let server = Server::start().await;
    let mut client = server.client().await;
    for version in [5, 99, -1, i16::MAX] {
        let mut request = BytesMut::new();
        request.put_i32(11);
        request.put_i16(ApiKey::ApiVersions as i16);
        request.put_i16(version);
        request.put_i32(77);
        request.put_slice(b"???");
        client.stream.write_all(&request).await.unwrap();
        let answer: ApiVersionsResponse = client.receive(0, 77).await;
        assert_eq!(answer.error_code, ErrorCode::UNSUPPORTED_VERSION);
        let own = answer.api_keys.iter().find(|one| one.api_key == ApiKey::ApiVersions as i16);
        let range = own.map(|one| (one.min_version, one.max_version));
        let versions = ApiVersionsRequest::VERSIONS;
        assert_eq!(range, Some((*versions.start(), *versions.end())));
    }
}
