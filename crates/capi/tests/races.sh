#!/bin/sh
# Runs the C programs of this folder on the library as built, under what finds errors of memory and of threads:
#
#   crates/capi/tests/races.sh [plain|memcheck|helgrind|address|thread]... [--rounds N]
#
# memcheck and helgrind are valgrind's tools. `address` and `thread` build the C side with gcc's sanitizers; the Rust side has
# none, so they see the calls, the memory that passes between both, and double frees. Without a name: plain, memcheck,
# address. helgrind does not know the locks of Rust's standard library (they are futexes, not pthreads), so what it says of
# memory that those guard is to be read with care.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
rounds=
tools=
while [ $# -gt 0 ]; do
  case $1 in
    --rounds) rounds=$2; shift ;;
    *) tools="$tools $1" ;;
  esac
  shift
done
cd "$root"
cargo build -q -p iolite-capi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/lib"
cp "${CARGO_TARGET_DIR:-target}/debug/libiolite_capi.so" "$work/lib/libsqlite3.so.0"
failed=0
for tool in ${tools:-plain memcheck address}; do
  flags=
  # A value whose count two threads change at once breaks within some hundred rounds; valgrind is slow.
  case $tool in
    plain|address) often=200 ;;
    *) often=3 ;;
  esac
  run=
  preload=
  case $tool in
    memcheck) run="valgrind -q --error-exitcode=9 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite" ;;
    helgrind) run="valgrind -q --tool=helgrind --error-exitcode=9" ;;
    address) flags="-fsanitize=address"; preload=$(cc -print-file-name=libasan.so) ;;
    thread) flags="-fsanitize=thread" ;;
  esac
  for source in "$here"/c/*.c; do
    name=$(basename "$source" .c)
    # shellcheck disable=SC2086
    cc -g -O1 -Wall $flags -o "$work/$name" "$source" -lsqlite3 -lpthread
    rm -rf "$work/files"
    mkdir "$work/files"
    # shellcheck disable=SC2086
    if env ${preload:+LD_PRELOAD=$preload} ASAN_OPTIONS=detect_leaks=0 LD_LIBRARY_PATH="$work/lib" $run "$work/$name" "$work/files" "${rounds:-$often}" > "$work/out" 2>&1; then
      echo "$tool $name: ok"
    else
      echo "$tool $name: FAILED"
      tail -60 "$work/out"
      failed=1
    fi
  done
done
exit $failed
