//! `highwater topic read`: prints records, one a line.

use futures_util::FutureExt;
use futures_util::future::select_all;
use highwater_kafka::{OffsetSpec, Watermarks};
use tokio::sync::watch;

use crate::cli::{Output, TopicRead};
use crate::failure::{Exit, Failure};
use crate::kafka::{Cluster, failure, offset_spec};
use crate::{output, record_text};

/// Bytes of one fetch.
const AT_ONCE: u32 = 1 << 20;

/// Where the reading of one partition stands.
struct Place {
    partition: i32,
    next: i64,
}

/// Prints until enough was printed.
struct Printer<'a> {
    cluster: &'a Cluster,
    output: Output,
    topic: &'a str,
    left: Option<u64>,
}

pub(crate) async fn run(
    cluster: &Cluster,
    output: Output,
    read: &TopicRead,
) -> Result<(), Failure> {
    let mut places = places(cluster, read).await?;
    let mut printer = Printer { cluster, output, topic: &read.topic, left: read.max };
    for place in &mut places {
        let end = edge(cluster, &read.topic, place.partition, OffsetSpec::Latest).await?;
        printer.print_to(place, end.unwrap_or(place.next)).await?;
    }
    if read.follow { printer.follow(places).await } else { Ok(()) }
}

/// Where to begin in each partition that was asked for.
async fn places(cluster: &Cluster, read: &TopicRead) -> Result<Vec<Place>, Failure> {
    let partitions = cluster.partitions(&read.topic).await?;
    let mut wanted: Vec<i32> = partitions.iter().map(|partition| partition.index).collect();
    if let Some(partition) = read.partition {
        wanted.retain(|index| *index == partition);
    }
    if wanted.is_empty() {
        let what = format!("topic {} has {} partitions", read.topic, partitions.len());
        return Err(Failure::new(Exit::NotFound, "PARTITION_NOT_FOUND", what)
            .kept("nothing was changed")
            .remedy(format!("highwater topic show {} lists them", read.topic)));
    }
    if read.offset.is_some() && wanted.len() > 1 {
        let what = format!("--offset {} needs --partition", read.offset.unwrap_or_default());
        return Err(Failure::usage(format!("{what}: the topic has {} of them", wanted.len()))
            .remedy("add --partition N"));
    }
    let spec = offset_spec("--begin", &read.begin)?;
    let mut places = Vec::with_capacity(wanted.len());
    for partition in wanted {
        let next = match read.offset {
            Some(offset) => offset,
            None => match edge(cluster, &read.topic, partition, spec).await? {
                Some(offset) => offset,
                // No record is that young: begin behind all of them.
                None => {
                    let latest = edge(cluster, &read.topic, partition, OffsetSpec::Latest).await?;
                    latest.unwrap_or(0)
                }
            },
        };
        places.push(Place { partition, next });
    }
    Ok(places)
}

async fn edge(
    cluster: &Cluster,
    topic: &str,
    partition: i32,
    spec: OffsetSpec,
) -> Result<Option<i64>, Failure> {
    let found = cluster.reader.list_offset(topic, partition, spec).await;
    Ok(found.map_err(|error| failure(&error))?.map(|found| found.offset))
}

impl Printer<'_> {
    fn has_enough(&self) -> bool {
        self.left == Some(0)
    }

    /// Prints what a partition holds below `end`.
    async fn print_to(&mut self, place: &mut Place, end: i64) -> Result<(), Failure> {
        // A begin above the end is asked for once, to be refused.
        let beyond = place.next > end;
        while !self.has_enough() && (place.next < end || beyond) {
            let Place { partition, next } = *place;
            let fetched = self.cluster.reader.fetch(self.topic, partition, next, AT_ONCE).await;
            let fetched = fetched.map_err(|error| failure(&error))?;
            if fetched.next_offset <= next {
                return Ok(());
            }
            place.next = fetched.next_offset;
            for record in &fetched.records {
                if self.has_enough() {
                    return Ok(());
                }
                match self.output {
                    Output::Json => output::line(
                        &record_text::object(self.topic, partition, record).to_string(),
                    )?,
                    Output::Text => {
                        output::elided(record_text::line(self.topic, partition, record))?
                    }
                }
                self.left = self.left.map(|left| left - 1);
            }
        }
        Ok(())
    }

    /// Goes on with what comes.
    async fn follow(mut self, mut places: Vec<Place>) -> Result<(), Failure> {
        let mut edges: Vec<watch::Receiver<Watermarks>> = Vec::with_capacity(places.len());
        for place in &places {
            let watched = self.cluster.reader.watch(self.topic, place.partition).await;
            edges.push(watched.map_err(|error| failure(&error))?);
        }
        while !self.has_enough() {
            for (place, edges) in places.iter_mut().zip(&mut edges) {
                let end = edges.borrow_and_update().last_stable;
                if place.next < end {
                    self.print_to(place, end).await?;
                }
            }
            let changes = edges.iter_mut().map(|edges| edges.changed().boxed());
            let (changed, ..) = select_all(changes).await;
            if changed.is_err() {
                let what = format!("topic {} was deleted while it was followed", self.topic);
                return Err(Failure::new(Exit::NotFound, "TOPIC_NOT_FOUND", what));
            }
        }
        Ok(())
    }
}
