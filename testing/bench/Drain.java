import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Properties;

/**
 * Drains a slot with Debezium Engine: JSON, thrown away, or printed when a file is named.
 *
 * <p>Arguments: a file of properties, the number of records to wait for, and perhaps a file. Its last
 * line holds the number of records of the first batch, of all, and the nanoseconds between the two.
 */
public final class Drain {
    private final long wanted;
    private final PrintStream out;
    private long first;
    private long firstAt;
    private long count;
    private long bytes;

    private Drain(long wanted, PrintStream out) {
        this.wanted = wanted;
        this.out = out;
    }

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        try (var file = Files.newInputStream(Path.of(arguments[0]))) {
            properties.load(file);
        }
        PrintStream out = arguments.length > 2 ? new PrintStream(arguments[2], "UTF-8") : null;
        Drain drain = new Drain(Long.parseLong(arguments[1]), out);
        var engine = DebeziumEngine.create(Json.class)
            .using(properties)
            .using((success, message, error) -> drain.ended(message, error))
            .notifying(drain::take)
            .build();
        engine.run();
    }

    /** Takes a batch; ends the process, whose time to stop is nobody's concern, after the last. */
    private void take(
        List<ChangeEvent<String, String>> events,
        DebeziumEngine.RecordCommitter<ChangeEvent<String, String>> committer
    ) throws InterruptedException {
        for (var event : events) {
            bytes += event.value().length();
            if (out != null) {
                out.append(event.value()).append('\n');
            }
            committer.markProcessed(event);
        }
        committer.markBatchFinished();
        count += events.size();
        if (firstAt == 0) {
            first = count;
            firstAt = System.nanoTime();
        }
        if (count >= wanted) {
            long took = System.nanoTime() - firstAt;
            if (out != null) {
                out.close();
            }
            System.out.println(first + " " + count + " " + took);
            System.out.flush();
            Runtime.getRuntime().halt(0);
        }
    }

    private void ended(String message, Throwable error) {
        System.err.println(message);
        if (error != null) {
            error.printStackTrace();
        }
        Runtime.getRuntime().halt(1);
    }
}
