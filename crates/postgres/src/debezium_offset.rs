//! Debezium's offsets, which a pipeline that is taken over begins with (rule R6).
//!
//! Debezium stores numbers: `lsn_commit`, the end of the last transaction that was delivered whole;
//! `lsn_proc` and `lsn`, the last message delivered, and `snapshot` while tables are read
//! (`PostgresOffsetContext`). It tells the slot of `lsn_commit`, so that the transaction behind
//! it, of which a part may be in the topics, comes again whole.

use highwater_connector::SourceOffset;

use crate::lsn::Lsn;

/// Fields of Debezium's offsets (`PostgresOffsetContext`, `SourceInfo`, `TransactionContext` and the contexts of
/// incremental snapshots).
const FIELDS: &[&str] = &[
    "lsn",
    "lsn_proc",
    "lsn_commit",
    "messageType",
    "txId",
    "xmin",
    "ts_usec",
    "snapshot",
    "snapshot_completed",
    "last_snapshot_record",
    "transaction_id",
    "incremental_snapshot_signal_offset",
    "incremental_snapshot_correlation_id",
    "incremental_snapshot_collections",
    "incremental_snapshot_maximum_key",
    "incremental_snapshot_primary_key",
    "incremental_snapshot_last_processed_key",
];

/// And how those begin that are named after a table.
const OF_TABLES: &str = "transaction_data_collection_order_";

/// The fields that one of Debezium's offsets may have.
pub(crate) fn fields(offset: &SourceOffset) -> Vec<&str> {
    let of_tables =
        offset.0.keys().map(String::as_str).filter(|field| field.starts_with(OF_TABLES));
    FIELDS.iter().copied().chain(of_tables).collect()
}

/// Whether an offset is Debezium's: its positions are numbers, ours are texts and it says its form.
pub(crate) fn is_debeziums(offset: &SourceOffset) -> bool {
    let numbers = ["lsn", "lsn_proc", "lsn_commit"];
    let ours = offset.0.contains_key("v") || offset.text("lsn").is_some();
    !ours && numbers.iter().any(|field| offset.number(field).is_some())
}

/// The position below which every transaction was delivered.
///
/// # Errors
/// Why there is none.
pub(crate) fn position(offset: &SourceOffset) -> Result<Lsn, &'static str> {
    let flag = |field: &str| offset.0.get(field).and_then(serde_json::Value::as_bool) == Some(true);
    let reading = offset.0.get("snapshot").is_some_and(|snapshot| !snapshot.is_null());
    if reading && !flag("snapshot_completed") && !flag("last_snapshot_record") {
        return Err("Debezium's snapshot was not finished");
    }
    ["lsn_commit", "lsn_proc", "lsn"]
        .into_iter()
        .find_map(|field| offset.number(field))
        .and_then(|number| u64::try_from(number).ok())
        .map(Lsn)
        .ok_or("it names no position")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offset(json: &str) -> SourceOffset {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_position_is_the_end_of_the_last_whole_transaction() {
        let given = offset(
            r#"{"transaction_id":null,"lsn_proc":30,"lsn_commit":20,"messageType":"INSERT","lsn":30,
            "txId":7,"ts_usec":1}"#,
        );
        assert!(is_debeziums(&given));
        assert_eq!(position(&given), Ok(Lsn(20)));
        assert_eq!(position(&offset(r#"{"lsn":9,"snapshot":null}"#)), Ok(Lsn(9)));
        let done = offset(r#"{"lsn":9,"snapshot":"INITIAL","snapshot_completed":true}"#);
        assert_eq!(position(&done), Ok(Lsn(9)));
    }

    #[test]
    fn an_unfinished_snapshot_gives_none() {
        let reading = offset(r#"{"lsn":9,"snapshot":"INITIAL","snapshot_completed":false}"#);
        assert!(position(&reading).unwrap_err().contains("not finished"));
    }

    #[test]
    fn ours_are_told_apart() {
        assert!(!is_debeziums(&offset(r#"{"v":1,"lsn":"0/10"}"#)));
        assert!(!is_debeziums(&offset(r#"{"v":1,"lsn":17}"#)));
    }
}
