//! Random requests to both: every answer equal, and in the end every log, record by record.
//!
//! `HW_CASES` is the number of steps of all runs together; `HW_SEED` (1) draws others; `HW_WHOLE` shows also the
//! bytes in which answers differ.

use std::env;
use std::io::Write;
use std::iter;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use highwater_protocol::InitProducerIdRequest;

use crate::administration::{
    alter_configs, create_partitions, create_topics, delete_topics, describe_cluster,
    describe_configs, incremental_alter_configs, list_partition_reassignments, metadata,
};
use crate::clusters::clusters;
use crate::groups::{
    TOPIC, delete_groups, describe_groups, find_coordinator, heartbeat, join_group, leave_group,
    list_groups, offset_commit, offset_delete, offset_fetch, sync_group,
};
use crate::pair::Pair;
use crate::production::{PRODUCERS, init_producer_id, produce, produce_unanswered};
use crate::reading::{delete_records, fetch, list_offsets, offset_for_leader_epoch, read_back};
use crate::second_members::second_member;
use crate::transactions::{
    add_offsets_to_txn, add_partitions_to_txn, describe_producers, describe_transactions, end_txn,
    init_transactions, list_transactions, produce_in_txn, time_out, txn_offset_commit,
};
use crate::world::World;

/// Steps of all runs in `make test`.
const STEPS: u64 = 2_000;

type Step = fn(&mut Pair, &mut World);

/// Steps with their shares.
type Menu = [(usize, Step)];

const TOPICS_AND_RECORDS: &Menu = &[
    (5, create_topics),
    (2, delete_topics),
    (3, create_partitions),
    (4, describe_configs),
    (3, incremental_alter_configs),
    (3, alter_configs),
    (5, metadata),
    (2, describe_cluster),
    (2, list_partition_reassignments),
    (3, init_producer_id),
    (32, produce),
    (2, produce_unanswered),
    (22, fetch),
    (12, list_offsets),
    (4, delete_records),
    (4, offset_for_leader_epoch),
];

const TRANSACTIONS: &Menu = &[
    (4, create_topics),
    (6, produce),
    (14, fetch),
    (8, list_offsets),
    (3, delete_records),
    (2, find_coordinator),
    (5, init_transactions),
    (14, add_partitions_to_txn),
    (18, produce_in_txn),
    (12, end_txn),
    (1, time_out),
    (5, describe_producers),
    (4, describe_transactions),
    (4, list_transactions),
    (4, add_offsets_to_txn),
    (6, txn_offset_commit),
    (4, offset_fetch),
];

const GROUPS: &Menu = &[
    (4, find_coordinator),
    (18, join_group),
    (14, sync_group),
    (10, heartbeat),
    (6, leave_group),
    (5, second_member),
    (16, offset_commit),
    (14, offset_fetch),
    (5, offset_delete),
    (6, describe_groups),
    (4, list_groups),
    (4, delete_groups),
];

#[test]
fn requests_about_topics_and_records_are_answered_as_apache_kafka_answers_them() {
    run(TOPICS_AND_RECORDS, 50);
}

#[test]
fn requests_about_transactions_are_answered_as_apache_kafka_answers_them() {
    run(TRANSACTIONS, 30);
}

#[test]
fn requests_about_groups_are_answered_as_apache_kafka_answers_them() {
    run(GROUPS, 20);
}

/// Says it also where the test passes: what is printed by macros is shown of those that fail alone.
pub(crate) fn tell(text: &str) {
    std::io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|text| text.parse().unwrap())
}

/// Takes steps from a menu: so many in a hundred of all.
fn run(menu: &Menu, percent: u64) {
    // The runs share the names of their topics.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let clusters = clusters();
    let seed = number("HW_SEED").unwrap_or(1);
    let steps = number("HW_CASES").unwrap_or(STEPS) * percent / 100;
    tell(&format!("HW_SEED={seed}, {steps} steps"));
    let (mut pair, mut world) = (Pair::new(&clusters), World::new(seed));
    prepare(&mut pair);
    let mut deck = Vec::new();
    let began = Instant::now();
    for _ in 0..steps {
        pair.next_step();
        deal(menu, &mut deck, &mut world)(&mut pair, &mut world);
    }
    let batches = read_back(&mut pair, &world);
    let took = began.elapsed();
    tell(&format!("{steps} steps, {batches} batches read back, in {took:?}\n{}", pair.tally));
    pair.judge();
    pair.tally.check();
}

fn prepare(pair: &mut Pair) {
    pair.clear();
    pair.until_coordinated();
    pair.make(TOPIC, 2);
    for _ in 0..PRODUCERS {
        let request = InitProducerIdRequest::default();
        pair.ask("InitProducerId", 1, |_| request.clone());
    }
    pair.tally = Default::default();
}

/// The next step. They are dealt like cards, as many of each as its share says before any comes once more: no seed
/// leaves one out.
fn deal(menu: &Menu, deck: &mut Vec<Step>, world: &mut World) -> Step {
    if deck.is_empty() {
        deck.extend(menu.iter().flat_map(|(share, step)| iter::repeat_n(*step, *share)));
    }
    deck.swap_remove(world.random.below(deck.len()))
}
