#!/bin/sh
# install.sh PYTHON WHAT: create .venv with PYTHON if needed, and install WHAT (".[all]", ".[dev]") into it.
set -eu
python=$1
what=$2

say() { printf '%s\n' "$*" >&2; }

may_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    say "retold needs Python 3.11 or later, and '$python' is not. Name one: make PYTHON=/path/to/python3"
    exit 1
fi

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    # Debian and Ubuntu have ensurepip, which a virtual environment needs for pip, in a package of its own.
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null && may_install; then
        say "installing python3-venv"
        apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null
    fi
    say "making .venv"
    "$python" -m venv --clear .venv
fi

say "installing $what into .venv"
.venv/bin/python -m pip install -qq --disable-pip-version-check --editable "$what"
