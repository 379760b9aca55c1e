#!/usr/bin/env bash
# cargo-fuzz on every entry, or on those named: fuzz.sh MINUTES [ENTRY...]. The minutes are for all of
# them together. New inputs stay in the target folder; one that fails is named at the end.
set -euo pipefail
cd "$(dirname "$0")"

minutes=${1:-10}
shift || true
case $minutes in '' | *[!0-9]*) echo "MINUTES must be a whole number, not '$minutes'" >&2; exit 2 ;; esac

missing=
cargo +nightly --version >/dev/null 2>&1 || missing+=$'\n  rustup toolchain install nightly --profile minimal'
command -v cargo-fuzz >/dev/null || missing+=$'\n  cargo install cargo-fuzz --locked'
if [ -n "$missing" ]; then
    printf 'make fuzz needs the nightly toolchain and cargo-fuzz. Install what is missing:%s\n' "$missing" >&2
    echo "Without them, FUZZ_SEED=$RANDOM FUZZ_SECONDS=$((minutes * 60)) cargo test -p highwater-fuzz mutates the corpus for as long." >&2
    exit 1
fi

# The server's settings are an entry of the binary's own tests.
entries=("$@")
[ ${#entries[@]} -gt 0 ] || mapfile -t entries < <(ls corpus | grep -vx server-settings)
seconds=$((minutes * 60 / ${#entries[@]}))
[ "$seconds" -gt 0 ] || seconds=1

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/../../target}/fuzz
found=$CARGO_TARGET_DIR/found
cargo +nightly fuzz build --fuzz-dir libfuzzer entry

failed=()
for entry in "${entries[@]}"; do
    echo "== $entry for $seconds s"
    mkdir -p "$found/$entry" "$found/failures"
    HIGHWATER_FUZZ_ENTRY=$entry cargo +nightly fuzz run --fuzz-dir libfuzzer entry \
        "$found/$entry" "$PWD/corpus/$entry" -- -max_total_time="$seconds" -max_len=65536 -timeout=10 \
        -rss_limit_mb=1024 -print_final_stats=0 -verbosity=0 -artifact_prefix="$found/failures/$entry-" ||
        failed+=("$entry")
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "failed: ${failed[*]}; the inputs are in $found/failures; mend it and put them under testing/fuzz/corpus/ENTRY" >&2
    exit 1
fi
echo "${#entries[@]} entries, nothing found"
