//! Logins by SASL: what is answered, what ends the connection, what strangers send.

use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use highwater_broker::BrokerConfig;
use highwater_protocol::{
    ApiVersionsRequest, ErrorCode, MetadataRequest, SaslAuthenticateRequest, SaslHandshakeRequest,
    Secret,
};
use tokio::io::AsyncWriteExt;

use crate::client::{Client, SOON};
use crate::server::Server;
use crate::users::{PASSWORD, TestUsers, client_of, plain};

async fn is_served(client: &mut Client) {
    let answer = client.call(9, &MetadataRequest::default()).await;
    assert_eq!(answer.brokers.len(), 1);
}

async fn is_closed(mut client: Client) {
    assert_eq!(client.frame().await, None);
}

#[tokio::test]
async fn a_right_password_lets_in() {
    let server = TestUsers::new().with("ann", &[]).server().await;
    let mut client = server.client().await;
    let versions = client
        .call(
            3,
            &ApiVersionsRequest {
                client_software_name: "test".to_owned(),
                client_software_version: "1".to_owned(),
            },
        )
        .await;
    assert!(versions.api_keys.iter().any(|api| api.api_key == 36));
    client.log_in("ann").await;
    is_served(&mut client).await;
    assert_eq!(client.handshake("PLAIN").await.0, ErrorCode::ILLEGAL_SASL_STATE.0);
    is_served(&mut client).await;
}

#[tokio::test]
async fn a_wrong_password_and_a_user_that_is_not_there_are_refused_alike_and_late() {
    let server = TestUsers::new().with("ann", &[]).server().await;
    let mut told = Vec::new();
    for (name, password) in [("ann", "wrong horse"), ("bob", PASSWORD), ("highwater", PASSWORD)] {
        let mut client = server.client().await;
        client.handshake("PLAIN").await;
        let began = Instant::now();
        let answer = client.authenticate(plain(name, password)).await;
        assert!(began.elapsed() >= Duration::from_millis(100), "{:?}", began.elapsed());
        assert_eq!(answer.error_code, ErrorCode::SASL_AUTHENTICATION_FAILED);
        told.push(answer.error_message.clone().unwrap());
        assert!(!format!("{answer:?}").contains(name) || name == "highwater");
        is_closed(client).await;
    }
    told.dedup();
    assert_eq!(told.len(), 1, "{told:?}");
}

