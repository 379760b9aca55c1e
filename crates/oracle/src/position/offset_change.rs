//! Whether an operator may move a stored offset (rule P8).

use highwater_connector::{OffsetChange, OffsetVerdict, SourceOffset};

use super::{Available, FIELDS, Lane, Position, ResumePoint};
use crate::RedoThread;

/// A refusal: what, and the remedy.
type Refusal = (String, String);

/// Judges an edit of an Oracle offset by the redo that is still there, and completes it. An edit of the
/// flat fields applies to every redo thread.
pub fn judge(change: &OffsetChange, available: &Available) -> OffsetVerdict {
    match checked(change, available) {
        Ok(position) => OffsetVerdict::Accepted(position.map(|position| position.write())),
        Err((what, remedy)) => OffsetVerdict::Refused { what, remedy },
    }
}

fn checked(change: &OffsetChange, available: &Available) -> Result<Option<Position>, Refusal> {
    let Some(edited) = &change.wanted else { return Ok(None) };
    if let Some(stray) = edited.stray_field(&FIELDS, change.current.as_ref()) {
        return refuse(stray, "give resume_scn=N and remove resume_rs_id and resume_ssn");
    }
    let mut wanted = Position::read(edited).map_err(|error| (error.what, error.remedy))?;
    // What is stored and cannot be read is no reason against a better one.
    let current = change.current.as_ref().and_then(|offset| Position::read(offset).ok());
    same_database(&wanted, current.as_ref(), available)?;
    if let Some(current) = &current {
        kept(&wanted, current, change.allow_skip)?;
        address_moves_too(&wanted, current)?;
        marks(edited, &wanted, current, change.allow_skip)?;
        if forward(&wanted, current, change.allow_skip)? {
            // The new point may have cut off its first changes, so they cannot be counted.
            wanted = wanted.before_open_transaction().unwrap_or(wanted);
        }
    }
    redo_is_there(&wanted, current.as_ref(), available)?;
    Ok(Some(wanted))
}

fn refuse<T>(what: impl Into<String>, remedy: impl Into<String>) -> Result<T, Refusal> {
    Err((what.into(), remedy.into()))
}

/// Without a readable offset the database is the only witness.
fn same_database(
    wanted: &Position,
    current: Option<&Position>,
    available: &Available,
) -> Result<(), Refusal> {
    let given = wanted.base.identity;
    let keep = "keep dbid and resetlogs_scn as they are stored";
    if let Some(stored) = current.map(|current| current.base.identity)
        && stored != given
    {
        let (dbid, resetlogs) = (given.dbid, given.resetlogs);
        return refuse(
            format!(
                "dbid {dbid} and resetlogs_scn {resetlogs} are not those of the stored offset, {} and \
                 {}: they tie it to its database",
                stored.dbid, stored.resetlogs
            ),
            keep,
        );
    }
    wanted.check_identity(available.identity).map_err(|error| (error.what, keep.to_owned()))
}

/// What no edit has a reason to change.
fn kept(wanted: &Position, current: &Position, allow_skip: bool) -> Result<(), Refusal> {
    let (generation, stored) = (wanted.base.journal_generation, current.base.journal_generation);
    if generation != stored {
        return refuse(
            format!(
                "journal_generation is {generation} and was {stored}: parts of open transactions in \
                 the journal would count as never acknowledged, or the other way round"
            ),
            format!("keep journal_generation={stored}"),
        );
    }
    if current.lanes.are_several() && !wanted.lanes.are_several() {
        return refuse(
            "threads was removed, and with it how far each redo thread is",
            "keep threads and threads_generation as they are stored; an edit of resume_scn and of \
             the last_commit fields applies to every thread",
        );
    }
    let dropped = current.base.released.iter().find(|key| !wanted.base.released.contains(*key));
    match dropped.filter(|_| !allow_skip) {
        None => Ok(()),
        Some(key) => refuse(
            format!(
                "transaction {key} was taken out of released_xids: a late COMMIT of it would publish \
                 it in part"
            ),
            "keep released_xids; give --allow-skip, over REST ?allowSkip=true, if resume_scn lies \
             below the transaction's first change, so that it is read whole",
        ),
    }
}

/// The address decides where redo is read, so an SCN that is moved alone moves nothing.
fn address_moves_too(wanted: &Position, current: &Position) -> Result<(), Refusal> {
    let (wanted, current) = (wanted.lanes.lowest(), current.lanes.lowest());
    let is_left = wanted.address.is_some() && wanted.address == current.address;
    if wanted.scn == current.scn || !is_left {
        return Ok(());
    }
    refuse(
        format!(
            "resume_scn was moved from {} to {} and resume_rs_id was left: the address decides where \
             redo is read, so nothing would move",
            current.scn, wanted.scn
        ),
        "remove resume_rs_id and resume_ssn, too",
    )
}

