# shellcheck shell=bash
# What ./dev says: colours where a terminal is, one ticking line for what takes long, errors with what to do.
# Sourced by ./dev, which sets LOGS.

# shellcheck disable=SC2034  # ./dev uses the colours
if [[ -t 1 && -z ${CI:-} && ${TERM:-dumb} != dumb ]]; then LIVE=1; else LIVE=; fi
if [[ -n $LIVE && -z ${NO_COLOR:-} ]]; then
  readonly BOLD=$'\e[1m' DIM=$'\e[2m' RED=$'\e[31m' GREEN=$'\e[32m' OFF=$'\e[0m'
else
  readonly BOLD='' DIM='' RED='' GREEN='' OFF=''
fi

say() { printf '%s\n' "$*"; }
note() { printf '%s%s%s\n' "$DIM" "$*" "$OFF"; }
good() { printf '%s%s%s\n' "$GREEN" "$*" "$OFF"; }
bad() { printf '%s%s%s\n' "$RED" "$*" "$OFF" >&2; }

# die MESSAGE [WHAT TO DO]...
die() {
  bad "dev: $1"
  shift
  local line
  for line in "$@"; do printf '     %s\n' "$line" >&2; done
  exit 1
}
usage_error() {
  bad "dev: $1"
  printf "     See: ./dev %s -h\n" "$2" >&2
  exit 2
}

TICKER=
stop_ticker() {
  [[ -n $TICKER ]] || return 0
  kill "$TICKER" 2>/dev/null || true
  wait "$TICKER" 2>/dev/null || true
  TICKER=
  if [[ -n $LIVE ]]; then printf '\r\e[K'; fi
}
trap stop_ticker EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Says what is being done while it is: one line that counts on a terminal, one line each half minute
# elsewhere. The command itself stays in the foreground, so that ^C reaches it.
start_ticker() {
  local text=$1
  if [[ -n $LIVE ]]; then
    (
      trap 'exit 0' TERM
      start=$SECONDS
      while :; do
        printf '\r\e[K%s … %d s' "$text" $((SECONDS - start))
        sleep 1 >/dev/null
      done
    ) &
  else
    say "$text …"
    (
      trap 'exit 0' TERM
      start=$SECONDS
      last=0
      while :; do
        sleep 1 >/dev/null 2>&1
        if ((SECONDS - start - last >= 30)); then
          last=$((SECONDS - start))
          say "$text … $last s"
        fi
      done
    ) &
  fi
  TICKER=$!
}

# quietly TEXT LOG COMMAND...: runs COMMAND into LOG; shows the log's end only when it fails.
quietly() {
  local text=$1 log=$2 rc=0 start=$SECONDS
  shift 2
  mkdir -p "$(dirname "$log")"
  start_ticker "$text"
  "$@" >"$log" 2>&1 </dev/null || rc=$?
  stop_ticker
  if ((rc != 0)); then
    bad "$text: failed (exit status $rc). The end of $log:"
    tail -n 40 "$log" >&2
    return "$rc"
  fi
  note "$text: done in $((SECONDS - start)) s"
}
