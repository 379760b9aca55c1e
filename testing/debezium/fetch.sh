#!/usr/bin/env bash
# Resolves Debezium Engine with Maven into target/debezium, once for each state of pom.xml, and
# prints the path of a file that holds the classpath: java -cp "$(cat "$(fetch.sh)")" ...
# JDK 17 and Maven come with `testing/install/install.sh test`.
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=$PWD/target/debezium
if ! cmp -s testing/debezium/pom.xml "$folder/pom.xml" || [ ! -s "$folder/classpath" ]; then
    mkdir -p "$folder"
    # Two tests may come here at once.
    exec 9>"$folder/lock"
    flock 9
    if ! cmp -s testing/debezium/pom.xml "$folder/pom.xml" || [ ! -s "$folder/classpath" ]; then
        rm -rf "$folder/lib"
        mvn -B -ntp -q -f testing/debezium/pom.xml dependency:copy-dependencies \
            -DoutputDirectory="$folder/lib" -DincludeScope=runtime >&2
        printf '%s' "$folder/lib/*" >"$folder/classpath"
        cp testing/debezium/pom.xml "$folder/pom.xml"
    fi
fi
echo "$folder/classpath"
