#!/bin/sh
# try_install.sh INSTALLER WHEEL: install a wheel with pip, uv or pipx for a new user; run what the core has; then do the
# same with all extras, and uninstall. Nothing outside of a temporary folder is changed.
set -eu
installer=$1
wheel=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
unset RETOLD_HOME GEMINI_CLI_HOME GEMINI_SESSIONS_DIR CLAUDE_CONFIG_DIR CLAUDE_PROJECTS_DIR CODEX_HOME CODEX_SESSIONS_DIR XDG_DATA_HOME XDG_CONFIG_HOME
export HOME="$home" PIPX_HOME="$home/pipx" PIPX_BIN_DIR="$home/bin" UV_TOOL_DIR="$home/uv" UV_TOOL_BIN_DIR="$home/bin"
export PATH="$home/bin:$home/venv/bin:$PATH"

fail() { echo "try_install.sh: $*" >&2; exit 1; }

# Install the wheel with the given extras.
install_wheel() {
    wanted="retold$1 @ file://$wheel"
    case $installer in
    pip) [ -d "$home/venv" ] || python3 -m venv "$home/venv"; "$home/venv/bin/pip" install -q "$wanted" ;;
    uv) uv tool install -q --force "$wanted" ;;
    pipx) pipx install -q --force "$wanted" ;;
    *) fail "no installer: $installer" ;;
    esac
    case $(command -v retold) in "$home"/*) ;; *) fail "retold is not on PATH" ;; esac
}

uninstall() {
    case $installer in
    pip) "$home/venv/bin/pip" uninstall -q -y retold ;;
    uv) uv tool uninstall -q retold ;;
    pipx) pipx uninstall retold >/dev/null ;;
    esac
}

# Check that a command ends with code 4 and says which extra it needs.
needs() {
    extra=$1
    shift
    code=0
    said=$(retold "$@" 2>&1 >/dev/null </dev/null) || code=$?
    case $code:$said in
    4:*"needs more packages: "*"'retold[$extra]'") ;;
    *) fail "retold $*: exit code $code: $said" ;;
    esac
}

install_wheel ""
retold --version
eval "$(retold demo "$home/demo" 2>/dev/null)"
retold sync
key=$(retold sql "SELECT session FROM sessions LIMIT 1" --csv | tail -n 1)
retold list >/dev/null
retold search "time zone" >/dev/null
retold show "$key" >/dev/null
retold stats >/dev/null
retold doctor >/dev/null || [ $? = 1 ] # some of the demo's sessions are at risk
retold export --all --format md -o "$home/md" 2>/dev/null
needs web web --no-browser
needs mcp mcp
needs mcp connect claude --yes
needs html export --all --format html -o "$home/html"
needs parquet export --all --format parquet -o "$home/parquet"

install_wheel "[all]"
retold export --all --format html -o "$home/html" 2>/dev/null
retold mcp </dev/null
needs parquet export --all --format parquet -o "$home/parquet"
retold web --no-browser --no-watch >"$home/link" 2>/dev/null &
page=$!
tries=0
until [ -s "$home/link" ] || [ $tries = 100 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
python3 -c "
import sys, urllib.request
from http.cookiejar import CookieJar
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(CookieJar()))
assert b'retold' in opener.open(open(sys.argv[1]).read().strip()).read()" "$home/link" || fail "the page does not open"
kill "$page"

cp -R "$home/demo/home" "$home/before"
retold connect claude --yes >/dev/null 2>&1
retold connect claude --remove --yes >/dev/null 2>&1
program=$(command -v retold)
uninstall
[ ! -e "$program" ] || fail "retold is still there"
diff -r "$home/before" "$home/demo/home" || fail "something is left in the agents' homes"
echo "$installer: all as expected"
