#!/bin/sh
# Install Node 20 or later with npm for the tests that run the real agents, or print one line if that is not possible.
set -eu

has_node() {
    command -v npm >/dev/null 2>&1 && node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null
}

quietly() { "$@" >/dev/null 2>&1; }

if ! has_node && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing Node, which some tests need"
    quietly apt-get update -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=20 || true
    quietly env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nodejs npm || true
fi

if ! has_node; then
    echo "left out: the tests that run the real agents, because there is no Node 20 or later with npm"
fi
