//! Versions as records of the schema topic. What a table description says to everybody leaves out columns
//! that are not captured; its notes hold the whole version for this source.

use std::borrow::Cow;

use highwater_connector::{Column, TableDescription, contained_name, qualified_name};
use serde::{Deserialize, Serialize};

use super::column_type::ColumnType;
use super::key::{Key, KeySource};
use super::versions::LayoutVersion;
use crate::{
    Code, ColumnLayout, OracleError, RedoAddress, RedoPoint, RedoThread, Scn, SupplementalLogging,
    TableName,
};

/// The notes of a description. Numbers of 64 bits are texts.
#[derive(Serialize, Deserialize)]
struct Notes<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pdb: Option<Cow<'a, str>>,
    owner: Cow<'a, str>,
    table: Cow<'a, str>,
    from_scn: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ddl: Option<StoredPoint>,
    is_exact: bool,
    key_source: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key_index: Option<Cow<'a, str>>,
    key: Vec<Cow<'a, str>>,
    supplemental_logging: Cow<'a, str>,
    columns: Vec<StoredColumn<'a>>,
}

#[derive(Serialize, Deserialize)]
struct StoredColumn<'a> {
    name: Cow<'a, str>,
    #[serde(rename = "type")]
    type_name: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    length: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    precision: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scale: Option<i32>,
    is_nullable: bool,
}

#[derive(Serialize, Deserialize)]
struct StoredPoint {
    thread: u32,
    scn: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rs_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ssn: Option<String>,
}

impl TableName {
    /// Its name in descriptions, whose parts never run together.
    pub fn described(&self) -> String {
        match &self.pdb {
            Some(pdb) => contained_name(pdb, &self.owner, &self.table),
            None => qualified_name(&self.owner, &self.table),
        }
    }
}

impl LayoutVersion {
    /// The record that stores it. It holds from this position text and event index on; `is_excluded`
    /// says which columns are not captured.
    pub fn description(
        &self,
        (from_position, from_index): (&str, u64),
        is_excluded: impl Fn(&str) -> bool,
    ) -> TableDescription {
        let captured = self.columns.iter().filter(|column| !is_excluded(&column.name));
        TableDescription {
            table: self.table.described(),
            version: self.number,
            from_position: from_position.to_owned(),
            from_index,
            columns: captured.map(|column| self.described(column)).collect(),
            // Texts and numbers always serialise.
            notes: serde_json::to_value(self.notes()).ok(),
        }
    }

    /// Reads a stored description.
    ///
    /// # Errors
    /// CDC-6003 when it is none that this source has written.
    pub fn read(description: &TableDescription) -> Result<Self, OracleError> {
        read(description).ok_or_else(|| {
            let TableDescription { table, version, .. } = description;
            OracleError::new(
                Code::SchemaMismatch,
                format!("version {version} of {table} in the schema topic cannot be read"),
                "delete that record from the schema topic, or let the connector write to another \
                 topic.prefix",
            )
        })
    }

    fn described(&self, column: &ColumnLayout) -> Column {
        Column {
            name: column.name.clone(),
            source_type: column.declared_type(),
            json_type: column.json_type().to_owned(),
            nullable: column.is_nullable,
            key: self.key.columns.contains(&column.name),
            type_id: column.declared_type(),
        }
    }

    fn notes(&self) -> Notes<'_> {
        let text = |text| Cow::Borrowed::<str>(text);
        let (source, index) = match &self.key.source {
            KeySource::Override => ("override", None),
            KeySource::PrimaryKey => ("primary_key", None),
            KeySource::UniqueIndex(index) => ("unique_index", Some(index.as_str())),
            KeySource::RowId => ("rowid", None),
            KeySource::None => ("none", None),
        };
        Notes {
            pdb: self.table.pdb.as_deref().map(text),
            owner: text(&self.table.owner),
            table: text(&self.table.table),
            from_scn: self.from.to_string(),
            ddl: self.ddl.map(stored_point),
            is_exact: self.is_exact,
            key_source: text(source),
            key_index: index.map(text),
            key: self.key.columns.iter().map(|name| text(name)).collect(),
            supplemental_logging: text(match self.logging {
                SupplementalLogging::None => "none",
                SupplementalLogging::PrimaryKey => "primary_key",
                SupplementalLogging::All => "all",
            }),
            columns: self.columns.iter().map(stored_column).collect(),
        }
    }
}

