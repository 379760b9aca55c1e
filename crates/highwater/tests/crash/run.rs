//! One run: a server that is killed, everything that clients do meanwhile, and the end of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use crate::judge::Ending;
use crate::ledger::{Ledger, Outcome, Shared, View};
use crate::load::{Load, PATIENCE};
use crate::members;
use crate::numbers::Numbers;
use crate::reading::{self, Found};
use crate::server::{End, Home, Server};
use crate::topics::{PLAIN, SOURCE, TOPICS, Topic, WRITTEN};
use crate::{idempotent, pipeline, topics, transactional};

/// Threads that end by a flag of their own.
struct Crew {
    load: Load,
    threads: Vec<JoinHandle<()>>,
}

impl Crew {
    fn new(kafka: &str, ledger: &Shared, seed: u64) -> Self {
        let (kafka, ledger) = (kafka.to_owned(), Arc::clone(ledger));
        let stop = Arc::new(AtomicBool::new(false));
        Self { load: Load { kafka, ledger, stop, seed }, threads: Vec::new() }
    }

    fn add(&mut self, work: impl FnOnce(&Load) + Send + 'static) {
        let load = self.load.clone();
        self.threads.push(std::thread::spawn(move || work(&load)));
    }

    fn stop(&mut self) {
        self.load.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

pub struct Run {
    home: Home,
    server: Option<Server>,
    ledger: Shared,
    writers: Crew,
    pipelines: Crew,
    readers: Crew,
    numbers: Numbers,
    /// Kills that met an open transaction.
    pub in_flight: u64,
}

impl Run {
    pub fn new(end: End, seed: u64) -> Self {
        let home = Home::new(end);
        let (ledger, kafka) = (Shared::new(Mutex::new(Ledger::default())), home.kafka());
        let server = home.start();
        block_on(topics::make(&kafka));
        let crew = || Crew::new(&kafka, &ledger, seed);
        let (mut writers, mut pipelines, mut readers) = (crew(), crew(), crew());
        for who in 0..2 {
            writers.add(move |load| idempotent::run(load, who));
        }
        for who in 10..13 {
            writers.add(move |load| transactional::run(load, who));
        }
        writers.add(|load| transactional::abandon(load, 20));
        writers.add(members::delete_records);
        for who in 30..32 {
            pipelines.add(move |load| pipeline::run(load, who));
        }
        for topic in &TOPICS {
            for view in [View::Committed, View::Uncommitted] {
                readers.add(move |load| reading::follow(load, view, topic));
            }
        }
        readers.add(members::run);
        let numbers = Numbers::new(seed);
        let server = Some(server);
        Self { home, server, ledger, writers, pipelines, readers, numbers, in_flight: 0 }
    }

    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock()
    }

    /// So many lives, each ended in the middle.
    pub fn live(&mut self, kills: u64) {
        self.wait("two transactions", |run| i64::from(run.ledger().ended(Outcome::Committed) < 2));
        block_on(topics::make_internal_small(&self.home.kafka()));
        for _ in 0..kills {
            std::thread::sleep(Duration::from_millis(20 + self.numbers.below(900)));
            let is_open = self.ledger().ended(Outcome::Open) > 0;
            self.in_flight += u64::from(is_open);
            self.kill();
            if self.numbers.one_in(5) {
                // It is killed while it recovers, too.
                let moment = Duration::from_millis(self.numbers.below(150));
                self.home.start_in_vain(moment);
            }
            self.server = Some(self.home.start());
        }
    }

    fn kill(&mut self) {
        self.home.end(self.server.take().unwrap());
    }

    /// Waits until nothing is left, as long as it becomes less.
    fn wait(&self, what: &str, left: impl Fn(&Self) -> i64) {
        let (mut since, mut before) = (Instant::now(), i64::MAX);
        loop {
            let left = left(self);
            if left == 0 {
                return;
            }
            if left != before {
                (since, before) = (Instant::now(), left);
            }
            if since.elapsed() > PATIENCE {
                let (faults, log) = (&self.ledger().faults, self.home.log());
                panic!("waited in vain for {what}, {left} are left, {faults:#?}:\n{log}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until a reader at read_committed is shown as much of the topics as any other.
    fn wait_for_transactions(&self, topics: &[Topic]) {
        self.wait("the end of all transactions", |run| {
            let ends = |view| reading::ranges(&run.home.kafka(), view, topics).into_values();
            let pairs = ends(View::Committed).zip(ends(View::Uncommitted));
            pairs.map(|(stable, end)| end.high - stable.high).sum()
        });
    }

    /// Everybody comes to an end; what is there then.
    pub fn finish(&mut self) -> Ending {
        self.writers.stop();
        self.wait_for_transactions(&WRITTEN);
        let kafka = self.home.kafka();
        let source = reading::read_topic(&kafka, View::Committed, &SOURCE);
        self.wait("the copies", |run| {
            let lasts = source.iter().filter_map(|(at, all)| Some((*at, *all.keys().last()?)));
            let next = |at| members::committed(&run.home.kafka(), "pipeline", at);
            lasts.map(|(at, last)| (last + 1 - next(at)).max(0)).sum()
        });
        self.pipelines.stop();
        self.wait_for_transactions(&TOPICS);
        let read = |view| reading::read_all(&kafka, view);
        let ending =
            Ending { committed: read(View::Committed), uncommitted: read(View::Uncommitted) };
        self.wait_for_readers(View::Committed, &ending.committed);
        self.wait_for_readers(View::Uncommitted, &ending.uncommitted);
        self.readers.stop();
        self.check_group();
        self.kill();
        ending
    }

    /// They are to come as far as everything goes; whether they saw it is judged later.
    fn wait_for_readers(&self, view: View, found: &Found) {
        self.wait("those that read along", |run| {
            let ledger = run.ledger();
            let lasts =
                found.records.iter().filter_map(|(at, all)| Some((*at, *all.keys().last()?)));
            let missed = |(place, last): &(_, _)| !ledger.has_seen(view, *place, *last);
            lasts.filter(missed).count() as i64
        });
    }

    fn check_group(&self) {
        for place in PLAIN.places() {
            let found = members::committed(&self.home.kafka(), "members", place);
            let mut ledger = self.ledger();
            let told = ledger.group.get(&place).copied().unwrap_or(-1);
            if found < told {
                ledger.fault(format!(
                    "the group committed {told} of {place:?}, and {found} is there"
                ));
            }
        }
    }

    /// Nothing that a server said speaks of a fault of its own.
    pub fn check_log(&self) {
        let log = self.home.log();
        let faults: Vec<&str> = log
            .lines()
            .filter(|line| line.contains(" ERROR ") || line.contains("panicked"))
            .collect();
        assert!(faults.is_empty(), "{faults:#?}");
    }

    pub fn data_dir(&self) -> PathBuf {
        self.home.data_dir()
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(future)
}
