//! What strangers send: garbage, half frames, lengths that lie, nothing at all. The worst that
//! happens is that this one connection is closed.

use std::time::{Duration, Instant};

use bytes::{BufMut, BytesMut};
use highwater_protocol::{
    ApiKey, DescribeConfigsRequest, DescribeConfigsResource, DescribeGroupsRequest,
    DescribeProducersRequest, DescribeProducersTopic, DescribeTransactionsRequest, ErrorCode,
    FindCoordinatorRequest, InitProducerIdRequest, JoinGroupRequest, JoinGroupRequestProtocol,
    LeaveGroupRequest, ListGroupsRequest, MemberIdentity, MetadataRequest, MetadataRequestTopic,
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
    OffsetFetchRequest, OffsetFetchRequestGroup,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::{Client, SOON, fetch, large};
use crate::server::Server;

/// The beginning of a frame that says it has `length` bytes.
fn head(length: i32, key: i16, version: i16) -> BytesMut {
    let mut bytes = BytesMut::new();
    bytes.put_i32(length);
    bytes.put_i16(key);
    bytes.put_i16(version);
    bytes.put_i32(1);
    bytes
}

async fn is_served(server: &Server) {
    let mut client = server.client().await;
    let answer = client.call(9, &MetadataRequest::default()).await;
    assert_eq!(answer.brokers.len(), 1);
}

async fn is_closed(server: &Server, sent: &[u8]) {
    let mut client = server.client().await;
    client.stream.write_all(sent).await.unwrap();
    assert_eq!(client.frame().await, None, "{sent:?}");
}

#[tokio::test]
async fn what_is_no_request_closes_its_connection() {
    let server = Server::start().await;
    is_closed(&server, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    is_closed(&server, &[0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03, 0x5a])
        .await;
    is_closed(&server, &[0xff; 64]).await;
    is_closed(&server, &[0; 64]).await;
    is_closed(&server, &head(-1, 3, 9)).await;
    is_closed(&server, &7_i32.to_be_bytes()).await;
    is_served(&server).await;
}

#[tokio::test]
async fn apis_and_versions_that_are_not_offered_close_their_connection() {
    let server = Server::start().await;
    for (key, version) in [(10, 0), (11, 5), (71, 0), (9_999, 0), (-1, 0), (3, 13), (1, 3), (2, 0)]
    {
        let mut request = head(8 + 2, key, version);
        request.put_i16(-1);
        is_closed(&server, &request).await;
    }
    is_served(&server).await;
}

#[tokio::test]
async fn a_length_above_the_limit_is_refused_before_its_bytes_come() {
    let server = Server::start().await;
    for (length, key, version) in [
        (i32::MAX, ApiKey::Produce as i16, 9),
        ((100 << 20) + 1, ApiKey::Produce as i16, 9),
        ((1 << 20) + 1, ApiKey::Metadata as i16, 9),
        (1 << 20, 999, 0),
        (1 << 20, ApiKey::ApiVersions as i16, 99),
    ] {
        is_closed(&server, &head(length, key, version)).await;
    }
    is_served(&server).await;
}

#[tokio::test]
async fn half_a_frame_stalls_for_a_while_and_not_for_ever() {
    let server =
        Server::start_with(|config| config.limits.stall = Duration::from_millis(100)).await;
    is_closed(&server, &[0]).await;
    is_closed(&server, &head(1 << 20, ApiKey::Produce as i16, 9)).await;
    is_served(&server).await;
}

#[tokio::test]
async fn a_silent_connection_is_closed() {
    let server = Server::start_with(|config| config.limits.idle = Duration::from_millis(100)).await;
    is_closed(&server, &[]).await;
}

#[tokio::test]
async fn bodies_of_noise_never_do_more_than_close_their_connection() {
    let server = Server::start().await;
    server.topic("t");
    let mut noise = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        noise
    };
    for api in ApiKey::ALL {
        for version in api.advertised() {
            for _ in 0..4 {
                let length = usize::try_from(next() % 200).unwrap();
                // Small numbers are likely lengths; noise alone would be refused at the first.
                let body = (0..length)
                    .map(|_| if next() % 3 == 0 { next() as u8 } else { (next() % 3) as u8 });
                let mut request = head(8 + i32::try_from(length).unwrap(), *api as i16, version);
                request.extend(body);
                let mut client = server.client().await;
                client.stream.write_all(&request).await.unwrap();
                client.stream.shutdown().await.unwrap();
                // An answer or the end, and soon.
                let _ = client.frame().await;
            }
        }
    }
    is_served(&server).await;
}

#[tokio::test]
async fn two_hundred_slow_connections_hold_nobody_up() {
    let server = Server::start().await;
    let mut slow = Vec::new();
    for index in 0..200_u8 {
        let mut client = server.client().await;
        let frame = head(50 << 20, ApiKey::Produce as i16, 9);
        client.stream.write_all(&frame[..usize::from(index % 12)]).await.unwrap();
        slow.push(client);
    }
    let began = Instant::now();
    for _ in 0..20 {
        is_served(&server).await;
    }
    assert!(began.elapsed() < SOON / 2, "{:?}", began.elapsed());
}

#[tokio::test]
async fn more_clients_than_may_be_are_turned_away() {
    let server = Server::start_with(|config| config.limits.connections = 2).await;
    let mut first = server.client().await;
    let mut second = server.client().await;
    first.call(9, &MetadataRequest::default()).await;
    second.call(9, &MetadataRequest::default()).await;
    let mut third = server.client().await;
    third.try_send(9, &MetadataRequest::default()).await;
    assert_eq!(third.frame().await, None);
    first.call(9, &MetadataRequest::default()).await;
}

/// Who only connects, or sends half a request, makes room for who asks something.
#[tokio::test]
async fn who_asks_nothing_makes_room() {
    let server = Server::start_with(|config| config.limits.connections = 4).await;
    let mut client = server.client().await;
    client.call(9, &MetadataRequest::default()).await;
    let mut slow = Vec::new();
    for _ in 0..40 {
        let mut stranger = server.client().await;
        stranger.stream.write_all(&head(1 << 20, ApiKey::Produce as i16, 9)).await.unwrap();
        slow.push(stranger);
    }
    is_served(&server).await;
    client.call(9, &MetadataRequest::default()).await;
    assert_eq!(slow[0].frame().await, None, "the oldest one is closed");
}

/// However slowly a response is taken, its memory comes back.
#[tokio::test]
async fn who_sips_at_an_answer_is_cut_off() {
    let server = Server::start_with(|config| {
        config.limits.stall = Duration::from_millis(500);
        config.limits.bytes_per_second = 100 << 20;
    })
    .await;
    server.topic_with("t", 1, &[("max.message.bytes", "30000000")]);
    let mut client = server.client().await;
    assert!(client.produce(9, "t", large(25_000_000)).await.error_code.is_ok());
    let mut request = fetch("t", 0);
    request.topics[0].partitions[0].partition_max_bytes = 30_000_000;
    client.send(11, &request).await;
    let began = Instant::now();
    let mut sip = vec![0; 100_000];
    while client.stream.read(&mut sip).await.is_ok_and(|read| read > 0) {
        assert!(began.elapsed() < SOON, "it may sip for ever");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Who does not read its answers is cut off, and its part of the memory comes back: afterwards
/// another one gets an answer as large.
#[tokio::test]
async fn who_takes_no_answer_is_cut_off() {
    let server = Server::start_with(|config| {
        config.limits.stall = Duration::from_millis(200);
        config.limits.memory_bytes = 48 << 20;
    })
    .await;
    server.topic_with("t", 1, &[("max.message.bytes", "20000000")]);
    let mut writer = server.client().await;
    for _ in 0..3 {
        let appended = writer.produce(9, "t", large(10_000_000)).await;
        assert!(appended.error_code.is_ok(), "{appended:?}");
    }
    let mut request = fetch("t", 0);
    request.topics[0].partitions[0].partition_max_bytes = 40_000_000;
    let mut deaf: Vec<Client> = Vec::new();
    for _ in 0..4 {
        let mut client = server.client().await;
        client.send(11, &request).await;
        deaf.push(client);
    }
    let began = Instant::now();
    loop {
        let answer = server.client().await.fetch(11, &request).await;
        if answer.records.unwrap().into_bytes().len() > 30_000_000 {
            break;
        }
        assert!(began.elapsed() < SOON, "the memory did not come back");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// An answer as long as a topic's partitions, a thousand times in one request.
#[tokio::test]
async fn what_is_named_a_thousand_times_is_answered_once() {
    const TIMES: usize = 1000;
    let server = Server::start().await;
    server.topic_with("t", 100, &[]);
    let mut client = server.client().await;
    let many = |name: &str| vec![name.to_owned(); TIMES];

    let topic = MetadataRequestTopic { name: Some("t".to_owned()), ..Default::default() };
    let request = MetadataRequest { topics: Some(vec![topic; TIMES]), ..Default::default() };
    assert_eq!(client.call(12, &request).await.topics.len(), 1);

    let resource = DescribeConfigsResource {
        resource_type: 2,
        resource_name: "t".to_owned(),
        ..Default::default()
    };
    let request = DescribeConfigsRequest { resources: vec![resource; TIMES], ..Default::default() };
    assert_eq!(client.call(4, &request).await.results.len(), 1);

    let request = DescribeGroupsRequest { groups: many("g"), ..Default::default() };
    assert_eq!(client.call(5, &request).await.groups.len(), 1);

    let group = OffsetFetchRequestGroup { group_id: "g".to_owned(), ..Default::default() };
    let request = OffsetFetchRequest { groups: vec![group; TIMES], ..Default::default() };
    assert_eq!(client.call(9, &request).await.groups.len(), 1);

    let request = DescribeTransactionsRequest { transactional_ids: many("tx") };
    assert_eq!(client.call(0, &request).await.transaction_states.len(), 1);

    let request = FindCoordinatorRequest { coordinator_keys: many("g"), ..Default::default() };
    assert_eq!(client.call(4, &request).await.coordinators.len(), 1);

    let topic = DescribeProducersTopic { name: "t".to_owned(), partition_indexes: vec![0, 1, 0] };
    let request = DescribeProducersRequest { topics: vec![topic; TIMES] };
    let answer = client.call(0, &request).await;
    assert_eq!(answer.topics.iter().map(|topic| topic.partitions.len()).sum::<usize>(), 2);
}

/// A name of more than 16 bits' length would be cut in the coordinators' topics, and be another one after a
/// restart: what was answered would be lost, or be somebody else's.
#[tokio::test]
async fn a_name_that_cannot_be_stored_is_refused() {
    let server = Server::start().await;
    server.topic("t");
    let mut client = server.client().await;
    let long = "x".repeat(32_768);
    let partition = OffsetCommitRequestPartition::default();
    let topic = OffsetCommitRequestTopic { name: "t".to_owned(), partitions: vec![partition] };
    let mut commit =
        OffsetCommitRequest { group_id: long.clone(), topics: vec![topic], ..Default::default() };
    let answer = client.call(9, &commit).await;
    assert_eq!(answer.topics[0].partitions[0].error_code, ErrorCode::INVALID_GROUP_ID);
    commit.group_id.pop();
    let answer = client.call(9, &commit).await;
    assert_eq!(answer.topics[0].partitions[0].error_code, ErrorCode::NONE);

    let init = InitProducerIdRequest {
        transactional_id: Some(long.clone()),
        transaction_timeout_ms: 60_000,
        producer_id: -1,
        producer_epoch: -1,
    };
    assert_eq!(client.call(4, &init).await.error_code, ErrorCode::INVALID_REQUEST);

    let fits = JoinGroupRequest {
        group_id: "g".to_owned(),
        session_timeout_ms: 10_000,
        protocol_type: "consumer".to_owned(),
        protocols: vec![protocol("range")],
        ..Default::default()
    };
    let refused = [
        JoinGroupRequest { group_id: long.clone(), ..fits.clone() },
        JoinGroupRequest { group_instance_id: Some(long.clone()), ..fits.clone() },
        JoinGroupRequest { protocol_type: long.clone(), ..fits.clone() },
        JoinGroupRequest { protocols: vec![protocol(&long)], ..fits.clone() },
        JoinGroupRequest { protocols: vec![protocol("range"); 101], ..fits.clone() },
    ];
    for request in refused {
        let error = client.call(9, &request).await.error_code;
        let expected = [ErrorCode::INVALID_GROUP_ID, ErrorCode::INVALID_REQUEST];
        assert!(expected.contains(&error), "{error:?}");
    }
    assert_eq!(client.call(9, &fits).await.error_code, ErrorCode::MEMBER_ID_REQUIRED);
}

fn protocol(name: &str) -> JoinGroupRequestProtocol {
    JoinGroupRequestProtocol { name: name.to_owned(), ..Default::default() }
}

/// One request must not make all groups wait while long lists are compared.
#[tokio::test]
async fn long_lists_take_no_long_time() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let member = MemberIdentity { member_id: "m".to_owned(), ..Default::default() };
    let request = LeaveGroupRequest {
        group_id: "g".to_owned(),
        members: vec![member; 10_001],
        ..Default::default()
    };
    assert_eq!(client.call(5, &request).await.error_code, ErrorCode::INVALID_REQUEST);

    let names = (0..50_000).map(|n| n.to_string());
    let groups = names.map(|group_id| OffsetFetchRequestGroup {
        group_id,
        topics: Some(Vec::new()),
        ..Default::default()
    });
    let request = OffsetFetchRequest { groups: groups.collect(), ..Default::default() };
    let began = Instant::now();
    assert_eq!(client.call(9, &request).await.groups.len(), 50_000);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());

    let states = vec!["Dead".to_owned(); 100_000];
    let request = ListGroupsRequest { states_filter: states, ..Default::default() };
    assert!(client.call(5, &request).await.error_code.is_ok());
}
