//! Running an entry on inputs, and saying which one it failed on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::Entry;
use crate::chance::Chance;

/// No input may take longer.
const LONGEST: Duration = Duration::from_secs(5);

/// How memory is measured: by the allocator of the test program, which is the only thing running.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Forgets the greatest use so far; gives the use now.
    pub reset: fn() -> usize,
    /// The greatest use since, in bytes.
    pub peak: fn() -> usize,
}

impl Memory {
    /// Where it cannot be measured.
    pub const UNKNOWN: Self = Self { reset: || 0, peak: || 0 };
}

/// What an entry is held to.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The entry.
    pub entry: Entry,
    /// How memory is measured.
    pub memory: Memory,
    /// Bytes that any input may take; each of its own bytes may take [`PER_BYTE`] more.
    pub room: usize,
    /// Where an input is written that fails.
    pub failures: PathBuf,
}

/// A decoded message is larger than its bytes: a string of one byte takes 24 and its allocation.
pub const PER_BYTE: usize = 256;

impl Trial {
    /// Runs one input.
    ///
    /// # Errors
    /// What went wrong, and where the input was written.
    pub fn run(&self, input: &[u8]) -> Result<(), String> {
        let before = (self.memory.reset)();
        let began = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.entry.run)(input)));
        let taken = (self.memory.peak)().saturating_sub(before);
        let allowed = self.room + PER_BYTE * input.len();
        if outcome.is_err() {
            Err(self.failed(input, "it panicked"))
        } else if taken > allowed {
            Err(self.failed(input, &format!("it took {taken} bytes, {allowed} are allowed")))
        } else if began.elapsed() > LONGEST {
            Err(self.failed(input, &format!("it took {:?}", began.elapsed())))
        } else {
            Ok(())
        }
    }

    /// Runs mutations of the corpus for a time; gives their number.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn mutate(&self, seed: u64, corpus: &[Vec<u8>], time: Duration) -> Result<u64, String> {
        let mut chance = Chance::new(seed);
        let until = Instant::now() + time;
        let mut runs = 0;
        while Instant::now() < until {
            self.run(&chance.mutated(corpus))?;
            runs += 1;
        }
        Ok(runs)
    }

    fn failed(&self, input: &[u8], what: &str) -> String {
        let name = self.entry.name;
        match write(&self.failures, name, input) {
            Ok(path) => format!(
                "{name}: {what} on {} bytes, written to {}; mend it and put the file under \
                 testing/fuzz/corpus/{name}",
                input.len(),
                path.display()
            ),
            Err(error) => format!("{name}: {what} on {input:?}, which cannot be written: {error}"),
        }
    }
}

fn write(folder: &Path, name: &str, input: &[u8]) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let path = folder.join(format!("{name}-{:016x}", hash(input)));
    std::fs::write(&path, input)?;
    Ok(path)
}

/// FNV-1a: a name for an input.
fn hash(input: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    input.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
