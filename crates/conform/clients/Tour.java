// A tour of JDBC over SQLite; what it prints is compared between two libraries.
import java.sql.*;
import java.util.*;

public class Tour {
    interface Work { void run() throws Exception; }

    static void attempt(String what, Work w) {
        try {
            w.run();
            System.out.println(what + ": done");
        } catch (SQLException e) {
            System.out.println(what + ": " + e.getErrorCode() + " " + e.getMessage());
        } catch (Exception e) {
            System.out.println(what + ": " + e);
        }
    }

    static void rows(ResultSet r) throws SQLException {
        ResultSetMetaData m = r.getMetaData();
        int n = m.getColumnCount();
        StringBuilder head = new StringBuilder();
        for (int i = 1; i <= n; i++) head.append(m.getColumnLabel(i)).append('/').append(m.getColumnTypeName(i)).append(' ');
        System.out.println(head);
        for (int k = 0; r.next() && k < 200; k++) {
            StringBuilder line = new StringBuilder();
            for (int i = 1; i <= n; i++) {
                Object o = r.getObject(i);
                line.append(o instanceof byte[] b ? Arrays.toString(b) : o).append(' ');
            }
            System.out.println(line);
        }
        r.close();
    }

    public static void main(String[] a) throws Exception {
        new java.io.File("jdbc.db").delete();
        Connection c = DriverManager.getConnection("jdbc:sqlite:jdbc.db");
        Statement s = c.createStatement();
        s.executeUpdate("create table p(id integer primary key, n text unique not null)");
        s.executeUpdate("create table t(id integer primary key autoincrement, p int references p(id), b varchar(20) collate nocase, c real default 1.5, d blob, check(c < 100))");
        s.executeUpdate("create index tb on t(b, c desc)");
        s.executeUpdate("create view v as select b, c from t");
        s.executeUpdate("insert into p values(1, 'x'), (2, 'y')");
        PreparedStatement in = c.prepareStatement("insert into t(p, b, c, d) values(?, ?, ?, ?)", Statement.RETURN_GENERATED_KEYS);
        for (int i = 0; i < 20; i++) {
            in.setInt(1, 1 + i % 2);
            in.setString(2, i % 5 == 0 ? null : "n\u00e4me \ud83d\ude00" + i);
            in.setDouble(3, i * 1.25);
            in.setBytes(4, new byte[] {(byte) i, 0, (byte) 255});
            in.addBatch();
        }
        System.out.println(Arrays.toString(in.executeBatch()));
        rows(in.getGeneratedKeys());
        rows(s.executeQuery("select * from t where id < 8"));
        rows(s.executeQuery("select p.n, count(*), avg(c), group_concat(b) from t join p on p.id = t.p group by 1 order by 1"));
        DatabaseMetaData m = c.getMetaData();
        rows(m.getTables(null, null, "%", null));
        rows(m.getColumns(null, null, "t", null));
        rows(m.getPrimaryKeys(null, null, "t"));
        rows(m.getImportedKeys(null, null, "t"));
        rows(m.getExportedKeys(null, null, "p"));
        rows(m.getIndexInfo(null, null, "t", false, false));
        attempt("syntax", () -> s.execute("selec 1"));
        attempt("unique", () -> s.executeUpdate("insert into p values(3, 'x')"));
        attempt("not null", () -> s.executeUpdate("insert into p values(3, null)"));
        attempt("check", () -> s.executeUpdate("insert into t(c) values(1000)"));
        s.execute("pragma foreign_keys = on");
        attempt("foreign key", () -> s.executeUpdate("insert into t(p) values(77)"));
        c.setAutoCommit(false);
        s.executeUpdate("update t set c = c + 1");
        Savepoint sp = c.setSavepoint("sp");
        System.out.println(s.executeUpdate("delete from t where id > 10"));
        c.rollback(sp);
        rows(s.executeQuery("select count(*), sum(c) from t"));
        c.rollback();
        c.setAutoCommit(true);
        rows(s.executeQuery("select count(*), sum(c) from t"));
        org.sqlite.Function.create(c, "twice", new org.sqlite.Function() {
            protected void xFunc() throws SQLException { result(value_int(0) * 2); }
        });
        org.sqlite.Function.create(c, "total2", new org.sqlite.Function.Aggregate() {
            private double sum;
            protected void xStep() throws SQLException { sum += value_double(0); }
            protected void xFinal() throws SQLException { result(sum); }
        });
        rows(s.executeQuery("select twice(21), total2(c), typeof(twice(1)) from t"));
        org.sqlite.Collation.create(c, "backwards", new org.sqlite.Collation() {
            protected int xCompare(String x, String y) { return y.compareTo(x); }
        });
        rows(s.executeQuery("select n from p order by n collate backwards"));
        attempt("backup", () -> s.executeUpdate("backup to jdbc2.db"));
        attempt("restore", () -> s.executeUpdate("restore from jdbc2.db"));
        Connection o = DriverManager.getConnection("jdbc:sqlite:jdbc.db?busy_timeout=10");
        s.execute("begin exclusive");
        attempt("busy", () -> o.createStatement().executeQuery("select * from t"));
        s.execute("commit");
        o.close();
        attempt("timeout", () -> {
            s.setQueryTimeout(1);
            rows(s.executeQuery("select 1"));
        });
        rows(s.executeQuery("select json_extract('{\"a\":[1,2]}', '$.a[1]') as j, date('2024-02-29', '+1 year') as d, 9223372036854775807 as i"));
        rows(s.executeQuery("pragma integrity_check"));
        c.close();
        attempt("closed", () -> s.executeQuery("select 1"));
    }
}
