#!/usr/bin/env bash
# Installs what the demo and the tests need and this machine lacks: by apt-get where that is allowed
# (as root, or with sudo that asks for no password), else it says what to install and ends with 1.
# `install.sh test` also asks for what tests and benches need, `install.sh test compat` for what all of
# other people's clients need besides.
set -euo pipefail
cd "$(dirname "$0")/../.."

toolchain=$(sed -n 's/^channel = "\(.*\)"$/\1/p' rust-toolchain.toml)
postgres_least=13
java=openjdk-17-jdk-headless
missing=()

have() { command -v "$1" >/dev/null 2>&1; }

want() { # program package: asks for the package when the program is missing
    have "$1" || missing+=("$2")
}

have_python() { have python3 && python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))'; }

have_postgres() {
    local server version
    for server in $(command -v postgres || true) /usr/lib/postgresql/*/bin/postgres /usr/pgsql-*/bin/postgres; do
        version=$("$server" --version 2>/dev/null | sed -n 's/.*) \([0-9]*\).*/\1/p') || continue
        [ "${version:-0}" -ge $postgres_least ] && return 0
    done
    return 1
}

have_rust() { cargo --version 2>/dev/null | grep -qF "cargo $toolchain"; }

# The packages, by their names on Debian and Ubuntu. Some of the libraries are C (zstd, ring).
want cc build-essential
want make build-essential
want kcat kcat
want curl curl
have_python || missing+=(python3)
if [ "${1:-}" = test ]; then
    # librdkafka, which the broker is tried with, is built from source; its configure script asks for these.
    want c++ build-essential
    want pkg-config pkg-config
    # Other people's Kafka clients are tried in a virtual environment.
    python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
    # Debezium Engine is what tests and benches compare with (testing/debezium), and Apache Kafka what
    # they compare with and run on (testing/kafka), with certificates of its own.
    want javac "$java"
    want mvn maven
    want openssl openssl
fi
if [ "${2:-}" = compat ]; then
    # kafkajs is one of the clients that `make compat` runs.
    want node nodejs
    want npm npm
fi
have_postgres || missing+=(postgresql)

quietly() { # shows a command's output only when it fails
    local output
    output=$("$@" 2>&1) || { echo "$output" >&2; return 1; }
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

offered() { apt-cache policy "$1" | grep -q 'Candidate: [^(]'; }

may_install() {
    have apt-get && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }
}

say_what_to_install() {
    echo "Missing: $*" >&2
    echo "Install them with the system's package manager; on Debian and Ubuntu:" >&2
    echo "  sudo apt-get update && sudo apt-get install $*" >&2
    have_rust || say_how_to_get_rust
    exit 1
}

say_how_to_get_rust() {
    echo "Missing: Rust $toolchain with rustfmt and clippy. Install rustup (https://rustup.rs), then:" >&2
    echo "  rustup toolchain install $toolchain --profile minimal --component rustfmt,clippy" >&2
    exit 1
}

install_packages() {
    local install=(as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends)
    echo "Installing $* ..."
    quietly as_root apt-get update
    # Debian has no Java 17 from 13 on, but a later one, which does as well.
    offered "$java" || set -- "${@/#$java/default-jdk-headless}"
    # The demo runs a server of its own: no cluster is to be made and started by the package.
    local hint=/etc/postgresql-common/createcluster.d/highwater-demo.conf
    if [[ " $* " == *" postgresql "* ]]; then
        quietly "${install[@]}" postgresql-common
        as_root mkdir -p "${hint%/*}"
        echo "create_main_cluster = false" | as_root tee "$hint" >/dev/null
    fi
    local outcome=0
    quietly "${install[@]}" "$@" || outcome=$?
    [ ! -e "$hint" ] || as_root rm -f "$hint"
    return $outcome
}

if [ ${#missing[@]} -gt 0 ]; then
    mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)
    may_install || say_what_to_install "${missing[@]}"
    install_packages "${missing[@]}"
fi

if ! have_rust; then
    # Debian has rustup from 13 on, Ubuntu from 24.04 on.
    if ! have rustup && may_install && offered rustup; then
        install_packages rustup
    fi
    have rustup || say_how_to_get_rust
    echo "Installing Rust $toolchain ..."
    rustup toolchain install "$toolchain" --profile minimal --component rustfmt,clippy ||
        say_how_to_get_rust
fi
