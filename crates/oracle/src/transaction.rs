//! Transactions while they are open.

pub mod lob_assembler;
mod lob_change;
mod lob_content;
pub mod lob_image;
pub mod lob_piece;
mod lob_ranges;
pub mod lob_row_id;
mod lob_run;
#[cfg(test)]
mod lob_statements;
