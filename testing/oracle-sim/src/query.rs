//! Which rows a query of `V$LOGMNR_CONTENTS` wants.

use std::collections::BTreeSet;

use highwater_oracle::{ObjectId, Operation, RedoRow, RowMark, RowQuery};

/// Owners whose tables come with the database: their DDL is not wanted.
const ORACLE_OWNERS: &[&str] = &[
    "SYS",
    "SYSTEM",
    "AUDSYS",
    "XDB",
    "OUTLN",
    "DBSNMP",
    "MDSYS",
    "CTXSYS",
    "ORDSYS",
    "WMSYS",
    "LBACSYS",
    "OJVMSYS",
    "GSMADMIN_INTERNAL",
    "DVSYS",
    "APPQOSSYS",
    "DBSFWUSER",
    "GGSYS",
    "ANONYMOUS",
    "REMOTE_SCHEDULER_AGENT",
    "SYS$UMF",
    "DIP",
    "ORACLE_OCM",
    "XS$NULL",
    "ORDDATA",
    "OLAPSYS",
    "DVF",
    "PDBADMIN",
];

/// The WHERE clause of a query.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    query: RowQuery,
    objects: BTreeSet<ObjectId>,
}

impl Wanted {
    pub(crate) fn new(query: &RowQuery) -> Self {
        Self { query: query.clone(), objects: query.objects.iter().copied().collect() }
    }

    pub(crate) fn wants(&self, row: &RedoRow) -> bool {
        row.at.scn < self.query.until && self.is_above(row) && self.is_of_interest(row)
    }

    /// By the mark of its thread; by SCN where there is none, and where the row has no address.
    fn is_above(&self, row: &RedoRow) -> bool {
        let is_of_thread =
            |mark: &&RowMark| mark.thread.is_none_or(|thread| thread == row.at.thread);
        let mark = self.query.marks.iter().find(is_of_thread);
        match (mark, row.at.address) {
            (Some(mark), Some(address)) if mark.is_inclusive => address >= mark.address,
            (Some(mark), Some(address)) => address > mark.address,
            _ => row.at.scn >= self.query.from,
        }
    }

    fn is_of_interest(&self, row: &RedoRow) -> bool {
        use Operation::{
            Commit, Ddl, Delete, Insert, LobErase, LobLocator, LobTrim, LobWrite, MissingScn,
            Other, Rollback, Start, Unsupported, Update,
        };
        match row.operation {
            Insert | Delete | Update | LobLocator | LobWrite | LobTrim | LobErase | Unsupported => {
                (self.objects.contains(&row.object) || self.is_unnamed(row))
                    && !self.is_excluded(row)
            }
            Start | Commit | Rollback => !self.is_excluded(row),
            Ddl => row.owner.as_deref().is_none_or(|owner| !ORACLE_OWNERS.contains(&owner)),
            MissingScn => true,
            Other(_) => false,
        }
    }

    fn is_unnamed(&self, row: &RedoRow) -> bool {
        row.owner.is_none() && row.at.scn < self.query.unnamed_until
    }

    /// A row whose user is not known is kept.
    fn is_excluded(&self, row: &RedoRow) -> bool {
        let excluded = &self.query.excluded_users;
        row.user.as_ref().is_some_and(|user| excluded.contains(user))
    }
}
