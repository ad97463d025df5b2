#!/bin/sh
# Install Java 17 or later for the tests that run Spark, or print one line if that is not possible.
set -eu

has_java() {
    version=$(java -version 2>&1 | sed -n 's/^[^"]* version "\([0-9]*\).*/\1/p')
    [ "${version:-0}" -ge 17 ]
}

quietly() { "$@" >/dev/null 2>&1; }

if ! has_java && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing Java, which some tests need"
    quietly apt-get update -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=20 || true
    quietly env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless || true
fi

if ! has_java; then
    echo "left out: the tests that run Spark, because there is no Java 17 or later"
fi
