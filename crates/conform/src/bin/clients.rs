//! Test suites of programs that use SQLite's C library, on stock and on this one: a table of what passes.
//!
//!     cargo build --profile perf -p iolite-capi
//!     cargo run --profile perf -p iolite-conform --bin clients -- --work DIR [--only NAME]...
//!
//! Suites come from the package registries by their ordinary clients, so this needs a network, Python, cargo and a C compiler;
//! it is no part of CI. Stock is the pinned SQLite, compiled as a shared library with the options of distributions. What always
//! holds: both libraries are put into the same unchanged program by the library path; a test counts as passed only if the
//! suite says so. It does not know why a test fails: the output of each run lies in DIR.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// How a suite tells what passed.
#[derive(Clone, Copy)]
enum Tells {
    /// `Total tests: run=436 failures=3 skipped=6`
    Regrtest,
    /// `Ran 2687 tests`, `FAILED (failures=1, errors=2, skipped=3)`
    Unittest,
    /// `4 failed, 4194 passed, 644 skipped`
    Pytest,
    /// `test result: FAILED. 219 passed; 2 failed; ...`
    Libtest,
    /// `--- PASS: TestOpen (0.00s)`, a line a test.
    Go,
    /// `ok 3` and `not ok 4`.
    Tap,
    /// `Tests passed    :  205 ( 94.5%)`
    Phpt,
    /// `182 runs, 430 assertions, 0 failures, 0 errors, 0 skips`
    Minitest,
    /// `[  PASSED  ] 58 tests.`, `[  FAILED  ] Database.open`
    Gtest,
    /// `All tests passed (1885 assertions in 69 test cases)` or `test cases: 69 | 67 passed | 2 failed`
    Catch,
    /// `PASS:  basic_tests.py 69: ...`, a line a test.
    Svn,
    /// Each line that is as on stock.
    Lines,
    /// The same, for a program that is older than the pinned version and takes the system's.
    SystemLines,
}

/// One program with its tests.
struct Client {
    name: &'static str,
    /// Run once, in the work folder.
    prepare: &'static str,
    /// Answers the version.
    version: &'static str,
    /// Run for each library.
    run: &'static str,
    tells: Tells,
}

