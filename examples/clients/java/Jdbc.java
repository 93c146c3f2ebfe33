// Any database with a JDBC driver:
// javac -d . Protocol.java Jdbc.java && isocheck run exec:"java -cp driver.jar:. Jdbc 'jdbc:h2:/tmp/test;AUTO_SERVER=TRUE'"
import java.sql.*;
import java.util.List;

public class Jdbc extends Protocol {
    static final List<String> LEVELS = List.of("", "read uncommitted", "read committed", "", "repeatable read", "", "", "", "serializable");
    static final String HELLO = """
        {"name": "%s through Java", "steps": true, "mixes": "", "lacks": ["range reads", "savepoints"], "levels": [["serializable", "ser"],
        ["repeatable read", "pl-2-99"], ["read committed", "pl-2"], ["read uncommitted", "pl-1"]]}""".replace("\n", "");
    final Connection connection;
    Jdbc(String url) throws SQLException { connection = DriverManager.getConnection(url); connection.setAutoCommit(false); }

    boolean send(String sql, Object... values) throws SQLException { // whether a row was changed
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < values.length; i++) statement.setObject(i + 1, values[i]);
            return statement.executeUpdate() > 0;
        }
    }

    Object read(String key, boolean list) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement("SELECT v, l FROM isocheck_java WHERE k = ?")) {
            statement.setString(1, key);
            ResultSet row = statement.executeQuery();
            if (!row.next()) return quoted("deleted");
            return list ? "[" + row.getString(2).strip().replace(" ", ", ") + "]" : row.getString(1);
        }
    }

    protected Object answer(String asked, Request r) throws SQLException {
        switch (asked) {
            case "hello": return HELLO.formatted(connection.getMetaData().getDatabaseProductName());
            case "setup", "remove":
                try { send("DROP TABLE isocheck_java"); } catch (SQLException none) { connection.rollback(); }
                if (asked.equals("setup")) send("CREATE TABLE isocheck_java (k VARCHAR(64) PRIMARY KEY, v BIGINT, l VARCHAR(4000))");
                for (String kind : List.of("registers", "lists"))
                    for (String key : r.keys(kind)) send("INSERT INTO isocheck_java (k, l) VALUES (?, '')", key);
                connection.commit(); return true;
            case "begin": // the transaction begins with its first statement
                int level = LEVELS.indexOf(r.text("level"));
                if (connection.getTransactionIsolation() != level) connection.setTransactionIsolation(level);
                return true;
            case "read": return read(r.text("key"), r.isTrue("list"));
            case "write": return send("UPDATE isocheck_java SET v = ? WHERE k = ?", r.number("value"), r.text("key"));
            case "append": return send("UPDATE isocheck_java SET l = l || ? WHERE k = ?", " " + r.number("value"), r.text("key"));
            case "insert": return send("INSERT INTO isocheck_java (k, v, l) VALUES (?, ?, '')", r.text("key"), r.number("value"));
            case "delete": return send("DELETE FROM isocheck_java WHERE k = ?", r.text("key"));
            case "commit": connection.commit(); return true;
            case "rollback": connection.rollback(); return true;
            default: throw new UnsupportedOperationException(asked);
        }
    }

    protected boolean isRefused(Exception error) { // SQLSTATE: rollback by the server, or a violated constraint
        try { connection.rollback(); } catch (SQLException lost) { return false; }
        return error instanceof SQLException sql && String.valueOf(sql.getSQLState()).matches("(40|23).*");
    }

    public static void main(String[] args) throws Exception { new Jdbc(args[0]).run(); }
}
