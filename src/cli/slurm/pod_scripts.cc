#include "cli/slurm/pod_scripts.h"

namespace swell::cli::slurm {

// SWELL_SLURM_OUTPUT, _ERROR and _OPEN_MODE say where the output goes, besides the pod's log;
// SWELL_SLURM_SIGNAL, _SIGNAL_AFTER and _SIGNAL_SHELL which signal is sent, and when.
//
// The script is the leader of a session of its own, so that one signal reaches all that it has
// started. A shell that is told to stop ends at once; the steps it started may still be saving
// themselves, and are waited for.
const PodScript kBatchScript{"slurm_batch", R"sh(#!/bin/sh
# slurm_batch [ARGUMENT...]: runs the job's script as the first node of a job does.
die() { echo "slurm_batch: $*" >&2; exit 1; }
folder=/var/spool/slurm
begin=$(date +%s)
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
  if [ -n "${SWELL_SLURM_LIMIT-}" ] && [ $(($(date +%s) - begin + 1)) -ge "$SWELL_SLURM_LIMIT" ]; then
    why=' DUE TO TIME LIMIT'
  fi
  errors=/dev/stderr
  for file in "$SWELL_SLURM_WORK/out" "$SWELL_SLURM_WORK/err"; do [ ! -p "$file" ] || errors=$file; done
  [ -n "$stopped" ] || echo "slurmstepd: error: *** JOB $SLURM_JOB_ID ON ${SLURMD_NODENAME-} CANCELLED AT $(date +%FT%T)$why ***" >"$errors"
  stopped=1
  all TERM || kill -s TERM "$script" 2>/dev/null
}
trap stop TERM INT
timer=
if [ -n "${SWELL_SLURM_SIGNAL-}" ]; then
  (
    trap 'kill $! 2>/dev/null; exit' TERM
    sleep "$SWELL_SLURM_SIGNAL_AFTER" &
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
)sh"};

const PodScript kNodeScript{"slurm_node", R"sh(#!/bin/sh
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

# Which of the node's GPUs the task with this number sees, where they are divided.
node_gpus=${CUDA_VISIBLE_DEVICES-}
if [ -z "$node_gpus" ]; then
  i=0
  while [ "$i" -lt "${SLURM_GPUS_ON_NODE:-0}" ]; do node_gpus=$node_gpus${node_gpus:+,}$i; i=$((i + 1)); done
fi
# A step may hold some of them for itself.
if [ -n "${SWELL_STEP_DEVICES-}" ]; then
  all=$node_gpus node_gpus=
  for i in $(printf %s "$SWELL_STEP_DEVICES" | tr ',' ' '); do
    node_gpus=$node_gpus${node_gpus:+,}$(printf %s "$all" | cut -d, -f$((i + 1)))
  done
  CUDA_VISIBLE_DEVICES=$node_gpus SLURM_STEP_GPUS=$node_gpus
  export CUDA_VISIBLE_DEVICES SLURM_STEP_GPUS
fi
gpus_of() {
  printf %s "$node_gpus" | cut -d, -f"$(($1 * SWELL_STEP_GPUS + 1))-$((($1 + 1) * SWELL_STEP_GPUS))"
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
    CUDA_VISIBLE_DEVICES=$(gpus_of "$local_id")
    export CUDA_VISIBLE_DEVICES
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
)sh"};

const PodScript kSrunScript{"srun", R"sh(#!/bin/sh
# srun [FLAGS] COMMAND...: starts tasks on the nodes of the job whose script calls it.
die() { echo "srun: $*" >&2; exit 1; }
[ -n "${SLURM_JOB_ID-}" ] || die "this one works within a job's script"
folder=/var/spool/slurm
SWELL_SLURM_WORK=${SWELL_SLURM_WORK:-${TMPDIR:-/tmp}/slurm-$SLURM_JOB_ID}
export SWELL_SLURM_WORK
nodes='' tasks='' per_node='' label='' where='' output='' errors='' input='' gpus='' folder_to=''
step_gpus='' own='' overlap=''
all_nodes=${SLURM_JOB_NUM_NODES:-1}

# node NUMBER: its name.
node() { printf %s "$SLURM_JOB_NODELIST" | cut -d, -f$(($1 + 1)); }
quoted() { printf "'%s' " "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }
number() { case $2 in '' | *[!0-9]* | 0) die "$1 '$2': a whole number of at least 1 expected" ;; esac; }

while [ $# -gt 0 ]; do
  attached=
  case $1 in
    --) shift; break ;;
    --*=*) flag=${1%%=*}; value=${1#*=}; attached=1; shift ;;
    --*) flag=$1; shift ;;
    -?) flag=$1; shift ;;
    -?*) flag=$(printf %.2s "$1"); value=${1#??}; attached=1; shift ;;
    *) break ;;
  esac
  case $flag in
    # They change nothing here: a step shares its job's nodes, and nothing is buffered or bound.
    -u | --unbuffered | -v | --verbose | -Q | --quiet | --exact | --exclusive | --overcommit | -O | \
      -K | --kill-on-bad-exit | --no-container-mount-home) continue ;;
    --overlap) overlap=1; continue ;;
    -l | --label) label=1; continue ;;
    --swell-signal) signal=$1; shift; continue ;;
  esac
  if [ -z "$attached" ]; then
    [ $# -gt 0 ] || die "$flag: a value is missing"
    value=$1
    shift
  fi
  case $flag in
    -n | --ntasks) number "$flag" "$value"; tasks=$value ;;
    -N | --nodes) number "$flag" "$value"; nodes=$value ;;
    --ntasks-per-node) number "$flag" "$value"; per_node=$value ;;
    -w | --nodelist) where=$value ;;
    -o | --output) output=$value ;;
    -e | --error) errors=$value ;;
    -i | --input) input=$value ;;
    --jobid) [ "$value" = "$SLURM_JOB_ID" ] || die "--jobid $value: within a job, steps are those of its own" ;;
    -D | --chdir) folder_to=$value ;;
    --gpus-per-task) gpus=${value##*:}; number "$flag" "$gpus" ;;
    -G | --gpus) step_gpus=${value##*:}; number "$flag" "$step_gpus" ;;
    --gpus-per-node) own=${value##*:}; number "$flag" "$own" ;;
    --gres)
      case $value in
        none) ;;
        gpu) own=1 ;;
        gpu:*) own=${value##*:}; number "$flag" "$own" ;;
        *) die "--gres $value: gpu:N expected" ;;
      esac
      ;;
    -t | --time) echo "srun: warning: $flag $value: a step has no limit of its own; the job's counts" >&2 ;;
    -c | --cpus-per-task | -J | --job-name | -p | --partition | -A | --account | --cpu-bind | \
      --mem-bind | --gpu-bind | --hint | -m | --distribution | --mem | --mem-per-cpu | --mem-per-gpu | \
      --wait | -W | --export) ;;
    --mpi) [ "$value" = none ] || die "--mpi=$value: plain tasks only; mpirun starts MPI's processes (an MPIJob)" ;;
    *) die "$flag is not supported within a job" ;;
  esac
