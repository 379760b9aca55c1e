import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** The Java client. See cells.py for what is asked. */
public class JavaClient {
    static final String NAME = "java";
    static final long SOON = 20;
    static final int RECORDS = 500;
    static final int PARTITIONS = 4;
    static final int SHARE = 25;
    /** Milliseconds; young enough for retention. */
    static final long START = System.currentTimeMillis() - 3_600_000;
    static final List<String> CODECS = List.of("none", "gzip", "snappy", "lz4", "zstd");
    static final Set<Integer> EVERYTHING = Set.of(0, 1, 2, 3);

    final String broker;
    final Admin admin;

    JavaClient(String broker) {
        this.broker = broker;
        this.admin = Admin.create(Map.of("bootstrap.servers", broker));
    }

    interface Cell {
        void run() throws Exception;
    }

    static String topic(String kind) {
        return NAME + "-" + kind;
    }

    static String value(int number) {
        return "a line worth compressing, number " + number;
    }

    static List<String> values(int count) {
        return IntStream.range(0, count).mapToObj(JavaClient::value).collect(Collectors.toList());
    }

    static <T> T get(Future<T> future) throws Exception {
        return future.get(SOON, TimeUnit.SECONDS);
    }

    static void check(String what, Object found, Object expected) {
        if (!expected.equals(found)) {
            throw new AssertionError(what + ": expected " + expected + ", found " + found);
        }
    }

