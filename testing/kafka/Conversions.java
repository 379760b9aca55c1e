import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.apicurio.registry.serde.avro.NonRecordContainer;
import io.apicurio.registry.utils.converter.avro.AvroData;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/**
 * Kafka Connect's converters, transforms and predicates as the judges of ours. A line of the input is a
 * question in JSON (what to do, with which class and configuration, on what), a line of the output the
 * answer: {"ok": …}, or {"error": "configuration" or "data", "text": …}.
 *
 * <p>A value is written with its Java type, so that nothing is lost: ["i32", "7"], ["map", [[k, v], …]].
 *
 * <p>{@code kafka.sh tool testing/kafka/Conversions.java}
 */
public class Conversions {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] none) throws Exception {
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer.set("ok", answer(JSON.readTree(line)));
            } catch (ConfigException wrong) {
                answer.put("error", "configuration").put("text", String.valueOf(wrong));
            } catch (Exception | StackOverflowError wrong) {
                answer.put("error", "data").put("text", String.valueOf(wrong));
            }
            answers.println(answer);
            answers.flush();
        }
    }

    private static JsonNode answer(JsonNode question) throws Exception {
        switch (question.get("do").textValue()) {
            case "write avro":
                return writeAvro(schemaAndValue(question.get("on")));
            case "read avro":
                return readAvro(question.get("on"));
            default:
                return ask(question);
        }
    }

    /** The schema that a registry is given, and the bytes behind its id. */
    private static JsonNode writeAvro(SchemaAndValue written) throws Exception {
        AvroData data = new AvroData(10);
        org.apache.avro.Schema schema = data.fromConnectSchema(written.schema());
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        BinaryEncoder encoder = EncoderFactory.get().directBinaryEncoder(out, null);
        new GenericDatumWriter<>(schema).write(plain(data.fromConnectData(written.schema(), written.value())), encoder);
        encoder.flush();
        ObjectNode node = JSON.createObjectNode().put("schema", schema.toString());
        node.set("bytes", bytes(out.toByteArray()));
        return node;
    }

    /** A schema that is no record's comes with its value. */
    private static Object plain(Object value) {
        return value instanceof NonRecordContainer ? ((NonRecordContainer) value).getValue() : value;
    }

    private static JsonNode readAvro(JsonNode on) throws Exception {
        org.apache.avro.Schema schema = new org.apache.avro.Schema.Parser().parse(on.get("schema").textValue());
        BinaryDecoder decoder = DecoderFactory.get().binaryDecoder(bytes(on.get("bytes")), null);
        Object value = new GenericDatumReader<>(schema).read(null, decoder);
        return json(new AvroData(10).toConnectData(schema, value));
    }

    private static JsonNode ask(JsonNode question) throws Exception {
        Class<?> type = Class.forName(question.get("class").textValue());
        Object object = type.getDeclaredConstructor().newInstance();
        Map<String, Object> config = new HashMap<>();
        question.get("config").fields().forEachRemaining(e -> config.put(e.getKey(), e.getValue().textValue()));
        JsonNode on = question.get("on");
        switch (question.get("do").textValue()) {
            case "write": {
                Converter converter = (Converter) object;
                converter.configure(config, false);
                SchemaAndValue written = schemaAndValue(on);
                return bytes(converter.fromConnectData("topic", written.schema(), written.value()));
            }
            case "read": {
                Converter converter = (Converter) object;
                converter.configure(config, false);
                return json(converter.toConnectData("topic", bytes(on)));
            }
            case "write header": {
                HeaderConverter converter = (HeaderConverter) object;
                converter.configure(config);
                SchemaAndValue written = schemaAndValue(on);
                return bytes(converter.fromConnectHeader("topic", "header", written.schema(), written.value()));
            }
            case "read header": {
                HeaderConverter converter = (HeaderConverter) object;
                converter.configure(config);
                return json(converter.toConnectHeader("topic", "header", bytes(on)));
            }
            case "transform":
                return transform((Transformation<?>) object, config, on);
            case "predicate":
                return predicate((Predicate<?>) object, config, on);
            default:
                throw new IllegalArgumentException(question.toString());
        }
    }

    @SuppressWarnings("unchecked")
    private static <R extends ConnectRecord<R>> JsonNode transform(
            Transformation<?> transformation, Map<String, Object> config, JsonNode on) {
        Transformation<R> transform = (Transformation<R>) transformation;
        transform.configure(config);
        R record = (R) record(on);
        R answer = transform.apply(record);
        return answer == null ? JSON.nullNode() : json(answer);
    }

    @SuppressWarnings("unchecked")
    private static <R extends ConnectRecord<R>> JsonNode predicate(
            Predicate<?> one, Map<String, Object> config, JsonNode on) {
        Predicate<R> predicate = (Predicate<R>) one;
        predicate.configure(config);
        return JSON.getNodeFactory().booleanNode(predicate.test((R) record(on)));
    }

    private static ConnectRecord<?> record(JsonNode on) {
        ConnectHeaders headers = new ConnectHeaders();
        for (JsonNode header : on.get("headers")) {
            SchemaAndValue value = schemaAndValue(header.get(1));
            headers.add(header.get(0).textValue(), value.value(), value.schema());
        }
        SchemaAndValue key = schemaAndValue(on.get("key"));
        SchemaAndValue value = schemaAndValue(on.get("value"));
        String topic = on.get("topic").textValue();
        Integer partition = on.get("partition").isNull() ? null : on.get("partition").intValue();
        Long timestamp = on.get("timestamp").isNull() ? null : on.get("timestamp").longValue();
        if (on.get("offset").isNull()) {
            return new SourceRecord(Map.of(), Map.of(), topic, partition, key.schema(), key.value(),
                    value.schema(), value.value(), timestamp, headers);
        }
        return new SinkRecord(topic, partition, key.schema(), key.value(), value.schema(), value.value(),
                on.get("offset").longValue(), timestamp, null, headers);
    }

    private static JsonNode json(ConnectRecord<?> record) {
        ObjectNode node = JSON.createObjectNode();
        node.put("topic", record.topic()).put("partition", record.kafkaPartition());
        node.set("key", json(new SchemaAndValue(record.keySchema(), record.key())));
        node.set("value", json(new SchemaAndValue(record.valueSchema(), record.value())));
        node.put("timestamp", record.timestamp());
        node.put("offset", record instanceof SinkRecord ? ((SinkRecord) record).kafkaOffset() : null);
        ArrayNode headers = node.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(json(new SchemaAndValue(header.schema(), header.value())));
        }
        return node;
    }

    private static JsonNode bytes(byte[] bytes) {
        return bytes == null
                ? JSON.nullNode()
                : JSON.getNodeFactory().textNode(Base64.getEncoder().encodeToString(bytes));
    }

    private static byte[] bytes(JsonNode node) {
        return node.isNull() ? null : Base64.getDecoder().decode(node.textValue());
    }

    private static SchemaAndValue schemaAndValue(JsonNode node) {
        return new SchemaAndValue(schema(node.get("schema")), value(node.get("value")));
    }

    private static JsonNode json(SchemaAndValue both) {
        ObjectNode node = JSON.createObjectNode();
        node.set("schema", json(both == null ? null : both.schema()));
        node.set("value", json(both == null ? null : both.value()));
        return node;
    }

    private static Schema schema(JsonNode node) {
        if (node == null || node.isNull()) {
            return null;
        }
        SchemaBuilder builder;
        switch (node.get("type").textValue()) {
            case "array":
                builder = SchemaBuilder.array(schema(node.get("items")));
                break;
            case "map":
                builder = SchemaBuilder.map(schema(node.get("keys")), schema(node.get("values")));
                break;
            case "struct":
                builder = SchemaBuilder.struct();
                for (JsonNode field : node.get("fields")) {
                    builder.field(field.get(0).textValue(), schema(field.get(1)));
                }
                break;
            default:
                builder = SchemaBuilder.type(Schema.Type.valueOf(node.get("type").textValue().toUpperCase()));
        }
        if (node.get("optional").booleanValue()) {
            builder.optional();
        }
        if (node.hasNonNull("name")) {
            builder.name(node.get("name").textValue());
        }
        if (node.hasNonNull("version")) {
            builder.version(node.get("version").intValue());
        }
        if (node.hasNonNull("doc")) {
            builder.doc(node.get("doc").textValue());
        }
        if (node.hasNonNull("parameters")) {
            node.get("parameters").fields().forEachRemaining(
                    e -> builder.parameter(e.getKey(), e.getValue().textValue()));
        }
        if (node.hasNonNull("default")) {
            builder.defaultValue(value(node.get("default")));
        }
        return builder.build();
    }

    private static JsonNode json(Schema schema) {
        if (schema == null) {
            return JSON.nullNode();
        }
        ObjectNode node = JSON.createObjectNode().put("type", schema.type().name().toLowerCase());
        switch (schema.type()) {
            case ARRAY:
                node.set("items", json(schema.valueSchema()));
                break;
            case MAP:
                node.set("keys", json(schema.keySchema()));
                node.set("values", json(schema.valueSchema()));
                break;
            case STRUCT:
                ArrayNode fields = node.putArray("fields");
                for (Field field : schema.fields()) {
                    fields.addArray().add(field.name()).add(json(field.schema()));
                }
                break;
            default:
        }
        node.put("optional", schema.isOptional()).put("name", schema.name()).put("version", schema.version());
        node.put("doc", schema.doc());
        if (schema.parameters() != null) {
            ObjectNode parameters = node.putObject("parameters");
            schema.parameters().forEach(parameters::put);
        }
        node.set("default", json(schema.defaultValue()));
        return node;
    }

    private static Object value(JsonNode node) {
        if (node == null || node.isNull()) {
            return null;
        }
        JsonNode content = node.get(1);
        switch (node.get(0).textValue()) {
            case "bool":
                return content.booleanValue();
            case "i8":
                return Byte.valueOf(content.textValue());
            case "i16":
                return Short.valueOf(content.textValue());
            case "i32":
                return Integer.valueOf(content.textValue());
            case "i64":
                return Long.valueOf(content.textValue());
            case "f32":
                return Float.intBitsToFloat(Integer.parseInt(content.textValue()));
            case "f64":
                return Double.longBitsToDouble(Long.parseLong(content.textValue()));
            case "string":
                return content.textValue();
            case "bytes":
                return Base64.getDecoder().decode(content.textValue());
            case "decimal":
                return new BigDecimal(new BigInteger(content.textValue()), node.get(2).intValue());
            case "moment":
                return new java.util.Date(Long.parseLong(content.textValue()));
            case "array": {
                List<Object> list = new ArrayList<>();
                content.forEach(item -> list.add(value(item)));
                return list;
            }
            case "map": {
                Map<Object, Object> map = new LinkedHashMap<>();
                content.forEach(entry -> map.put(value(entry.get(0)), value(entry.get(1))));
                return map;
            }
            case "struct": {
                Struct struct = new Struct(schema(content));
                for (int i = 0; i < struct.schema().fields().size(); i++) {
                    struct.put(struct.schema().fields().get(i), value(node.get(2).get(i)));
                }
                return struct;
            }
            default:
                throw new IllegalArgumentException(node.toString());
        }
    }

    private static JsonNode json(Object value) {
        if (value == null) {
            return JSON.nullNode();
        }
        ArrayNode node = JSON.createArrayNode();
        if (value instanceof Boolean) {
            node.add("bool").add((Boolean) value);
        } else if (value instanceof Byte) {
            node.add("i8").add(value.toString());
        } else if (value instanceof Short) {
            node.add("i16").add(value.toString());
        } else if (value instanceof Integer) {
            node.add("i32").add(value.toString());
        } else if (value instanceof Long) {
            node.add("i64").add(value.toString());
        } else if (value instanceof Float) {
            node.add("f32").add(String.valueOf(Float.floatToIntBits((Float) value)));
        } else if (value instanceof Double) {
            node.add("f64").add(String.valueOf(Double.doubleToLongBits((Double) value)));
        } else if (value instanceof String) {
            node.add("string").add((String) value);
        } else if (value instanceof byte[]) {
            node.add("bytes").add(bytes((byte[]) value));
        } else if (value instanceof ByteBuffer) {
            node.add("bytes").add(bytes(((ByteBuffer) value).array()));
        } else if (value instanceof BigDecimal) {
            BigDecimal decimal = (BigDecimal) value;
            node.add("decimal").add(decimal.unscaledValue().toString()).add(decimal.scale());
        } else if (value instanceof BigInteger) {
            node.add("integer").add(value.toString());
        } else if (value instanceof java.util.Date) {
            node.add("moment").add(String.valueOf(((java.util.Date) value).getTime()));
        } else if (value instanceof List) {
            ArrayNode items = node.add("array").addArray();
            ((List<?>) value).forEach(item -> items.add(json(item)));
        } else if (value instanceof Map) {
            ArrayNode entries = node.add("map").addArray();
            ((Map<?, ?>) value).forEach((k, v) -> entries.addArray().add(json(k)).add(json(v)));
        } else if (value instanceof Struct) {
            Struct struct = (Struct) value;
            ArrayNode values = node.add("struct").add(json(struct.schema())).addArray();
            struct.schema().fields().forEach(field -> values.add(json(struct.getWithoutDefault(field.name()))));
        } else {
            throw new IllegalArgumentException("a value of " + value.getClass());
        }
        return node;
    }
}
