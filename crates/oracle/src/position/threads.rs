//! The block `threads` of an offset: how far each of several redo threads is, as JSON text.
//!
//! The flat fields stay beside it, for an operator and for releases that do not know the block. Where
//! the two disagree, either an operator edited the flat fields, and then the edit applies to every
//! thread; or a release that does not know the block ran, moved the flat fields, and carried the block
//! along as it found it. Those two must not be taken for one another: an old block's points would skip
//! what was never delivered, and an edit that is not seen would move nothing.
//!
//! What tells them apart is the journal generation. Every start of a task counts it up before anything
//! is stored, whatever the release; no hand edit has a reason to touch it. So the block is written with
//! the generation beside it. If that is the offset's own, whoever wrote the offset wrote the block, and
//! what disagrees was edited. If it is another, or is missing since another product wrote the block,
//! the block counts only while it agrees with the flat fields.
//!
//! An address belongs to one thread, so none can be set for all. The flat address of several threads
//! is there to be removed: that, or another SCN, is the edit.

use serde_json::{Map, Value};

use super::fields::{Fields, damaged};
use super::offset::{resume, write_resume};
use super::{Acknowledged, CommitMark, CommitPoint, Lane, Lanes, ResumePoint};
use crate::{OracleError, RedoPoint, RedoThread};

/// Name of the block.
pub(super) const BLOCK: &str = "threads";
/// Journal generation of the offset that the block was written in.
pub(super) const GENERATION: &str = "threads_generation";

/// The block's text.
pub(super) fn write(lanes: &Lanes) -> String {
    let entry = |lane: &Lane| (lane.thread.to_string(), Value::Object(write_lane(lane)));
    Value::Object(lanes.iter().map(entry).collect()).to_string()
}

fn write_lane(lane: &Lane) -> Map<String, Value> {
    let mut fields = Map::new();
    write_resume(&mut fields, lane.resume);
    let Some(CommitMark { commit: CommitPoint { key, at }, acknowledged }) = lane.mark else {
        return fields;
    };
    let mut set = |field: &str, value: Value| fields.insert(field.to_owned(), value);
    set("commit_scn", at.scn.0.into());
    set("commit_xid", key.to_string().into());
    if let Some(address) = at.address {
        set("commit_rs_id", address.rs_id().into());
        set("commit_ssn", address.ssn.into());
    }
    if let Acknowledged::First { changes, of } = acknowledged
        && !acknowledged.is_all()
    {
        set("event_index", changes.into());
        of.map(|of| set("event_count", of.into()));
    }
    fields
}

/// The lanes of an offset whose flat fields say `flat`.
pub(super) fn lanes(fields: Fields<'_>, flat: Lane, generation: u64) -> Result<Lanes, OracleError> {
    // A block of one thread says no more than the flat fields.
    let Some(stored) = read(fields)?.filter(Lanes::are_several) else {
        return Ok(Lanes::one(flat));
    };
    if fields.number(GENERATION)? == Some(generation) {
        return edited(flat, stored);
    }
    if !agrees(&flat, &stored) {
        return Ok(Lanes::one(flat));
    }
    edited(Lane { resume: stored.lowest(), ..flat }, stored)
}

fn read(fields: Fields<'_>) -> Result<Option<Lanes>, OracleError> {
    let Some(block) = fields.block(BLOCK)? else { return Ok(None) };
    let lanes = block.iter().map(|(thread, lane)| read_lane(thread, lane));
    Ok(Lanes::of(lanes.collect::<Result<_, _>>()?))
}

fn read_lane(thread: &str, lane: &Value) -> Result<Lane, OracleError> {
    let number = thread.parse().map_err(|_| wrong(thread, "names no redo thread"))?;
    let fields = Fields(lane.as_object().ok_or_else(|| wrong(thread, "is no object"))?);
    let scn = fields.scn("commit_scn")?;
    let mark = match (scn, fields.key("commit_xid")?) {
        (None, None) => None,
        (Some(scn), Some(key)) => {
            let address = fields.address("commit_rs_id", "commit_ssn")?;
            let at = RedoPoint { thread: RedoThread(number), scn, address };
            let commit = CommitPoint { key, at };
            Some(CommitMark { commit, acknowledged: acknowledged(fields)? })
        }
        _ => return Err(wrong(thread, "has one of commit_scn and commit_xid without the other")),
    };
    Ok(Lane { thread: RedoThread(number), resume: resume(fields)?, mark })
}

fn acknowledged(fields: Fields<'_>) -> Result<Acknowledged, OracleError> {
    Ok(match fields.number("event_index")? {
        None => Acknowledged::All,
        Some(changes) => Acknowledged::First { changes, of: fields.number("event_count")? },
    })
}

fn wrong(thread: &str, what: &str) -> OracleError {
    let thread: String = thread.chars().take(16).collect();
    damaged(format!("entry {thread} of field {BLOCK} of the offset {what}"))
}

/// Whether the block was written with these flat fields.
fn agrees(flat: &Lane, stored: &Lanes) -> bool {
    let marks = match &flat.mark {
        None => stored.iter().all(|lane| lane.mark.is_none()),
        Some(mark) => holds(stored, &mark.commit),
    };
    stored.lowest().scn == flat.resume.scn && marks
}

fn holds(stored: &Lanes, commit: &CommitPoint) -> bool {
    let mark = stored.get(commit.at.thread).and_then(|lane| lane.mark.as_ref());
    mark.is_some_and(|mark| (mark.commit.key, mark.commit.at.scn) == (commit.key, commit.at.scn))
}

/// The stored lanes with what the flat fields say otherwise: an SCN without address is the one that
/// every thread resumes at; without a last commit none has one. The last commit's count is always that
/// of the flat fields.
fn edited(flat: Lane, mut stored: Lanes) -> Result<Lanes, OracleError> {
    if flat.resume != stored.lowest() {
        resume_all(flat.resume, &mut stored)?;
    }
    let Some(mark) = flat.mark else {
        stored.iter_mut().for_each(|lane| lane.mark = None);
        return Ok(stored);
    };
    if !holds(&stored, &mark.commit) {
        return Err(damaged(format!(
            "last_commit_xid {} at SCN {} is not the last commit of redo thread {} that was \
             acknowledged; last_commit fields can be removed, all five, and not be set",
            mark.commit.key, mark.commit.at.scn, mark.commit.at.thread
        )));
    }
    for lane in stored.iter_mut().filter(|lane| lane.thread == flat.thread) {
        lane.mark =
            lane.mark.map(|stored| CommitMark { acknowledged: mark.acknowledged, ..stored });
    }
    stored.set_last(Some(flat.thread));
    Ok(stored)
}

fn resume_all(from: ResumePoint, lanes: &mut Lanes) -> Result<(), OracleError> {
    if from.address.is_some() {
        return Err(damaged(
            "resume_scn or resume_rs_id was edited in an offset of several redo threads, and an \
             address belongs to one of them: remove resume_rs_id and resume_ssn"
                .to_owned(),
        ));
    }
    lanes.iter_mut().for_each(|lane| lane.resume = from);
    Ok(())
}

#[cfg(test)]
mod tests;
