//! Rows of COPY in text format, as the same cells that the stream gives.
//!
//! Escapes: PostgreSQL manual, COPY, "Text Format".

use bytes::{BufMut as _, Bytes, BytesMut};

use crate::pgoutput::{Cell, Tuple};

/// A row that does not fit its table.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a row of COPY has {found} values and the table {expected} columns")]
pub(crate) struct CopyError {
    expected: usize,
    found: usize,
}

/// Puts lines together: a raw line feed always ends a row, one inside a value is escaped.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    begun: BytesMut,
}

impl Lines {
    /// Takes the next bytes and gives the rows that end in them, without their line feeds.
    pub(crate) fn feed(&mut self, mut chunk: Bytes) -> Vec<Bytes> {
        let mut lines = Vec::new();
        while let Some(end) = chunk.iter().position(|byte| *byte == b'\n') {
            let line = chunk.split_to(end);
            // The line feed itself.
            let _ = chunk.split_to(1);
            if self.begun.is_empty() {
                lines.push(line);
            } else {
                self.begun.extend_from_slice(&line);
                lines.push(self.begun.split().freeze());
            }
        }
        self.begun.extend_from_slice(&chunk);
        lines
    }
}

/// The values of a row of a table with so many columns.
///
/// # Errors
/// When it has another number of values.
pub(crate) fn row(line: &Bytes, columns: usize) -> Result<Tuple, CopyError> {
    // A table without columns has rows without values, which look like one empty value.
    if columns == 0 && line.is_empty() {
        return Ok(Tuple::default());
    }
    let mut cells = Vec::with_capacity(columns);
    let mut start = 0;
    for end in line.iter().enumerate().filter(|(_, byte)| **byte == b'\t').map(|(at, _)| at) {
        cells.push(cell(&line.slice(start..end)));
        start = end + 1;
    }
    cells.push(cell(&line.slice(start..)));
    if cells.len() == columns {
        Ok(Tuple(cells))
    } else {
        Err(CopyError { expected: columns, found: cells.len() })
    }
}

fn cell(field: &Bytes) -> Cell {
    if field.as_ref() == b"\\N" {
        return Cell::Null;
    }
    let escaped = field.contains(&b'\\');
    Cell::Text(if escaped { unescaped(field) } else { field.clone() })
}

fn unescaped(field: &[u8]) -> Bytes {
    let mut text = BytesMut::with_capacity(field.len());
    let mut rest = field;
    while let [byte, after @ ..] = rest {
        rest = after;
        let (b'\\', [letter, after @ ..]) = (*byte, after) else {
            text.put_u8(*byte);
            continue;
        };
        rest = after;
        text.put_u8(match letter {
            b'b' => 0x08,
            b'f' => 0x0C,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 0x0B,
            other => *other,
        });
    }
    text.freeze()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As the server writes (`CopyAttributeOutText`).
    fn escaped(text: &str) -> String {
        let mut out = String::new();
        for letter in text.chars() {
            match letter {
                '\\' => out.push_str("\\\\"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{b}' => out.push_str("\\v"),
                other => out.push(other),
            }
        }
        out
    }

    fn value() -> impl Strategy<Value = Option<String>> {
        prop::option::of("([\\x08-\\x0d\\\\N]|[a-zы]){0,8}")
    }

    proptest! {
        #[test]
        fn any_rows_are_read_back_however_they_arrive(
            rows in prop::collection::vec(prop::collection::vec(value(), 3), 0..5),
            step in 1_usize..20,
        ) {
            let mut wire = String::new();
            for row in &rows {
                let fields: Vec<String> = row
                    .iter()
                    .map(|value| value.as_deref().map_or("\\N".to_owned(), escaped))
                    .collect();
                wire.push_str(&fields.join("\t"));
                wire.push('\n');
            }
            let mut lines = Lines::default();
            let mut read = Vec::new();
            for chunk in wire.as_bytes().chunks(step) {
                for line in lines.feed(Bytes::copy_from_slice(chunk)) {
                    read.push(row(&line, 3).unwrap());
                }
            }
            let cells = |row: &Vec<Option<String>>| {
                let cell = |value: &Option<String>| match value {
                    None => Cell::Null,
                    Some(text) => Cell::Text(Bytes::from(text.clone())),
                };
                Tuple(row.iter().map(cell).collect())
            };
            prop_assert_eq!(read, rows.iter().map(cells).collect::<Vec<_>>());
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let mut lines = Lines::default();
            for line in lines.feed(Bytes::from(bytes)) {
                let _ = row(&line, 2);
            }
        }
    }

    #[test]
    fn rows_without_columns_are_rows() {
        assert_eq!(row(&Bytes::new(), 0), Ok(Tuple::default()));
        assert_eq!(row(&Bytes::new(), 1), Ok(Tuple(vec![Cell::Text(Bytes::new())])));
        assert!(row(&Bytes::from_static(b"a"), 0).is_err());
    }
}
