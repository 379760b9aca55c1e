//! How records are written: the attribute `encoding`.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::fields::{Fields, Problem};
use crate::metafields::MetaFields;

/// Member names that data records may have besides the configurable ones.
const FIXED_NAMES: [&str; 6] =
    ["snapshot", "unchanged", "unavailable", "ddl", "ddl_inferred", "point"];
/// Constant fields that a stream may add to its records.
const MOST_STATIC_FIELDS: usize = 64;

/// The JSON encoding in the `op` model, every default spelled out.
///
/// Its serialised form is hashed into the contract: a field that a later release adds must be left
/// out while it has its default, or every stored position would be refused after the upgrade.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Encoding {
    #[serde(rename = "$schema")]
    schema: &'static str,
    model: &'static str,
    pub(crate) before_image_name: String,
    pub(crate) after_image_name: String,
    flatten: bool,
    pub(crate) omit_null_column_values: bool,
    pub(crate) treat_all_columns_as_strings: bool,
    pub(crate) operation_strings: OperationStrings,
    pub(crate) static_fields: Map<String, Value>,
    #[serde(rename = "includeJSONSchemaRecord")]
    pub(crate) include_json_schema_record: bool,
    pub(crate) include_object_metadata_records: bool,
    pub(crate) include_stream_metadata_record: bool,
    pub(crate) meta_fields: MetaFields,
}

/// Labels of the operations.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct OperationStrings {
    pub(crate) insert: String,
    pub(crate) update: String,
    pub(crate) delete: String,
    pub(crate) truncate: String,
    pub(crate) upsert: String,
    pub(crate) ddl: String,
}

impl Default for OperationStrings {
    fn default() -> Self {
        let [insert, update, delete, truncate, upsert, ddl] =
            ["INSERT", "UPDATE", "DELETE", "TRUNCATE", "UPSERT", "DDL"].map(str::to_owned);
        Self { insert, update, delete, truncate, upsert, ddl }
    }
}

impl Default for Encoding {
    fn default() -> Self {
        Self {
            schema: "ogg:outputFormatJson",
            model: "op",
            before_image_name: "before".to_owned(),
            after_image_name: "after".to_owned(),
            flatten: false,
            omit_null_column_values: false,
            treat_all_columns_as_strings: false,
            operation_strings: OperationStrings::default(),
            static_fields: Map::new(),
            include_json_schema_record: true,
            include_object_metadata_records: true,
            include_stream_metadata_record: true,
            meta_fields: MetaFields::default(),
        }
    }
}

impl Encoding {
    /// Reads the attribute: `"json"`, or `{"json": {…}}`.
    pub(crate) fn parse(value: &Value) -> (Self, Vec<Problem>) {
        if value == "json" {
            return (Self::default(), Vec::new());
        }
        let mut fields = Fields::of("encoding", value);
        let mut encoding = Self::default();
        match fields.get("json") {
            Some(json) => {
                let (parsed, problems) = Self::parse_json(json);
                encoding = parsed;
                fields.absorb(problems);
            }
            None => fields.wrong("json", "must be given: JSON is the only encoding"),
        }
        (encoding, fields.finish())
    }

    fn parse_json(value: &Value) -> (Self, Vec<Problem>) {
        let mut fields = Fields::of("encoding.json", value);
        let mut encoding = Self::default();
        fields.constant("$schema", encoding.schema);
        refuse_later(&mut fields);
        for (name, attribute) in [
            (&mut encoding.before_image_name, "beforeImageName"),
            (&mut encoding.after_image_name, "afterImageName"),
        ] {
            *name = fields.text(attribute, 1..=32).unwrap_or_else(|| name.clone());
        }
        for (flag, attribute) in [
            (&mut encoding.omit_null_column_values, "omitNullColumnValues"),
            (&mut encoding.treat_all_columns_as_strings, "treatAllColumnsAsStrings"),
            (&mut encoding.include_json_schema_record, "includeJSONSchemaRecord"),
            (&mut encoding.include_object_metadata_records, "includeObjectMetadataRecords"),
            (&mut encoding.include_stream_metadata_record, "includeStreamMetadataRecord"),
        ] {
            *flag = fields.flag(attribute, *flag);
        }
        encoding.parse_parts(&mut fields);
        encoding.check_names(&mut fields);
        (encoding, fields.finish())
    }

