//! The offset as it is stored, format version 1: a flat map, lists as text with commas, blocks as JSON
//! text.

use std::sync::Arc;

use highwater_connector::SourceOffset;
use serde_json::{Map, Value};

use super::fields::{Fields, damaged};
use super::{
    Acknowledged, Base, CommitMark, CommitPoint, Lane, Lanes, Position, ResumePoint, StartFloor,
    threads,
};
use crate::{Identity, OracleError, RedoPoint, Scn, TransactionKey};

/// The format version that is written, and the greatest that is read.
const VERSION: u64 = 1;

/// All fields of an offset.
pub const FIELDS: [&str; 24] = [
    "v",
    "resume_scn",
    "resume_rs_id",
    "resume_ssn",
    "last_commit_scn",
    "last_commit_xid",
    "last_commit_thread",
    "last_commit_rs_id",
    "last_commit_ssn",
    "event_index",
    "event_count",
    "journal_generation",
    "schema_epoch",
    "dbid",
    "resetlogs_scn",
    "released_xids",
    "snapshot",
    threads::BLOCK,
    threads::GENERATION,
    "signal_offset",
    "snapshot_pending",
    "start_floor_scn",
    "start_open_scn",
    "start_open_xids",
];

impl Position {
    /// Reads an offset, with what was edited by hand in it.
    ///
    /// # Errors
    /// CDC-3002 when it has no version, a later one than 1, or a field that cannot be read, and when
    /// the offset of several threads was edited in a way that cannot apply to each of them.
    pub fn read(offset: &SourceOffset) -> Result<Self, OracleError> {
        let fields = Fields(&offset.0);
        check_version(fields)?;
        let base = base(fields)?;
        let lanes = threads::lanes(fields, lane(fields)?, base.journal_generation)?;
        Ok(Self { base: Arc::new(base), lanes })
    }

    /// The offset to store.
    pub fn write(&self) -> SourceOffset {
        let mut offset = SourceOffset::default();
        offset.set("v", VERSION);
        write_resume(&mut offset.0, self.lanes.lowest());
        if let Some(mark) = self.lanes.last() {
            write_last_commit(&mut offset, mark);
        }
        offset.set("event_index", self.lanes.last().map_or(0, |mark| mark.acknowledged.changes()));
        self.write_base(&mut offset);
        if self.lanes.are_several() {
            offset.set(threads::BLOCK, threads::write(&self.lanes));
            offset.set(threads::GENERATION, self.base.journal_generation);
        }
        for (field, value) in &self.base.extras {
            offset.0.entry(field).or_insert_with(|| value.clone());
        }
        offset
    }

    fn write_base(&self, offset: &mut SourceOffset) {
        let base = &self.base;
        offset.set("journal_generation", base.journal_generation);
        offset.set("schema_epoch", base.schema_epoch);
        offset.set("dbid", base.identity.dbid);
        offset.set("resetlogs_scn", base.identity.resetlogs.0);
        if !base.released.is_empty() {
            offset.set("released_xids", joined(base.released.iter()));
        }
        let texts = [("snapshot", &base.snapshot), ("snapshot_pending", &base.snapshot_pending)];
        for (field, text) in texts {
            if let Some(text) = text {
                offset.set(field, text.as_str());
            }
        }
        if let Some(signal) = base.signal_offset {
            offset.set("signal_offset", signal);
        }
        if let Some(floor) = self.floor() {
            offset.set("start_floor_scn", floor.scn.0);
            offset.set("start_open_scn", floor.open_scn.0);
            offset.set("start_open_xids", joined(floor.open.iter().copied()));
        }
    }
}

impl highwater_connector::Position for Position {
    fn offset(&self) -> SourceOffset {
        self.write()
    }
}

fn write_last_commit(offset: &mut SourceOffset, mark: &CommitMark) {
    let CommitPoint { key, at } = mark.commit;
    offset.set("last_commit_scn", at.scn.0);
    offset.set("last_commit_xid", key.to_string());
    offset.set("last_commit_thread", at.thread.0);
    if let Some(address) = at.address {
        offset.set("last_commit_rs_id", address.rs_id());
        offset.set("last_commit_ssn", address.ssn);
    }
    if let Acknowledged::First { of: Some(of), .. } = mark.acknowledged {
        offset.set("event_count", of);
    }
}

