//! Calls into connectors whose panic is an error of that connector and of nobody else.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt as _;
use highwater_connector::{BY_ITSELF, ConnectorError, ErrorKind};

/// What a call says, or how it panicked, in words. Whatever the call was given by reference must not
/// be used on: a panic may leave it half changed.
pub(crate) fn caught<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| in_words(panic.as_ref()))
}

/// The same of an asynchronous call: `TASK_PANICKED` where it panics.
pub(crate) fn isolated<'a, T: 'a>(
    call: impl Future<Output = Result<T, ConnectorError>> + Send + 'a,
) -> impl Future<Output = Result<T, ConnectorError>> + Send + 'a {
    // Boxed: a connector's call is too deep for a caller's type.
    let ended = AssertUnwindSafe(call.boxed()).catch_unwind();
    ended.map(|ended| ended.unwrap_or_else(|panic| Err(panicked(&in_words(panic.as_ref())))))
}

/// Code that panicked, `how` in words.
pub(crate) fn panicked(how: &str) -> ConnectorError {
    ConnectorError {
        remedy: format!("{BY_ITSELF}; report this with the server's log"),
        ..ConnectorError::again(
            "TASK_PANICKED",
            ErrorKind::Source,
            format!("the connector's code {how}"),
        )
    }
}

fn in_words(panic: &(dyn Any + Send)) -> String {
    let said = panic.downcast_ref::<&str>().copied();
    let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("ended in a panic: {}", said.unwrap_or("without words"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_error_with_its_words() {
        assert_eq!(caught(|| 7), Ok(7));
        let said = caught(|| -> u8 { panic!("no {}", "luck") }).unwrap_err();
        assert_eq!(said, "ended in a panic: no luck");
        let call = async { Err::<(), _>(panicked("is odd")) };
        assert_eq!(isolated(call).await.unwrap_err().what, "the connector's code is odd");
        let call = async { panic!("no luck") };
        let error = isolated::<()>(call).await.unwrap_err();
        assert_eq!(
            (error.code, error.retry),
            ("TASK_PANICKED", highwater_connector::Retry::Backoff)
        );
        assert!(error.what.ends_with("ended in a panic: no luck"), "{}", error.what);
    }
}
