//! What may not be done is taken out of a request before its handler sees it, and answered for
//! beside it: one place for every API.
//!
//! [`Authorized`] says of a request what of it is refused. What is asked of whom is Kafka's
//! (KIP-11, KIP-430, KIP-679); the table stands in `docs/reference/access.md`.

use highwater_protocol::Request;

use crate::gate::Gate;

/// A request that is asked about before it is done.
pub(crate) trait Authorized: Request {
    /// What is left of it.
    fn authorize(self, gate: &Gate) -> Verdict<Self>;
}

/// What is left of a request.
pub(crate) enum Verdict<R: Request> {
    /// This much is to be done, and the rest answered for.
    Go(R, Refused<R::Response>),
    /// Nothing: this is the answer.
    No(R::Response),
}

/// What has to be done to an answer for what was refused.
pub(crate) struct Refused<A>(Option<Addition<A>>);

type Addition<A> = Box<dyn FnOnce(&mut A) + Send>;

impl<R: Request> Verdict<R>
where
    R::Response: 'static,
{
    /// All of it.
    pub(crate) fn all(request: R) -> Self {
        Self::Go(request, Refused(None))
    }

    /// All of it, if `allowed`.
    pub(crate) fn whole(
        request: R,
        allowed: bool,
        refusal: impl FnOnce(&R) -> R::Response,
    ) -> Self {
        if allowed { Self::all(request) } else { Self::No(refusal(&request)) }
    }

    /// What is left once something was taken out, whose answers stand beside the others.
    pub(crate) fn beside<T: Send + 'static>(
        request: R,
        answers: impl IntoIterator<Item = T>,
        all: fn(&mut R::Response) -> &mut Vec<T>,
    ) -> Self {
        let answers: Vec<T> = answers.into_iter().collect();
        if answers.is_empty() {
            return Self::all(request);
        }
        Self::rest(request, move |response| all(response).extend(answers))
    }

    /// What is left once something was taken out, which `answer` answers for.
    pub(crate) fn rest(request: R, answer: impl FnOnce(&mut R::Response) + Send + 'static) -> Self {
        Self::Go(request, Refused(Some(Box::new(answer))))
    }
}

impl<A> Refused<A> {
    /// Answers for what was refused.
    pub(crate) fn add_to(self, answer: &mut A) {
        if let Some(add) = self.0 {
            add(answer);
        }
    }
}

/// Takes out of `all` what may not be, and gives it.
pub(crate) fn take<T>(all: &mut Vec<T>, may: impl Fn(&T) -> bool) -> Vec<T> {
    all.extract_if(.., |one| !may(one)).collect()
}
