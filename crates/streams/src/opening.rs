//! Deciding where a connection begins, before it is upgraded: the I/O around `resume`.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use highwater_kafka::{KafkaError, ListedOffset, OffsetSpec, ReadRecord, Watermarks};
use tokio::sync::{Semaphore, watch};

use crate::begin::{Begin, ConnectionRequest};
use crate::bounds::{self, Bounds};
use crate::change::Change;
use crate::config::Limits;
use crate::cursor::LastRead;
use crate::feed::View;
use crate::fingerprint::Fingerprint;
use crate::gap::Gap;
use crate::marks::Marks;
use crate::metadata::Beginning;
use crate::position::{Place, TokenFault};
use crate::qos::OnGone;
use crate::refusal::Refusal;
use crate::resume::{self, Decision, Epoch, Facts, Found};
use crate::trail::{Log, OFFSET_OUT_OF_RANGE, TopicPartition};

/// Questions that one decision takes, at most: two, asked again after a purge and after a wait.
const MOST_QUESTIONS: usize = 12;

/// Where a connection begins and what it knows there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Start {
    pub(crate) begin: Beginning,
    pub(crate) marks: Marks,
    /// The record before, if there is one.
    pub(crate) last: Option<LastRead>,
    pub(crate) gap: Option<Gap>,
}

impl Start {
    fn new(requested: &'static str, offset: i64) -> Self {
        Self {
            begin: Beginning { requested, offset },
            marks: Marks::default(),
            last: None,
            gap: None,
        }
    }
}

/// Opens one connection to a trail.
pub(crate) struct Opening<'a> {
    pub(crate) log: &'a Arc<dyn Log>,
    pub(crate) view: &'a View,
    pub(crate) limits: &'a Limits,
    scans: &'a Semaphore,
    edges: watch::Receiver<Watermarks>,
}

impl<'a> Opening<'a> {
    pub(crate) async fn new(
        log: &'a Arc<dyn Log>,
        view: &'a View,
        limits: &'a Limits,
        scans: &'a Semaphore,
    ) -> Result<Self, Refusal> {
        let edges = log.watch(&view.source).await.map_err(|error| unavailable(view, &error))?;
        Ok(Self { log, view, limits, scans, edges })
    }

    /// Decides where the connection begins.
    ///
    /// # Errors
    /// Everything that can be refused.
    pub(crate) async fn start(&mut self, request: &ConnectionRequest) -> Result<Start, Refusal> {
        match &request.begin {
            Begin::Earliest => Ok(Start::new("earliest", self.asked_edges().await?.log_start)),
            Begin::Now => self.now().await,
            Begin::Position(token) => self.resume(token, request.on_gone).await,
        }
    }

    /// The edges as the log tells them now.
    fn edges(&mut self) -> Watermarks {
        *self.edges.borrow_and_update()
    }

    /// Behind the newest record, knowing the marks there, so that a re-append of something older
    /// is recognised.
    async fn now(&mut self) -> Result<Start, Refusal> {
        // The semaphore is never closed.
        let _place = self.scans.acquire().await.ok();
        let edges = self.asked_edges().await?;
        let scanned = bounds::scan(self.log.as_ref(), self.view, edges, self.limits.look_back);
        let (marks, last) = scanned.await.map_err(|error| self.unavailable(&error))?;
        let last =
            last.map(|ReadRecord { offset, leader_epoch, .. }| LastRead { offset, leader_epoch });
        Ok(Start { marks, last, ..Start::new("now", edges.last_stable) })
    }

    async fn resume(&mut self, token: &str, on_gone: OnGone) -> Result<Start, Refusal> {
        match self.try_resume(token, on_gone).await {
            Err(refusal) if matches!(refusal.status, StatusCode::CONFLICT | StatusCode::GONE) => {
                Err(refusal.with_positions(self.bounds().await))
            }
            decided => decided,
        }
    }

