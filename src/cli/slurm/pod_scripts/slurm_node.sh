#!/bin/sh
# slurm_node wait: waits on a node for what the first one starts there.
# slurm_node run COUNT COMMAND...: starts so many tasks; SWELL_STEP_* say which.
# slurm_node signal NAME: to the tasks that run on this node.
# slurm_node signal-script NAME [all]: to the script, and to the tasks too.
folder=/var/spool/slurm
SWELL_SLURM_WORK=${TMPDIR:-/tmp}/slurm-$SLURM_JOB_ID
export SWELL_SLURM_WORK
tasks=$SWELL_SLURM_WORK/tasks
steps=$SWELL_SLURM_WORK/steps
mkdir -p "$tasks" "$steps"

# shellcheck disable=SC2317
tell() {
  for file in "$tasks"/*; do
    [ -e "$file" ] || continue
    read -r pid <"$file" && kill -s "$1" "$pid" 2>/dev/null
  done
}
# shellcheck disable=SC2317
any() {
  for file in "$tasks"/* "$steps"/*; do
    [ -e "$file" ] || continue
    read -r pid <"$file" && kill -0 "$pid" 2>/dev/null && return 0
  done
  return 1
}

case ${1-} in
  wait)
    echo $$ >"$SWELL_SLURM_WORK/main"
    # Tasks that were told to stop may still be saving themselves. What they say last is on its way when they end.
    trap 'tell TERM; while any; do sleep 1; done; sleep 1; exit 143' TERM
    while :; do
      sleep 3600 &
      wait $!
    done
    ;;
  signal)
    tell "$2"
    exit 0
    ;;
  signal-script)
    # Only the first node has a script.
    if [ -e "$SWELL_SLURM_WORK/script" ]; then
      read -r pid <"$SWELL_SLURM_WORK/script"
      kill -s "$2" "$pid"
    fi
    [ "${3-}" != all ] || tell "$2"
    exit 0
    ;;
  run) count=$2; shift 2 ;;
  *) echo "slurm_node: wait, run or signal expected" >&2; exit 2 ;;
esac

# The node's GPUs: by CUDA's numbers, and at the same places as the nvidia-smi of virtual GPUs counts them, from 0.
numbers=
i=0
while [ "$i" -lt "${SLURM_GPUS_ON_NODE:-0}" ]; do numbers=$numbers${numbers:+,}$i; i=$((i + 1)); done
node_gpus=${CUDA_VISIBLE_DEVICES:-$numbers} node_shown=${SWELL_VISIBLE_GPUS:-$numbers}
# A step may hold some of them for itself.
if [ -n "${SWELL_STEP_DEVICES-}" ]; then
  all=$node_gpus all_shown=$node_shown node_gpus='' node_shown=''
  for i in $(printf %s "$SWELL_STEP_DEVICES" | tr ',' ' '); do
    node_gpus=$node_gpus${node_gpus:+,}$(printf %s "$all" | cut -d, -f$((i + 1)))
    node_shown=$node_shown${node_shown:+,}$(printf %s "$all_shown" | cut -d, -f$((i + 1)))
  done
  CUDA_VISIBLE_DEVICES=$node_gpus SLURM_STEP_GPUS=$node_gpus SWELL_VISIBLE_GPUS=$node_shown
  export CUDA_VISIBLE_DEVICES SLURM_STEP_GPUS SWELL_VISIBLE_GPUS
fi
# share_of GPUS TASK: which of them the task with this number sees, where they are divided.
share_of() {
  printf %s "$1" | cut -d, -f"$(($2 * SWELL_STEP_GPUS + 1))-$((($2 + 1) * SWELL_STEP_GPUS))"
}

case :$PATH: in *:$folder:*) ;; *) PATH=$folder:${SWELL_SLURM_PATH:+$SWELL_SLURM_PATH:}$PATH ;; esac
export PATH
if [ "${BASH_ENV-}" != "$folder/bash_env" ]; then
  # Not a child of this node's slurm_batch.
  SWELL_SLURM_BASH_ENV=${BASH_ENV-}
  BASH_ENV=$folder/bash_env
  SLURM_RESTART_COUNT=$((${SLURM_RESTART_COUNT:-0} + ${SWELL_SLURM_REQUEUES:-0}))
  export SWELL_SLURM_BASH_ENV BASH_ENV
  [ "$SLURM_RESTART_COUNT" != 0 ] || unset SLURM_RESTART_COUNT
fi
# file_of PATTERN: the task's own file. It is begun anew, but once for the tasks of a node that share one.
file_of() {
  file=$(printf %s "$1" | sed "s|%t|$SLURM_PROCID|g; s|%n|$SLURM_NODEID|g; s|%N|${SLURMD_NODENAME-}|g")
  case $1 in *%t*) : >"$file" ;; *) [ "$local_id" != 0 ] || : >"$file" ;; esac
}
# start COMMAND...: a task, with the input of srun if it is the first of all, and with its own file for errors.
start() {
  if [ -n "${errors-}" ]; then exec 2>>"$errors"; fi
  if [ "$SLURM_PROCID" = 0 ]; then exec "$@" <&5 5<&-; fi
  exec "$@" </dev/null 5<&-
}
exec 5<&0
echo $$ >"$steps/$SLURM_STEP_ID"
ids=
local_id=0
mark=$tasks/$SLURM_STEP_ID
while [ "$local_id" -lt "$count" ]; do
  SLURM_LOCALID=$local_id
  SLURM_PROCID=$((SWELL_STEP_FIRST + local_id))
  export SLURM_LOCALID SLURM_PROCID
  if [ "${SWELL_STEP_GPUS:-0}" -gt 0 ]; then
    CUDA_VISIBLE_DEVICES=$(share_of "$node_gpus" "$local_id")
    SWELL_VISIBLE_GPUS=$(share_of "$node_shown" "$local_id")
    export CUDA_VISIBLE_DEVICES SWELL_VISIBLE_GPUS
  fi
  errors=
  if [ -n "${SWELL_STEP_ERRORS-}" ]; then
    file_of "$SWELL_STEP_ERRORS"
    errors=$file
  fi
  if [ -n "${SWELL_STEP_OUTPUT-}" ]; then
    file_of "$SWELL_STEP_OUTPUT"
    start "$@" >>"$file" 2>&1 &
  elif [ -n "${SWELL_STEP_LABEL-}" ]; then
    mkfifo "$mark.$local_id.fifo"
    sed "s/^/$SLURM_PROCID: /" <"$mark.$local_id.fifo" &
    labels="${labels-} $!"
    start "$@" >"$mark.$local_id.fifo" 2>&1 &
  else
    start "$@" &
  fi
  task=$!
  ids="$ids $task"
  echo "$task" >"$mark.$local_id"
  local_id=$((local_id + 1))
done
# A signal to the whole session has reached the tasks by itself.
trap : TERM INT
worst=0
local_id=0
for one in $ids; do
  wait "$one"
  status=$?
  while kill -0 "$one" 2>/dev/null; do
    wait "$one"
    status=$?
  done
  rm -f "$mark.$local_id"
  [ "$status" -le "$worst" ] || worst=$status
  [ "$status" = 0 ] ||
    echo "srun: error: ${SLURMD_NODENAME-}: task $((SWELL_STEP_FIRST + local_id)): Exited with exit code $status" >&2
  local_id=$((local_id + 1))
done
for one in ${labels-}; do wait "$one"; done
rm -f "$mark".*.fifo "$steps/$SLURM_STEP_ID"
exit "$worst"
