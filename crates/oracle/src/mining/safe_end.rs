//! Up to which SCN a step may read.

use crate::Scn;

use super::inventory::Inventory;
use super::settings::CaptureMode;

/// First SCN that a step may not read. `current` is the current SCN, taken before threads and logs were
/// listed; on a standby it says what is applied.
///
/// Online it is the current SCN. That bound is not there for completeness, as a row below it may reach
/// its log later: in a private strand, or because the instance of another thread has not written it
/// yet. Such a row has an address above everything that its thread's log has shown, rows are selected
/// by address a thread, and so the next step sees it. The bound keeps the threads in step: a change
/// that depends on one of another instance has a higher SCN, and its block was shipped only after the
/// other's redo was on disk. So whatever a row below the bound depends on was on disk when the bound
/// was taken, and is read in the same step, before it.
///
/// From archived logs alone it is the least end of what the threads have archived. Redo of a standby
/// is read only as far as it is applied: its dictionary knows nothing newer.
pub fn safe_end(
    inventory: &Inventory,
    capture: CaptureMode,
    is_standby: bool,
    current: Scn,
) -> Scn {
    let settled = inventory.settled();
    match capture {
        CaptureMode::ArchiveOnly if !is_standby => settled,
        CaptureMode::Online | CaptureMode::ArchiveOnly => settled.min(current),
    }
}