    async fn try_resume(&mut self, token: &str, on_gone: OnGone) -> Result<Start, Refusal> {
        let View { stream, source, contract, sealer, .. } = self.view;
        let opened = sealer.open(token).map_err(|fault| token_refused(stream, source, fault));
        let (place, marks) = opened?;
        if place.contract != *contract {
            return Err(contract_changed(stream));
        }
        let decision = self.decide(&place).await?;
        let last = Some(LastRead { offset: place.offset, leader_epoch: place.leader_epoch });
        match (decision, on_gone) {
            (Decision::Resume(next), _) => Ok(Start { marks, last, ..Start::new("pos", next) }),
            (Decision::Gone, OnGone::Next) => Ok(Start { marks, ..self.behind_gap(&place).await? }),
            (Decision::Gone, OnGone::Earliest) => self.behind_gap(&place).await,
            (decision, _) => {
                // The watched edges know the log start only from the last fetch.
                let edges = self.asked_edges().await?;
                Err(position_refused(stream, &place, decision, edges))
            }
        }
    }

    /// What is retained; nothing when that cannot be read now.
    async fn bounds(&mut self) -> Option<Bounds> {
        let edges = self.asked_edges().await.ok()?;
        let _place = self.scans.acquire().await.ok()?;
        bounds::read(self.log.as_ref(), self.view, edges, self.limits.look_back).await.ok()
    }

    async fn behind_gap(&mut self, place: &Place) -> Result<Start, Refusal> {
        let until = self.asked_edges().await?.log_start;
        let gap = Some(Gap { after: place.offset, until });
        Ok(Start { gap, ..Start::new("pos", until) })
    }

    /// Asks the log until the decision stands.
    async fn decide(&mut self, place: &Place) -> Result<Decision, Refusal> {
        let mut facts = Facts { edges: self.asked_edges().await?, ..Facts::default() };
        for _ in 0..MOST_QUESTIONS {
            match resume::decide(place, &facts) {
                Decision::AskRecord => match self.found(place).await? {
                    Some(found) => facts.record = Some(found),
                    // Retention passed the position while it was being looked at.
                    None => facts = Facts { edges: self.asked_edges().await?, ..facts },
                },
                Decision::AskEpoch => facts.epoch = Some(self.epoch(place).await?),
                Decision::Hold => {
                    self.hold(place, self.limits.hold_ahead).await;
                    facts = Facts { edges: self.edges(), held: true, ..Facts::default() };
                }
                decision => return Ok(decision),
            }
        }
        Err(self.unavailable(&KafkaError::Malformed {
            what: format!("the edges of {}", self.view.source),
            detail: "they contradict what can be fetched".to_owned(),
        }))
    }

    /// What stands at the position's offset; `None` when the offset is not in the log any more.
    async fn found(&self, place: &Place) -> Result<Option<Found>, Refusal> {
        let fetched = match self.log.fetch(&self.view.source, place.offset, 1).await {
            Err(error) if error.code() == Some(OFFSET_OUT_OF_RANGE) => return Ok(None),
            other => other.map_err(|error| self.unavailable(&error))?,
        };
        let record = fetched.records.first().filter(|record| record.offset == place.offset);
        Ok(Some(match record {
            None => Found::Nothing,
            Some(record) => Found::Record(
                Change::decode(record)
                    .ok()
                    .map(|change| Fingerprint::of(record, &change.hw.record_id())),
            ),
        }))
    }

    /// The edges by question, not by watch, which may lag a moment behind.
    async fn asked_edges(&mut self) -> Result<Watermarks, Refusal> {
        let edges = self.edges();
        let earliest = self.listed(OffsetSpec::Earliest).await?;
        let latest = self.listed(OffsetSpec::Latest).await?;
        let log_start = earliest.map_or(edges.log_start, |found| found.offset);
        let last_stable = latest.map_or(edges.last_stable, |found| found.offset);
        let high_watermark = edges.high_watermark.max(last_stable);
        Ok(Watermarks { log_start, high_watermark, last_stable })
    }

