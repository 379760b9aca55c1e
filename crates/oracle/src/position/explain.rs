//! The position in words.

use super::{
    Acknowledged, CommitMark, CommitPoint, Lane, Lanes, Position, ResumePoint, StartFloor,
};

impl Position {
    /// Sentences for an operator: what is safe, where redo is read again, what is skipped there, and
    /// what else the offset holds.
    pub fn explain(&self) -> Vec<String> {
        let mut said = vec![self.last_commit()];
        for lane in self.lanes.iter() {
            said.push(reading(lane));
            said.extend(lane.mark.as_ref().map(|mark| skipped(lane, mark)));
        }
        said.extend(self.floor().map(floor));
        said.extend(self.released());
        said.extend(self.rest());
        said
    }

    fn last_commit(&self) -> String {
        let Some(CommitMark { commit: CommitPoint { key, at }, acknowledged }) = self.lanes.last()
        else {
            return "No commit was acknowledged yet.".to_owned();
        };
        let where_ = at.address.map(|address| format!(", {address}")).unwrap_or_default();
        format!(
            "The last acknowledged commit is that of transaction {key}, at SCN {}{where_}, of which {} \
             safe.",
            at.scn,
            safe(*acknowledged)
        )
    }

    fn released(&self) -> Option<String> {
        let keys: Vec<String> = self.base.released.iter().map(|key| key.to_string()).collect();
        (!keys.is_empty()).then(|| {
            format!(
                "Given up, by orphan detection or by age, were transactions {}: none of their changes \
                 is delivered, and a COMMIT of one stops the connector with CDC-7001.",
                keys.join(", ")
            )
        })
    }

    fn rest(&self) -> Vec<String> {
        let base = &self.base;
        let identity = base.identity;
        let mut said = vec![
            format!(
                "The journal is at generation {}: what a later one wrote was never acknowledged.",
                base.journal_generation
            ),
            format!(
                "It belongs to the database with DBID {} and RESETLOGS_CHANGE# {} alone.",
                identity.dbid, identity.resetlogs
            ),
        ];
        said.extend(base.signal_offset.map(|offset| {
            format!("Signals up to offset {offset} of the signal topic were handled.")
        }));
        said.extend(
            base.snapshot_pending.as_ref().map(|tables| {
                format!("These tables joined and wait for their snapshot: {tables}.")
            }),
        );
        said.extend((!base.extras.is_empty()).then(|| {
            let fields: Vec<&str> = base.extras.keys().map(String::as_str).collect();
            format!("Fields that this release does not know are kept: {}.", fields.join(", "))
        }));
        said
    }
}

fn of_thread(lane: &Lane) -> String {
    match lane.thread {
        Lanes::UNNAMED => "the redo thread".to_owned(),
        thread => format!("redo thread {thread}"),
    }
}

fn safe(acknowledged: Acknowledged) -> String {
    match acknowledged {
        Acknowledged::First { changes, of: None } => format!("the first {changes} changes are"),
        Acknowledged::First { changes, of: Some(of) } if changes < of => {
            format!("{changes} of {of} changes are")
        }
        Acknowledged::First { of: Some(1), .. } => "its 1 change is".to_owned(),
        Acknowledged::First { of: Some(of), .. } => format!("all {of} changes are"),
        Acknowledged::All => "all changes are".to_owned(),
    }
}

fn reading(lane: &Lane) -> String {
    let thread = of_thread(lane);
    match lane.resume {
        ResumePoint { scn, address: Some(address) } => format!(
            "After a restart {thread} is read again from address {address} on, which is included; its \
             log is found by SCN {scn}."
        ),
        ResumePoint { scn, address: None } => {
            format!("After a restart {thread} is read again from SCN {scn} on.")
        }
    }
}

fn skipped(lane: &Lane, mark: &CommitMark) -> String {
    let CommitMark { commit, acknowledged } = mark;
    let rest = match acknowledged {
        Acknowledged::First { changes, .. } if !acknowledged.is_all() => {
            format!("whole, of that one the first {changes} changes")
        }
        _ => "whole, that one, too".to_owned(),
    };
    format!(
        "Commits that {} wrote before that of {} (SCN {}) are skipped {rest}; all later ones are \
         delivered, also under a lower SCN.",
        of_thread(lane),
        commit.key,
        commit.at.scn
    )
}

fn floor(floor: &StartFloor) -> String {
    let open: Vec<String> = floor.open.iter().map(|key| key.to_string()).collect();
    let open = if open.is_empty() { "none".to_owned() } else { open.join(", ") };
    format!(
        "The first start was at SCN {}: until the first commit is acknowledged, commits below it are \
         skipped, and of changes below it those are kept whose transaction was open at SCN {} ({open}) \
         or began later.",
        floor.scn, floor.open_scn
    )
}

#[cfg(test)]
mod tests;
