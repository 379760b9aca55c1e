//! The misuse of positions: each kind has its own answer.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use highwater_connector::{Generation, Hw};
use proptest::prelude::*;
use uuid::Uuid;

use super::trails::hw;
use crate::begin::{Begin, ConnectionRequest};
use crate::contract::ContractHash;
use crate::fingerprint::Fingerprint;
use crate::marks::Marks;
use crate::position::{Place, Sealer, TokenFault};
use crate::qos::QualityOfService;
use crate::trail::TopicPartition;

fn place() -> Place {
    Place {
        offset: 1_234_567,
        leader_epoch: 3,
        contract: ContractHash([9; 8]),
        fingerprint: Fingerprint([5; 8]),
    }
}

fn marks() -> Marks {
    let mut marks = Marks::default();
    marks.advance(&hw(0x01A2_B3C8, 4));
    marks.advance(&Hw { lane: Some("other".to_owned()), part: 2, ..hw(7, 300) });
    marks
}

fn sealer() -> Sealer {
    Sealer::new("orders", &TopicPartition::first("shop"), Uuid::from_u128(1))
}

#[test]
fn the_token_of_a_record_never_changes() {
    // A change of this text makes every stored position invalid.
    assert_eq!(
        sealer().seal(&place(), &marks()),
        "AV-NLG7OhIB8v3BkhlOlyomThUu_RcXPLYva_azuwxNajGuupdhYT5GQslycG8bLA88hFtfdsuk7Mz0-Iy3gGjVYRoBJtFYKF76l-72KRNe3Y64k2OQUSHU2jE2dJ7JCjiSmKZP9FSgSBTVffWRhrA"
    );
    assert_eq!(sealer().open(&sealer().seal(&place(), &marks())), Ok((place(), marks())));
}

#[test]
fn a_token_of_elsewhere_is_told_apart() {
    let token = sealer().seal(&place(), &marks());
    let id = Uuid::from_u128(1);
    let open = |stream, topic, id| {
        Sealer::new(stream, &TopicPartition::first(topic), id).open(&token).unwrap_err()
    };
    assert_eq!(open("orders2", "shop", id), TokenFault::OtherStream);
    assert_eq!(open("orders", "shop2", id), TokenFault::OtherTopic);
    assert_eq!(open("orders", "shop", Uuid::from_u128(2)), TokenFault::TopicRemade);
}

#[test]
fn a_flip_of_any_bit_is_damage() {
    let bytes = URL_SAFE_NO_PAD.decode(sealer().seal(&place(), &marks())).unwrap();
    for at in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[at / 8] ^= 1 << (at % 8);
        let token = URL_SAFE_NO_PAD.encode(flipped);
        assert_eq!(sealer().open(&token), Err(TokenFault::Damaged), "bit {at}");
    }
}

#[test]
fn a_change_of_any_character_is_damage() {
    let token = sealer().seal(&place(), &marks());
    for at in 0..token.len() {
        for other in ["A", "B", "_", "-", "9", "=", "%", "+", " ", "é"] {
            let mut changed = token.clone();
            changed.replace_range(at..=at, other);
            if changed != token {
                assert_eq!(sealer().open(&changed), Err(TokenFault::Damaged), "{at} {other}");
            }
        }
    }
}

#[test]
fn a_part_of_a_token_is_damage() {
    let token = sealer().seal(&place(), &marks());
    for length in 0..token.len() {
        assert_eq!(sealer().open(&token[..length]), Err(TokenFault::Damaged), "{length}");
        assert_eq!(sealer().open(&token[length + 1..]), Err(TokenFault::Damaged), "{length}");
    }
    let long = token.repeat(1_000);
    for other in [format!("{token}="), format!("{token}{token}"), format!(" {token}"), long] {
        assert_eq!(sealer().open(&other), Err(TokenFault::Damaged));
    }
}

