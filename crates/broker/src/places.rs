//! Places for connections: at most so many, and who is not known to be a client makes room.
//!
//! A connection costs a stranger nothing. Where all places are taken, the oldest one that has not
//! brought a whole request yet gives up its own, so that thousands of idle or dripping connections
//! keep no client out.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

/// Places for connections.
#[derive(Debug)]
struct Places {
    limit: usize,
    per_address: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    clients: HashMap<u64, IpAddr>,
    /// By age.
    newcomers: BTreeMap<u64, Newcomer>,
    /// How many places each address has.
    addresses: HashMap<IpAddr, usize>,
    next: u64,
}

#[derive(Debug)]
struct Newcomer {
    address: IpAddr,
    /// Dropped where the place is lost.
    hold: oneshot::Sender<()>,
}

impl Taken {
    fn len(&self) -> usize {
        self.clients.len() + self.newcomers.len()
    }

    fn of(&self, address: IpAddr) -> usize {
        self.addresses.get(&address).copied().unwrap_or(0)
    }

    /// Gives a place back, wherever it is; false where it was lost already.
    fn give_back(&mut self, number: u64) -> bool {
        let newcomer = self.newcomers.remove(&number).map(|newcomer| newcomer.address);
        let Some(address) = newcomer.or_else(|| self.clients.remove(&number)) else { return false };
        if let Some(places) = self.addresses.get_mut(&address) {
            *places -= 1;
            if *places == 0 {
                self.addresses.remove(&address);
            }
        }
        true
    }

    /// Takes the place of the oldest newcomer away, of those from one address if one is named.
    fn make_room(&mut self, of: Option<IpAddr>) -> bool {
        let fits = |newcomer: &Newcomer| of.is_none_or(|address| newcomer.address == address);
        let oldest = self.newcomers.iter().find(|(_, one)| fits(one)).map(|(number, _)| *number);
        oldest.is_some_and(|number| self.give_back(number))
    }
}

/// A connection's place, given back when dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    number: u64,
}

/// The news that a place went to another connection.
#[derive(Debug)]
pub struct Loss(oneshot::Receiver<()>);

impl Places {
    /// So many places; one at least.
    fn new(limit: usize, per_address: usize) -> Arc<Self> {
        let (limit, per_address) = (limit.max(1), per_address.max(1));
        Arc::new(Self { limit, per_address, taken: Mutex::default() })
    }

    /// A place for a new connection, if need be that of the oldest newcomer, and how the
    /// connection hears that it has lost it. None where clients have all places, or all that one
    /// address may have.
    fn take(self: &Arc<Self>, address: IpAddr) -> Option<(Place, Loss)> {
        let mut taken = self.taken();
        if taken.of(address) >= self.per_address && !taken.make_room(Some(address)) {
            return None;
        }
        if taken.len() >= self.limit && !taken.make_room(None) {
            return None;
        }
        let number = taken.next;
        taken.next += 1;
        let (hold, receiver) = oneshot::channel();
        taken.newcomers.insert(number, Newcomer { address, hold });
        *taken.addresses.entry(address).or_default() += 1;
        Some((Place { places: Arc::clone(self), number }, Loss(receiver)))
    }

    /// Takes the place of the oldest newcomer away, for want of something else than places.
    fn make_room(&self) -> bool {
        self.taken().make_room(None)
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// The connection brought a whole request: nobody takes its place any more.
    pub fn keep(&self) {
        let mut taken = self.places.taken();
        if let Some(newcomer) = taken.newcomers.remove(&self.number) {
            taken.clients.insert(self.number, newcomer.address);
            // Who does not listen any more does not fear the loss.
            let _ = newcomer.hold.send(());
        }
    }
}

impl Loss {
    /// Waits until the place is lost.
    pub async fn came(self) {
        if self.0.await.is_ok() {
            std::future::pending().await
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken().give_back(self.number);
    }
}

/// How long to wait after the system refused to accept, which it does when files run out.
const PAUSE: Duration = Duration::from_millis(50);

/// How often the log says that somebody could not be let in.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// Lets the connections of a listener in, as long as there are places.
#[derive(Debug)]
pub struct Door {
    listener: &'static str,
    places: Arc<Places>,
    /// Counts those that are turned away.
    turned_away: fn(),
    reported: Option<Instant>,
}

impl Door {
    /// With so many places; `listener` is its name in the server's log.
    pub fn new(listener: &'static str, places: usize, turned_away: fn()) -> Self {
        Self::with_places_per_address(listener, places, usize::MAX, turned_away)
    }

