#!/bin/sh
# Install Chromium for the tests that open pages in a browser, or print one line if that is not possible.
set -eu

has_browser() {
    command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1
}

quietly() { "$@" >/dev/null 2>&1; }

if ! has_browser && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing Chromium, which some tests need"
    quietly apt-get update -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=20 || true
    quietly env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium || true
fi

if ! has_browser; then
    echo "left out: the tests that open pages in a browser, because there is no Chromium"
fi