#[tokio::test]
async fn a_mechanism_that_is_not_offered_is_answered_with_those_that_are() {
    let server = TestUsers::new().with("ann", &[]).server().await;
    let mut client = server.client().await;
    let (code, offered) = client.handshake("GSSAPI").await;
    assert_eq!(code, ErrorCode::UNSUPPORTED_SASL_MECHANISM.0);
    assert_eq!(offered, ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"]);
    is_closed(client).await;
}

#[tokio::test]
async fn whatever_else_comes_before_the_login_ends_the_connection() {
    let server = TestUsers::new().with("ann", &[]).server().await;
    let mut client = server.client().await;
    client.try_send(9, &MetadataRequest::default()).await;
    is_closed(client).await;

    let mut client = server.client().await;
    let message = SaslAuthenticateRequest { auth_bytes: Secret(plain("ann", PASSWORD)) };
    client.try_send(2, &message).await;
    is_closed(client).await;

    let mut client = server.client().await;
    client.handshake("PLAIN").await;
    client.try_send(9, &MetadataRequest::default()).await;
    is_closed(client).await;

    let mut client = server.client().await;
    client.handshake("PLAIN").await;
    client.try_send(1, &SaslHandshakeRequest { mechanism: "PLAIN".to_owned() }).await;
    is_closed(client).await;
}

/// Clients before Kafka 1.0 send bare messages (KIP-152).
#[tokio::test]
async fn messages_without_headers() {
    let server = TestUsers::new().with("ann", &[]).server().await;
    for (password, good) in [(PASSWORD, true), ("wrong horse", false)] {
        let mut client = server.client().await;
        let handshake = SaslHandshakeRequest { mechanism: "PLAIN".to_owned() };
        assert!(client.call(0, &handshake).await.error_code.is_ok());
        let message = plain("ann", password);
        let mut out = BytesMut::new();
        out.put_u32(u32::try_from(message.len()).unwrap());
        out.put_slice(&message);
        client.stream.write_all(&out).await.unwrap();
        assert_eq!(client.frame().await, good.then(Bytes::new));
        if good {
            is_served(&mut client).await;
        }
    }
}

#[tokio::test]
async fn who_has_to_log_in_again_does_so_in_time_and_as_the_same() {
    let lifetime = Duration::from_millis(600);
    let users = TestUsers::new().with("ann", &[]).with("bob", &[]);
    let server = users.server_with(|config| config.sasl.lifetime = Some(lifetime)).await;
    let mut client = server.client().await;
    client.handshake("PLAIN").await;
    let answer = client.authenticate(plain("ann", PASSWORD)).await;
    assert_eq!(answer.session_lifetime_ms, 600);
    let began = Instant::now();
    while began.elapsed() < lifetime * 2 {
        is_served(&mut client).await;
        client.log_in("ann").await;
        tokio::time::sleep(lifetime / 6).await;
    }
    let mut other = client_of(&server, "ann").await;
    other.handshake("PLAIN").await;
    let answer = other.authenticate(plain("bob", PASSWORD)).await;
    assert_eq!(answer.error_code, ErrorCode::SASL_AUTHENTICATION_FAILED);
    is_closed(other).await;

    tokio::time::sleep(lifetime).await;
    client.try_send(9, &MetadataRequest::default()).await;
    is_closed(client).await;
}

#[tokio::test]
async fn who_fails_too_often_is_put_off() {
    let users = TestUsers::new().with("ann", &[]);
    let server = users.server_with(|config| config.sasl.failure_delay = Duration::ZERO).await;
    let mut put_off = false;
    for _ in 0..40 {
        let mut client = server.client().await;
        client.handshake("PLAIN").await;
        let message = SaslAuthenticateRequest { auth_bytes: Secret(plain("ann", "wrong horse")) };
        client.try_send(2, &message).await;
        put_off |= client.frame().await.is_none();
    }
    assert!(put_off);
    // The right password counts again after a while: nobody is locked out.
    let began = Instant::now();
    loop {
        let mut client = server.client().await;
        client.handshake("PLAIN").await;
        let message = SaslAuthenticateRequest { auth_bytes: Secret(plain("ann", PASSWORD)) };
        client.try_send(2, &message).await;
        if client.frame().await.is_some() {
            return is_served(&mut client).await;
        }
        assert!(began.elapsed() < SOON);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Passwords that come all at once are no more than those that come one by one.
#[tokio::test]
async fn who_guesses_over_many_connections_at_once_is_put_off_as_soon() {
    let users = TestUsers::new().with("ann", &[]);
    let server = users.server_with(|config| config.sasl.failure_delay = Duration::ZERO).await;
    let mut clients = Vec::new();
    for _ in 0..120 {
        let mut client = server.client().await;
        client.handshake("PLAIN").await;
        clients.push(client);
    }
    let began = Instant::now();
    for client in &mut clients {
        let message = SaslAuthenticateRequest { auth_bytes: Secret(plain("ann", "wrong horse")) };
        client.try_send(2, &message).await;
    }
    let mut told = 0;
    for client in &mut clients {
        told += u64::from(client.frame().await.is_some());
    }
    // A burst of 20, one each second, and those that are hashed at once.
    let most = 20 + began.elapsed().as_secs() + 1 + 16;
    assert!((20..=most).contains(&told), "{told} of 120 were told that the password is wrong");
}

/// Nothing is taken from a stranger that is larger than a login.
#[tokio::test]
async fn a_large_frame_before_the_login_ends_the_connection() {
    let server = TestUsers::new().with("ann", &[]).server().await;
    for (length, key) in [(17 << 10, 36), (17 << 10, 18), (1 << 20, 0), (i32::MAX, 0)] {
        let mut client = server.client().await;
        let mut head = BytesMut::new();
        head.put_i32(length);
        head.put_i16(key);
        head.put_i16(0);
        head.put_i32(1);
        client.stream.write_all(&head).await.unwrap();
        is_closed(client).await;
    }
}

#[tokio::test]
async fn noise_in_a_login_never_does_more_than_end_its_connection() {
    let users = TestUsers::new().with("ann", &[]);
    let server = users.server_with(|config| config.sasl.failure_delay = Duration::ZERO).await;
    let mut noise = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        noise
    };
    for round in 0..60_u64 {
        let mechanism = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"][(round % 3) as usize];
        let mut client = server.client().await;
        let version = i16::try_from(round % 2).unwrap();
        client.call(version, &SaslHandshakeRequest { mechanism: mechanism.to_owned() }).await;
        let letters = b"n,=ra\0cp:\xff\xfe1A";
        let message: Bytes =
            (0..next() % 60).map(|_| letters[(next() % letters.len() as u64) as usize]).collect();
        match version {
            1 => client.try_send(1, &SaslAuthenticateRequest { auth_bytes: Secret(message) }).await,
            _ => {
                let length = u32::try_from(message.len()).unwrap().to_be_bytes();
                let _ = client.stream.write_all(&[&length[..], &message].concat()).await;
            }
        }
        let _ = client.stream.shutdown().await;
        let _ = client.frame().await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut client = server.client().await;
    let (code, _) = client.handshake("PLAIN").await;
    assert_eq!(code, 0, "strangers are still let in");
}

/// Who does not log in makes room, and does not stay for ever.
#[tokio::test]
async fn who_does_not_log_in_keeps_no_place() {
    let users = TestUsers::new().with("ann", &[]);
    let few = |config: &mut BrokerConfig| {
        config.limits.connections = 8;
        config.limits.login = Duration::from_millis(400);
    };
    let server = users.server_with(few).await;
    let mut strangers = Vec::new();
    for _ in 0..60 {
        let mut stranger = server.client().await;
        stranger.try_send(1, &SaslHandshakeRequest { mechanism: "PLAIN".to_owned() }).await;
        strangers.push(stranger);
    }
    let mut client = client_of(&server, "ann").await;
    let began = Instant::now();
    let mut last = strangers.pop().unwrap();
    while last.frame().await.is_some() {}
    assert!(began.elapsed() < SOON / 2);
    is_served(&mut client).await;
}

#[tokio::test]
async fn one_address_takes_no_more_than_its_places() {
    let server = Server::start_with(|config| config.limits.connections_per_address = 2).await;
    let mut first = server.client().await;
    let mut second = server.client().await;
    is_served(&mut first).await;
    is_served(&mut second).await;
    let mut third = server.client().await;
    third.try_send(9, &MetadataRequest::default()).await;
    assert_eq!(third.frame().await, None);
    drop(second);
    let began = Instant::now();
    loop {
        let mut next = server.client().await;
        next.try_send(9, &MetadataRequest::default()).await;
        if next.frame().await.is_some() {
            break;
        }
        assert!(began.elapsed() < SOON);
    }
    is_served(&mut first).await;
}

/// A user that is taken out may do nothing more; connections that are open end.
#[tokio::test]
async fn a_user_that_is_removed_is_out_at_once() {
    let users = TestUsers::new().with("ann", &["describe topic *"]);
    let access = users.access();
    let server = users.server_with(|config| config.access = std::sync::Arc::clone(&access)).await;
    server.topic("t");
    let mut client = client_of(&server, "ann").await;
    assert_eq!(client.call(9, &MetadataRequest::default()).await.topics.len(), 1);
    users.file.change(|users| Ok(users.remove("ann"))).unwrap();
    assert!(access.refresh().unwrap());
    client.try_send(9, &MetadataRequest::default()).await;
    is_closed(client).await;
    let mut again = server.client().await;
    again.handshake("PLAIN").await;
    let answer = again.authenticate(plain("ann", PASSWORD)).await;
    assert_eq!(answer.error_code, ErrorCode::SASL_AUTHENTICATION_FAILED);
}