    async fn listed(&self, spec: OffsetSpec) -> Result<Option<ListedOffset>, Refusal> {
        let listed = self.log.list_offset(&self.view.source, spec).await;
        listed.map_err(|error| self.unavailable(&error))
    }

    async fn epoch(&self, place: &Place) -> Result<Epoch, Refusal> {
        let end = self.log.epoch_end(&self.view.source, place.leader_epoch).await;
        let end = end.map_err(|error| self.unavailable(&error))?;
        let latest = self.listed(OffsetSpec::Latest).await?;
        Ok(Epoch { end, current: latest.and_then(|latest| latest.leader_epoch) })
    }

    /// Waits for the log to come past the position.
    async fn hold(&mut self, place: &Place, time: Duration) {
        let passed = self.edges.wait_for(|edges| edges.last_stable > place.offset);
        // Whether it came or not is read off the edges afterwards.
        let _ = tokio::time::timeout(time, passed).await;
    }

    fn unavailable(&self, error: &KafkaError) -> Refusal {
        unavailable(self.view, error)
    }
}

fn unavailable(view: &View, error: &KafkaError) -> Refusal {
    match error {
        KafkaError::UnknownPartition { .. } => Refusal::trail_missing(&view.source.topic),
        error => Refusal::log_unavailable(error),
    }
}

fn contract_changed(stream: &str) -> Refusal {
    Refusal::conflict(
        "contract_changed",
        format!("the position was given out before the encoding of stream {stream} was changed"),
        "bring the old encoding back by PATCH, or begin at earliest or now and reconcile",
    )
}

fn token_refused(stream: &str, source: &TopicPartition, fault: TokenFault) -> Refusal {
    const AGAIN: &str = "give back the pos exactly as it was received";
    match fault {
        TokenFault::Damaged => Refusal::conflict(
            "position_damaged",
            "the position is damaged: it is not one that was given out",
            AGAIN,
        ),
        TokenFault::Version(version) => Refusal::conflict(
            "position_version",
            format!("the position has version {version}, which this release cannot read"),
            "connect to a server of the release that gave it out, or begin at earliest or now",
        ),
        TokenFault::OtherStream => Refusal::conflict(
            "wrong_stream",
            format!("the position was given out by another stream than {stream}"),
            "use it with the stream that it came from",
        ),
        TokenFault::OtherTopic => Refusal::conflict(
            "wrong_topic",
            format!("the position was given out when {stream} read another topic than {source}"),
            "bring the old source back by PATCH, or begin at earliest or now and reconcile",
        ),
        TokenFault::TopicRemade => Refusal::conflict(
            "history_changed",
            format!(
                "the topic {} was deleted and made anew since the position was given out",
                source.topic
            ),
            "reconcile, then begin at earliest",
        ),
    }
}

fn position_refused(stream: &str, place: &Place, decision: Decision, edges: Watermarks) -> Refusal {
    let offset = place.offset;
    match decision {
        Decision::Gone => Refusal::new(
            StatusCode::GONE,
            "position_gone",
            format!(
                "records behind offset {offset} of stream {stream} are no longer kept: the oldest \
                 is {}",
                edges.log_start
            ),
            "reconcile, then begin at earliest; or add onGone=next to go on behind the gap",
        ),
        Decision::AheadOfLog => Refusal::conflict(
            "ahead_of_log",
            format!(
                "the position is at offset {offset} and the log of stream {stream} ends at {}",
                edges.last_stable
            ),
            "try again once the log has caught up; if it was restored, reconcile and begin anew",
        ),
        _ => Refusal::conflict(
            "history_changed",
            format!(
                "the log of stream {stream} no longer holds what the position was given for at \
                 offset {offset}: it was cut or restored and went on differently"
            ),
            "reconcile, then begin at earliest",
        ),
    }
}
