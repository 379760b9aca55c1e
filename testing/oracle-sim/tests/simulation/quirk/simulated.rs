//! Simulations with one quirk.

use highwater_oracle::RedoRow;
use highwater_oracle_sim::{Quirk, Quirks, Simulation, SimulationSettings};

use crate::miner::all_rows;

/// The settings of a simulation with nothing but this quirk.
pub(crate) fn alone(quirk: Option<Quirk>) -> SimulationSettings {
    let quirks: Quirks = quirk.into_iter().collect();
    SimulationSettings { quirks, ..SimulationSettings::seeded(11) }
}

/// The rows of a simulation with this quirk, and those of one without.
pub(crate) fn with_and_without(quirk: Quirk) -> [Vec<RedoRow>; 2] {
    [Some(quirk), None].map(|quirk| all_rows(&Simulation::at(alone(quirk), 1500)))
}

/// Asserts that rows of a kind are there by the quirk alone.
pub(crate) fn shows(quirk: Quirk, is_kind: impl Fn(&RedoRow) -> bool) {
    let [with, without] = with_and_without(quirk);
    assert!(with.iter().any(&is_kind), "none with {quirk:?}");
    assert!(!without.iter().any(&is_kind), "some without {quirk:?}");
}
