//! The committed inputs.

use std::path::PathBuf;

/// The folder of an entry's inputs.
pub fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)
}

/// An entry's inputs, by name of file.
///
/// # Errors
/// When there are none: an entry without a corpus tests next to nothing.
pub fn read(name: &str) -> std::io::Result<Vec<(String, Vec<u8>)>> {
    let mut inputs = Vec::new();
    for file in std::fs::read_dir(folder(name))? {
        let path = file?.path();
        inputs.push((path.display().to_string(), std::fs::read(&path)?));
    }
    inputs.sort();
    if inputs.is_empty() { Err(std::io::ErrorKind::NotFound.into()) } else { Ok(inputs) }
}
