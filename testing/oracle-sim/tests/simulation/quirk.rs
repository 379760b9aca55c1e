//! Each quirk alone shows in the rows, and without it they are not there.

mod control;
mod instance;
mod lobs;
mod rows;
mod simulated;
mod tables;