/// Shell commands; `$PY` is a Python of their own with what they need, `$WORK` the work folder, `$HEADER` the folder of the
/// pinned SQLite's header, `$SOURCE` fetches the source of a Debian package (for its tests; the package itself is installed),
/// `$TOURS` has programs of our own for clients whose tests are not to be had, `$LIBRARY` is the library's folder.
const CLIENTS: &[Client] = &[
    Client {
        name: "CPython test_sqlite3",
        prepare: "true",
        version: "python3 -V",
        run: "python3 -m test -v test_sqlite3",
        tells: Tells::Regrtest,
    },
    Client {
        name: "sqlite-utils",
        prepare: "$PY -m pip install -q pytest hypothesis sqlite-utils && $FETCH sqlite-utils && tar xzf sqlite_utils-*.tar.gz",
        version: "ls -d sqlite_utils-*/",
        run: "cd sqlite_utils-*/ && $PY -m pytest -q -p no:cacheprovider",
        tells: Tells::Pytest,
    },
    Client {
        name: "SQLAlchemy",
        prepare: "$PY -m pip install -q pytest cython greenlet typing_extensions && $FETCH 'sqlalchemy<2.1' && tar xzf sqlalchemy-*.tar.gz",
        version: "ls -d sqlalchemy-*/",
        run: "cd sqlalchemy-*/ && PYTHONPATH=lib $PY -m pytest -q -p no:cacheprovider --maxfail=10000 test/dialect/sqlite \
              test/dialect/test_suite.py test/engine test/sql/test_query.py test/sql/test_resultset.py \
              test/sql/test_returning.py test/sql/test_insert_exec.py test/sql/test_update.py test/orm/test_query.py \
              test/orm/test_unitofwork.py",
        tells: Tells::Pytest,
    },
    Client {
        name: "Django",
        prepare: "$PY -m pip install -q asgiref sqlparse && $FETCH django && tar xzf django-*.tar.gz",
        version: "ls -d django-*/",
        run: "export PYTHONPATH=$(echo $WORK/django-*/) && cd django-*/tests && $PY runtests.py --parallel 1 backends schema \
              migrations migrations2 queries aggregation expressions expressions_window db_functions transactions \
              foreign_object indexes introspection constraints inspectdb lookup model_fields bulk_create update delete",
        tells: Tells::Unittest,
    },
    Client {
        name: "rusqlite",
        prepare: "mkdir -p fetch/src && touch fetch/src/lib.rs && printf '[package]\\nname=\"fetch\"\\nversion=\"0.1.0\"\\n\
                  edition=\"2021\"\\n[dependencies]\\nrusqlite=\"0.40\"\\n[workspace]\\n' > fetch/Cargo.toml && \
                  (cd fetch && cargo vendor -q $WORK/vendored > ../vendor.log)",
        version: "grep -m1 '^version' vendored/rusqlite/Cargo.toml",
        run: "cd vendored/rusqlite && SQLITE3_LIB_DIR=$WORK/stock SQLITE3_INCLUDE_DIR=$HEADER CARGO_TARGET_DIR=$WORK/target \
              cargo test --lib --features 'backup blob chrono collation column_decltype extra_check functions hooks \
              i128_blob limits load_extension trace unlock_notify vtab csvtab url serde_json window'",
        tells: Tells::Libtest,
    },
    Client {
        name: "go-sqlite3",
        prepare: "mkdir -p go && (cd go && { [ -f go.mod ] || go mod init fetch; } && go get github.com/mattn/go-sqlite3 && \
                  cp -r $(go list -m -f '{{.Dir}}' github.com/mattn/go-sqlite3) driver && chmod -R u+w driver)",
        version: "grep go-sqlite3 go/go.mod | grep -o 'v[0-9.]*$'",
        run: "cd go/driver && export CGO_CFLAGS=\"-I$HEADER -DSQLITE_ENABLE_COLUMN_METADATA -DSQLITE_ENABLE_PREUPDATE_HOOK\" \
              CGO_LDFLAGS=-L$WORK/stock && go test -count=1 -v -tags 'libsqlite3 sqlite_fts5 sqlite_math_functions sqlite_vtable \
              sqlite_preupdate_hook sqlite_column_metadata sqlite_unlock_notify' .",
        tells: Tells::Go,
    },
    Client {
        name: "APSW",
        // Its own tools fetch SQLite while the package is unpacked, which needs a place that is not to be had: the folder is
        // kept as it is before that. The version is that of the pinned header.
        prepare: "mkdir -p keep && printf 'import os, shutil\\nif os.path.exists(\"setup.py\") and not os.path.exists(os.environ[\"KEEP\"]):\\n    \
                  shutil.copytree(\".\", os.environ[\"KEEP\"])\\n' > keep/sitecustomize.py && { [ -d apsw ] || KEEP=$WORK/apsw PYTHONPATH=$WORK/keep \
                  timeout 30 $FETCH apsw==3.53.2.0 > apsw.log 2>&1; cd apsw && printf '[build_ext]\\ninclude_dirs=%s\\n\
                  library_dirs=%s\\nlibraries=sqlite3\\nuse_system_sqlite_config=False\\n' $HEADER $WORK/stock > setup.apsw && $PY setup.py \
                  build_ext --inplace --definevalues=SQLITE_ENABLE_SESSION,SQLITE_ENABLE_PREUPDATE_HOOK,SQLITE_ENABLE_FTS5 > build.log; }",
        version: "grep -m1 '^Version' apsw/PKG-INFO | cut -d' ' -f2",
        run: "cd apsw && $PY -m apsw.tests -v",
        tells: Tells::Unittest,
    },
    Client {
        name: "DBD::SQLite",
        prepare: "dpkg -s libdbd-sqlite3-perl > dbd.log && $SOURCE libdbd-sqlite3-perl",
        version: "ls -d libdbd-sqlite3-perl-*/",
        run: "cd libdbd-sqlite3-perl-*/ && prove -v t/",
        tells: Tells::Tap,
    },
    Client {
        name: "PHP SQLite3 and PDO",
        prepare: "dpkg -s php-cli php-sqlite3 > php.log && $SOURCE php8.2",
        version: "php -v | grep -o '^PHP [0-9.]*'",
        run: "cd php8.2-*/ && TEST_PHP_EXECUTABLE=$(command -v php) NO_INTERACTION=1 php run-tests.php -q --offline \
              ext/sqlite3/tests ext/pdo_sqlite/tests",
        tells: Tells::Phpt,
    },
    Client {
        name: "sqlite3 shell",
        // The shell refuses a library that was not built from its own sources, by what this function answers.
        prepare: "printf '#include <sqlite3.h>\\nconst char *sqlite3_sourceid(void) { return SQLITE_SOURCE_ID; }\\n' > id.c && \
                  cc -shared -fPIC -I/usr/include id.c -o id.so",
        version: "sqlite3 -version | cut -d' ' -f1",
        run: "rm -f shell.db && LD_PRELOAD=$WORK/id.so sqlite3 shell.db < $SCRIPT",
        tells: Tells::SystemLines,
    },
    Client {
        name: "Rails Active Record",
        // Its tests name a debugger that they do not use, and a part of Rails that one file wants.
        prepare: "dpkg -s ruby-activerecord ruby-sqlite3 ruby-mocha ruby-bcrypt ruby-msgpack > rails.log && { ls -d rails-*/ || $SOURCE rails; } && \
                  mkdir -p stubs && : > stubs/byebug.rb",
        version: "ls -d rails-*/",
        run: "cd rails-*/activerecord && ARCONN=sqlite3 ruby -W0 -I$WORK/stubs -Itest -Ilib -I../activesupport/lib -I../activemodel/lib -e \
              'Dir[\"test/cases/**/*_test.rb\"].sort.reject{|f| f.include?(\"/adapters/\") && !f.include?(\"/sqlite3/\")}\
              .each{|f| begin; require \"./\"+f; rescue LoadError; end}' -- -v --seed 1",
        tells: Tells::Minitest,
    },
    Client {
        name: "RSQLite",
        // Built anew with the library instead of its own copy. R puts the system's folders first.
        prepare: "dpkg -s r-cran-rsqlite r-cran-dbitest r-cran-testthat r-cran-plogr r-cran-bh r-cran-rcpp r-base-dev > r.log && \
                  { [ -d RSQLite ] || { { $SOURCE --download-only r-cran-rsqlite || true; } && tar xzf r-cran-rsqlite_*.orig.tar.gz && \
                  sed -i \"s#^PKG_LIBS.*#PKG_LIBS = -L$WORK/stock -lsqlite3#; s#^\\$(SHLIB): .*##\" RSQLite/src/Makevars; }; } && \
                  mkdir -p rlib && R CMD INSTALL --library=$WORK/rlib RSQLite > rinstall.log 2>&1",
        version: "grep -m1 '^Version' RSQLite/DESCRIPTION",
        run: "cd RSQLite/tests && R_LIBS=$WORK/rlib NOT_CRAN=true TZ=UTC LD_PRELOAD=$LIBRARY/libsqlite3.so.0 Rscript -e 'library(testthat); \
              library(RSQLite); test_dir(\"testthat\", reporter=\"tap\", stop_on_failure=FALSE, package=\"RSQLite\", \
              load_package=\"installed\")'",
        tells: Tells::Tap,
    },
    Client {
        name: "node-sqlite3",
        // The package has no tests, its source at Debian has.
        prepare: "mkdir -p node && { ls node-sqlite3-*/test || { { $SOURCE --download-only node-sqlite3 || true; } && tar xJf node-sqlite3_*.orig.tar.xz; } && \
                  mkdir -p root && ln -sfn $HEADER root/include && ln -sfn ../stock root/lib; } > node.log && cd node && { [ -d node_modules/sqlite3/build ] || { \
                  npm init -y && npm install --ignore-scripts sqlite3@5 mocha@10 && cd node_modules/sqlite3 && \
                  LDFLAGS=-Wl,--enable-new-dtags npx node-gyp rebuild --sqlite=$WORK/root --nodedir=/usr; }; } >> ../node.log 2>&1",
        version: "grep '\"version\"' node/node_modules/sqlite3/package.json",
        run: "rm -rf node/run && mkdir node/run && cp -r node-sqlite3-*/test node/run/test && cd node/run && ln -s ../node_modules/sqlite3/lib lib && \
              ln -s ../node_modules/sqlite3/package.json package.json && node test/support/createdb.js && \
              ../node_modules/.bin/mocha -R tap --timeout 480000",
        tells: Tells::Tap,
    },
    Client {
        name: "Pony ORM",
        prepare: "{ ls -d pony-*/ || { $FETCH pony && tar xzf pony-*.tar.gz; }; } > pony.log",
        version: "ls -d pony-*/",
        run: "cd pony-*/ && $PY -m unittest discover -v -s pony/orm/tests -t .",
        tells: Tells::Unittest,
    },
    Client {
        name: "Alembic",
        prepare: "$PY -m pip install -q pytest sqlalchemy mako && { ls -d alembic-*/ || { $FETCH alembic && tar xzf alembic-*.tar.gz; }; } > alembic.log",
        version: "ls -d alembic-*/",
        run: "cd alembic-*/ && PYTHONPATH=. $PY -m pytest -q -p no:cacheprovider",
        tells: Tells::Pytest,
    },
    Client {
        name: "DiskCache",
        prepare: "$PY -m pip install -q pytest && { ls -d diskcache-*/ || { $FETCH diskcache && tar xzf diskcache-*.tar.gz; }; } > diskcache.log",
        version: "ls -d diskcache-*/",
        run: "cd diskcache-*/ && PYTHONPATH=. $PY -m pytest -q -p no:cacheprovider -c /dev/null --rootdir . tests --ignore tests/test_djangocache.py \
              --ignore tests/test_doctest.py",
        tells: Tells::Pytest,
    },
    Client {
        name: "SQLiteCpp",
        prepare: "dpkg -s libsqlitecpp-dev libgtest-dev > cpp.log && { ls -d sqlitecpp-*/ || $SOURCE sqlitecpp; } && cd sqlitecpp-*/ && \
                  g++ -w -std=c++17 -DSQLITE_ENABLE_COLUMN_METADATA -Iinclude tests/*.cpp -o $WORK/sqlitecpp-tests -lSQLiteCpp -lsqlite3 -lgtest \
                  -lgtest_main -lpthread",
        version: "ls -d sqlitecpp-*/",
        run: "./sqlitecpp-tests",
        tells: Tells::Gtest,
    },
    Client {
        name: "SOCI",
        prepare: "dpkg -s libsoci-dev > soci.log && { ls -d soci-*/ || $SOURCE soci; } && cd soci-*/tests && g++ -w -std=c++14 -I. -Icatch \
                  -I/usr/include/soci -I../include/private sqlite3/test-sqlite3.cpp -o $WORK/soci-tests -lsoci_sqlite3 -lsoci_core -lsqlite3 -ldl",
        version: "ls -d soci-*/",
        run: "./soci-tests :memory:",
        tells: Tells::Catch,
    },
    Client {
        name: "Subversion",
        // Those of its tests that need no helper programs of its build.
        prepare: "dpkg -s subversion > svn.log && { ls -d subversion-*/ || $SOURCE subversion; }",
        version: "ls -d subversion-*/",
        run: "cd subversion-*/subversion/tests/cmdline && for t in basic commit copy update stat prop revert depth; do \
              python3 ${t}_tests.py --bin=/usr/bin; done",
        tells: Tells::Svn,
    },
    Client {
        name: "Tcl, a tour",
        prepare: "dpkg -s libsqlite3-tcl > tcl.log",
        version: "dpkg-query -f '${Version}' -W libsqlite3-tcl",
        run: "tclsh $TOURS/tour.tcl",
        tells: Tells::Lines,
    },
    Client {
        name: "JDBC (Xerial), a tour",
        prepare: "dpkg -s libxerial-sqlite-jdbc-java libxerial-sqlite-jdbc-jni > jdbc.log",
        version: "dpkg-query -f '${Version}' -W libxerial-sqlite-jdbc-java",
        run: "java -Dorg.sqlite.lib.path=/usr/lib/x86_64-linux-gnu/jni -cp /usr/share/java/sqlite-jdbc.jar $TOURS/Tour.java",
        tells: Tells::Lines,
    },
    Client {
        name: "loadable extensions, a tour",
        prepare: "dpkg -s libsqlite3-mod-spatialite libsqlite3-mod-csvtable libsqlite3-mod-impexp libsqlite3-mod-xpath sqlite3-pcre > extensions.log && \
              $PY -m pip install -q --no-deps --target extensions sqlite-regex sqlite-xsv sqlite-lines sqlite-html sqlite-jsonschema \
              sqlite-robotstxt sqlite-ulid sqlite-url sqlite-path sqlite-fastrand sqlite-hello sqlite-vss",
        version: "ls -d extensions/*.dist-info | wc -l",
        // The interpreter of the system, for others may be built without loading.
        run: "/usr/bin/python3 $TOURS/extensions.py extensions",
        tells: Tells::Lines,
    },
    Client {
        name: "GDAL, a tour",
        prepare: "dpkg -s gdal-bin > gdal.log",
        version: "dpkg-query -f '${Version}' -W gdal-bin",
        run: "sh $TOURS/gdal.sh",
        tells: Tells::Lines,
    },
    Client {
        name: "Fossil, a tour",
        prepare: "dpkg -s fossil > fossil.log",
        version: "dpkg-query -f '${Version}' -W fossil",
        run: "sh $TOURS/fossil.sh",
        tells: Tells::Lines,
    },
    Client {
        name: "SpatiaLite, a tour",
        prepare: "dpkg -s spatialite-bin > spatialite.log",
        version: "dpkg-query -f '${Version}' -W spatialite-bin",
        run: "sh $TOURS/spatialite.sh",
        tells: Tells::Lines,
    },
    Client {
        name: "dqlite's VFS, a tour",
        prepare: "dpkg -s libdqlite-dev > dqlite.log && cc -I$HEADER $TOURS/dqlite.c -o dqlite -L$WORK/stock -lsqlite3 -ldqlite",
        version: "dpkg-query -f '${Version}' -W libdqlite-dev",
        run: "./dqlite",
        tells: Tells::Lines,
    },
];

