//! Histories that once came out wrong.

use highwater_oracle_sim::{Quirk, SimulationSettings};

use crate::judge;
use crate::life::{Delivery, Plan, Run, Stop};

/// A plan with these quirks.
fn plan(seed: u64, threads: u32, quirks: &[Quirk], actions: u64, pace: u64) -> Plan {
    Plan {
        settings: SimulationSettings {
            threads,
            log_bytes: 6_000,
            quirks: quirks.iter().copied().collect(),
            ..SimulationSettings::seeded(seed)
        },
        actions,
        pace,
        stops: Vec::new(),
        delivery: Delivery::AtLeastOnce,
        faults: None,
    }
}

fn holds(plan: &Plan) {
    judge::judge(&Run::of(plan), plan).unwrap();
}

#[test]
fn tables_that_came_and_went_before_they_are_read() {
    use Quirk::*;
    let quirks = [
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
    ];
    let mut plan = plan(16_494_114_470_084_023_421, 2, &quirks, 68, 1);
    plan.stops = vec![Stop { records: 130, acknowledged: 17 }];
    holds(&plan);
}

#[test]
fn a_ddl_whose_transaction_has_ended_and_whose_key_is_used_again() {
    use Quirk::*;
    let quirks = [PartialXid, SamePdbXids, ZeroXid, ReusedXid, Partitions];
    let mut plan = plan(14_909_225_543_577_717_750, 1, &quirks, 109, 1);
    plan.stops = vec![Stop { records: 230, acknowledged: 21 }];
    holds(&plan);
}

#[test]
fn a_part_of_a_transaction_whose_commit_has_no_address() {
    use Quirk::*;
    let quirks = [
        LateStrands,
        ZeroAddress,
        PartialXid,
        SplitStatements,
        ArrayDeletes,
        SamePdbXids,
        ZeroXid,
        MissingStart,
        ClosedPdb,
    ];
    let mut plan = plan(1_283_137_695_612_320_328, 2, &quirks, 231, 8);
    plan.stops = vec![Stop { records: 109, acknowledged: 24 }];
    holds(&plan);
}
