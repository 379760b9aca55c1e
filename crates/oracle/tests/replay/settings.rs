//! The settings of an engine under test.

use std::path::Path;
use std::time::Duration;

use highwater_connector::Generation;
use highwater_oracle::delivery::{
    LargeObjects, OnDecodeError, Output, OversizedLob, OwnTopics, SplitLimits, TableTopics,
    TopicNames,
};
use highwater_oracle::engine::EngineSettings;
use highwater_oracle::mining::MiningSettings;
use highwater_oracle::mining::table_filter::{ColumnFilter, TableFilter};
use highwater_oracle::schema::KeyRules;
use highwater_oracle::statement::Quoting;
use highwater_oracle::transaction::age::{AgeAction, AgeLimit};
use highwater_oracle::transaction::buffer::BufferSettings;
use highwater_oracle::transaction::lob_assembler::{LobMode, LobSettings};
use highwater_oracle::transaction::orphans::{OrphanAction, OrphanSettings};

/// What stands for a large object that is not known.
pub(crate) const UNAVAILABLE: &str = "__cdc_unavailable_value";

/// The same in place of bytes.
pub(crate) const UNAVAILABLE_BYTES: &str = "X19jZGNfdW5hdmFpbGFibGVfdmFsdWU=";

/// An engine that captures the simulation's tables into a trail.
pub(crate) fn engine(spill_dir: &Path, threads: u32) -> EngineSettings {
    EngineSettings {
        mining: MiningSettings {
            is_rac_enabled: threads > 1,
            max_logs_per_step: 3,
            excluded_users: vec!["BATCH".to_owned()],
            // So small that steps overflow to disk.
            stage_max_bytes: 40_000,
            ..MiningSettings::default()
        },
        buffer: BufferSettings {
            // So small that transactions spill.
            memory_max_bytes: 20_000,
            spill_dir: spill_dir.to_owned(),
            spill_max_bytes: 1 << 30,
        },
        lobs: LobSettings { mode: LobMode::Inline, max_bytes: 1 << 20 },
        keys: KeyRules::default(),
        tables: TableFilter::new(&[r"(.*\.)?SHOP\..*".to_owned()], &[], false).unwrap(),
        columns: ColumnFilter::default(),
        age: AgeLimit { max: None, action: AgeAction::Fail },
        // Not in a run: a key that comes again behind a released orphan stops the task (CDC-7001).
        orphans: OrphanSettings {
            interval: Duration::from_secs(3_600),
            action: OrphanAction::Release,
        },
        output: Output {
            server: "shop".to_owned(),
            database: "SIM".to_owned(),
            generation: Generation::from_bits(7),
            topics: TopicNames::new(TableTopics::Trail("shop".into()), OwnTopics::of("shop")),
            has_tombstones: true,
            large: LargeObjects::Shown { placeholder: UNAVAILABLE.to_owned() },
            oversized: OversizedLob::Fail,
            quoting: Quoting::Strict,
            on_decode_error: OnDecodeError::Fail,
            split: SplitLimits { records: 50, bytes: 1 << 20 },
        },
        heartbeat_interval: Some(Duration::ZERO),
    }
}
