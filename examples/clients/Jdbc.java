// Any database with a JDBC driver: isocheck run exec:"java -cp driver.jar Jdbc.java jdbc:h2:/tmp/test;AUTO_SERVER=TRUE"
import java.io.*;
import java.sql.*;
import java.util.*;
import java.util.regex.*;

public class Jdbc {
    static final List<String> LEVELS = List.of("", "read uncommitted", "read committed", "", "repeatable read", "", "", "", "serializable");
    static final String HELLO = """
        {"name": "%s", "steps": true, "lacks": ["range reads", "savepoints"], "levels": [["serializable", "ser"],
        ["repeatable read", "pl-2-99"], ["read committed", "pl-2"], ["read uncommitted", "pl-1"]]}""".replace("\n", "");
    static Connection connection;

    static String field(String line, String name, String kind) { // JSON of this protocol is flat
        Matcher found = Pattern.compile("\"" + name + "\": " + kind).matcher(line);
        return found.find() ? found.group(1) : "";
    }

    static int send(String sql, Object... values) throws SQLException { // how many rows were changed
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < values.length; i++) statement.setObject(i + 1, values[i]);
            return statement.executeUpdate();
        }
    }

    static String read(String key, boolean list) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement("SELECT v, l FROM isocheck_java WHERE k = ?")) {
            statement.setString(1, key);
            ResultSet row = statement.executeQuery();
            if (!row.next()) return "\"deleted\"";
            return list ? "[" + row.getString(2).strip().replace(" ", ", ") + "]" : row.getString(1);
        }
    }

    static Object answer(String asked, String key, long value, String line) throws SQLException {
        switch (asked) {
            case "hello": return HELLO.formatted(connection.getMetaData().getDatabaseProductName() + " through Java");
            case "setup": case "remove":
                try { send("DROP TABLE isocheck_java"); } catch (SQLException none) { connection.rollback(); }
                if (asked.equals("setup")) send("CREATE TABLE isocheck_java (k VARCHAR(64) PRIMARY KEY, v BIGINT, l VARCHAR(4000))");
                for (String kind : List.of("registers", "lists"))
                    for (Matcher one = Pattern.compile("\"([^\"]*)\"").matcher(field(line, kind, "\\[([^\\]]*)\\]")); one.find(); )
                        send("INSERT INTO isocheck_java (k, l) VALUES (?, '')", one.group(1));
                connection.commit();
                return true;
            case "begin":
                int level = LEVELS.indexOf(field(line, "level", "\"([^\"]*)\""));
                if (connection.getTransactionIsolation() != level) connection.setTransactionIsolation(level);
                return true; // the transaction begins with its first statement
            case "read": return read(key, line.contains("\"list\": true"));
            case "write": return send("UPDATE isocheck_java SET v = ? WHERE k = ?", value, key) > 0;
            case "append": return send("UPDATE isocheck_java SET l = l || ? WHERE k = ?", " " + value, key) > 0;
            case "insert": return send("INSERT INTO isocheck_java (k, v, l) VALUES (?, ?, '')", key, value) > 0;
            case "delete": return send("DELETE FROM isocheck_java WHERE k = ?", key) > 0;
            case "commit": connection.commit(); return true;
            case "rollback": connection.rollback(); return true;
            default: throw new UnsupportedOperationException(asked);
        }
    }

    public static void main(String[] args) throws Exception {
        connection = DriverManager.getConnection(args[0]);
        connection.setAutoCommit(false);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null; ) {
            String asked = field(line, "do", "\"(\\w+)\""), type = "ok", said = "true", value = field(line, "value", "(-?\\d+)");
            try {
                said = String.valueOf(answer(asked, field(line, "key", "\"([^\"]*)\""), value.isEmpty() ? 0 : Long.parseLong(value), line));
            } catch (SQLException error) { // before COMMIT nothing is applied; after it only where the server says so
                type = !asked.equals("commit") || String.valueOf(error.getSQLState()).matches("(40|23).*") ? "fail" : "info";
                said = '"' + error.getMessage().replaceAll("[\"\\\\\\p{Cntrl}]", " ") + '"';
                if (asked.equals("commit")) connection.rollback();
            } catch (UnsupportedOperationException unknown) { type = "error"; }
            System.out.println("{\"id\": " + field(line, "id", "(\\d+)") + ", \"type\": \"" + type + "\", \"value\": " + said + ", \"error\": " + said + "}");
        }
    }
}