done

# send NODE COMMAND...: becomes what runs it there. A signal to this session leaves the way to another node as it is:
# the tasks there hear it from their own node, and what they say while they save themselves still comes back.
send() {
  there=$1
  shift
  [ "$there" != 0 ] || exec "$@"
  line=
  for word in "$@"; do line="$line$(quoted "$word")"; done
  trap '' TERM INT HUP
  # shellcheck disable=SC2086
  exec $apart /etc/mpi/kubexec.sh "$(node "$there")" "$settings$line"
}
settings='' apart=''
command -v setsid >/dev/null && apart=setsid
if [ -n "${signal-}" ]; then
  i=0
  while [ "$i" -lt "$all_nodes" ]; do
    (send "$i" "$folder/slurm_node" signal "$signal")
    i=$((i + 1))
  done
  exit 0
fi
[ $# -gt 0 ] || die "no command"

# The nodes of the step, by number.
chosen=
if [ -n "$where" ]; then
  for name in $(printf %s "$where" | tr ',' ' '); do
    i=0
    while [ "$i" -lt "$all_nodes" ] && [ "$(node "$i")" != "$name" ]; do i=$((i + 1)); done
    [ "$i" -lt "$all_nodes" ] || die "--nodelist $name: the job has $SLURM_JOB_NODELIST"
    chosen="$chosen $i"
  done
  # shellcheck disable=SC2086
  set -- $chosen -- "$@"
  nodes=0
  while [ "$1" != -- ]; do nodes=$((nodes + 1)); shift; done
  shift
fi
if [ -z "$nodes" ]; then
  nodes=$all_nodes
  [ -n "$tasks" ] && [ -z "$per_node" ] && [ "$tasks" -lt "$nodes" ] && nodes=$tasks
  [ -z "$tasks" ] && tasks=$((per_node > 0 ? per_node * nodes : ${SLURM_NTASKS:-$nodes}))
fi
[ "$nodes" -le "$all_nodes" ] || die "--nodes $nodes: the job has $all_nodes"
per_node=${per_node:-$(( ${tasks:-0} > 0 ? 0 : ${SLURM_NTASKS_PER_NODE:-1} ))}
tasks=${tasks:-$((per_node * nodes))}
[ "$tasks" -ge "$nodes" ] || die "--ntasks $tasks: fewer than the $nodes nodes"

# A step that asks for GPUs holds them: no other step that asks gets them meanwhile, as in Slurm. DIR/gpus/NODE/GPU is
# the GPU's holder; a directory is made by one process only.
if [ -n "$step_gpus" ]; then
  [ $((step_gpus % nodes)) = 0 ] || die "--gpus $step_gpus: not divisible by the step's $nodes nodes"
  own=$((step_gpus / nodes))
fi
[ -z "$gpus" ] || own=$((gpus * ((tasks + nodes - 1) / nodes)))
[ -z "$overlap" ] || own=
holders=$SWELL_SLURM_WORK/gpus
# hold NODE: the step's share of its free GPUs goes to $held; false if there are too few.
hold() {
  held='' number=0 gpu=0
  mkdir -p "$holders/$1"
  while [ "$gpu" -lt "${SLURM_GPUS_ON_NODE:-0}" ] && [ "$number" -lt "$own" ]; do
    holder=$holders/$1/$gpu
    # A holder that was killed holds nothing.
    if read -r pid 2>/dev/null <"$holder/pid" && ! kill -0 "$pid" 2>/dev/null; then rm -rf "$holder"; fi
    if mkdir "$holder" 2>/dev/null; then
      echo $$ >"$holder/pid"
      held=$held${held:+,}$gpu
      number=$((number + 1))
    fi
    gpu=$((gpu + 1))
  done
  [ "$number" -ge "$own" ] && return 0
  release "$1" "$held"
  return 1
}
# release NODE GPUS
release() {
  for gpu in $(printf %s "$2" | tr ',' ' '); do rm -rf "$holders/$1/$gpu"; done
}
release_all() {
  for share in $shares; do release "${share%%:*}" "${share#*:}"; done
  shares=
}
# hold_all: the step's nodes, each with its share, go to $chosen and $shares.
hold_all() {
  candidates=$wanted
  [ -n "$candidates" ] || candidates=$(i=0; while [ "$i" -lt "$all_nodes" ]; do echo "$i"; i=$((i + 1)); done)
  chosen='' found=0
  for one in $candidates; do
    [ "$found" -lt "$nodes" ] || break
    hold "$one" || continue
    chosen="$chosen $one" shares="$shares $one:$held" found=$((found + 1))
  done
  [ "$found" -ge "$nodes" ] && return 0
  release_all
  return 1
}
shares=''
if [ "${own:-0}" -gt 0 ]; then
  [ "$own" -le "${SLURM_GPUS_ON_NODE:-0}" ] || die "the step needs $own GPUs on a node; each has ${SLURM_GPUS_ON_NODE:-0}"
  wanted=$chosen
  trap release_all EXIT
  trap 'exit 143' TERM INT HUP
  told=
  until hold_all; do
    [ -n "$told" ] || echo "srun: Job $SLURM_JOB_ID step creation temporarily disabled, retrying (Requested nodes are busy)" >&2
    told=1
    sleep 1
  done
elif [ -z "$chosen" ]; then
  i=0
  while [ "$i" -lt "$nodes" ]; do chosen="$chosen $i"; i=$((i + 1)); done
fi

[ -n "$folder_to" ] && { cd "$folder_to" || die "cannot change to $folder_to"; }
# Each step of the job has a number of its own.
SLURM_STEP_ID=0
until mkdir "$SWELL_SLURM_WORK/step-$SLURM_STEP_ID" 2>/dev/null; do
  SLURM_STEP_ID=$((SLURM_STEP_ID + 1))
  [ "$SLURM_STEP_ID" -lt 100000 ] || die "cannot count steps in $SWELL_SLURM_WORK"
done
SLURM_STEPID=$SLURM_STEP_ID
unset SWELL_STEP_OUTPUT SWELL_STEP_ERRORS SWELL_STEP_DEVICES
[ "$input" != none ] || input=/dev/null
if [ -n "$input" ]; then exec <"$input" || die "cannot read $input"; fi
# file_of PATTERN: the file's name goes to $file. True if each task, or each node, has one of its own.
file_of() {
  file=$(printf %s "$1" | sed "s|%j|$SLURM_JOB_ID|g; s|%J|$SLURM_JOB_ID.$SLURM_STEP_ID|g; s|%s|$SLURM_STEP_ID|g
    s|%x|$SLURM_JOB_NAME|g; s|%u|${SLURM_JOB_USER-}|g; s|%A|${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}|g
    s|%a|${SLURM_ARRAY_TASK_ID:-4294967294}|g")
  case $file in /*) ;; *) file=$PWD/$file ;; esac
  case $file in *%[tnN]*) return 0 ;; esac
  return 1
}
if [ -n "$output" ]; then
  if file_of "$output"; then
    export SWELL_STEP_OUTPUT="$file"
  else
    exec >"$file" 2>&1 || die "cannot write $file"
  fi
fi
if [ -n "$errors" ]; then
  if file_of "$errors"; then
    export SWELL_STEP_ERRORS="$file"
  else
    exec 2>"$file" || die "cannot write $file"
  fi
fi
SLURM_STEP_NUM_TASKS=$tasks SLURM_STEP_NUM_NODES=$nodes SLURM_NTASKS=$tasks SLURM_NPROCS=$tasks SLURM_NNODES=$nodes
SLURM_LAUNCH_NODE_IPADDR=$(node 0)
SWELL_STEP_LABEL=$label
SWELL_STEP_GPUS=${gpus:-${SLURM_GPUS_PER_TASK:-0}}
SWELL_STEP_GPUS=${SWELL_STEP_GPUS##*:}
export SLURM_STEP_ID SLURM_STEPID SLURM_STEP_NUM_TASKS SLURM_STEP_NUM_NODES SLURM_NTASKS SLURM_NPROCS SLURM_NNODES
export SLURM_LAUNCH_NODE_IPADDR SWELL_STEP_LABEL SWELL_STEP_GPUS

# What the script has set since its job began, as other nodes shall have it; values of several lines stay here.
settings_of() {
  export -p | grep -vxF -f "$SWELL_SLURM_WORK/environment" |
    grep -E "^(export|declare -x) [A-Za-z_][A-Za-z0-9_]*=('[^']*'|\"[^\"]*\")\$" |
    sed 's/^declare -x /export /' |
    grep -vE '^export (HOSTNAME|OLDPWD|PWD|SHLVL|_|SLURMD_NODENAME|CUDA_VISIBLE_DEVICES|NVIDIA_VISIBLE_DEVICES|SWELL_SLURM_WORK)=' |
    tr '\n' ';'
}
step=$SWELL_SLURM_WORK/step-$SLURM_STEP_ID
# The first task has this input, if it runs on the first node; others have none.
exec 5<&0
base=$((tasks / nodes))
rest=$((tasks % nodes))
first=0
i=0
waited=
for one in $chosen; do
  count=$((base + (i < rest ? 1 : 0)))
  SLURM_NODEID=$i SWELL_STEP_FIRST=$first
  export SLURM_NODEID SWELL_STEP_FIRST
  for share in $shares; do
    [ "${share%%:*}" != "$one" ] || SWELL_STEP_DEVICES=${share#*:}
  done
  [ -z "$shares" ] || export SWELL_STEP_DEVICES
  if [ "$one" != 0 ]; then settings="$(settings_of) cd $(quoted "$PWD") 2>/dev/null; "; fi
  if [ "$first" = 0 ]; then
    send "$one" "$folder/slurm_node" run "$count" "$@" <&5 5<&- &
  else
    send "$one" "$folder/slurm_node" run "$count" "$@" </dev/null 5<&- &
  fi
  waited="$waited $!"
  first=$((first + count))
  i=$((i + 1))
done
trap : TERM INT
worst=0
for one in $waited; do
  wait "$one"
  status=$?
  while kill -0 "$one" 2>/dev/null; do
    wait "$one"
    status=$?
  done
  [ "$status" -le "$worst" ] || worst=$status
done
: >"$step/done"
exit "$worst"
)sh"};

const PodScript kBashEnv{
    "bash_env",
    R"sh(# Read by every bash that runs a script: /etc/profile of a login shell has made PATH anew.
case :$PATH: in *:/var/spool/slurm:*) ;; *) PATH=/var/spool/slurm:$PATH ;; esac
# shellcheck disable=SC1090
[ ! -r "${SWELL_SLURM_BASH_ENV-}" ] || . "$SWELL_SLURM_BASH_ENV"
)sh"};

const PodScript kScontrolScript{"scontrol", R"sh(#!/bin/sh
# scontrol show hostnames [LIST]: the names of the job's nodes, one a line.
case "${1-} ${2-}" in
  "show hostnames" | "show hostname" | "show hostnamelist")
    printf '%s\n' "${3:-$SLURM_JOB_NODELIST}" | awk '
      # Commas within brackets are numbers, others part names.
      function expand(name,   open, close_, ranges, count, k, ends, i) {
        open = index(name, "[")
        close_ = index(name, "]")
        if (!open || close_ < open) { print name; return }
        count = split(substr(name, open + 1, close_ - open - 1), ranges, ",")
        for (k = 1; k <= count; k++) {
          if (split(ranges[k], ends, "-") < 2) ends[2] = ends[1]
          for (i = ends[1] + 0; i <= ends[2] + 0 && i - ends[1] < 100000; i++)
            expand(substr(name, 1, open - 1) sprintf("%0" length(ends[1]) "d", i) substr(name, close_ + 1))
        }
      }
      {
        name = ""; inside = 0
        for (at = 1; at <= length($0); at++) {
          letter = substr($0, at, 1)
          inside += (letter == "[") - (letter == "]")
          if (letter == "," && !inside) { expand(name); name = "" } else name = name letter
        }
        expand(name)
      }'
    ;;
  *)
    echo "scontrol: within a job's script there is: scontrol show hostnames" >&2
    exit 1
    ;;
esac
)sh"};

}  // namespace swell::cli::slurm
