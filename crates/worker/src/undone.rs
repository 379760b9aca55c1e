//! What is not done by a connector that does not do its work, in words.

use crate::plugins::Plugin;

/// See the module's text.
#[derive(Clone, Copy)]
pub(crate) struct Undone {
    /// While a task has failed.
    pub(crate) failed: &'static str,
    /// While a task is tried again.
    pub(crate) retried: &'static str,
    /// While it is paused or stopped.
    pub(crate) at_rest: &'static str,
    /// While a task stands still.
    pub(crate) still: &'static str,
}

impl Undone {
    pub(crate) const BY_SOURCE: Self = Self {
        failed: "nothing is captured until it is mended",
        retried: "nothing is captured meanwhile",
        at_rest: "its source keeps what was not read yet, and its disk may fill",
        still: "what was read waits, and its source keeps the rest",
    };

    pub(crate) const BY_SINK: Self = Self {
        failed: "nothing is delivered until it is mended",
        retried: "nothing is delivered meanwhile",
        at_rest: "nothing is delivered meanwhile, and never what retention takes before it is read",
        still: "what was read waits, and what retention takes meanwhile is never delivered",
    };

    /// Of what a connector is, as far as that is known here.
    pub(crate) const fn of(plugin: Option<&Plugin>) -> Self {
        match plugin {
            Some(Plugin::Sink(_)) => Self::BY_SINK,
            Some(Plugin::Source(_)) | None => Self::BY_SOURCE,
        }
    }
}