    fn parse_parts(&mut self, fields: &mut Fields<'_>) {
        if let Some(value) = fields.get("operationStrings") {
            let path = fields.path_of("operationStrings");
            fields.absorb(self.operation_strings.parse(&path, value));
        }
        if let Some(value) = fields.get("staticFields") {
            match static_fields(value) {
                Ok(constants) => self.static_fields = constants,
                Err(message) => fields.wrong("staticFields", &message),
            }
        }
        if let Some(value) = fields.get("metaFields") {
            let (parsed, problems) = MetaFields::parse(&fields.path_of("metaFields"), value);
            self.meta_fields = parsed;
            fields.absorb(problems);
        }
    }

    /// No two members of a record may share a name.
    fn check_names(&self, fields: &mut Fields<'_>) {
        let images = [self.before_image_name.as_str(), self.after_image_name.as_str()];
        let constants = self.static_fields.keys().map(String::as_str);
        let mut seen = HashSet::new();
        let names = FIXED_NAMES.into_iter().chain(images).chain(self.meta_fields.names());
        for name in names.chain(constants) {
            if !seen.insert(name) {
                let message = format!("would give a record two members named {name}");
                fields.wrong("metaFields", &message);
            }
        }
    }
}

/// Attributes that are known and not there yet.
fn refuse_later(fields: &mut Fields<'_>) {
    const WHOLE: &str = "values are sent whole, so leave it out";
    if fields.get("model").is_some_and(|model| model != "op" && model != "row") {
        fields.wrong("model", "must be op");
    }
    if fields.get("model").is_some_and(|model| model == "row") {
        fields.not_yet("model", "use op");
    }
    fields.later("flatten", &json!(false), "use false");
    fields.later("flattenDelimiter", &Value::Null, "leave it out");
    fields.later("delimiter", &Value::Null, "records are separated as JSON array items");
    fields.later("truncateOrChunk", &Value::Null, WHOLE);
    fields.later("maxLobSize", &Value::Null, WHOLE);
    fields.later("maxDDLTextSize", &Value::Null, WHOLE);
    fields.later("maxRecordSize", &Value::Null, WHOLE);
}

fn static_fields(value: &Value) -> Result<Map<String, Value>, String> {
    let constants = value.as_object().ok_or("must be an object")?;
    if constants.len() > MOST_STATIC_FIELDS {
        return Err(format!("may have at most {MOST_STATIC_FIELDS} fields"));
    }
    match constants.iter().find(|(_, value)| value.is_array() || value.is_object()) {
        Some((name, _)) => Err(format!("must hold plain values; {name} is none")),
        None => Ok(constants.clone()),
    }
}

impl OperationStrings {
    fn parse(&mut self, path: &str, value: &Value) -> Vec<Problem> {
        let mut fields = Fields::of(path, value);
        for (label, lower, upper) in [
            (&mut self.insert, "insert", "INSERT"),
            (&mut self.update, "update", "UPDATE"),
            (&mut self.delete, "delete", "DELETE"),
            (&mut self.truncate, "truncate", "TRUNCATE"),
            (&mut self.upsert, "upsert", "UPSERT"),
            (&mut self.ddl, "ddl", "DDL"),
        ] {
            for attribute in [lower, upper] {
                *label = fields.text(attribute, 1..=32).unwrap_or_else(|| label.clone());
            }
        }
        let labels = self.labels();
        if labels.iter().collect::<HashSet<_>>().len() < labels.len() {
            fields.wrong("insert", "and the other labels must all differ");
        }
        fields.finish()
    }

    fn labels(&self) -> [&str; 11] {
        let Self { insert, update, delete, truncate, upsert, ddl } = self;
        let ours = ["SNAPSHOT_BEGIN", "SNAPSHOT_END", "STREAM_METADATA", "OBJECT_METADATA", "GAP"];
        let [a, b, c, d, e] = ours;
        [insert, update, delete, truncate, upsert, ddl, a, b, c, d, e]
    }
}
