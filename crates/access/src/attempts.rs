//! How often an address may fail to log in.
//!
//! Who has failed too often is not told that a password is wrong, nor is one tried: the connection
//! ends, which clients try again after a while. So guessing is slow, and somebody behind the same
//! address who knows the password gets in between.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Failures that are let pass at once.
const BURST: u32 = 20;
/// After which time one more is.
const PAUSE: Duration = Duration::from_secs(1);
/// Addresses that are remembered; beyond them the one that may try again soonest is forgotten.
const ADDRESSES: usize = 10_000;

/// The failures of each address.
#[derive(Debug, Default)]
pub struct Attempts {
    /// Until when the failures so far count.
    until: Mutex<HashMap<IpAddr, Instant>>,
}

impl Attempts {
    /// Whether this address may try a password now.
    pub fn may_try(&self, address: IpAddr, now: Instant) -> bool {
        let until = self.until.lock().get(&network(address)).copied();
        until.is_none_or(|until| until.saturating_duration_since(now) < PAUSE * BURST)
    }

    /// Remembers a failure.
    pub fn failed(&self, address: IpAddr, now: Instant) {
        let mut all = self.until.lock();
        let address = network(address);
        let from = all.get(&address).map_or(now, |until| (*until).max(now));
        if all.len() >= ADDRESSES && !all.contains_key(&address) {
            make_room(&mut all, now);
        }
        all.insert(address, from + PAUSE);
    }
}

fn make_room(all: &mut HashMap<IpAddr, Instant>, now: Instant) {
    all.retain(|_, until| *until > now);
    if all.len() >= ADDRESSES {
        let soonest = all.iter().min_by_key(|(_, until)| **until).map(|(address, _)| *address);
        soonest.map(|address| all.remove(&address));
    }
}

/// One host of IPv6 has 2^64 addresses to itself (RFC 4291, 2.5.4).
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => IpAddr::V4(v4),
            None => IpAddr::V6((v6.to_bits() & !u128::from(u64::MAX)).into()),
        },
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn failures_are_let_pass_in_a_burst_and_then_one_a_pause() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        let (guesser, other) = (address("192.0.2.1"), address("192.0.2.2"));
        for _ in 0..BURST {
            assert!(attempts.may_try(guesser, now));
            attempts.failed(guesser, now);
        }
        assert!(!attempts.may_try(guesser, now) && attempts.may_try(other, now));
        let later = now + PAUSE;
        assert!(attempts.may_try(guesser, later + Duration::from_millis(1)));
        attempts.failed(guesser, later);
        assert!(!attempts.may_try(guesser, later));
        assert!(attempts.may_try(guesser, later + PAUSE * BURST));
    }

    #[test]
    fn a_host_of_ipv6_is_one_however_many_addresses_it_has() {
        assert_eq!(network(address("2001:db8::1")), network(address("2001:db8::ffff:1:2:3")));
        assert_ne!(network(address("2001:db8::1")), network(address("2001:db8:0:1::1")));
        assert_eq!(network(address("::ffff:192.0.2.1")), address("192.0.2.1"));
    }

    #[test]
    fn addresses_are_remembered_within_a_bound() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for number in 0..u32::try_from(ADDRESSES).unwrap() + 100 {
            attempts.failed(IpAddr::V4(number.into()), now);
        }
        assert_eq!(attempts.until.lock().len(), ADDRESSES);
        attempts.failed(address("192.0.2.1"), now + PAUSE * 2);
        assert_eq!(attempts.until.lock().len(), 1);
    }
}