/// What the shell is given.
const SCRIPT: &str = ".bail off
create table t(a integer primary key, b text, c real);
insert into t values(1, 'one', 1.5), (2, 'two', 2.5), (3, null, 3e300);
.mode box
select * from t;
.mode json
select * from t;
.mode insert x
select * from t;
.mode csv
.headers on
select * from t;
.schema
.tables
.indexes
create index tb on t(b);
.indexes
.dump
.mode quote
select typeof(a), b, c from t order by b desc;
.eqp on
select * from t where b = 'two';
.eqp off
select * from nosuch;
insert into t values(1, 2, 3);
.databases
.show
.fullschema
.lint fkey-indexes
.parameter set :p 42
select :p;
.save copy.db
.open copy.db
select count(*) from t;
.backup main other.db
.restore main other.db
select count(*) from t;
.limit length
.changes on
update t set b = 'x';
.dbinfo
.vfslist
.version_is_not_a_command
";

struct Counts {
    passed: u64,
    failed: u64,
}

fn number_before(text: &str, word: &str) -> u64 {
    let at = text.find(word).unwrap_or(0);
    let digits: String = text[..at].trim_end().chars().rev().take_while(char::is_ascii_digit).collect();
    digits.chars().rev().collect::<String>().parse().unwrap_or(0)
}

