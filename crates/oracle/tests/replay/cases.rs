//! Histories that once came out wrong.

use highwater_oracle_sim::{Quirk, SimulationSettings};

use crate::judge;
use crate::life::{Delivery, Plan, Run, Stop};

/// What such a history is made of.
struct Case<'a> {
    seed: u64,
    threads: u32,
    quirks: &'a [Quirk],
    actions: u64,
    pace: u64,
    stop: Stop,
}

fn holds(case: Case<'_>) {
    let Case { seed, threads, quirks, actions, pace, stop } = case;
    let plan = Plan {
        settings: SimulationSettings {
            threads,
            log_bytes: 6_000,
            quirks: quirks.iter().copied().collect(),
            ..SimulationSettings::seeded(seed)
        },
        actions,
        pace,
        stops: vec![stop],
        delivery: Delivery::AtLeastOnce,
        faults: None,
    };
    judge::judge(&Run::of(&plan), &plan).unwrap();
}

#[test]
fn tables_that_came_and_went_before_they_are_read() {
    use Quirk::*;
    holds(Case {
        seed: 16_494_114_470_084_023_421,
        threads: 2,
        quirks: &[
            LateStrands,
            ZeroAddress,
            PartialXid,
            SplitStatements,
            ArrayDeletes,
            SamePdbXids,
            ZeroXid,
            Orphans,
            ReusedXid,
            MissingStart,
            Ddl,
        ],
        actions: 68,
        pace: 1,
        stop: Stop { records: 130, acknowledged: 17 },
    });
}

#[test]
fn a_ddl_whose_transaction_has_ended_and_whose_key_is_used_again() {
    use Quirk::*;
    holds(Case {
        seed: 14_909_225_543_577_717_750,
        threads: 1,
        quirks: &[PartialXid, SamePdbXids, ZeroXid, ReusedXid, Partitions],
        actions: 109,
        pace: 1,
        stop: Stop { records: 230, acknowledged: 21 },
    });
}

#[test]
fn a_part_of_a_transaction_whose_commit_has_no_address() {
    use Quirk::*;
    holds(Case {
        seed: 1_283_137_695_612_320_328,
        threads: 2,
        quirks: &[
            LateStrands,
            ZeroAddress,
            PartialXid,
            SplitStatements,
            ArrayDeletes,
            SamePdbXids,
            ZeroXid,
            MissingStart,
            ClosedPdb,
        ],
        actions: 231,
        pace: 8,
        stop: Stop { records: 109, acknowledged: 24 },
    });
}