/// The last commits can be removed, all together, and not be set: what lies before them is skipped.
fn marks(
    edited: &SourceOffset,
    wanted: &Position,
    current: &Position,
    allow_skip: bool,
) -> Result<(), Refusal> {
    let all_five = "remove last_commit_scn, last_commit_xid, last_commit_thread, last_commit_rs_id and \
                    last_commit_ssn, and set event_index=0; or keep them as they are stored";
    let is_there = |field: &&str| edited.0.get(*field).is_some_and(|value| !value.is_null());
    if wanted.lanes.last().is_none() {
        let left =
            ["last_commit_scn", "last_commit_rs_id", "last_commit_ssn", "last_commit_thread"];
        return match left.iter().find(|field| is_there(field)) {
            None => Ok(()),
            Some(field) => {
                refuse(format!("last_commit_xid is missing and {field} is not"), all_five)
            }
        };
    }
    let commit = |lane: &Lane| lane.mark.map(|mark| mark.commit);
    for lane in wanted.lanes.iter() {
        if commit(lane) != current.lanes.get(lane.thread).and_then(commit) {
            let what = format!(
                "the last acknowledged commit of redo thread {} is not the stored one; what lies \
                 before it would never be delivered",
                lane.thread
            );
            return refuse(what, all_five);
        }
    }
    counted(wanted, current, allow_skip)
}

/// More of the last commit counts as acknowledged only if that was asked for.
fn counted(wanted: &Position, current: &Position, allow_skip: bool) -> Result<(), Refusal> {
    let changes =
        |position: &Position| position.lanes.last().map_or(0, |mark| mark.acknowledged.changes());
    let (wanted, current) = (changes(wanted), changes(current));
    if wanted <= current || allow_skip {
        return Ok(());
    }
    refuse(
        format!(
            "event_index was raised from {current} to {wanted}: changes in between would never be \
             delivered"
        ),
        "keep event_index, or set it to 0 to deliver the transaction again; give --allow-skip, over \
         REST ?allowSkip=true, if that is meant",
    )
}

/// Whether redo is left out, which must be asked for.
fn forward(wanted: &Position, current: &Position, allow_skip: bool) -> Result<bool, Refusal> {
    let moved = wanted.lanes.iter().find_map(|lane| {
        let from = resume_of(current, lane.thread);
        lies_behind(from, lane.resume).then_some((lane, from))
    });
    match moved {
        Some((lane, from)) if !allow_skip => refuse(
            format!(
                "SCN {} lies behind SCN {}, from which redo is read now: what was committed in \
                 between is never delivered, and a transaction that is open there arrives without \
                 its earlier changes",
                lane.resume.scn, from.scn
            ),
            "give --allow-skip, over REST ?allowSkip=true, if that is meant; choose an SCN at which \
             no transaction on captured tables was open, and read the tables again with a snapshot",
        ),
        moved => Ok(moved.is_some()),
    }
}

/// Of a thread that is not listed, the least of all.
fn resume_of(position: &Position, thread: RedoThread) -> ResumePoint {
    position.lanes.get(thread).map_or_else(|| position.lanes.unlisted(), |lane| lane.resume)
}

fn lies_behind(from: ResumePoint, wanted: ResumePoint) -> bool {
    match (from.address, wanted.address) {
        (Some(from), Some(wanted)) => wanted > from,
        _ => wanted.scn > from.scn,
    }
}

fn redo_is_there(
    wanted: &Position,
    current: Option<&Position>,
    available: &Available,
) -> Result<(), Refusal> {
    let highest = wanted.lanes.iter().map(|lane| lane.resume.scn).max().unwrap_or_default();
    if highest > available.current {
        let now = available.current;
        return refuse(
            format!("SCN {highest} lies ahead of the database, which is at {now}"),
            format!("give a resume_scn up to {now}"),
        );
    }
    let is_moved = |thread| {
        current.is_none_or(|current| resume_of(current, thread) != resume_of(wanted, thread))
    };
    for (&thread, &oldest) in available.oldest.iter().filter(|(thread, _)| is_moved(**thread)) {
        let scn = resume_of(wanted, thread).scn;
        if scn < oldest {
            return refuse(
                format!(
                    "redo of thread {thread} from SCN {scn} on is gone; the oldest that can be read \
                     begins at SCN {oldest}"
                ),
                format!(
                    "give a resume_scn from {oldest}, or restore the archived logs and register them \
                     in the catalog"
                ),
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
