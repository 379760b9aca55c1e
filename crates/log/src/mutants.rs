//! Mutations (rule T3): each sync and each cut of the log has a name, by which a test run leaves it out to
//! see that a test notices.
//!
//! `testing/mutants_log.py` finds the calls, asks for a name at each, and runs them one by one.

/// A sync or a cut, under its name. With the feature `mutants` the one that `HW_MUTANT` names is not
/// made and reports success; without the feature this is the call and nothing else.
#[cfg(not(feature = "mutants"))]
macro_rules! site {
    ($name:literal, $call:expr) => {
        $call
    };
}

#[cfg(feature = "mutants")]
macro_rules! site {
    ($name:literal, $call:expr) => {
        if $crate::mutants::is_left_out($name) { Ok(()) } else { $call }
    };
}

#[cfg(feature = "mutants")]
pub(crate) fn is_left_out(name: &str) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    CHOSEN.get_or_init(|| std::env::var("HW_MUTANT").ok()).as_deref() == Some(name)
}
