// The protocol of docs/exec.md: a request in a line, its answer in a line. A client of yours extends this class.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public abstract class Protocol {
    /** A request: one object of JSON, which is flat but for lists of keys. */
    public record Request(String line) {
        public String text(String name) { return find(name, "\"([^\"]*)\""); }
        public long number(String name) { return Long.parseLong(find(name, "(-?\\d+)")); }
        public boolean isTrue(String name) { return find(name, "(true)").equals("true"); }

        public List<String> keys(String name) {
            return Pattern.compile("\"([^\"]*)\"").matcher(find(name, "\\[([^\\]]*)\\]")).results().map(one -> one.group(1)).toList();
        }

        private String find(String name, String kind) {
            Matcher found = Pattern.compile("\"" + name + "\": " + kind).matcher(line);
            return found.find() ? found.group(1) : "";
        }
    }

    /** Do what is asked for, and give the result as JSON; UnsupportedOperationException says that this cannot be done. */
    protected abstract Object answer(String asked, Request request) throws Exception;

    /** Whether nothing of the transaction was applied, nor ever will be, after an error in COMMIT. */
    protected abstract boolean isRefused(Exception error);

    public static String quoted(String text) {
        return '"' + String.valueOf(text).replaceAll("[\"\\\\\\p{Cntrl}]", " ") + '"';
    }

    /** Answer until there are no more requests. */
    public void run() throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null; ) {
            Request request = new Request(line);
            String asked = request.text("do"), type = "ok", said;
            try {
                said = String.valueOf(answer(asked, request));
            } catch (UnsupportedOperationException unknown) {
                type = "error";
                said = quoted(unknown.getMessage());
            } catch (Exception error) { // before COMMIT nothing is applied
                type = !asked.equals("commit") || isRefused(error) ? "fail" : "info";
                said = quoted(error.getMessage());
            }
            System.out.println("{\"id\": " + request.number("id") + ", \"type\": \"" + type + "\", \"value\": " + said + ", \"error\": " + said + "}");
        }
    }
}