fn number_after(text: &str, word: &str) -> u64 {
    let Some(at) = text.find(word) else { return 0 };
    text[at + word.len()..].chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0)
}

/// What a suite says at its end.
fn counts(tells: Tells, text: &str, stock: &str) -> Counts {
    let last = |word: &str| text.lines().rev().find(|l| l.contains(word)).unwrap_or_default();
    match tells {
        Tells::Regrtest => {
            let line = last("Total tests:");
            let failed = number_after(line, "failures=") + number_after(line, "errors=");
            Counts {
                passed: number_after(line, "run=").saturating_sub(failed + number_after(line, "skipped=")),
                failed,
            }
        }
        Tells::Unittest => {
            let line =
                text.lines().rev().find(|l| l.starts_with("OK") || l.starts_with("FAILED (")).unwrap_or("");
            let failed = number_after(line, "failures=")
                + number_after(line, "(errors=")
                + number_after(line, " errors=");
            let ran = number_after(last("Ran "), "Ran ");
            Counts { passed: ran.saturating_sub(failed + number_after(line, "skipped=")), failed }
        }
        Tells::Pytest => {
            let line = last(" passed");
            let errors = number_before(line, " errors").max(number_before(line, " error,"));
            Counts { passed: number_before(line, " passed"), failed: number_before(line, " failed") + errors }
        }
        Tells::Libtest => {
            let line = last("test result:");
            Counts { passed: number_before(line, " passed"), failed: number_before(line, " failed") }
        }
        Tells::Go => {
            let begin = |word| text.lines().filter(|l| l.trim_start().starts_with(word)).count() as u64;
            // What panics ends the run.
            Counts { passed: begin("--- PASS"), failed: begin("--- FAIL") + begin("panic:") }
        }
        Tells::Tap => {
            // What is known not to work yet says so behind a `#`.
            let counts = |l: &&str| l.starts_with("ok ") || !l.contains(" # ");
            let begin = |word| text.lines().filter(counts).filter(|l| l.starts_with(word)).count() as u64;
            // A script that ends early is one more.
            Counts { passed: begin("ok "), failed: begin("not ok ") + begin("Dubious, test returned 255") }
        }
        Tells::Phpt => {
            let of = |word| {
                last(word)
                    .split(':')
                    .nth(1)
                    .and_then(|n| n.split_whitespace().next()?.parse().ok())
                    .unwrap_or(0)
            };
            Counts { passed: of("Tests passed"), failed: of("Tests failed") }
        }
        Tells::Minitest => {
            let line = last(" assertions, ");
            let failed = number_before(line, " failures,") + number_before(line, " errors,");
            let skipped = number_before(line, " skips");
            Counts { passed: number_before(line, " runs,").saturating_sub(failed + skipped), failed }
        }
        Tells::Gtest => {
            let named = |l: &&str| l.starts_with("[  FAILED  ] ") && l.ends_with(')');
            let failed = text.lines().filter(named).count() as u64;
            Counts { passed: number_after(last("[  PASSED  ]"), "[  PASSED  ] "), failed }
        }
        Tells::Catch => match last("test cases") {
            line if line.starts_with("All tests passed") => {
                Counts { passed: number_before(line, " test cases"), failed: 0 }
            }
            line => Counts { passed: number_before(line, " passed"), failed: number_before(line, " failed") },
        },
        Tells::Svn => {
            let begin = |word| text.lines().filter(|l| l.starts_with(word)).count() as u64;
            Counts { passed: begin("PASS: "), failed: begin("FAIL: ") }
        }
        Tells::Lines | Tells::SystemLines => {
            let same = text.lines().filter(|l| stock.lines().any(|s| s == *l)).count() as u64;
            let all = stock.lines().count() as u64;
            Counts { passed: same.min(all), failed: all.saturating_sub(same) }
        }
    }
}

