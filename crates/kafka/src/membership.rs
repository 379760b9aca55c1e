//! What a member of a group does on which answer (KIP-62, KIP-345, KIP-394): decisions alone.

use highwater_protocol::{ErrorCode, JoinGroupResponse};

/// What an answer asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// Nothing: it is as it should be.
    Go,
    /// The same question, after a pause.
    Again,
    /// To join anew. What is held stays the member's until then.
    Rejoin,
    /// To join anew. What was held may be somebody else's already.
    Lost,
    /// To stop: the same question gets the same answer.
    Stop,
}

/// Who a member is in its group, as the coordinator has said.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Identity {
    /// Empty until the coordinator has given one.
    pub member_id: String,
    /// -1 outside of a generation.
    pub generation: i32,
    /// The name of a static member (KIP-345).
    pub instance_id: Option<String>,
}

impl Identity {
    /// Somebody who has not joined yet.
    pub(crate) const fn new(instance_id: Option<String>) -> Self {
        Self { member_id: String::new(), generation: NONE, instance_id }
    }

    /// After an answer to JoinGroup.
    pub(crate) fn joined(&mut self, answer: &JoinGroupResponse) -> Next {
        match answer.error_code {
            ErrorCode::NONE => {
                self.member_id.clone_from(&answer.member_id);
                self.generation = answer.generation_id;
                Next::Go
            }
            // Whoever asks again under this id is no stranger that died meanwhile (KIP-394).
            ErrorCode::MEMBER_ID_REQUIRED => {
                self.member_id.clone_from(&answer.member_id);
                Next::Rejoin
            }
            ErrorCode::REBALANCE_IN_PROGRESS => Next::Again,
            code => self.after(code, Next::Rejoin),
        }
    }

    /// After an answer to SyncGroup: nothing is held yet that could be lost.
    pub(crate) fn synced(&mut self, code: ErrorCode) -> Next {
        match self.after(code, Next::Rejoin) {
            // The generation may be another by the time of the next question.
            Next::Again => Next::Rejoin,
            next => next,
        }
    }

    /// After an answer to Heartbeat or OffsetCommit.
    pub(crate) fn held(&mut self, code: ErrorCode) -> Next {
        self.after(code, Next::Lost)
    }

    fn after(&mut self, code: ErrorCode, unknown: Next) -> Next {
        match code {
            ErrorCode::NONE => Next::Go,
            ErrorCode::REBALANCE_IN_PROGRESS => Next::Rejoin,
            ErrorCode::ILLEGAL_GENERATION => {
                self.generation = NONE;
                unknown
            }
            ErrorCode::UNKNOWN_MEMBER_ID => {
                self.generation = NONE;
                self.member_id.clear();
                unknown
            }
            code if code.is_retriable() => Next::Again,
            // FENCED_INSTANCE_ID among them: another has taken the static member's place.
            _ => Next::Stop,
        }
    }
}

/// No generation.
const NONE: i32 = -1;

#[cfg(test)]
mod tests {
    use super::*;

    fn member() -> Identity {
        Identity { member_id: "m".to_owned(), generation: 7, instance_id: None }
    }

    fn answer(error_code: ErrorCode) -> JoinGroupResponse {
        JoinGroupResponse {
            error_code,
            member_id: "new".to_owned(),
            generation_id: 8,
            ..Default::default()
        }
    }

    #[test]
    fn a_newcomer_joins_twice_to_get_its_id() {
        let mut newcomer = Identity::new(None);
        assert_eq!(newcomer.joined(&answer(ErrorCode::MEMBER_ID_REQUIRED)), Next::Rejoin);
        assert_eq!((newcomer.member_id.as_str(), newcomer.generation), ("new", -1));
        assert_eq!(newcomer.joined(&answer(ErrorCode::NONE)), Next::Go);
        assert_eq!(newcomer.generation, 8);
    }

    #[test]
    fn each_answer_has_its_consequence() {
        use ErrorCode as E;
        for (code, joined, synced, held) in [
            (E::NONE, Next::Go, Next::Go, Next::Go),
            (E::REBALANCE_IN_PROGRESS, Next::Again, Next::Rejoin, Next::Rejoin),
            (E::ILLEGAL_GENERATION, Next::Rejoin, Next::Rejoin, Next::Lost),
            (E::UNKNOWN_MEMBER_ID, Next::Rejoin, Next::Rejoin, Next::Lost),
            (E::NOT_COORDINATOR, Next::Again, Next::Rejoin, Next::Again),
            (E::COORDINATOR_NOT_AVAILABLE, Next::Again, Next::Rejoin, Next::Again),
            (E::COORDINATOR_LOAD_IN_PROGRESS, Next::Again, Next::Rejoin, Next::Again),
            (E::FENCED_INSTANCE_ID, Next::Stop, Next::Stop, Next::Stop),
            (E::INCONSISTENT_GROUP_PROTOCOL, Next::Stop, Next::Stop, Next::Stop),
            (E::GROUP_AUTHORIZATION_FAILED, Next::Stop, Next::Stop, Next::Stop),
            (E::INVALID_SESSION_TIMEOUT, Next::Stop, Next::Stop, Next::Stop),
        ] {
            assert_eq!(member().joined(&answer(code)), joined, "joining: {code}");
            assert_eq!(member().synced(code), synced, "syncing: {code}");
            assert_eq!(member().held(code), held, "holding: {code}");
        }
    }

    #[test]
    fn one_whom_nobody_knows_forgets_its_id_and_one_too_late_keeps_it() {
        let mut unknown = member();
        unknown.held(ErrorCode::UNKNOWN_MEMBER_ID);
        assert_eq!(unknown, Identity::new(None));
        let mut late = member();
        late.held(ErrorCode::ILLEGAL_GENERATION);
        assert_eq!((late.member_id.as_str(), late.generation), ("m", -1));
    }
}
