//! Open transactions: their changes wait here, in memory or on disk, until their end is seen.

pub mod age;
mod bounds;
pub mod buffer;
#[cfg(test)]
mod buffer_model;
#[cfg(test)]
mod buffer_truth;
mod emission;
pub mod entry;
mod fates;
pub mod journal;
mod journal_flush;
pub mod journal_load;
mod journal_payload;
pub mod journal_record;
#[cfg(test)]
mod journal_restart;
#[cfg(test)]
mod journal_tests;
#[cfg(test)]
mod journal_world;
pub mod lob_assembler;
mod lob_change;
mod lob_content;
#[cfg(test)]
mod lob_history;
pub mod lob_image;
pub mod lob_piece;
mod lob_ranges;
pub mod lob_row_id;
mod lob_run;
#[cfg(test)]
mod lob_statements;
mod meter;
pub mod orphans;
mod spill_bytes;
mod spill_file;
pub mod spill_frame;
mod spill_log;
mod spill_reader;
mod survivors;
mod sweep;
pub mod undo;