/// Lines that name a test that did not pass.
fn failures(text: &str) -> Vec<&str> {
    let named = |l: &&str| {
        ["FAILED ", "FAIL: ", "ERROR: ", "--- FAIL: ", "not ok ", "Dubious, "]
            .iter()
            .any(|p| l.starts_with(p) && !l.starts_with("FAILED ("))
            || l.starts_with("[  FAILED  ] ") && !l.ends_with(')')
            || l.starts_with("test ") && l.ends_with(" ... FAILED")
            || l.contains("#test_") && (l.ends_with(" s = F") || l.ends_with(" s = E"))
    };
    text.lines().filter(named).collect()
}

struct Place {
    work: PathBuf,
    header: PathBuf,
}

impl Place {
    /// Runs a shell command; answers what it prints, and whether it went well.
    fn shell(&self, command: &str, library: Option<&Path>) -> (String, bool) {
        let python = self.work.join("venv/bin/python");
        let fetch = format!(
            "{} -m pip download -q --no-build-isolation --no-deps --no-binary :all:",
            python.display()
        );
        let lists = "-o Dir::Etc::sourcelist=$WORK/source.list -o Dir::Etc::sourceparts=/dev/null -o \
                     Dir::State::lists=$WORK/lists";
        let source = format!(
            "mkdir -p lists/partial && echo 'deb-src http://deb.debian.org/debian bookworm main' > source.list && \
             apt-get {lists} update -qq && apt-get {lists} source -qq"
        );
        let command = command.replace("$FETCH", &fetch).replace("$SOURCE", &source);
        let mut c = Command::new("sh");
        c.arg("-c").arg(format!("({command}) 2>&1")).current_dir(&self.work);
        c.env("PY", &python).env("WORK", &self.work).env("HEADER", &self.header);
        c.env("SCRIPT", self.work.join("shell.sql")).env_remove("LD_LIBRARY_PATH");
        c.env("TOURS", concat!(env!("CARGO_MANIFEST_DIR"), "/clients"));
        if let Some(l) = library {
            c.env("LD_LIBRARY_PATH", l).env("LIBRARY", l);
        }
        match c.output() {
            Ok(o) => (String::from_utf8_lossy(&o.stdout).into_owned(), o.status.success()),
            Err(e) => (e.to_string(), false),
        }
    }

