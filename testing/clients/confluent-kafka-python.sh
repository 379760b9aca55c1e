#!/bin/sh
# confluent-kafka-python against the broker at $1 (with the files of $2 over TLS, if given), in a virtual environment of its own that is
# made once: under $CARGO_TARGET_DIR or target/.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version=2.16.1
base=${CARGO_TARGET_DIR:-$here/../../target}/clients
venv=$base/confluent-kafka-$version

if [ ! -e "$venv/ready" ]; then
    mkdir -p "$base"
    # Made aside and moved, so that a second run at the same time finds all of it or nothing.
    fresh=$(mktemp -d "$base/making.XXXXXX")
    trap 'rm -rf "$fresh"' EXIT
    if ! python3 -m venv "$fresh" >&2; then
        as_root=; [ "$(id -u)" = 0 ] || as_root="sudo -n"
        { $as_root apt-get update -qq && $as_root apt-get install -y -qq python3-venv; } >&2
        python3 -m venv "$fresh" >&2
    fi
    "$fresh/bin/python" -m pip install -q --disable-pip-version-check "confluent-kafka==$version" >&2
    touch "$fresh/ready"
    mv -T "$fresh" "$venv" 2>/dev/null || [ -e "$venv/ready" ]
fi
script=confluent_kafka_python.py
[ $# -lt 2 ] || script=secure_confluent_kafka.py
exec "$venv/bin/python" "$here/$script" "$@"
