#!/usr/bin/env bash
# A throw-away PostgreSQL for tests: in a folder of its own, on a free port of the loopback, as an
# unprivileged user, with logical decoding on and SCRAM passwords.
#
#   server.sh start DIR   makes and starts one in the new folder DIR, prints "PORT BINDIR"
#   server.sh stop DIR    stops it at once and removes DIR
#   server.sh hold        starts one in a temporary folder, prints "PORT DIR BINDIR", and stops it
#                         when its standard input ends: with the test that holds the other end
#   server.sh pause DIR           stops it in order
#   server.sh resume DIR PORT     starts it again
#   server.sh save DIR            keeps a copy of a paused one
#   server.sh swap DIR            puts the copy in its place
#   server.sh promote DIR PORT    starts a paused one as a standby and promotes it: a new timeline
#   server.sh halt DIR HOW        stops it: smart, fast, immediate, or kill (SIGKILL, all processes)
#   server.sh follow DIR PORT     starts a standby of it below DIR, prints its port
#   server.sh succeed DIR         promotes that standby
#   server.sh reload DIR PORT     makes it read its settings and certificates again, and waits
#   server.sh put DIR NAME        writes standard input to a file of its data folder, mode 600
#
# The superuser is postgres with password secret. The roles legacy, clear and open log in with MD5,
# a clear-text password and none.
set -euo pipefail

find_bin() {
    local bin
    for bin in $(ls -d /usr/lib/postgresql/*/bin /usr/pgsql-*/bin 2>/dev/null | sort -rV); do
        if [ -x "$bin/initdb" ]; then echo "$bin"; return 0; fi
    done
    if command -v initdb >/dev/null; then dirname "$(command -v initdb)"; return 0; fi
    return 1
}

install_server() {
    echo "installing PostgreSQL" >&2
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql >&2
    else
        echo "PostgreSQL is missing; on Debian and Ubuntu: sudo apt-get install postgresql" >&2
        exit 1
    fi
}

# PostgreSQL refuses to run as root.
as_owner() {
    if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi
}

make_cluster() {
    local dir=$1 bin=$2 data=$1/data
    mkdir -p "$dir"
    printf 'secret\n' >"$dir/password"
    if [ "$(id -u)" = 0 ]; then chown -R postgres "$dir"; fi
    as_owner "$bin/initdb" -D "$data" -U postgres -E UTF8 --locale=C.UTF-8 -A scram-sha-256 \
        --pwfile="$dir/password" --no-sync >"$dir/initdb.log" 2>&1 || { cat "$dir/initdb.log" >&2; exit 1; }
    as_owner tee -a "$data/postgresql.conf" >/dev/null <<CONF
listen_addresses = '127.0.0.1'
unix_socket_directories = '$dir'
wal_level = logical
max_replication_slots = 300
max_wal_senders = 100
max_connections = 200
max_prepared_transactions = 10
max_wal_size = '4GB'
fsync = off
CONF
    as_owner tee "$data/pg_hba.conf" >/dev/null <<'HBA'
host  all legacy 127.0.0.1/32 md5
host  all clear  127.0.0.1/32 password
host  all open   127.0.0.1/32 trust
host  all all    127.0.0.1/32 scram-sha-256
host  replication all 127.0.0.1/32 scram-sha-256
local all all                 scram-sha-256
HBA
}

start() {
    local dir=$1 bin port
    bin=$(find_bin) || { install_server; bin=$(find_bin); }
    make_cluster "$dir" "$bin"
    for _ in 1 2 3 4 5 6 7 8; do
        port=$((20000 + RANDOM % 12000))
        if as_owner "$bin/pg_ctl" -D "$dir/data" -l "$dir/log" -o "-p $port" -w start >"$dir/start.log" 2>&1; then
            PGPASSWORD=secret "$bin/psql" -h 127.0.0.1 -p "$port" -U postgres -q \
                -c "create role open superuser login" \
                -c "create role clear superuser login password 'secret'" \
                -c "set password_encryption = md5" \
                -c "create role legacy superuser login password 'secret'" >&2
            echo "$port $bin"
            return 0
        fi
    done
    cat "$dir/start.log" "$dir/log" >&2
    exit 1
}

