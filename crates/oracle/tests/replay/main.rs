//! The central property: whatever the history, wherever the engine is stopped and whatever was
//! acknowledged, what was delivered plus what is delivered after each restart is the committed history of
//! each redo thread, in its order, and only what was not acknowledged comes again.

#![expect(clippy::unwrap_used, reason = "a test may fail so")]

mod cases;
mod judge;
mod life;
mod settings;

use highwater_oracle_sim::{Quirk, Quirks, SimulationSettings};
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, RngSeed};

use life::{Delivery, Plan, Run, Stop};

/// How many histories are tried (rule T2).
fn cases() -> u32 {
    std::env::var("HW_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1_000)
}

/// Which histories: the same ones in each run of `make test`, so that a failure can be run again.
fn seed() -> u64 {
    std::env::var("HW_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

fn stop() -> impl Strategy<Value = Stop> {
    (1..400usize, 0..100u8).prop_map(|(records, acknowledged)| Stop { records, acknowledged })
}

/// What the engine is known to live with. Large objects and pluggable databases that are closed are
/// not among them so far.
const QUIRKS: [Quirk; 14] = [
    Quirk::LateStrands,
    Quirk::ZeroAddress,
    Quirk::PartialXid,
    Quirk::SplitStatements,
    Quirk::ArrayDeletes,
    Quirk::SamePdbXids,
    Quirk::ZeroXid,
    Quirk::Orphans,
    Quirk::ReusedXid,
    Quirk::MissingStart,
    Quirk::IndexOrganised,
    Quirk::TimedOut,
    Quirk::LogSwitchInRead,
    Quirk::LaggingLog,
];

/// The same of definitions that change. An engine may stop at them, so that most histories have none.
const DEFINITIONS: [Quirk; 2] = [Quirk::Partitions, Quirk::Ddl];

/// Quirks that every history has, by the names in `HW_QUIRKS`.
fn forced() -> Quirks {
    let names = std::env::var("HW_QUIRKS").unwrap_or_default();
    names.split(',').filter_map(|name| Quirk::named(name.trim())).collect()
}

/// How often calls fail, in half of the cases or as `HW_FAULTS` says.
fn faults() -> impl Strategy<Value = Option<u64>> {
    let forced = std::env::var("HW_FAULTS").ok().and_then(|one_in| one_in.parse().ok());
    (any::<bool>(), 10..60u64).prop_map(move |(has, one_in)| forced.or(has.then_some(one_in)))
}

fn quirks() -> impl Strategy<Value = Quirks> {
    let quirks = proptest::sample::subsequence(&QUIRKS, 0..=QUIRKS.len());
    let definitions = proptest::sample::subsequence(&DEFINITIONS, 1..=DEFINITIONS.len());
    let definitions = prop_oneof![3 => Just(Vec::new()), 1 => definitions];
    (quirks, definitions)
        .prop_map(|(quirks, more)| quirks.into_iter().chain(more).chain(forced()).collect())
}

fn plan() -> impl Strategy<Value = Plan> {
    let sizes = (1..=3u32, 0..=2u32, 40..400u64, 1..60u64);
    let ends = (proptest::collection::vec(stop(), 0..6), faults());
    let delivery = prop_oneof![Just(Delivery::AtLeastOnce), Just(Delivery::ExactlyOnce)];
    (any::<u64>(), sizes, quirks(), ends, delivery).prop_map(
        |(seed, (threads, pdbs, actions, pace), quirks, (stops, faults), delivery)| Plan {
            settings: SimulationSettings {
                threads,
                pdbs,
                log_bytes: 6_000,
                quirks,
                ..SimulationSettings::seeded(seed)
            },
            actions,
            pace,
            stops,
            delivery,
            faults,
        },
    )
}

proptest! {
    #![proptest_config(Config {
        cases: cases(),
        rng_seed: RngSeed::Fixed(seed()),
        max_shrink_iters: 400,
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..Config::default()
    })]

    #[test]
    fn a_restart_delivers_what_was_not_acknowledged(plan in plan()) {
        let run = Run::of(&plan);
        if let Err(wrong) = judge::judge(&run, &plan) {
            prop_assert!(false, "{wrong}\n{plan:?}");
        }
    }
}
