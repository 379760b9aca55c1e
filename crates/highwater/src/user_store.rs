//! The one store of users (rule A1), as all listeners of the server have it, and its file, which is
//! looked at again while the server runs.

use std::path::Path;
use std::sync::Arc;

use highwater_access::{Access, AccessError, UsersFile};
use highwater_connector::{Finding, Severity};
use metrics::{describe_gauge, gauge};
use tokio::sync::watch;

use crate::failure::{Exit, Failure};

const RELOAD_FAILED: &str = "highwater_users_reload_failed";

/// Tells the recorder what the numbers mean.
pub(crate) fn describe_metrics() {
    describe_gauge!(
        RELOAD_FAILED,
        "1 while the users file has changed and cannot be read; the users before are in use"
    );
}

/// See the module's text. Clones are the same store.
#[derive(Clone)]
pub(crate) struct UserStore {
    access: Arc<Access>,
    /// Why the users are not those of the file as it is now.
    fault: watch::Sender<Option<(&'static str, String)>>,
}

impl UserStore {
    /// Reads the file; without one nobody logs in.
    pub(crate) fn open(file: Option<&Path>) -> Result<Self, Failure> {
        let access = match file {
            None => Access::open(),
            Some(path) => Access::of_users(UsersFile::new(path)).map_err(|error| failed(&error))?,
        };
        Ok(Self { access: Arc::new(access), fault: watch::Sender::new(None) })
    }

    pub(crate) fn access(&self) -> Arc<Access> {
        Arc::clone(&self.access)
    }

    /// Looks at the file.
    pub(crate) fn look(&self) {
        match self.access.refresh() {
            Ok(false) => {}
            Ok(true) => {
                self.fault.send_replace(None);
                tracing::info!("the users were read again");
            }
            Err(error) => {
                tracing::error!(%error, code = error.code(), "the users stay as they were");
                self.fault.send_replace(Some((error.code(), error.to_string())));
            }
        }
        gauge!(RELOAD_FAILED).set(f64::from(u8::from(self.fault.borrow().is_some())));
    }

    /// What is wrong with it.
    pub(crate) fn finding(&self) -> Option<Finding> {
        let (code, what) = self.fault.borrow().clone()?;
        let remedy = "highwater user list --users-file FILE tries the file";
        let reason = "the users are those of the file before; changes since do not count";
        Some(Finding::new(Severity::Error, code, what, reason, remedy).about("users"))
    }
}

fn failed(error: &AccessError) -> Failure {
    Failure::new(Exit::Failed, error.code(), error.to_string()).kept("nothing was started").remedy(
        "highwater user list --users-file FILE tries the file; highwater user add makes one",
    )
}