impl ColumnLayout {
    /// The JSON primitive that its values have in images: whole numbers of at most 18 digits and binary
    /// floating point are numbers, all else is the source's text.
    pub fn json_type(&self) -> &'static str {
        let is_number = self.is_integer()
            || matches!(self.column_type(), ColumnType::BinaryFloat | ColumnType::BinaryDouble);
        if is_number { "number" } else { "string" }
    }
}

fn read(description: &TableDescription) -> Option<LayoutVersion> {
    let notes = Notes::deserialize(description.notes.as_ref()?).ok()?;
    let owned = |text: Cow<'_, str>| text.into_owned();
    let source = match (&*notes.key_source, notes.key_index) {
        ("override", None) => KeySource::Override,
        ("primary_key", None) => KeySource::PrimaryKey,
        ("unique_index", Some(index)) => KeySource::UniqueIndex(owned(index)),
        ("rowid", None) => KeySource::RowId,
        ("none", None) => KeySource::None,
        _ => return None,
    };
    Some(LayoutVersion {
        table: TableName {
            pdb: notes.pdb.map(owned),
            owner: owned(notes.owner),
            table: owned(notes.table),
        },
        number: description.version,
        from: Scn(notes.from_scn.parse().ok()?),
        ddl: match notes.ddl {
            Some(ddl) => Some(read_point(&ddl)?),
            None => None,
        },
        is_exact: notes.is_exact,
        columns: notes.columns.into_iter().map(read_column).collect(),
        key: Key { source, columns: notes.key.into_iter().map(owned).collect() },
        logging: match &*notes.supplemental_logging {
            "none" => SupplementalLogging::None,
            "primary_key" => SupplementalLogging::PrimaryKey,
            "all" => SupplementalLogging::All,
            _ => return None,
        },
    })
}

fn stored_point(point: RedoPoint) -> StoredPoint {
    StoredPoint {
        thread: point.thread.0,
        scn: point.scn.to_string(),
        rs_id: point.address.map(|address| address.rs_id()),
        ssn: point.address.map(|address| address.ssn.to_string()),
    }
}

fn read_point(stored: &StoredPoint) -> Option<RedoPoint> {
    let address = match (&stored.rs_id, &stored.ssn) {
        (Some(rs_id), Some(ssn)) => RedoAddress::parse(rs_id, ssn.parse().ok()?).ok()?,
        (None, None) => None,
        _ => return None,
    };
    let scn = Scn(stored.scn.parse().ok()?);
    Some(RedoPoint { thread: RedoThread(stored.thread), scn, address })
}

fn stored_column(column: &ColumnLayout) -> StoredColumn<'_> {
    StoredColumn {
        name: Cow::Borrowed(&column.name),
        type_name: Cow::Borrowed(&column.type_name),
        length: column.length,
        precision: column.precision,
        scale: column.scale,
        is_nullable: column.is_nullable,
    }
}