    static void waitFor(String what, Callable<Boolean> look) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(SOON);
        while (!look.call()) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError("waited " + SOON + " s in vain: " + what);
            }
        }
    }

    Properties config(String... pairs) {
        Properties config = new Properties();
        config.put("bootstrap.servers", broker);
        for (int at = 0; at < pairs.length; at += 2) {
            config.put(pairs[at], pairs[at + 1]);
        }
        return config;
    }

    KafkaProducer<String, String> producer(String... pairs) {
        return new KafkaProducer<>(config(pairs), new StringSerializer(), new StringSerializer());
    }

    KafkaConsumer<String, String> consumer(String group, String... pairs) {
        Properties config = config(pairs);
        config.put("group.id", topic(group));
        config.put("enable.auto.commit", "false");
        config.put("auto.offset.reset", "earliest");
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    List<Long> send(List<ProducerRecord<String, String>> records, String... pairs) throws Exception {
        try (KafkaProducer<String, String> producer = producer(pairs)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            records.forEach(record -> sent.add(producer.send(record)));
            List<Long> offsets = new ArrayList<>();
            for (Future<RecordMetadata> future : sent) {
                offsets.add(get(future).offset());
            }
            return offsets;
        }
    }

    void produce(String codec) throws Exception {
        List<ProducerRecord<String, String>> records = new ArrayList<>();
        for (int n = 0; n < RECORDS; n++) {
            records.add(new ProducerRecord<>(topic(codec), 0, START + n, "k", value(n)));
        }
        List<Long> expected = IntStream.range(0, RECORDS).mapToObj(Long::valueOf).collect(Collectors.toList());
        check("offsets", send(records, "compression.type", codec, "linger.ms", "20"), expected);
    }

    void consume() throws Exception {
        for (String codec : CODECS) {
            check(codec, read(topic(codec), "read_uncommitted"), values(RECORDS));
        }
    }

    /** All values of partition 0, to the end that this isolation level has. */
    List<String> read(String topic, String isolation) throws Exception {
        TopicPartition partition = new TopicPartition(topic, 0);
        List<String> found = new ArrayList<>();
        try (KafkaConsumer<String, String> reader = consumer("none", "isolation.level", isolation)) {
            reader.assign(List.of(partition));
            reader.seekToBeginning(List.of(partition));
            long end = reader.endOffsets(List.of(partition)).get(partition);
            waitFor("the end of " + topic, () -> {
                reader.poll(Duration.ofMillis(100)).forEach(record -> found.add(record.value()));
                return reader.position(partition) >= end;
            });
        }
        return found;
    }

    void group() throws Exception {
        List<ProducerRecord<String, String>> records = new ArrayList<>();
        for (int partition = 0; partition < PARTITIONS; partition++) {
            for (int n = 0; n < SHARE; n++) {
                records.add(new ProducerRecord<>(topic("shared"), partition, null, value(n)));
            }
        }
        send(records);
        Set<String> found = new HashSet<>();
        try (KafkaConsumer<String, String> reader = consumer("group")) {
            reader.subscribe(List.of(topic("shared")));
            waitFor("all records", () -> {
                reader.poll(Duration.ofMillis(100)).forEach(record -> found.add(record.partition() + " " + record.offset()));
                return found.size() >= records.size();
            });
            reader.commitSync();
        }
        Map<TopicPartition, OffsetAndMetadata> committed =
            get(admin.listConsumerGroupOffsets(topic("group")).partitionsToOffsetAndMetadata());
        check("committed partitions", committed.size(), PARTITIONS);
        committed.values().forEach(each -> check("committed", each.offset(), (long) SHARE));
    }

    static Set<Integer> partitions(KafkaConsumer<String, String> reader) {
        return reader.assignment().stream().map(TopicPartition::partition).collect(Collectors.toSet());
    }

    /** Cooperative, and one member static. */
    void rejoin() throws Exception {
        String[] cooperative = {
            "partition.assignment.strategy", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"};
        KafkaConsumer<String, String> first = consumer("rejoin", cooperative);
        KafkaConsumer<String, String> second = consumer("rejoin", cooperative);
        Duration moment = Duration.ofMillis(50);
        first.subscribe(List.of(topic("shared")));
        waitFor("one has all", () -> {
            first.poll(moment);
            return partitions(first).equals(EVERYTHING);
        });
        second.subscribe(List.of(topic("shared")));
        waitFor("two share", () -> {
            first.poll(moment);
            second.poll(moment);
            Set<Integer> both = new HashSet<>(partitions(first));
            both.addAll(partitions(second));
            return partitions(first).size() == 2 && partitions(second).size() == 2 && both.equals(EVERYTHING);
        });
        first.close();
        waitFor("one has all again", () -> {
            second.poll(moment);
            return partitions(second).equals(EVERYTHING);
        });
        second.close();
    }

    ListOffsetsResultInfo listed(String kind, OffsetSpec spec) throws Exception {
        TopicPartition partition = new TopicPartition(topic(kind), 0);
        return get(admin.listOffsets(Map.of(partition, spec)).partitionResult(partition));
    }

    void earliest() throws Exception {
        check("earliest", listed("none", OffsetSpec.earliest()).offset(), 0L);
    }

    void latest() throws Exception {
        check("latest", listed("none", OffsetSpec.latest()).offset(), (long) RECORDS);
    }

    void time() throws Exception {
        ListOffsetsResultInfo found = listed("none", OffsetSpec.forTimestamp(START + 400));
        check("by time", List.of(found.offset(), found.timestamp()), List.of(400L, START + 400));
    }

    void maxTimestamp() throws Exception {
        List<ProducerRecord<String, String>> records = new ArrayList<>();
        for (long timestamp : new long[] {100, 999, 200}) {
            records.add(new ProducerRecord<>(topic("times"), 0, START + timestamp, "k", "t"));
        }
        send(records, "linger.ms", "20");
        ListOffsetsResultInfo found = listed("times", OffsetSpec.maxTimestamp());
        check("max timestamp", List.of(found.offset(), found.timestamp()), List.of(1L, START + 999));
    }

    void transaction() throws Exception {
        TopicPartition source = new TopicPartition(topic("none"), 0);
        try (KafkaProducer<String, String> producer = producer("transactional.id", topic("1"))) {
            producer.initTransactions();
            for (int n = 0; n < 2; n++) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(topic("transaction"), 0, "k", value(n))).get();
                Map<TopicPartition, OffsetAndMetadata> offsets = Map.of(source, new OffsetAndMetadata(100 + n));
                producer.sendOffsetsToTransaction(offsets, consumer("transaction").groupMetadata());
                if (n == 0) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            }
            // A second one with the same id fences the first.
            try (KafkaProducer<String, String> other = producer("transactional.id", topic("1"))) {
                other.initTransactions();
                check("fenced", isFenced(producer), true);
            }
        }
        Map<TopicPartition, OffsetAndMetadata> committed =
            get(admin.listConsumerGroupOffsets(topic("transaction")).partitionsToOffsetAndMetadata());
        check("offset of the transaction", committed.get(source).offset(), 100L);
        check("read_committed", read(topic("transaction"), "read_committed"), List.of(value(0)));
        check("read_uncommitted", read(topic("transaction"), "read_uncommitted"), List.of(value(0), value(1)));
    }

    boolean isFenced(KafkaProducer<String, String> producer) {
        try {
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic("transaction"), 0, "k", "of one that is fenced"));
            producer.commitTransaction();
            return false;
        } catch (org.apache.kafka.common.errors.ProducerFencedException
            | org.apache.kafka.common.errors.InvalidProducerEpochException fenced) {
            return true;
        }
    }

    void adminCell() throws Exception {
        String name = topic("made");
        get(admin.createTopics(List.of(new NewTopic(name, 3, (short) 1).configs(Map.of("retention.ms", "60000")))).all());
        check("partitions", get(admin.describeTopics(List.of(name)).allTopicNames()).get(name).partitions().size(), 3);
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, name);
        check("retention.ms", retention(resource), "60000");
        AlterConfigOp change = new AlterConfigOp(new ConfigEntry("retention.ms", "120000"), AlterConfigOp.OpType.SET);
        get(admin.incrementalAlterConfigs(Map.of(resource, (Collection<AlterConfigOp>) List.of(change))).all());
        check("retention.ms, changed", retention(resource), "120000");
        check("group", get(admin.listGroups().all()).stream().anyMatch(group -> group.groupId().equals(topic("group"))), true);
        get(admin.deleteConsumerGroups(List.of(topic("group"))).all());
        get(admin.deleteTopics(List.of(name)).all());
        check("deleted", get(admin.listTopics().names()).contains(name), false);
    }

    String retention(ConfigResource resource) throws Exception {
        return get(admin.describeConfigs(List.of(resource)).all()).get(resource).get("retention.ms").value();
    }

    static String version() throws java.io.IOException {
        Properties told = new Properties();
        told.load(Admin.class.getResourceAsStream("/kafka/kafka-version.properties"));
        return told.getProperty("version");
    }

    static String quoted(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char each : text.toCharArray()) {
            quoted.append(each < ' ' || each == '"' || each == '\\' ? String.format("\\u%04x", (int) each) : each);
        }
        return quoted.append('"').toString();
    }

    static void run(String cell, Cell what) {
        String result = "\"passed\"";
        try {
            what.run();
        } catch (Exception | AssertionError error) {
            error.printStackTrace();
            result = "\"failed\", \"reason\": " + quoted(String.valueOf(error));
        }
        System.out.println("{\"cell\": " + quoted(cell) + ", \"result\": " + result + "}");
    }

    public static void main(String[] arguments) throws Exception {
        JavaClient client = new JavaClient(arguments[0]);
        System.out.println("{\"version\": " + quoted(version()) + "}");
        CODECS.forEach(codec -> run(codec, () -> client.produce(codec)));
        Map<String, Cell> cells = new LinkedHashMap<>();
        cells.put("consume", client::consume);
        cells.put("group", client::group);
        cells.put("rejoin", client::rejoin);
        cells.put("earliest", client::earliest);
        cells.put("latest", client::latest);
        cells.put("time", client::time);
        cells.put("max_timestamp", client::maxTimestamp);
        cells.put("transaction", client::transaction);
        cells.put("admin", client::adminCell);
        cells.forEach(JavaClient::run);
        client.admin.close(Duration.ofSeconds(1));
        System.exit(0);
    }
}
