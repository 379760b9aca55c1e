use proptest::prelude::*;

use super::*;

fn at(partition: i32) -> TopicPartition {
    TopicPartition::new("t", partition)
}

fn opened(offset: i64) -> SinkLedger {
    let mut ledger = SinkLedger::default();
    ledger.open(&[(at(0), offset)].into());
    ledger
}

fn offsets(offset: i64) -> SinkOffsets {
    [(at(0), offset)].into()
}

#[test]
fn only_what_is_durable_moves_the_offset() {
    let mut ledger = opened(10);
    (10..20).for_each(|offset| ledger.accept(&at(0), offset));
    assert_eq!(ledger.accepted(), offsets(20));
    assert_eq!(ledger.due(), offsets(10), "where it began is stored once");
    ledger.committed(&offsets(10));
    assert!(ledger.due().is_empty());
    assert!(ledger.settle(offsets(15)).is_empty());
    assert_eq!(ledger.due(), offsets(15));
    ledger.settle(offsets(12));
    assert_eq!(ledger.due(), offsets(15), "what was durable stays so");
}

#[test]
fn what_holds_nothing_for_the_sink_is_passed_once_all_before_is_durable() {
    let mut ledger = opened(0);
    ledger.accept(&at(0), 4);
    ledger.pass(&at(0), 9);
    ledger.settle(offsets(4));
    assert_eq!(ledger.due(), offsets(4));
    ledger.settle(offsets(5));
    assert_eq!(ledger.due(), offsets(9));
    ledger.committed(&offsets(9));
    assert!(ledger.is_settled());
}

#[test]
fn a_bad_record_is_not_passed_before_its_letter_is_acknowledged() {
    let mut ledger = opened(0);
    ledger.accept(&at(0), 0);
    ledger.bury(&at(0), 1);
    ledger.pass(&at(0), 5);
    ledger.settle(offsets(5));
    assert_eq!(ledger.due(), offsets(1));
    ledger.buried(&at(0), 1);
    assert_eq!(ledger.due(), offsets(5));
}

#[test]
fn more_than_was_accepted_is_refused() {
    let mut ledger = opened(0);
    ledger.accept(&at(0), 0);
    let claims = SinkOffsets::from([(at(0), 7), (at(1), 1)]);
    assert_eq!(ledger.settle(claims.clone()), claims);
    assert_eq!(ledger.due(), offsets(0));
}

#[test]
fn a_rewind_is_counted_from_and_a_closed_partition_not_at_all() {
    let mut ledger = opened(0);
    (0..10).for_each(|offset| ledger.accept(&at(0), offset));
    ledger.settle(offsets(10));
    ledger.committed(&offsets(10));
    ledger.rewind(&at(0), 3);
    assert_eq!(ledger.due(), offsets(3), "the sink has lost the rest");
    ledger.close(&[at(0)]);
    assert!(ledger.due().is_empty() && ledger.accepted().is_empty());
}

#[test]
fn a_rewind_makes_nothing_durable() {
    let mut ledger = opened(0);
    (0..10).for_each(|offset| ledger.accept(&at(0), offset));
    ledger.settle(offsets(4));
    ledger.rewind(&at(0), 7);
    assert_eq!(ledger.due(), offsets(4));
    ledger.settle(offsets(7));
    assert_eq!(ledger.due(), offsets(7));
    ledger.rewind(&at(0), 20);
    assert_eq!(ledger.due(), offsets(20), "the sink has what lies between");
}

/// What becomes of a record, in the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Accepted,
    Durable,
    Nothing,
    Dying,
    Buried,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Accept,
    Filter,
    Bury,
    /// The oldest letter that is under way is acknowledged.
    Acknowledge,
    /// The sink makes the first so many of its records durable, and says so.
    Harden(usize),
    Commit,
    Rewind(i64),
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => Just(Step::Accept),
        2 => Just(Step::Filter),
        2 => Just(Step::Bury),
        2 => Just(Step::Acknowledge),
        3 => (0_usize..6).prop_map(Step::Harden),
        3 => Just(Step::Commit),
        1 => (0_i64..6).prop_map(Step::Rewind),
        1 => Just(Step::Crash),
    ]
}

/// The log as the model sees it: what became of each record since it was read last.
struct Model {
    fates: Vec<Fate>,
    next: i64,
    committed: i64,
    ledger: SinkLedger,
}

impl Model {
    fn read(&mut self, fate: Fate) {
        let index = usize::try_from(self.next).unwrap();
        self.fates.truncate(index);
        self.fates.push(fate);
        match fate {
            Fate::Accepted => self.ledger.accept(&at(0), self.next),
            Fate::Dying => self.ledger.bury(&at(0), self.next),
            _ => {}
        }
        self.next += 1;
        self.ledger.pass(&at(0), self.next);
    }

    fn back_to(&mut self, offset: i64) {
        self.next = offset;
        self.fates.truncate(usize::try_from(offset).unwrap());
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Accept => self.read(Fate::Accepted),
            Step::Filter => self.read(Fate::Nothing),
            Step::Bury => self.read(Fate::Dying),
            Step::Acknowledge => {
                if let Some(index) = self.fates.iter().position(|fate| *fate == Fate::Dying) {
                    self.fates[index] = Fate::Buried;
                    self.ledger.buried(&at(0), i64::try_from(index).unwrap());
                }
            }
            Step::Harden(count) => self.harden(count),
            Step::Commit => {
                let due = self.ledger.due();
                self.committed = due.get(&at(0)).copied().unwrap_or(self.committed);
                self.ledger.committed(&due);
            }
            Step::Rewind(back) => {
                self.back_to((self.next - back).max(0));
                self.ledger.rewind(&at(0), self.next);
                // As the task does, before it gives the sink more.
                self.apply(Step::Commit);
            }
            Step::Crash => {
                self.back_to(self.committed);
                self.ledger = opened(self.committed);
            }
        }
    }

    fn harden(&mut self, count: usize) {
        let accepted = (0..).zip(&mut self.fates).filter(|(_, fate)| **fate == Fate::Accepted);
        let mut durable = None;
        for (offset, fate) in accepted.take(count) {
            *fate = Fate::Durable;
            durable = Some(offset + 1);
        }
        if let Some(durable) = durable {
            assert!(self.ledger.settle(offsets(durable)).is_empty());
        }
    }

    /// Below what is stored, nothing is open.
    fn check(&self) {
        let stored = usize::try_from(self.committed).unwrap();
        let below = self.fates.iter().take(stored);
        let open = |fate: &&Fate| matches!(fate, Fate::Accepted | Fate::Dying);
        assert_eq!(below.filter(open).count(), 0, "{} in {:?}", self.committed, self.fates);
    }
}

proptest! {
    #[test]
    fn a_stored_offset_never_passes_what_is_open(steps in proptest::collection::vec(step(), 1..120)) {
        let mut model = Model { fates: Vec::new(), next: 0, committed: 0, ledger: opened(0) };
        for step in steps {
            model.apply(step);
            if matches!(step, Step::Commit | Step::Crash) {
                model.check();
            }
        }
        // Once all is durable and acknowledged, all is stored.
        model.harden(usize::MAX);
        let accepted = model.ledger.accepted();
        prop_assert!(model.ledger.settle(accepted).is_empty());
        while model.fates.contains(&Fate::Dying) {
            model.apply(Step::Acknowledge);
        }
        model.apply(Step::Commit);
        prop_assert_eq!(model.committed, model.next);
        prop_assert!(model.ledger.is_settled());
    }
}
