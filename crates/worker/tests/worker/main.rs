//! The worker over the embedded log: broker, log and worker in one process, with a source that
//! remembers what it was told.

#![expect(clippy::unwrap_used, reason = "a test may fail so")]

mod apache;
mod barrier;
mod bench;
mod changes;
mod clock;
mod crashes;
mod exactly_once;
mod full_disk;
mod gate;
mod generations;
mod group;
mod group_races;
mod health;
mod holds;
mod lives;
mod lost_log;
mod panics;
mod rest;
mod rest_offsets;
mod rest_surface;
mod secrets;
mod several_tasks;
mod side_topics;
mod source;
mod table_topics;
mod trail;
mod workers;
