//! Writing a JSON object member by member, so that a value read from the log goes out as the text
//! it was and no number passes through a float.

use serde::Serialize;

/// An object under construction at the end of a buffer.
#[derive(Debug)]
pub(crate) struct ObjectWriter<'a> {
    out: &'a mut Vec<u8>,
    empty: bool,
}

impl<'a> ObjectWriter<'a> {
    pub(crate) fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true }
    }

    /// A member whose value is given as JSON text.
    pub(crate) fn raw(&mut self, name: &str, json: &str) {
        self.name(name).extend_from_slice(json.as_bytes());
    }

    /// A member whose value serialises.
    pub(crate) fn value(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        write_json(self.name(name), value);
    }

    /// A member that is left out without a value.
    pub(crate) fn optional(
        &mut self,
        name: Option<&str>,
        value: Option<&(impl Serialize + ?Sized)>,
    ) {
        if let (Some(name), Some(value)) = (name, value) {
            self.value(name, value);
        }
    }

    /// Writes a name; the value is to follow.
    pub(crate) fn name(&mut self, name: &str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.empty) {
            self.out.push(b',');
        }
        write_json(self.out, name);
        self.out.push(b':');
        self.out
    }

    pub(crate) fn end(self) {
        self.out.push(b'}');
    }
}

/// Texts, numbers and flags always serialise into a buffer.
fn write_json(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    let written = serde_json::to_writer(out, value);
    debug_assert!(written.is_ok(), "{written:?}");
}