#[test]
fn a_token_passes_any_number_of_percent_encodings() {
    let token = sealer().seal(&place(), &marks());
    assert!(token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
}

fn begin(value: &str) -> Result<Begin, &'static str> {
    let pairs = [("begin".to_owned(), value.to_owned())];
    ConnectionRequest::parse(&pairs, QualityOfService::ExactlyOnce)
        .map(|request| request.begin)
        .map_err(|refusal| refusal.code)
}

#[test]
fn begin_takes_what_it_knows() {
    let token = sealer().seal(&place(), &marks());
    assert_eq!(begin("earliest"), Ok(Begin::Earliest));
    assert_eq!(begin("now"), Ok(Begin::Now));
    assert_eq!(begin(&token), Ok(Begin::Position(token.clone())));
    assert_eq!(begin("2026-07-13T04:00:01Z"), Err("begin_time_unavailable"));
    // A generic encoder applied twice may escape even a dash.
    let twice = format!("{}%2D{}", &token[..40], &token[40..]);
    for malformed in ["", "latest", "NOW", "0", &format!("{token} "), &format!("{token}="), &twice]
    {
        assert_eq!(begin(malformed), Err("begin_malformed"), "{malformed}");
    }
}

#[test]
fn parameters_are_known_given_once_and_never_weaken_the_stream() {
    let parse = |query: &[(&str, &str)], default| {
        let pairs: Vec<(String, String)> =
            query.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        ConnectionRequest::parse(&pairs, default).map_err(|refusal| refusal.code)
    };
    let exactly = QualityOfService::ExactlyOnce;
    let at_most = QualityOfService::AtMostOnce;
    let repeated = [("begin", "now"), ("begin", "now")];
    assert_eq!(parse(&repeated, exactly), Err("parameter_repeated"));
    assert_eq!(parse(&[("ongone", "next")], exactly), Err("parameter_unknown"));
    assert_eq!(parse(&[("onGone", "skip")], exactly), Err("parameter_malformed"));
    assert_eq!(parse(&[("qualityOfService", "best")], exactly), Err("parameter_malformed"));
    let weaker = [("qualityOfService", "atLeastOnce")];
    assert_eq!(parse(&weaker, exactly), Err("quality_of_service_weaker"));
    let stricter = parse(&weaker, at_most).unwrap();
    assert_eq!(stricter.quality_of_service, QualityOfService::AtLeastOnce);
    assert_eq!(stricter.on_gone, crate::qos::OnGone::Fail);
    assert_eq!(parse(&[], at_most).unwrap().on_gone, crate::qos::OnGone::Next);
}

proptest! {
    #[test]
    fn whatever_is_sealed_opens(
        offset in 0..i64::MAX,
        leader_epoch in any::<i32>(),
        contract in any::<[u8; 8]>(),
        fingerprint in any::<[u8; 8]>(),
        generation in any::<u64>(),
        lanes in proptest::collection::vec((".{0,9}", ".{0,40}", any::<u64>(), any::<u32>()), 0..6),
    ) {
        let place = Place {
            offset,
            leader_epoch,
            contract: ContractHash(contract),
            fingerprint: Fingerprint(fingerprint),
        };
        let mut marks = Marks::default();
        for (lane, position, index, part) in lanes {
            let generation = Generation::from_bits(generation);
            marks.advance(&Hw { generation, lane: Some(lane), position, index, part, ..hw(0, 0) });
        }
        let token = sealer().seal(&place, &marks);
        prop_assert_eq!(sealer().open(&token), Ok((place, marks)));
    }

    #[test]
    fn no_text_is_taken_for_a_token(text in ".{0,300}") {
        prop_assert_eq!(sealer().open(&text), Err(TokenFault::Damaged));
    }

    #[test]
    fn no_bytes_are_taken_for_a_token(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let token = URL_SAFE_NO_PAD.encode(bytes);
        prop_assert!(sealer().open(&token).is_err());
    }
}
