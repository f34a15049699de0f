#!/bin/sh
# slurm_batch [ARGUMENT...]: runs the job's script as the first node of a job does.
#
# SWELL_SLURM_OUTPUT, _ERROR and _OPEN_MODE say where the output goes, besides the pod's log;
# SWELL_SLURM_SIGNAL, _SIGNAL_AFTER and _SIGNAL_SHELL which signal is sent, and when.
#
# The script is the leader of a session of its own, so that one signal reaches all that it has
# started. A shell that gets a stop signal ends at once; the steps it started may still be saving
# themselves, and are waited for.
die() { echo "slurm_batch: $*" >&2; exit 1; }
folder=/var/spool/slurm
# The limit counts from the start of the pod, which is when its volumes are made. An image may be pulled after that.
now=$(date +%s)
begin=$(stat -L -c %Y "$folder/slurm_batch" 2>/dev/null) && [ "$begin" -le "$now" ] || begin=$now
restarts=$((${SLURM_RESTART_COUNT:-0} + ${SWELL_SLURM_REQUEUES:-0}))
SLURM_RESTART_COUNT=$restarts
[ "$restarts" != 0 ] || unset SLURM_RESTART_COUNT
PATH=$folder:${SWELL_SLURM_PATH:+$SWELL_SLURM_PATH:}$PATH
SWELL_SLURM_WORK=${TMPDIR:-/tmp}/slurm-$SLURM_JOB_ID
SWELL_SLURM_BASH_ENV=${BASH_ENV-}
BASH_ENV=$folder/bash_env
export PATH SWELL_SLURM_WORK SWELL_SLURM_BASH_ENV BASH_ENV
rm -rf "$SWELL_SLURM_WORK"
mkdir -p "$SWELL_SLURM_WORK/tasks" || die "cannot make $SWELL_SLURM_WORK"

# Which process ends the pod: slurm_request reads it.
echo $$ >"$SWELL_SLURM_WORK/main"

append=
[ "${SWELL_SLURM_OPEN_MODE-}" = append ] && append=-a
# Work that starts again continues its file.
[ "$restarts" = 0 ] || append=-a
# copy NAME FILE: what is written to the FIFO of that name goes to the file and to the pod's log.
copy() {
  file=$(printf %s "$2" | sed "s|%N|${SLURMD_NODENAME-}|g")
  mkdir -p "$(dirname "$file")" || die "cannot make the folder of the output file $file"
  more=$append
  # After a node's failure or a pause, too, a file of this job's own is continued.
  if [ -n "${SWELL_SLURM_OWN_SINCE-}" ] && [ -e "$file" ]; then
    [ "$(stat -c %Y "$file" || echo 0)" -lt "$SWELL_SLURM_OWN_SINCE" ] || more=-a
  fi
  : >>"$file" || die "cannot write the output file $file"
  mkfifo "$SWELL_SLURM_WORK/$1" || die "cannot make a FIFO in $SWELL_SLURM_WORK"
  # shellcheck disable=SC2086
  tee $more "$file" <"$SWELL_SLURM_WORK/$1" &
  copies="$copies $!"
}
copies=
if [ -n "${SWELL_SLURM_OUTPUT-}" ]; then
  copy out "$SWELL_SLURM_OUTPUT"
  exec 3>"$SWELL_SLURM_WORK/out"
else
  exec 3>&1
fi
if [ -n "${SWELL_SLURM_ERROR-}" ]; then
  copy err "$SWELL_SLURM_ERROR" >&2
  exec 4>"$SWELL_SLURM_WORK/err"
elif [ -n "${SWELL_SLURM_OUTPUT-}" ]; then
  exec 4>&3
else
  exec 4>&2
fi

# What srun need not send to other nodes: they have it.
export -p >"$SWELL_SLURM_WORK/environment"
# The script's own; srun sends the times to other nodes.
SLURM_JOB_START_TIME=$begin
export SLURM_JOB_START_TIME
if [ -n "${SWELL_SLURM_LIMIT-}" ]; then
  SLURM_JOB_END_TIME=$((begin + SWELL_SLURM_LIMIT))
  export SLURM_JOB_END_TIME
fi
if [ "${SLURM_GPUS_ON_NODE:-0}" -gt 0 ]; then
  numbers='' i=0
  while [ "$i" -lt "$SLURM_GPUS_ON_NODE" ]; do numbers=$numbers${numbers:+,}$i; i=$((i + 1)); done
  SLURM_JOB_GPUS=${CUDA_VISIBLE_DEVICES:-$numbers}
  export SLURM_JOB_GPUS
fi
session=
command -v setsid >/dev/null && session=setsid
# What runs in the background has no input, unless it is given one.
if [ -n "${SWELL_SLURM_STDIN-}" ]; then exec 5<&0; else exec 5</dev/null; fi
$session "$folder/slurm_script" "$@" <&5 >&3 2>&4 3>&- 4>&- 5<&- &
script=$!
echo "$script" >"$SWELL_SLURM_WORK/script"
exec 3>&- 4>&- 5<&-

# all SIGNAL: to the script and everything that it has started. Shells differ in how they read a group.
all() {
  kill -s "$1" -- "-$script" 2>/dev/null || kill -s "$1" "-$script" 2>/dev/null
}
stopped=
# shellcheck disable=SC2317
stop() {
  why=
  # The pod is a little older than its volumes.
  if [ -n "${SWELL_SLURM_LIMIT-}" ] && [ $(($(date +%s) - begin + 3)) -ge "$SWELL_SLURM_LIMIT" ]; then
    why=' DUE TO TIME LIMIT'
  fi
  errors=/dev/stderr
  for file in "$SWELL_SLURM_WORK/out" "$SWELL_SLURM_WORK/err"; do [ ! -p "$file" ] || errors=$file; done
  [ -n "$stopped" ] || printf 'slurmstepd: error: *** JOB %s ON %s CANCELLED AT %s%s ***\n' \
    "$SLURM_JOB_ID" "${SLURMD_NODENAME-}" "$(date +%FT%T)" "$why" >"$errors"
  stopped=1
  all TERM || kill -s TERM "$script" 2>/dev/null
}
trap stop TERM INT
timer=
if [ -n "${SWELL_SLURM_SIGNAL-}" ]; then
  (
    trap 'kill $! 2>/dev/null; exit' TERM
    after=$((begin + SWELL_SLURM_SIGNAL_AFTER - $(date +%s)))
    [ "$after" -gt 0 ] || after=0
    sleep "$after" &
    wait $!
    if [ -n "${SWELL_SLURM_SIGNAL_SHELL-}" ]; then
      kill -s "$SWELL_SLURM_SIGNAL" "$script" 2>/dev/null
    else
      srun --swell-signal "$SWELL_SLURM_SIGNAL"
    fi
  ) &
  timer=$!
fi

wait "$script"
status=$?
while kill -0 "$script" 2>/dev/null; do
  wait "$script"
  status=$?
done
while [ -n "$stopped" ] && all 0; do sleep 1; done
[ -z "$timer" ] || kill "$timer" 2>/dev/null
# What the script left running ends with the pod; its output does not hold up the end.
if [ -n "$session" ]; then
  all KILL
  for one in $copies; do wait "$one"; done
else
  sleep 1
fi
exit "$status"
