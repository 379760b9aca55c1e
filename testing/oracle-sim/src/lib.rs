//! A simulated Oracle database behind the session of the capture engine.
//!
//! Clients do transactions on several tables; their redo is written to logs that are switched, archived
//! and deleted; LogMiner is asked for rows as a real one would be. It is deterministic from a seed, and
//! it keeps books of its own: [`Simulation::history`] says what was committed, in which order, so that
//! whatever an engine delivers can be judged without the engine's code.
//!
//! Oracle itself is not there to compare with. What is modelled comes from its documentation and from
//! what others have published of real databases; each [`Quirk`] says which fact it models.
//!
//! ```
//! use highwater_oracle::Session as _;
//! use highwater_oracle_sim::{Simulation, SimulationSettings};
//!
//! let simulation = Simulation::at(SimulationSettings::seeded(7), 500);
//! let mut session = simulation.session();
//! assert_eq!(session.current_scn().unwrap(), simulation.scn());
//! assert!(!simulation.history()[0].transactions.is_empty());
//! ```

mod archive;
mod capture;
mod client;
mod clock;
mod column;
mod commit;
mod database;
mod ddl;
mod dictionary;
mod dml;
mod event;
mod fault;
mod folder;
mod json;
mod lob;
mod lob_dml;
mod lob_value;
mod partition;
mod query;
mod quirk;
mod random;
mod reader;
mod record;
mod redo;
mod render;
mod rollback;
mod schema;
mod settings;
mod simulation;
mod statement;
mod table;
mod truth;
mod undo;
mod value;
mod workload;

pub use capture::{BetweenRows, SimSession};
pub use fault::{Call, FaultPlan, Moment, ora};
pub use folder::{FolderSettings, RunningDatabase, actions_of};
pub use json::row_json;
pub use quirk::{Quirk, Quirks};
pub use schema::CAPTURED_OWNER;
pub use settings::SimulationSettings;
pub use simulation::Simulation;
pub use truth::{
    CommittedChange, CommittedTransaction, Definition, OpenNow, RowImage, ThreadHistory,
};
