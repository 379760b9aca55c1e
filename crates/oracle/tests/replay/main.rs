//! The central property: whatever the history, wherever the engine is stopped and whatever was
//! acknowledged, what was delivered plus what is delivered after each restart is the committed history of
//! each redo thread, in its order, and only what was not acknowledged comes again.

#![expect(clippy::unwrap_used, reason = "a test may fail so")]

mod judge;
mod life;
mod settings;

use highwater_oracle_sim::{Quirk, SimulationSettings};
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence};

use life::{Delivery, Plan, Run, Stop};

/// How many histories are tried (rule T2).
fn cases() -> u32 {
    std::env::var("HW_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1_000)
}

fn stop() -> impl Strategy<Value = Stop> {
    (1..400usize, 0..100u8).prop_map(|(records, acknowledged)| Stop { records, acknowledged })
}

/// What the engine is known to live with. Definitions, partitions, large objects and what happens to the
/// instance are not among them so far.
const QUIRKS: [Quirk; 10] = [
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
];

fn plan() -> impl Strategy<Value = Plan> {
    let quirks = proptest::sample::subsequence(&QUIRKS, 0..=QUIRKS.len());
    let sizes = (1..=3u32, 0..=2u32, 40..400u64, 1..60u64);
    let delivery = prop_oneof![Just(Delivery::AtLeastOnce), Just(Delivery::ExactlyOnce)];
    let stops = proptest::collection::vec(stop(), 0..6);
    (any::<u64>(), sizes, quirks, stops, delivery).prop_map(
        |(seed, (threads, pdbs, actions, pace), quirks, stops, delivery)| Plan {
            settings: SimulationSettings {
                threads,
                pdbs,
                log_bytes: 6_000,
                quirks: quirks.into_iter().collect(),
                ..SimulationSettings::seeded(seed)
            },
            actions,
            pace,
            stops,
            delivery,
        },
    )
}

proptest! {
    #![proptest_config(Config {
        cases: cases(),
        max_shrink_iters: 400,
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..Config::default()
    })]

    #[test]
    fn a_restart_delivers_what_was_not_acknowledged(plan in plan()) {
        let run = Run::of(&plan);
        if let Err(wrong) = judge::judge(&run) {
            prop_assert!(false, "{wrong}\n{plan:?}");
        }
    }
}
