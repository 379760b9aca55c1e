//! The program of rdkafka in `make compat`; testing/compat/cells.py says what is asked.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "what it says is its result")]

use std::collections::BTreeSet;
use std::error::Error;
use std::future::Future;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::message::BorrowedMessage;
use rdkafka::producer::{FutureProducer, FutureRecord, Producer};
use rdkafka::util::get_rdkafka_version;
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};

const NAME: &str = "rdkafka";
const SOON: Duration = Duration::from_secs(20);
const MOMENT: Duration = Duration::from_millis(100);
const RECORDS: i64 = 500;
const PARTITIONS: i32 = 4;
const SHARE: i64 = 25;
const CODECS: [&str; 5] = ["none", "gzip", "snappy", "lz4", "zstd"];

type Outcome = Result<(), Box<dyn Error>>;

/// The client cannot do it; bears its own words.
#[derive(Debug)]
struct Unsupported(String);

impl std::fmt::Display for Unsupported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Unsupported {}

struct Client {
    broker: String,
    /// Milliseconds, young enough for retention; the record of number n bears `start` + n.
    start: i64,
}

fn topic(kind: &str) -> String {
    format!("{NAME}-{kind}")
}

fn value(number: i64) -> String {
    format!("a line worth compressing, number {number}")
}

fn check<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Outcome {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: expected {expected:?}, found {found:?}").into())
}

fn wait_for(what: &str, mut look: impl FnMut() -> Result<bool, Box<dyn Error>>) -> Outcome {
    let deadline = Instant::now() + SOON;
    while Instant::now() < deadline {
        if look()? {
            return Ok(());
        }
    }
    Err(format!("waited {SOON:?} in vain: {what}").into())
}

fn at(topic: &str, offset: Offset) -> Result<TopicPartitionList, Box<dyn Error>> {
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, 0, offset)?;
    Ok(list)
}

fn text(message: &BorrowedMessage<'_>) -> String {
    String::from_utf8_lossy(message.payload().unwrap_or_default()).into_owned()
}

/// The partitions that a member of a group has.
fn partitions(reader: &BaseConsumer) -> Result<BTreeSet<i32>, Box<dyn Error>> {
    Ok(reader.assignment()?.elements().iter().map(|element| element.partition()).collect())
}

