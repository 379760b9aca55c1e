//! The JSON of a data record.

use highwater_connector::Hw;

use crate::change::{Change, Operation, key_columns};
use crate::encoding::Encoding;
use crate::image;
use crate::metafields::Meta;
use crate::object::ObjectWriter;
use crate::time;

/// Appends the record to `out`.
pub(crate) fn write(out: &mut Vec<u8>, encoding: &Encoding, change: &Change<'_>, pos: &str) {
    let mut record = ObjectWriter::begin(out);
    write_meta(&mut record, encoding, change, pos);
    write_marks(&mut record, change);
    write_images(&mut record, encoding, change);
    if !change.states.unchanged.is_empty() {
        record.value("unchanged", &change.states.unchanged);
    }
    if !change.states.unavailable.is_empty() {
        record.value("unavailable", &change.states.unavailable);
    }
    for (name, value) in &encoding.static_fields {
        record.value(name, value);
    }
    record.end();
}

fn write_meta(record: &mut ObjectWriter<'_>, encoding: &Encoding, change: &Change<'_>, pos: &str) {
    let name = |meta| encoding.meta_fields.name(meta);
    let hw = &change.hw;
    let time = name(Meta::OpTs).and_then(|_| change.commit_time_us()).and_then(time::iso);
    record.optional(name(Meta::OpType), Some(label(encoding, change.operation)));
    record.optional(name(Meta::QualifiedTable), change.qualified_table().as_deref());
    record.optional(name(Meta::OpTs), time.as_deref());
    record.optional(name(Meta::Pos), Some(pos));
    record.optional(name(Meta::Xid), hw.xid.as_deref());
    record.optional(name(Meta::Csn), Some(hw.position.as_str()));
    record.optional(name(Meta::OpSeqno), Some(&hw.index));
    record.optional(name(Meta::TransInd), indicator(hw));
    if let Some(name) = name(Meta::RecordId) {
        record.value(name, &hw.record_id().to_string());
    }
}

/// What only some operations have.
fn write_marks(record: &mut ObjectWriter<'_>, change: &Change<'_>) {
    let envelope = &change.envelope;
    match change.operation {
        Operation::SnapshotRow => record.value("snapshot", &true),
        Operation::SnapshotBegin | Operation::SnapshotEnd => {
            record.raw("point", envelope.point.map_or("null", |point| point.get()));
        }
        Operation::Ddl => {
            record.raw("ddl", envelope.ddl.map_or("null", |ddl| ddl.get()));
            if envelope.ddl_inferred {
                record.value("ddl_inferred", &true);
            }
        }
        _ => {}
    }
    if let Some(key) = change.other_key {
        match key_columns(key) {
            Some(columns) => record.raw("key_change", columns.get()),
            None => record.value("key_change", &String::from_utf8_lossy(key)),
        }
    }
}

fn write_images(record: &mut ObjectWriter<'_>, encoding: &Encoding, change: &Change<'_>) {
    let after = change.envelope.after;
    for (name, image) in
        [(&encoding.before_image_name, change.envelope.before), (&encoding.after_image_name, after)]
    {
        if let Some(image) = image {
            image::write(record.name(name), encoding, &change.states, image, after);
        }
    }
}

pub(crate) fn label(encoding: &Encoding, operation: Operation) -> &str {
    let labels = &encoding.operation_strings;
    match operation {
        Operation::Insert | Operation::SnapshotRow => &labels.insert,
        Operation::Update => &labels.update,
        Operation::Delete | Operation::Tombstone => &labels.delete,
        Operation::Truncate => &labels.truncate,
        Operation::Ddl => &labels.ddl,
        Operation::SnapshotBegin => "SNAPSHOT_BEGIN",
        Operation::SnapshotEnd => "SNAPSHOT_END",
    }
}

/// Where a record stands in its transaction (rule P6): first, middle, end, or the whole of it. The
/// end is known by the count alone. A record outside every lane belongs to no transaction.
fn indicator(hw: &Hw) -> Option<&'static str> {
    hw.lane.as_ref()?;
    let last = hw.count.is_some_and(|count| hw.index.saturating_add(1) >= count);
    Some(match (hw.index, last) {
        (0, true) => "W",
        (0, false) => "B",
        (_, true) => "E",
        (_, false) => "M",
    })
}