pub(super) fn write_resume(fields: &mut Map<String, Value>, resume: ResumePoint) {
    fields.insert("resume_scn".to_owned(), Value::from(resume.scn.0));
    if let Some(address) = resume.address {
        fields.insert("resume_rs_id".to_owned(), Value::from(address.rs_id()));
        fields.insert("resume_ssn".to_owned(), Value::from(address.ssn));
    }
}

fn joined(keys: impl Iterator<Item = TransactionKey>) -> String {
    keys.map(|key| key.to_string()).collect::<Vec<_>>().join(",")
}

fn check_version(fields: Fields<'_>) -> Result<(), OracleError> {
    match fields.number("v")? {
        Some(VERSION) => Ok(()),
        Some(version) => Err(damaged(format!(
            "the offset has format version {version}; this release reads version {VERSION}"
        ))),
        None => {
            Err(damaged("the offset has no field v, so it is not one of this connector".to_owned()))
        }
    }
}

fn base(fields: Fields<'_>) -> Result<Base, OracleError> {
    let number = |field| Ok::<_, OracleError>(fields.number(field)?.unwrap_or(0));
    let text = |field| Ok::<_, OracleError>(fields.text(field)?.map(str::to_owned));
    Ok(Base {
        identity: Identity { dbid: number("dbid")?, resetlogs: Scn(number("resetlogs_scn")?) },
        journal_generation: number("journal_generation")?,
        schema_epoch: number("schema_epoch")?,
        released: fields.keys("released_xids")?.into_iter().collect(),
        snapshot: snapshot(fields)?,
        signal_offset: fields.number("signal_offset")?,
        snapshot_pending: text("snapshot_pending")?,
        floor: floor(fields)?,
        extras: extras(fields.0),
    })
}

/// Kept as the text it is; an object is taken, too.
fn snapshot(fields: Fields<'_>) -> Result<Option<String>, OracleError> {
    let block = fields.block("snapshot")?;
    Ok(match fields.value("snapshot") {
        Some(Value::String(text)) => Some(text.clone()),
        _ => block.map(|block| Value::Object(block).to_string()),
    })
}

fn floor(fields: Fields<'_>) -> Result<Option<StartFloor>, OracleError> {
    let Some(scn) = fields.scn("start_floor_scn")? else { return Ok(None) };
    let open_scn = fields.scn("start_open_scn")?.unwrap_or_default();
    let open = fields.keys("start_open_xids")?.into_iter().collect();
    Ok(Some(StartFloor { scn, open_scn, open }))
}

fn extras(offset: &Map<String, Value>) -> Map<String, Value> {
    let unknown = offset.iter().filter(|(field, _)| !FIELDS.contains(&field.as_str()));
    unknown.map(|(field, value)| (field.clone(), value.clone())).collect()
}

/// What the flat fields say. Of several threads it is the lowest point and the last commit.
fn lane(fields: Fields<'_>) -> Result<Lane, OracleError> {
    let thread = fields.thread("last_commit_thread")?.unwrap_or(Lanes::UNNAMED);
    let mark = match fields.key("last_commit_xid")? {
        None => None,
        Some(key) => {
            let scn = fields.scn("last_commit_scn")?.unwrap_or_default();
            let address = fields.address("last_commit_rs_id", "last_commit_ssn")?;
            let commit = CommitPoint { key, at: RedoPoint { thread, scn, address } };
            let changes = fields.number("event_index")?.unwrap_or(0);
            let of = fields.number("event_count")?;
            Some(CommitMark { commit, acknowledged: Acknowledged::First { changes, of } })
        }
    };
    Ok(Lane { thread, resume: resume(fields)?, mark })
}

pub(super) fn resume(fields: Fields<'_>) -> Result<ResumePoint, OracleError> {
    let scn = fields.scn("resume_scn")?.unwrap_or_default();
    Ok(ResumePoint { scn, address: fields.address("resume_rs_id", "resume_ssn")? })
}

#[cfg(test)]
mod tests;
