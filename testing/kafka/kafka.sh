#!/usr/bin/env bash
# A throw-away Apache Kafka, from Maven Central, and its tools: one KRaft node (broker and controller
# in one process) in a folder of its own, on the loopback.
set -euo pipefail
shopt -s inherit_errexit

help() {
    cat <<'HELP'
A throw-away Apache Kafka for tests and benches: one KRaft node on the loopback, and the tools.

  kafka.sh fetch                        gets it with Maven into target/kafka, prints the folder of jars
  kafka.sh start DIR PORT [KEY=VALUE…]  makes a node in the new folder DIR, starts it, waits until it
                                        answers, prints its bootstrap address; port 0: a free one
  kafka.sh stop DIR                     stops it at once and removes DIR
  kafka.sh hold [KEY=VALUE…]            starts one in a temporary folder, prints "BOOTSTRAP DIR", and
                                        stops it when standard input ends: with the test at its other end
  kafka.sh pause DIR                    stops it in order, its data kept
  kafka.sh kill DIR                     kills it (SIGKILL), its data kept
  kafka.sh resume DIR                   starts it again where it stopped
  kafka.sh tool NAME|CLASS ARGS…        runs a tool: kafka-topics, kafka-consumer-groups, …, or any class

Keys with a meaning of their own; any other is a broker setting (auto.create.topics.enable=false):
  security=plaintext|ssl|sasl_plaintext|sasl_ssl
                  what clients must speak (plaintext). SASL has the users admin (a super user of an
                  authorizer) and app, for PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512
  advertise=HOST:PORT  what clients are told to connect to, such as a proxy (127.0.0.1:PORT)
  password=WORD   the password of those users (app-secret, and admin-secret for admin)
  client.auth=none|requested|required
                  whether TLS asks clients for a certificate (none)
  feature=NAME=LEVEL    a feature's level when the storage is made, such as transaction.version=1
  heap=SIZE       the JVM's heap (384m)
  jvm="OPTIONS"   other JVM options than those that make a short life cheap

DIR then holds: server.properties, log (what the node says), data (its files), pid, bootstrap,
internal (an address in the clear, for tools), client.properties (for tools and for
highwater --kafka-config, as user app), admin.properties (as admin), and with TLS ca.pem, and
client.pem (key and certificates of CN=client).
JDK 17, Maven and openssl come with `testing/install/install.sh test`.
HELP
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=${here%/testing/kafka}/target/kafka

fetch() {
    if ! cmp -s "$here/pom.xml" "$home/pom.xml"; then
        mkdir -p "$home"
        # Two tests may come here at once.
        exec 9>"$home/lock"
        flock 9
        if ! cmp -s "$here/pom.xml" "$home/pom.xml"; then
            rm -rf "$home/lib"
            mvn -B -ntp -q -f "$here/pom.xml" dependency:copy-dependencies \
                -DoutputDirectory="$home/lib" -DincludeScope=runtime >&2
            cp "$here/pom.xml" "$home/pom.xml"
        fi
        exec 9>&-
    fi
}

# Options that make a short life cheap: no second compiler, no threads for the garbage.
brief="-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto"

# Takes the place of the shell, so that a node's process is the JVM itself.
become_java() { # options… class arguments…
    exec java -cp "$home/lib/*" -Dlog4j2.configurationFile="file:$here/log4j2.properties" \
        -Djava.net.preferIPv4Stack=true "$@"
}

class_of() {
    case $1 in
        kafka-topics) echo org.apache.kafka.tools.TopicCommand ;;
        kafka-configs) echo org.apache.kafka.tools.ConfigCommand ;;
        kafka-acls) echo org.apache.kafka.tools.AclCommand ;;
        kafka-cluster) echo org.apache.kafka.tools.ClusterTool ;;
        kafka-features) echo org.apache.kafka.tools.FeatureCommand ;;
        kafka-log-dirs) echo org.apache.kafka.tools.LogDirsCommand ;;
        kafka-dump-log) echo org.apache.kafka.tools.DumpLogSegments ;;
        kafka-storage) echo kafka.tools.StorageTool ;;
        kafka-groups) echo org.apache.kafka.tools.GroupsCommand ;;
        kafka-consumer-groups) echo org.apache.kafka.tools.consumer.group.ConsumerGroupCommand ;;
        kafka-get-offsets) echo org.apache.kafka.tools.GetOffsetShell ;;
        kafka-delete-records) echo org.apache.kafka.tools.DeleteRecordsCommand ;;
        kafka-transactions) echo org.apache.kafka.tools.TransactionsCommand ;;
        kafka-leader-election) echo org.apache.kafka.tools.LeaderElectionCommand ;;
        kafka-broker-api-versions) echo org.apache.kafka.tools.BrokerApiVersionsCommand ;;
        kafka-console-producer) echo org.apache.kafka.tools.ConsoleProducer ;;
        kafka-console-consumer) echo org.apache.kafka.tools.consumer.ConsoleConsumer ;;
        kafka-producer-perf-test) echo org.apache.kafka.tools.ProducerPerformance ;;
        kafka-consumer-perf-test) echo org.apache.kafka.tools.ConsumerPerformance ;;
        kafka-verifiable-producer) echo org.apache.kafka.tools.VerifiableProducer ;;
        kafka-verifiable-consumer) echo org.apache.kafka.tools.VerifiableConsumer ;;
        kafka-*) echo "kafka.sh: no tool of the name $1; give its class" >&2; exit 2 ;;
        *) echo "$1" ;;
    esac
}

