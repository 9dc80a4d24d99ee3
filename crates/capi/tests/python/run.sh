#!/usr/bin/env bash
# Runs the tour on stock SQLite and on dist/lib/libsqlite3.so.0, and shows what differs. `cargo xtask dist` first.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
lib=${1:-$here/../../../../dist/lib}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
python3 "$here/tour.py" >"$out/stock" 2>&1 || true
LD_LIBRARY_PATH=$lib python3 "$here/tour.py" >"$out/ours" 2>&1 || true
LD_LIBRARY_PATH=$lib python3 -c 'import sqlite3; print("library:", sqlite3.sqlite_version)'
diff "$out/stock" "$out/ours" && echo "same: $(wc -l <"$out/ours") lines"