fn read_column(stored: StoredColumn<'_>) -> ColumnLayout {
    ColumnLayout {
        name: stored.name.into_owned(),
        type_name: stored.type_name.into_owned(),
        length: stored.length,
        precision: stored.precision,
        scale: stored.scale,
        is_nullable: stored.is_nullable,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::schema::sample;

    fn any_column() -> impl Strategy<Value = ColumnLayout> {
        let size = (any::<Option<u32>>(), any::<Option<u32>>(), any::<Option<i32>>());
        (".{0,8}", ".{0,12}", size, any::<bool>()).prop_map(
            |(name, type_name, (length, precision, scale), is_nullable)| ColumnLayout {
                name,
                type_name,
                length,
                precision,
                scale,
                is_nullable,
            },
        )
    }

    fn any_key() -> impl Strategy<Value = Key> {
        let source = prop_oneof![
            Just(KeySource::Override),
            Just(KeySource::PrimaryKey),
            ".{0,8}".prop_map(KeySource::UniqueIndex),
            Just(KeySource::RowId),
            Just(KeySource::None),
        ];
        (source, prop::collection::vec(".{0,8}", 0..3))
            .prop_map(|(source, columns)| Key { source, columns })
    }

    fn any_point() -> impl Strategy<Value = RedoPoint> {
        let address = (1..u64::from(u32::MAX), any::<u32>(), any::<u16>(), any::<u64>());
        let address = address.prop_map(|(sequence, block, byte, ssn)| RedoAddress {
            sequence,
            block: block.into(),
            byte: byte.into(),
            ssn,
        });
        (any::<u32>(), any::<u64>(), prop::option::of(address)).prop_map(
            |(thread, scn, address)| RedoPoint {
                thread: RedoThread(thread),
                scn: Scn(scn),
                address,
            },
        )
    }

    fn any_version() -> impl Strategy<Value = LayoutVersion> {
        use SupplementalLogging::{All, None, PrimaryKey};
        let name = (prop::option::of(".{0,8}"), ".{0,8}", ".{0,8}")
            .prop_map(|(pdb, owner, table)| TableName { pdb, owner, table });
        let place = (any::<u32>(), any::<u64>(), prop::option::of(any_point()), any::<bool>());
        let columns = prop::collection::vec(any_column(), 0..4);
        let logging = prop::sample::select(vec![None, PrimaryKey, All]);
        (name, place, columns, any_key(), logging).prop_map(
            |(table, (number, from, ddl, is_exact), columns, key, logging)| LayoutVersion {
                table,
                number,
                from: Scn(from),
                ddl,
                is_exact,
                columns,
                key,
                logging,
            },
        )
    }

    proptest! {
        #[test]
        fn a_version_is_read_back_as_it_was_stored(version in any_version()) {
            let bytes = serde_json::to_vec(&version.description(("p", 3), |_| true)).unwrap();
            let stored: TableDescription = serde_json::from_slice(&bytes).unwrap();
            prop_assert_eq!((stored.from_position.as_str(), stored.from_index), ("p", 3));
            prop_assert_eq!(LayoutVersion::read(&stored).unwrap(), version);
        }

        #[test]
        fn names_of_two_tables_differ(
            left in (prop::option::of("[a.\"]{0,3}"), "[a.\"]{0,3}", "[a.\"]{0,3}"),
            right in (prop::option::of("[a.\"]{0,3}"), "[a.\"]{0,3}", "[a.\"]{0,3}"),
        ) {
            let name = |(pdb, owner, table)| TableName { pdb, owner, table };
            let (left, right) = (name(left), name(right));
            prop_assert_eq!(left == right, left.described() == right.described());
        }
    }

    #[test]
    fn a_description_says_what_everybody_needs() {
        let mut version = sample::version(4, 77);
        version.table.pdb = Some("SALES".to_owned());
        version.columns.push(ColumnLayout {
            type_name: "VARCHAR2".to_owned(),
            length: Some(30),
            precision: None,
            scale: None,
            ..sample::column("NAME")
        });
        let description = version.description(("x", 0), |_| false);
        assert_eq!((description.table.as_str(), description.version), ("SALES.HR.T", 4));
        assert_eq!(description.key_columns().collect::<Vec<_>>(), ["ID"]);
        let types = description.columns.iter();
        let types = types.map(|column| (column.source_type.as_str(), column.json_type.as_str()));
        let expected = [("NUMBER(10)", "number"), ("VARCHAR2(30)", "string")];
        assert_eq!(types.collect::<Vec<_>>(), expected);
        let partly = version.description(("x", 0), |name| name == "NAME");
        assert_eq!(partly.columns.len(), 1);
        assert_eq!(LayoutVersion::read(&partly).unwrap(), version);
    }

    #[test]
    fn a_description_of_somebody_else_is_refused() {
        let whole = sample::version(1, 77).description(("x", 0), |_| false);
        LayoutVersion::read(&whole).unwrap();
        let faults: [fn(&mut TableDescription); 5] = [
            |table| table.notes = None,
            |table| table.notes = Some(serde_json::json!({})),
            |table| table.notes.as_mut().unwrap()["from_scn"] = "-1".into(),
            |table| table.notes.as_mut().unwrap()["key_source"] = "guess".into(),
            |table| table.notes.as_mut().unwrap()["columns"] = "all".into(),
        ];
        for fault in faults {
            let mut broken = whole.clone();
            fault(&mut broken);
            let error = LayoutVersion::read(&broken).unwrap_err();
            assert_eq!(error.code, Code::SchemaMismatch);
            assert!(error.what.contains("HR.T"), "{error}");
        }
    }
}