    /// The same, of which one address has so many at most.
    pub fn with_places_per_address(
        listener: &'static str,
        places: usize,
        per_address: usize,
        turned_away: fn(),
    ) -> Self {
        Self { listener, places: Places::new(places, per_address), turned_away, reported: None }
    }

    /// A connection with its place, from what a listener accepted.
    pub async fn admit<S>(
        &mut self,
        accepted: io::Result<(S, SocketAddr)>,
    ) -> Option<(S, SocketAddr, (Place, Loss))> {
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                self.failed(&error).await;
                return None;
            }
        };
        let place = self.places.take(peer.ip());
        if place.is_none() {
            (self.turned_away)();
            let (listener, limit) = (self.listener, self.places.limit);
            self.report(|| tracing::warn!(listener, %peer, limit, "turned away: too many clients"));
        }
        Some((stream, peer, place?))
    }

    /// The system gave no connection. Mostly the process has no file left: the oldest newcomer
    /// gives up its own. Where the peer went away before it was let in, nobody else shall feel it.
    async fn failed(&mut self, error: &io::Error) {
        if error.kind() == io::ErrorKind::ConnectionAborted {
            return;
        }
        let replaced = self.places.make_room();
        let listener = self.listener;
        self.report(|| tracing::warn!(listener, %error, replaced, "no connection was accepted"));
        tokio::time::sleep(PAUSE).await;
    }

    fn report(&mut self, say: impl FnOnce()) {
        if self.reported.is_none_or(|last| last.elapsed() >= REPORT_EVERY) {
            self.reported = Some(Instant::now());
            say();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    fn came(loss: Loss) -> bool {
        loss.came().now_or_never().is_some()
    }

    #[test]
    fn the_oldest_newcomer_makes_room() {
        let places = Places::new(2, 9);
        let (first, first_loss) = places.take(HERE).unwrap();
        let (_second, second_loss) = places.take(HERE).unwrap();
        let (_third, third_loss) = places.take(HERE).unwrap();
        first.keep();
        assert!(came(first_loss), "what was lost does not come back");
        assert!(!came(second_loss) && !came(third_loss));
    }

    #[test]
    fn a_client_keeps_its_place() {
        let places = Places::new(2, 9);
        let (client, client_loss) = places.take(HERE).unwrap();
        client.keep();
        let (_slow, slow_loss) = places.take(HERE).unwrap();
        let (other, _other_loss) = places.take(HERE).unwrap();
        assert!(came(slow_loss) && !came(client_loss));
        other.keep();
        assert!(places.take(HERE).is_none());
        drop(client);
        assert!(places.take(HERE).is_some());
    }

    #[test]
    fn an_address_takes_no_more_than_its_places() {
        let places = Places::new(9, 2);
        let (client, _loss) = places.take(HERE).unwrap();
        client.keep();
        let (_slow, slow_loss) = places.take(HERE).unwrap();
        let (_other, _) = places.take(THERE).unwrap();
        let (next, next_loss) = places.take(HERE).unwrap();
        assert!(came(slow_loss) && !came(next_loss), "its own newcomer makes room");
        next.keep();
        assert!(places.take(HERE).is_none() && places.take(THERE).is_some());
        drop(client);
        assert!(places.take(HERE).is_some());
    }

    #[test]
    fn places_of_an_address_are_forgotten_when_given_back() {
        let places = Places::new(2, 9);
        for _ in 0..5 {
            let (client, _loss) = places.take(HERE).unwrap();
            client.keep();
            let (_lost, _) = places.take(THERE).unwrap();
            let (_taker, _) = places.take(THERE).unwrap();
        }
        assert!(places.taken().addresses.is_empty());
    }

    #[test]
    fn a_place_is_given_back_once() {
        let places = Places::new(1, 9);
        let first = places.take(HERE).unwrap();
        let (second, _loss) = places.take(HERE).unwrap();
        second.keep();
        drop(first);
        assert!(places.take(HERE).is_none(), "the first one had lost its place already");
        drop(second);
        assert!(places.take(HERE).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_went_away_costs_nobody_a_place() {
        let mut door = Door::new("test", 2, || {});
        let peer: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let (_, _, (_place, loss)) = door.admit(Ok(((), peer))).await.unwrap();
        let began = tokio::time::Instant::now();
        let failed = |kind: io::ErrorKind| Err::<((), SocketAddr), _>(kind.into());
        assert!(door.admit(failed(io::ErrorKind::ConnectionAborted)).await.is_none());
        assert!(began.elapsed().is_zero() && door.places.taken().newcomers.len() == 1);
        assert!(door.admit(failed(io::ErrorKind::Other)).await.is_none());
        assert!(began.elapsed() == PAUSE && came(loss), "no file is left");
    }
}
