#!/bin/sh
# kcat against the broker at $1: metadata, every codec there and back, lookups by time.
set -eu
broker=$1

if ! command -v kcat >/dev/null; then
    as_root=; [ "$(id -u)" = 0 ] || as_root="sudo -n"
    { $as_root apt-get update -qq && $as_root apt-get install -y -qq kcat; } >&2 || {
        echo "kcat is missing and could not be installed; run: apt-get install kcat" >&2
        exit 1
    }
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset KCAT_CONFIG || true
export HOME="$work"

fail() {
    echo "kcat: $1" >&2
    shift
    for file in "$@"; do echo "--- $file" >&2; cat "$file" >&2; done
    exit 1
}

# kcat cannot make topics, and the broker makes none by itself.
python3 "$(dirname "$0")/../compat/topic.py" "$broker" 1 none gzip snappy lz4 zstd times

kcat -b "$broker" -L >"$work/list" 2>&1 || fail "cannot list" "$work/list"
grep -q '1 brokers' "$work/list" || fail "one broker expected" "$work/list"
grep -q 'topic "gzip" with 1 partitions' "$work/list" || fail "topic gzip expected" "$work/list"
grep -q "broker 0 at $broker (controller)" "$work/list" || fail "broker $broker expected" "$work/list"

seq -f 'a line that is long enough to be worth some compression: %g' 1 1000 >"$work/sent"
for codec in none gzip snappy lz4 zstd; do
    kcat -b "$broker" -P -t "$codec" -p 0 -z "$codec" -X acks=all -l "$work/sent" 2>"$work/error" ||
        fail "cannot produce $codec" "$work/error"
    kcat -b "$broker" -C -t "$codec" -p 0 -o beginning -e -q -X check.crcs=true >"$work/read" 2>"$work/error" ||
        fail "cannot consume $codec" "$work/error"
    cmp -s "$work/sent" "$work/read" || fail "$codec came back changed" "$work/error"
    [ "$(kcat -b "$broker" -C -t "$codec" -p 0 -o -3 -e -q 2>/dev/null | wc -l)" = 3 ] ||
        fail "the last three of $codec expected"
done

# One record now; the next millisecond and those before it lead to it, the far future to the end.
before=$(date +%s%3N)
echo one | kcat -b "$broker" -P -t times -p 0 2>"$work/error" || fail "cannot produce" "$work/error"
query() { kcat -b "$broker" -Q -t "times:0:$1" 2>&1; }
[ "$(query "$before")" = "times [0] offset 0" ] || fail "by time: $(query "$before")"
[ "$(query -1)" = "times [0] offset 1" ] || fail "latest: $(query -1)"
[ "$(query -2)" = "times [0] offset 0" ] || fail "earliest: $(query -2)"
[ "$(query $((before + 3600000)))" = "times [0] offset -1" ] || fail "future: $(query $((before + 3600000)))"
echo "kcat: $(kcat -V | grep -o 'Version [^ ]*')"