impl Client {
    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.broker);
        config
    }

    fn consumer(&self, group: &str, isolation: &str) -> Result<BaseConsumer, Box<dyn Error>> {
        let mut config = self.config();
        config.set("group.id", topic(group)).set("enable.auto.commit", "false");
        config.set("auto.offset.reset", "earliest").set("check.crcs", "true");
        Ok(config.set("isolation.level", isolation).create()?)
    }

    async fn send(
        &self,
        producer: &FutureProducer,
        topic: &str,
        (partition, timestamp): (i32, i64),
        value: String,
    ) -> Result<i64, Box<dyn Error>> {
        let record = FutureRecord::to(topic).partition(partition).key("k").payload(&value);
        let sent = producer.send(record.timestamp(timestamp), SOON).await;
        Ok(sent.map_err(|(error, _)| error)?.offset)
    }

    async fn produce(&self, codec: &str) -> Outcome {
        let mut config = self.config();
        config
            .set("compression.type", codec)
            .set("enable.idempotence", "true")
            .set("linger.ms", "20");
        let producer: FutureProducer =
            config.create().map_err(|error| Unsupported(error.to_string()))?;
        let name = topic(codec);
        let sends =
            (0..RECORDS).map(|n| self.send(&producer, &name, (0, self.start + n), value(n)));
        let offsets = futures_util::future::try_join_all(sends).await?;
        check("offsets", &offsets, &(0..RECORDS).collect())
    }

    /// All values of partition 0, to the end that this isolation level has.
    fn read(&self, topic: &str, isolation: &str) -> Result<Vec<String>, Box<dyn Error>> {
        let reader = self.consumer("none", isolation)?;
        reader.assign(&at(topic, Offset::Beginning)?)?;
        let (_, end) = reader.fetch_watermarks(topic, 0, SOON)?;
        let mut found = Vec::new();
        wait_for("the end", || {
            if let Some(message) = reader.poll(MOMENT) {
                found.push(text(&message?));
            }
            let position = reader.position()?;
            Ok(position.elements().iter().any(|each| each.offset() == Offset::Offset(end)))
        })?;
        Ok(found)
    }

    async fn consume(&self) -> Outcome {
        for codec in &CODECS[..4] {
            let expected = (0..RECORDS).map(value).collect();
            check(codec, &self.read(&topic(codec), "read_uncommitted")?, &expected)?;
        }
        Ok(())
    }

    async fn group(&self) -> Outcome {
        let (name, producer) = (topic("shared"), self.config().create()?);
        for partition in 0..PARTITIONS {
            for n in 0..SHARE {
                self.send(&producer, &name, (partition, self.start), value(n)).await?;
            }
        }
        let reader = self.consumer("group", "read_committed")?;
        reader.subscribe(&[&name])?;
        let mut found = BTreeSet::new();
        wait_for("all records", || {
            if let Some(message) = reader.poll(MOMENT) {
                let message = message?;
                found.insert((message.partition(), message.offset()));
            }
            Ok(found.len() as i64 == i64::from(PARTITIONS) * SHARE)
        })?;
        reader.commit_consumer_state(CommitMode::Sync)?;
        let committed = reader.committed(SOON)?;
        let offsets = committed.elements().iter().map(|each| each.offset()).collect::<Vec<_>>();
        check("committed", &offsets, &vec![Offset::Offset(SHARE); 4])
    }

    async fn rejoin(&self) -> Outcome {
        let everything = BTreeSet::from_iter(0..PARTITIONS);
        let member = || -> Result<BaseConsumer, Box<dyn Error>> {
            let mut config = self.config();
            config.set("group.id", topic("rejoin")).set("enable.auto.commit", "false");
            let reader: BaseConsumer =
                config.set("partition.assignment.strategy", "cooperative-sticky").create()?;
            reader.subscribe(&[&topic("shared")])?;
            Ok(reader)
        };
        let first = member()?;
        wait_for("one has all", || {
            first.poll(MOMENT);
            Ok(partitions(&first)? == everything)
        })?;
        let second = member()?;
        wait_for("two share", || {
            first.poll(MOMENT);
            second.poll(MOMENT);
            let (one, other) = (partitions(&first)?, partitions(&second)?);
            Ok(one.len() == 2 && other.len() == 2 && &one | &other == everything)
        })?;
        drop(first);
        wait_for("one has all again", || {
            second.poll(MOMENT);
            Ok(partitions(&second)? == everything)
        })
    }

    fn watermarks(&self) -> Result<(i64, i64), Box<dyn Error>> {
        Ok(self.consumer("none", "read_committed")?.fetch_watermarks(&topic("none"), 0, SOON)?)
    }

    async fn earliest(&self) -> Outcome {
        check("earliest", &self.watermarks()?.0, &0)
    }

    async fn latest(&self) -> Outcome {
        check("latest", &self.watermarks()?.1, &RECORDS)
    }

    async fn time(&self) -> Outcome {
        let asked = at(&topic("none"), Offset::Offset(self.start + 400))?;
        let found = self.consumer("none", "read_committed")?.offsets_for_times(asked, SOON)?;
        check("by time", &found.elements()[0].offset(), &Offset::Offset(400))
    }

    async fn max_timestamp(&self) -> Outcome {
        Err(Unsupported("rdkafka has no call for librdkafka's ListOffsets".to_owned()).into())
    }

    async fn transaction(&self) -> Outcome {
        let source = self.consumer("transaction", "read_committed")?;
        let mut config = self.config();
        let producer: FutureProducer = config.set("transactional.id", topic("1")).create()?;
        producer.init_transactions(SOON)?;
        for n in 0..2 {
            producer.begin_transaction()?;
            self.send(&producer, &topic("transaction"), (0, self.start), value(n)).await?;
            let metadata = source.group_metadata().ok_or("no group metadata")?;
            let offsets = at(&topic("none"), Offset::Offset(100 + n))?;
            producer.send_offsets_to_transaction(&offsets, &metadata, SOON)?;
            if n == 0 {
                producer.commit_transaction(SOON)?;
            } else {
                producer.abort_transaction(SOON)?;
            }
        }
        let committed = source.committed_offsets(at(&topic("none"), Offset::Invalid)?, SOON)?;
        check("offset", &committed.elements()[0].offset(), &Offset::Offset(100))?;
        let read = |isolation| self.read(&topic("transaction"), isolation);
        check("read_committed", &read("read_committed")?, &vec![value(0)])?;
        check("read_uncommitted", &read("read_uncommitted")?, &vec![value(0), value(1)])
    }

    async fn admin(&self) -> Outcome {
        let admin: AdminClient<DefaultClientContext> = self.config().create()?;
        let (options, name) = (AdminOptions::new().operation_timeout(Some(SOON)), topic("made"));
        let made = NewTopic::new(&name, 3, TopicReplication::Fixed(1)).set("retention.ms", "60000");
        admin.create_topics([&made], &options).await?.remove(0).map_err(|(_, code)| code)?;
        let resource = [ResourceSpecifier::Topic(&name)];
        let described = admin.describe_configs(&resource, &options).await?.remove(0)?;
        let retention = described.get("retention.ms").and_then(|entry| entry.value.clone());
        check("retention.ms", &retention.as_deref(), &Some("60000"))?;
        let group = topic("group");
        let told = admin.inner().fetch_group_list(Some(&group), SOON)?;
        check("group", &told.groups().iter().any(|each| each.name() == group), &true)?;
        admin.delete_groups(&[&group], &options).await?.remove(0).map_err(|(_, code)| code)?;
        admin.delete_topics(&[&name], &options).await?.remove(0).map_err(|(_, code)| code)?;
        Ok(())
    }
}

/// Runs a cell and says what came of it.
async fn run(cell: &str, what: impl Future<Output = Outcome>) {
    let (result, reason) = match what.await {
        Ok(()) => ("passed", String::new()),
        Err(error) if error.is::<Unsupported>() => ("unsupported", error.to_string()),
        Err(error) => ("failed", error.to_string()),
    };
    println!(r#"{{"cell": "{cell}", "result": "{result}", "reason": {reason:?}}}"#);
}

#[tokio::main]
async fn main() -> Outcome {
    let broker = std::env::args().nth(1).ok_or("the first argument is the broker's address")?;
    let start = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
    let client = Client { broker, start: start - 3_600_000 };
    println!(r#"{{"version": "0.39 (librdkafka {})"}}"#, get_rdkafka_version().1);
    for codec in CODECS {
        run(codec, client.produce(codec)).await;
    }
    run("consume", client.consume()).await;
    run("group", client.group()).await;
    run("rejoin", client.rejoin()).await;
    run("earliest", client.earliest()).await;
    run("latest", client.latest()).await;
    run("time", client.time()).await;
    run("max_timestamp", client.max_timestamp()).await;
    run("transaction", client.transaction()).await;
    run("admin", client.admin()).await;
    Ok(())
}