stop() {
    local dir=$1 bin data
    bin=$(find_bin)
    for data in "$dir/data" "$dir/standby"; do
        as_owner "$bin/pg_ctl" -D "$data" -m immediate stop >/dev/null 2>&1 || true
    done
    rm -rf "$dir"
}

control() {
    local dir=$1 bin
    shift
    bin=$(find_bin)
    as_owner "$bin/pg_ctl" -D "$dir/data" -l "$dir/log" -w "$@" >"$dir/control.log" 2>&1 ||
        { cat "$dir/control.log" "$dir/log" >&2; exit 1; }
}

# What the machine's loss of power would leave running: nothing.
kill_all() {
    local pid
    pid=$(head -1 "$1/data/postmaster.pid")
    # shellcheck disable=SC2046  # one word a process
    kill -9 "$pid" $(pgrep -P "$pid")
    while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
}

follow() {
    local dir=$1 port=$2 bin standby
    bin=$(find_bin)
    PGPASSWORD=secret as_owner "$bin/pg_basebackup" -h 127.0.0.1 -p "$port" -U postgres \
        -D "$dir/standby" -R -X stream -c fast >"$dir/follow.log" 2>&1 ||
        { cat "$dir/follow.log" >&2; exit 1; }
    for _ in 1 2 3 4 5 6 7 8; do
        standby=$((20000 + RANDOM % 12000))
        if as_owner "$bin/pg_ctl" -D "$dir/standby" -l "$dir/standby.log" -o "-p $standby" -w start \
            >"$dir/follow.log" 2>&1; then
            echo "$standby"
            return 0
        fi
    done
    cat "$dir/follow.log" "$dir/standby.log" >&2
    exit 1
}

# The settings count for connections made after the postmaster has read them.
reload() {
    local dir=$1 before
    before=$(grep -c 'received SIGHUP' "$dir/log" || true)
    control "$dir" reload
    until [ "$(grep -c 'received SIGHUP' "$dir/log" || true)" -gt "$before" ]; do sleep 0.05; done
}

put() {
    as_owner tee "$1/data/$2" >/dev/null
    as_owner chmod 600 "$1/data/$2"
}

hold() {
    local dir answer
    dir=$(mktemp -d "${TMPDIR:-/tmp}/hw-postgres.XXXXXX")
    chmod 755 "$dir"
    # shellcheck disable=SC2064  # the folder is known now
    trap "stop '$dir'" EXIT
    answer=$(start "$dir")
    echo "${answer%% *} $dir ${answer#* }"
    exec >/dev/null
    cat >/dev/null || true
}

case ${1:-} in
    start) start "${2:?a folder}" ;;
    stop) stop "${2:?a folder}" ;;
    hold) hold ;;
    reload) reload "${2:?a folder}" "${3:?a port}" ;;
    pause) control "${2:?a folder}" -m fast stop ;;
    resume) control "${2:?a folder}" -o "-p ${3:?a port}" start ;;
    save) as_owner cp -a "${2:?a folder}/data" "$2/saved" ;;
    swap) as_owner mv "${2:?a folder}/data" "$2/old" && as_owner mv "$2/saved" "$2/data" ;;
    promote)
        as_owner touch "${2:?a folder}/data/standby.signal"
        control "$2" -o "-p ${3:?a port}" start
        control "$2" promote
        ;;
    halt)
        case ${3:?how} in
            kill) kill_all "${2:?a folder}" ;;
            *) control "${2:?a folder}" -m "$3" stop ;;
        esac
        ;;
    follow) follow "${2:?a folder}" "${3:?a port}" ;;
    succeed) as_owner "$(find_bin)/pg_ctl" -D "${2:?a folder}/standby" -w promote >/dev/null ;;
    put) put "${2:?a folder}" "${3:?a name}" ;;
    *)
        echo "usage: server.sh start|stop|pause|save|swap|succeed DIR | resume|promote|follow|reload DIR PORT |" \
            "halt DIR HOW | put DIR NAME | hold" >&2
        exit 2
        ;;
esac
