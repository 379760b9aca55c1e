//! Reads the fields of an offset, and of the blocks in it, as anybody may have written them.

use std::str::FromStr;

use serde_json::{Map, Value};

use crate::{Code, OracleError, RedoAddress, RedoThread, Scn, TransactionKey};

/// Fields under their names; a field that is null is not there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a>(pub(super) &'a Map<String, Value>);

impl<'a> Fields<'a> {
    pub(super) fn value(self, field: &str) -> Option<&'a Value> {
        self.0.get(field).filter(|value| !value.is_null())
    }

    /// A number from 0, also when it stands as decimal text.
    pub(super) fn number(self, field: &str) -> Result<Option<u64>, OracleError> {
        let Some(value) = self.value(field) else { return Ok(None) };
        let number = match value {
            Value::String(text) => text.trim().parse().ok(),
            value => value.as_i64(),
        };
        match number.and_then(|number| u64::try_from(number).ok()) {
            Some(number) => Ok(Some(number)),
            None => Err(self.wrong(field, "a whole number from 0")),
        }
    }

    pub(super) fn scn(self, field: &str) -> Result<Option<Scn>, OracleError> {
        Ok(self.number(field)?.map(Scn))
    }

    pub(super) fn thread(self, field: &str) -> Result<Option<RedoThread>, OracleError> {
        let Some(number) = self.number(field)? else { return Ok(None) };
        let thread = u32::try_from(number).map_err(|_| self.wrong(field, "a redo thread"))?;
        Ok(Some(RedoThread(thread)))
    }

    pub(super) fn text(self, field: &str) -> Result<Option<&'a str>, OracleError> {
        let Some(value) = self.value(field) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| self.wrong(field, "text"))
    }

    pub(super) fn address(
        self,
        rs_id: &str,
        ssn: &str,
    ) -> Result<Option<RedoAddress>, OracleError> {
        let Some(text) = self.text(rs_id)? else { return Ok(None) };
        let ssn = self.number(ssn)?.unwrap_or(0);
        RedoAddress::parse(text, ssn)
            .map_err(|_| self.wrong(rs_id, "a redo byte address such as 0x00002a.00001f40.0010"))
    }

    pub(super) fn key(self, field: &str) -> Result<Option<TransactionKey>, OracleError> {
        let Some(text) = self.text(field)?.filter(|text| !text.trim().is_empty()) else {
            return Ok(None);
        };
        self.parsed(field, text).map(Some)
    }

    /// Transactions as text with commas between them; a list is taken, too.
    pub(super) fn keys(self, field: &str) -> Result<Vec<TransactionKey>, OracleError> {
        let texts: Vec<&str> = match self.value(field) {
            None => Vec::new(),
            Some(Value::String(text)) => text.split(',').collect(),
            Some(Value::Array(list)) => list
                .iter()
                .map(|key| key.as_str().ok_or_else(|| self.wrong(field, "a list of transactions")))
                .collect::<Result<_, _>>()?,
            Some(_) => return Err(self.wrong(field, "transactions with commas between them")),
        };
        let given = texts.into_iter().filter(|text| !text.trim().is_empty());
        given.map(|text| self.parsed(field, text)).collect()
    }

    /// A block: JSON text of an object, or the object itself.
    pub(super) fn block(self, field: &str) -> Result<Option<Map<String, Value>>, OracleError> {
        let block = match self.value(field) {
            None => return Ok(None),
            Some(Value::String(text)) => serde_json::from_str(text).ok(),
            Some(value) => value.as_object().cloned(),
        };
        // Its text may hold keys of rows.
        block.map(Some).ok_or_else(|| damaged(format!("field {field} is no JSON object as text")))
    }

    fn parsed<T: FromStr>(self, field: &str, text: &str) -> Result<T, OracleError> {
        text.trim().parse().map_err(|_| self.wrong(field, "a transaction such as 3:5.12.614"))
    }

    /// The error of a field that is no `right`.
    pub(super) fn wrong(self, field: &str, right: &str) -> OracleError {
        let value = self.0.get(field).map(Value::to_string).unwrap_or_default();
        let value: String = value.chars().take(64).collect();
        damaged(format!("field {field} of the offset is {value}, which is not {right}"))
    }
}

/// The error of an offset that cannot be read.
pub(super) fn damaged(what: String) -> OracleError {
    OracleError::new(
        Code::Corruption,
        what,
        "correct it with highwater offsets set, run the release that wrote the offset, or delete the \
         offset and begin again with a snapshot",
    )
}