tool() {
    local class
    class=$(class_of "$1")
    shift
    fetch
    # shellcheck disable=SC2086  # several options
    become_java -Xmx"${KAFKA_TOOL_HEAP:-128m}" $brief "$class" "$@"
}

free_port() {
    local port
    while port=$((20000 + RANDOM % 12000)) && (: >"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
    echo "$port"
}

# What start was told, apart from settings of the broker.
security=plaintext advertise= password= client_auth=none features=() heap=384m jvm=$brief settings=()

read_options() {
    local option
    for option in "$@"; do
        case $option in
            security=*) security=${option#*=} ;;
            advertise=*) advertise=${option#*=} ;;
            password=*) password=${option#*=} ;;
            client.auth=*) client_auth=${option#*=} ;;
            feature=*) features+=(--feature "${option#*=}") ;;
            heap=*) heap=${option#*=} ;;
            jvm=*) jvm=${option#*=} ;;
            *=*) settings+=("$option") ;;
            *) echo "kafka.sh: not KEY=VALUE: $option" >&2; exit 2 ;;
        esac
    done
    case $security in
        plaintext | ssl | sasl_plaintext | sasl_ssl) ;;
        *) echo "kafka.sh: no such security: $security" >&2; exit 2 ;;
    esac
}

# A key and a certificate of the test's own authority, as one PEM file that every client reads.
certify() { # DIR NAME EXTENSION
    local dir=$1 name=$2
    printf '%s\n' basicConstraints=critical,CA:FALSE "$3" >"$dir/$name.ext"
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$name" -keyout "$dir/$name.key" |
        openssl x509 -req -days 3650 -CA "$dir/ca.pem" -CAkey "$dir/ca.key" -CAcreateserial \
            -extfile "$dir/$name.ext" -out "$dir/$name.crt"
    cat "$dir/$name.key" "$dir/$name.crt" "$dir/ca.pem" >"$dir/$name.pem"
}

make_certificates() {
    local dir=$1
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 \
        -subj "/CN=authority of a test" -keyout "$dir/ca.key" -out "$dir/ca.pem"
    certify "$dir" server subjectAltName=DNS:localhost,IP:127.0.0.1
    certify "$dir" client extendedKeyUsage=clientAuth
}

# The clients' files, as Java's clients and Highwater's --kafka-config read them.
make_clients() {
    local dir=$1 user file
    for user in app admin; do
        file=$dir/client.properties
        [ $user = app ] || file=$dir/admin.properties
        {
            echo "security.protocol=${security^^}"
            case $security in sasl_*)
                echo "sasl.mechanism=SCRAM-SHA-512"
                echo "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required" \
                    "username=\"$user\" password=\"${password:-$user-secret}\";"
            esac
            case $security in *ssl)
                echo "ssl.truststore.type=PEM"
                echo "ssl.truststore.location=$dir/ca.pem"
            esac
        } >"$file"
    done
}

sasl_settings() {
    local login=org.apache.kafka.common.security
    cat <<SASL
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.client.scram-sha-256.sasl.jaas.config=$login.scram.ScramLoginModule required;
listener.name.client.scram-sha-512.sasl.jaas.config=$login.scram.ScramLoginModule required;
listener.name.client.plain.sasl.jaas.config=$login.plain.PlainLoginModule required user_app="${password:-app-secret}" user_admin="${password:-admin-secret}";
SASL
}

tls_settings() {
    cat <<TLS
listener.name.client.ssl.keystore.type=PEM
listener.name.client.ssl.keystore.location=$1/server.pem
listener.name.client.ssl.truststore.type=PEM
listener.name.client.ssl.truststore.location=$1/ca.pem
listener.name.client.ssl.client.auth=$client_auth
TLS
}

