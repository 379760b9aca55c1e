#!/usr/bin/env bash
# Tries the archive of `make dist` as one would who has nothing but it: unpack, check, run, stop.
set -euo pipefail
cd "$(dirname "$0")/.."

archive=$(echo "$PWD"/target/dist/highwater-*-x86_64-linux.tar.gz)
work=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; rm -rf "$work"' EXIT

fail() {
    echo "dist: $1" >&2
    [ ! -e "$work/server.log" ] || cat "$work/server.log" >&2
    exit 1
}

(cd "$(dirname "$archive")" && sha256sum --quiet -c "$archive.sha256") || fail "the checksum"
tar -C "$work" -xzf "$archive"
cd "$work"/highwater-*
for file in LICENSE README.md CHANGELOG.md bin/highwater etc/highwater.toml lib/systemd/system/highwater.service \
    share/bash-completion/completions/highwater; do
    [ -s "$file" ] || fail "$file is missing"
done
version=$(basename "$PWD" | cut -d- -f2)
[ "$(env -i bin/highwater --version)" = "highwater $version" ] || fail "the version"

# The example as it is, and with every default said.
bin/highwater server --config etc/highwater.toml --check >/dev/null || fail "the example"
sed 's/^#\([a-z_]* = \)/\1/; /advertise = ""/d' etc/highwater.toml >"$work/said.toml"
bin/highwater server --config "$work/said.toml" --check >/dev/null || fail "the example with its defaults said"

# The unit is whole: systemd has the last word where it is there.
if command -v systemd-analyze >/dev/null; then
    mkdir -p "$work/unit"
    sed "s|/usr/local/bin/highwater|$PWD/bin/highwater|" \
        lib/systemd/system/highwater.service >"$work/unit/highwater.service"
    systemd-analyze verify --man=no "$work/unit/highwater.service" || fail "the unit"
fi

# It runs in an empty folder with an empty environment, answers, and stops well.
env -i bin/highwater server --data-dir "$work/data" --kafka-listen 127.0.0.1:0 --http-listen 127.0.0.1:0 \
    >"$work/server.log" 2>&1 &
server=$!
for _ in $(seq 300); do
    url=$(sed -n 's/^REST and streams *//p' "$work/server.log")
    [ -z "$url" ] || break
    kill -0 "$server" 2>/dev/null || fail "the server ended"
    sleep 0.1
done
curl -sf "$url/health" | grep -q healthy || fail "health"
bin/highwater --url "$url" connector list >/dev/null || fail "connector list"
kill "$server"
wait "$server" || fail "the server did not stop well"
echo "dist: $(basename "$archive") unpacks, runs and stops"
