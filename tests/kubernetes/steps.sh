# shellcheck shell=bash
# What the scripts that build programs for tests share: they say what they do, and log the rest in LOG.

say() { printf 'kubernetes: %s\n' "$*" >&2; }

# die TEXT [STATUS]
die() {
  say "$1"
  exit "${2:-1}"
}

# step TEXT COMMAND...: says what is being done every half minute; shows the log's end on failure.
step() {
  local text=$1 start=$SECONDS rc=0 ticker
  shift
  say "$text …"
  (
    trap 'exit 0' TERM
    while sleep 30 >/dev/null; do say "$text … $((SECONDS - start)) s"; done
  ) &
  ticker=$!
  "$@" >>"$LOG" 2>&1 </dev/null || rc=$?
  { kill "$ticker" && wait "$ticker"; } 2>/dev/null || true
  if ((rc != 0)); then
    say "$text: failed; the end of $LOG:"
    tail -n 25 "$LOG" >&2
    exit "$rc"
  fi
}

# go_mod_of MODULE@VERSION: the go.mod of a published module, as a file. A proxy that must fetch the
# module first may answer too late, once.
go_mod_of() {
  local answer
  answer=$(cd / && go mod download -json "$1") || answer=$(cd / && go mod download -json "$1") || true
  printf '%s' "$answer" | python3 -c '
import json, sys
answer = json.loads(sys.stdin.read() or "{}")
sys.exit(print(answer["GoMod"]) if "GoMod" in answer else answer.get("Error") or "go mod download: no answer")'
}

# choose_go NAME MODULE@VERSION: sets MOD to the module's go.mod; exit status 3 where this machine's Go
# cannot build it.
choose_go() {
  local needs has
  command -v go >/dev/null || die "$1 is built with Go, which is not on PATH" 3
  # Go fetches no other toolchain: where this one is too old, the message says which one is needed.
  export CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS='-mod=mod -buildvcs=false'
  MOD=$(go_mod_of "$2") || die "$(go version) cannot fetch $1" 3
  needs=$(sed -n 's/^go \([0-9.]*\).*/\1/p' "$MOD")
  has=$(go env GOVERSION | sed 's/^go\([0-9.]*\).*/\1/')
  [[ $(printf '%s\n%s\n' "$needs" "$has" | sort -V | head -n 1) == "$needs" ]] ||
    die "$1 needs Go $needs, and this machine has $has" 3
}

# what_is_missing PROGRAM...: sets `missing` to those that are not below BIN. Nobody else builds there
# until this script ends.
what_is_missing() {
  local program
  exec 9>"$DIR/build.lock"
  flock 9
  missing=()
  for program; do [[ -x $BIN/$program ]] || missing+=("$program"); done
}