# Settings given last win.
make_settings() {
    local dir=$1 port=$2 internal controller
    internal=$(free_port)
    controller=$(free_port)
    cat <<SETTINGS
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$controller
controller.listener.names=CONTROLLER
listeners=CLIENT://127.0.0.1:$port,INTERNAL://127.0.0.1:$internal,CONTROLLER://127.0.0.1:$controller
advertised.listeners=CLIENT://${advertise:-127.0.0.1:$port},INTERNAL://127.0.0.1:$internal
listener.security.protocol.map=CLIENT:${security^^},INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=INTERNAL
log.dirs=$dir/data
num.partitions=1
num.network.threads=2
num.io.threads=4
default.replication.factor=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.cleaner.dedupe.buffer.size=16777216
super.users=User:ANONYMOUS;User:admin
SETTINGS
    case $security in sasl_*) sasl_settings ;; esac
    case $security in *ssl) tls_settings "$dir" ;; esac
    [ ${#settings[@]} = 0 ] || printf '%s\n' "${settings[@]}"
    echo "127.0.0.1:$internal" >"$dir/internal"
    echo "127.0.0.1:$port" >"$dir/bootstrap"
}

format() {
    local dir=$1 users=() user mechanism
    case $security in sasl_*)
        for user in app admin; do
            for mechanism in SCRAM-SHA-256 SCRAM-SHA-512; do
                users+=(--add-scram "$mechanism=[name=$user,password=${password:-$user-secret}]")
            done
        done
    esac
    # shellcheck disable=SC2086  # several options
    (become_java -Xmx128m $brief kafka.tools.StorageTool format -c "$dir/server.properties" \
        -t "$(head -c 16 /dev/urandom | base64 | tr '+/' 'ab' | tr -d '=')" \
        "${users[@]}" "${features[@]}") >"$dir/format.log" 2>&1 ||
        { cat "$dir/format.log" >&2; return 1; }
}

start() {
    local dir=$1 port=$2
    shift 2
    read_options "$@"
    fetch
    mkdir -p "$dir"
    dir=$(cd "$dir" && pwd)
    [ "$port" != 0 ] || port=$(free_port)
    case $security in *ssl) make_certificates "$dir" 2>"$dir/openssl.log" ;; esac
    make_settings "$dir" "$port" >"$dir/server.properties"
    make_clients "$dir"
    echo "-Xmx$heap $jvm" >"$dir/jvm"
    format "$dir"
    resume "$dir"
}

alive() { kill -0 "$(cat "$1/pid")" 2>/dev/null; }

resume() {
    local dir=$1 starts waited=0
    starts=$(started "$dir")
    # shellcheck disable=SC2046  # several options
    (become_java -Dlog.level=INFO $(cat "$dir/jvm") kafka.Kafka "$dir/server.properties") \
        >>"$dir/log" 2>&1 </dev/null &
    echo $! >"$dir/pid"
    until [ "$(started "$dir")" -gt "$starts" ]; do
        alive "$dir" || { echo "kafka.sh: the node ended:" >&2; tail -40 "$dir/log" >&2; return 1; }
        [ $((waited += 1)) -lt 1200 ] || { echo "kafka.sh: not ready in two minutes" >&2; return 1; }
        sleep 0.1
    done
    cat "$dir/bootstrap"
}

# How often the node said that it serves: only then is it let in by the controller, too.
started() { cat "$1/log" 2>/dev/null | grep -c 'Kafka Server started' || true; }

halt() { # DIR SIGNAL
    local dir=$1
    kill "-$2" "$(cat "$dir/pid")" 2>/dev/null || return 0
    while alive "$dir"; do sleep 0.05; done
}

stop() {
    [ ! -e "$1/pid" ] || halt "$1" KILL
    rm -rf "$1"
}

hold() {
    local dir answer
    dir=$(mktemp -d "${TMPDIR:-/tmp}/hw-kafka.XXXXXX")
    # shellcheck disable=SC2064  # the folder is known now
    trap "stop '$dir'" EXIT
    answer=$(start "$dir" 0 "$@")
    echo "$answer $dir"
    exec >/dev/null
    cat >/dev/null || true
}

command=${1:-}
[ $# = 0 ] || shift
case $command in
    fetch) fetch && echo "$home/lib" ;;
    start) start "${1:?a folder}" "${2:?a port}" "${@:3}" ;;
    stop) stop "${1:?a folder}" ;;
    hold) hold "$@" ;;
    pause) halt "${1:?a folder}" TERM ;;
    kill) halt "${1:?a folder}" KILL ;;
    resume) resume "${1:?a folder}" ;;
    tool) tool "${1:?a tool}" "${@:2}" ;;
    help | --help | -h) help ;;
    *)
        echo "usage: kafka.sh fetch | start DIR PORT [KEY=VALUE…] | stop|pause|kill|resume DIR |" \
            "hold [KEY=VALUE…] | tool NAME ARGS…; kafka.sh help says more" >&2
        exit 2
        ;;
esac