    /// The pinned SQLite as a shared library, and ours, each in a folder as `libsqlite3.so.0`.
    fn libraries(&self) -> Result<(PathBuf, PathBuf), String> {
        let (stock, ours) = (self.work.join("stock"), self.work.join("iolite"));
        for dir in [&stock, &ours] {
            std::fs::create_dir_all(dir).map_err(|e| e.to_string())?;
        }
        let options: String = ["COLUMN_METADATA", "DBSTAT_VTAB", "FTS3", "FTS3_PARENTHESIS", "FTS4", "FTS5"]
            .iter()
            .chain(&["MATH_FUNCTIONS", "PREUPDATE_HOOK", "RTREE", "SESSION", "STMTVTAB", "UNLOCK_NOTIFY"])
            .map(|o| format!(" -DSQLITE_ENABLE_{o}"))
            .collect();
        let header = self.header.display();
        let command = format!(
            "[ -f stock/libsqlite3.so.0 ] || cc -O2 -fPIC -shared -Wl,-soname,libsqlite3.so.0 -DSQLITE_USE_URI \
             -DSQLITE_ENABLE_UPDATE_DELETE_LIMIT -DSQLITE_MAX_VARIABLE_NUMBER=250000 {options} \
             -o stock/libsqlite3.so.0 {header}/sqlite3.c -lpthread -lm -ldl && ln -sf libsqlite3.so.0 stock/libsqlite3.so"
        );
        let (said, fine) = self.shell(&command, None);
        if !fine {
            return Err(said);
        }
        let exe = std::env::current_exe().map_err(|e| e.to_string())?;
        let built = exe.with_file_name("libiolite_capi.so");
        // A new file, for the old one may be in use.
        let fresh = ours.join("fresh");
        std::fs::copy(&built, &fresh)
            .and_then(|_| std::fs::rename(&fresh, ours.join("libsqlite3.so.0")))
            .map_err(|e| format!("{}: {e}", built.display()))?;
        Ok((stock, ours))
    }

