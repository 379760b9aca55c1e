import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;

import org.apache.kafka.common.utils.internals.Exit;

/**
 * Kafka's command-line tools one after the other in one JVM, since starting one costs more than what it
 * does. A line of the input is a class and its arguments, divided by tabs; the answer is a line: the exit
 * code, what was printed, and what was said as an error, the two in base64.
 *
 * <p>{@code kafka.sh tool testing/kafka/Tools.java}
 */
public class Tools {
    /** Takes the place of the end of the process. */
    static final class Ended extends Error {
        Ended(String message) {
            super(message);
        }
    }

    /** The code of the first end: some tools catch what takes its place, and end once more. */
    static Integer ended;

    static void end(int code, String message) {
        if (ended == null) {
            ended = code;
        }
        throw new Ended(message);
    }

    public static void main(String[] none) throws Exception {
        PrintStream answers = System.out;
        Exit.setExitProcedure(Tools::end);
        Exit.setHaltProcedure(Tools::end);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t", -1);
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            ByteArrayOutputStream said = new ByteArrayOutputStream();
            System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(said, true, StandardCharsets.UTF_8));
            int code = run(words[0], Arrays.copyOfRange(words, 1, words.length));
            System.out.flush();
            System.err.flush();
            answers.println(code + " " + base64(printed) + " " + base64(said));
            answers.flush();
        }
    }

    static int run(String tool, String[] arguments) throws ReflectiveOperationException {
        ended = null;
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException failed) {
            if (ended == null) {
                failed.getCause().printStackTrace();
                return 1;
            }
        }
        return ended == null ? 0 : ended;
    }

    static String base64(ByteArrayOutputStream bytes) {
        return "-" + Base64.getEncoder().encodeToString(bytes.toByteArray());
    }
}
