import io.debezium.embedded.Connect;
import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import java.io.FileReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.source.SourceRecord;

/**
 * Debezium as the judge of keys and values: runs one engine for each properties file named, all at
 * once, and prints a JSON line for each record, with key and value as Kafka Connect's JsonConverter
 * writes them, with and without schema, and the partition that Kafka's producer chooses.
 *
 * Beside the connector's own, a file has "partitions" and "last" (the table whose first record is
 * the last one wanted).
 */
public class Keys {
    private static final JsonConverter[] KEYS = {converter(true, false), converter(true, true)};
    private static final JsonConverter[] VALUES = {converter(false, false), converter(false, true)};

    public static void main(String[] files) throws Exception {
        ExecutorService engines = Executors.newCachedThreadPool();
        CountDownLatch ended = new CountDownLatch(files.length);
        for (String file : files) {
            Properties properties = new Properties();
            try (FileReader reader = new FileReader(file, StandardCharsets.UTF_8)) {
                properties.load(reader);
            }
            engines.execute(engine(properties, ended));
        }
        boolean all = ended.await(Long.getLong("patience", 120), TimeUnit.SECONDS);
        System.out.flush();
        Runtime.getRuntime().halt(all ? 0 : 1);
    }

    private static DebeziumEngine<?> engine(Properties properties, CountDownLatch ended) {
        String last = properties.getProperty("topic.prefix") + "." + properties.getProperty("last");
        AtomicBoolean whole = new AtomicBoolean();
        int partitions = Integer.parseInt(properties.getProperty("partitions"));
        return DebeziumEngine.create(Connect.class)
                .using(properties)
                .using((success, message, error) -> {
                    if (!success) {
                        System.err.println(message);
                    }
                })
                .notifying((List<ChangeEvent<SourceRecord, SourceRecord>> batch,
                        DebeziumEngine.RecordCommitter<ChangeEvent<SourceRecord, SourceRecord>> committer) -> {
                    for (ChangeEvent<SourceRecord, SourceRecord> event : batch) {
                        if (!whole.get()) {
                            print(properties.getProperty("name"), partitions, event.value());
                            if (event.value().topic().equals(last)) {
                                whole.set(true);
                                ended.countDown();
                            }
                        }
                        committer.markProcessed(event);
                    }
                    committer.markBatchFinished();
                })
                .build();
    }

    private static synchronized void print(String name, int partitions, SourceRecord record) {
        StringBuilder line = new StringBuilder("{\"run\":\"" + name + "\"");
        line.append(",\"topic\":").append(quoted(record.topic()));
        byte[] plain = json(KEYS[0], record.topic(), record.keySchema(), record.key());
        byte[] schema = json(KEYS[1], record.topic(), record.keySchema(), record.key());
        line.append(",\"key\":").append(base64(plain)).append(",\"key_with_schema\":").append(base64(schema));
        line.append(",\"partition\":").append(partition(plain, partitions));
        line.append(",\"partition_with_schema\":").append(partition(schema, partitions));
        line.append(",\"value\":").append(base64(json(VALUES[0], record.topic(), record.valueSchema(), record.value())));
        line.append(",\"value_with_schema\":")
                .append(base64(json(VALUES[1], record.topic(), record.valueSchema(), record.value())));
        line.append(",\"offset\":").append(base64(json(VALUES[0], record.topic(), null, record.sourceOffset())));
        line.append(",\"headers\":[");
        String comma = "";
        for (Header header : record.headers()) {
            line.append(comma).append(quoted(header.key()));
            comma = ",";
        }
        System.out.println(line.append("]}"));
    }

    private static byte[] json(JsonConverter converter, String topic, Schema schema, Object value) {
        return value == null ? null : converter.fromConnectData(topic, schema, value);
    }

    private static String partition(byte[] key, int partitions) {
        return key == null ? "null" : String.valueOf(BuiltInPartitioner.partitionForKey(key, partitions));
    }

    private static String base64(byte[] bytes) {
        return bytes == null ? "null" : "\"" + Base64.getEncoder().encodeToString(bytes) + "\"";
    }

    /** Topic and header names hold nothing that JSON would have to escape. */
    private static String quoted(String name) {
        return "\"" + name + "\"";
    }

    private static JsonConverter converter(boolean key, boolean schemas) {
        JsonConverter converter = new JsonConverter();
        converter.configure(Map.of("schemas.enable", schemas), key);
        return converter;
    }
}