    fn compare(&self, c: &Client, stock: &Path, ours: &Path) {
        let (said, fine) = self.shell(c.prepare, None);
        if !fine {
            println!("| {} | not run: {} |", c.name, said.lines().last().unwrap_or_default());
            return;
        }
        let version = self.shell(c.version, None).0;
        // The shell is of the system's version, and so is its stock.
        let stock = if matches!(c.tells, Tells::SystemLines) { None } else { Some(stock) };
        let theirs = self.shell(c.run, stock).0;
        let own = self.shell(c.run, Some(ours)).0;
        for (text, whose) in [(&theirs, "stock"), (&own, "iolite")] {
            let name = format!("{} {whose}.log", c.name).replace(' ', "-");
            let _ = std::fs::write(self.work.join(name), text);
        }
        let (a, b) = (counts(c.tells, &theirs, &theirs), counts(c.tells, &own, &theirs));
        let version = version.trim().trim_end_matches('/');
        println!("| {} | {version} | {} ({}) | {} ({}) |", c.name, a.passed, a.failed, b.passed, b.failed);
        let known = failures(&theirs);
        for f in failures(&own).into_iter().filter(|f| !known.contains(f)) {
            println!("  on iolite alone: {f}");
        }
    }
}

fn main() -> ExitCode {
    let mut work = None;
    let mut only: Vec<String> = Vec::new();
    let mut args = std::env::args().skip(1);
    while let Some(a) = args.next() {
        match (a.as_str(), args.next()) {
            ("--work", Some(v)) => work = Some(PathBuf::from(v)),
            ("--only", Some(v)) => only.push(v.to_lowercase()),
            _ => {
                eprintln!("clients --work DIR [--only NAME]...");
                return ExitCode::from(2);
            }
        }
    }
    let Some(work) = work else {
        eprintln!("clients --work DIR [--only NAME]...");
        return ExitCode::from(2);
    };
    let Some(header) = iolite_conform::pinned_source() else {
        eprintln!("the pinned SQLite's source is not there: build the crate iolite-stock first");
        return ExitCode::FAILURE;
    };
    if let Err(e) = std::fs::create_dir_all(&work) {
        eprintln!("{}: {e}", work.display());
        return ExitCode::FAILURE;
    }
    let work = work.canonicalize().unwrap_or(work);
    let place = Place { work, header };
    let _ = std::fs::write(place.work.join("shell.sql"), SCRIPT);
    let (stock, ours) = match place.libraries() {
        Ok(l) => l,
        Err(e) => {
            eprintln!("{e}");
            return ExitCode::FAILURE;
        }
    };
    place.shell(
        "[ -d venv ] || (python3 -m venv venv && $PY -m pip install -qU setuptools wheel setuptools_scm)",
        None,
    );
    println!(
        "| client | version | passed (failed) on stock | passed (failed) on iolite |\n|---|---|---|---|"
    );
    for c in CLIENTS {
        if only.is_empty() || only.iter().any(|o| c.name.to_lowercase().contains(o)) {
            place.compare(c, &stock, &ours);
        }
    }
    ExitCode::SUCCESS
}
