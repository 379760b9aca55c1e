//! STREAM_METADATA and OBJECT_METADATA records.

use highwater_connector::TableDescription;
use serde_json::{Map, Value, json};

use crate::encoding::Encoding;
use crate::feed::View;
use crate::metafields::Meta;

/// Where a connection begins, for the client to see.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Beginning {
    /// `earliest`, `now` or `pos`.
    pub(crate) requested: &'static str,
    /// Offset of the first record that may be sent.
    pub(crate) offset: i64,
}

/// Says who produces the stream, from what, and where delivery begins.
pub(crate) fn stream(view: &View, begin: &Beginning) -> Value {
    let View { source, topic_id, encoding, .. } = view;
    let mut file = json!({"file": source.topic, "topic_id": topic_id.to_string()});
    if view.partitions > 1 {
        file["partition"] = json!(source.partition);
    }
    json!({
        encoding.meta_fields.name_or_default(Meta::OpType): "STREAM_METADATA",
        "producer": {"name": "highwater", "version": env!("CARGO_PKG_VERSION")},
        "source": file,
        "begin": {"requested": begin.requested, "offset": begin.offset.to_string()},
    })
}

/// Says what columns a table has from one version on.
pub(crate) fn object(encoding: &Encoding, table: &TableDescription) -> Value {
    let columns: Map<String, Value> = table
        .columns
        .iter()
        .enumerate()
        .map(|(at, column)| {
            let shape = json!({
                "type": column.json_type,
                "null": column.nullable,
                "key": column.key,
                "ordinal": at + 1,
                "source_type": column.source_type,
            });
            (column.name.clone(), shape)
        })
        .collect();
    json!({
        encoding.meta_fields.name_or_default(Meta::OpType): "OBJECT_METADATA",
        encoding.meta_fields.name_or_default(Meta::QualifiedTable): table.table,
        "version": table.version,
        "columns": columns,
    })
}
