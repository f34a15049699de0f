#!/bin/sh
# srun [FLAGS] COMMAND...: starts tasks on the nodes of the job whose script calls it.
die() { echo "srun: $*" >&2; exit 1; }
[ -n "${SLURM_JOB_ID-}" ] || die "this one works within a job's script"
folder=/var/spool/slurm
SWELL_SLURM_WORK=${SWELL_SLURM_WORK:-${TMPDIR:-/tmp}/slurm-$SLURM_JOB_ID}
export SWELL_SLURM_WORK
nodes='' tasks='' per_node='' label='' where='' output='' errors='' input='' gpus='' folder_to=''
step_gpus='' own='' overlap='' pty='' exports=''
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
      -K | --kill-on-bad-exit | -I | --immediate | --nice | --contiguous | --no-container-mount-home | \
      -E | --preserve-env | -X | --disable-status | --quit-on-interrupt) continue ;;
    --pty) pty=1; continue ;;
    --multi-prog) die "$flag is not supported within a job: branch by \$SLURM_PROCID in the command" ;;
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
    --ntasks-per-node | --tasks-per-node) number "$flag" "$value"; per_node=$value ;;
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
    --export) exports=$value ;;
    -c | --cpus-per-task)
      number "$flag" "$value"
      SLURM_CPUS_PER_TASK=$value
      export SLURM_CPUS_PER_TASK
      ;;
    -t | --time) echo "srun: warning: $flag $value: a step has no limit of its own; the job's counts" >&2 ;;
    -J | --job-name | -p | --partition | -A | --account | --cpu-bind | \
      --mem-bind | --gpu-bind | --hint | -m | --distribution | --mem | --mem-per-cpu | --mem-per-gpu | \
      --wait | -W | --ntasks-per-socket | --ntasks-per-core | --threads-per-core | --mincpus | \
      --cpus-per-gpu | --gres-flags | --tres-bind | --cpu-freq | --gpu-freq | --propagate | --network | \
      --comment | --profile | --acctg-freq | --slurmd-debug | -T | --threads | --wckey | -q | --qos) ;;
    --container-*) die "$flag is not supported within a job: a step runs in its job's containers; give it to sbatch" ;;
    -x | --exclude) die "$flag is not supported within a job: name the nodes of the step: --nodelist" ;;
    --mpi)
      why="tasks are plain processes; mpirun of an MPIJob starts MPI's"
      [ "$value" = none ] || echo "srun: warning: --mpi=$value changes nothing: $why" >&2
      ;;
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
# In the shell of salloc: the command has its terminal.
if [ -n "$pty" ]; then
  [ -t 0 ] || die "--pty: there is no terminal within a script; swell exec -it opens a shell in a job that runs"
  [ "${where:-$(node 0)}" = "$(node 0)" ] || die "--pty --nodelist $where: the terminal is on $(node 0)"
  exec "$@"
fi

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
  for gpu in $(printf %s "$2" | tr ',' ' '); do rm -rf "${holders:?}/$1/$gpu"; done
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
  [ "$own" -le "${SLURM_GPUS_ON_NODE:-0}" ] ||
    die "the step needs $own GPUs on a node; each has ${SLURM_GPUS_ON_NODE:-0}"
  wanted=$chosen
  trap release_all EXIT
  trap 'exit 143' TERM INT HUP
  told=
  until hold_all; do
    busy="step creation temporarily disabled, retrying (Requested nodes are busy)"
    [ -n "$told" ] || echo "srun: Job $SLURM_JOB_ID $busy" >&2
    told=1
    sleep 1
  done
elif [ -z "$chosen" ]; then
  i=0
  while [ "$i" -lt "$nodes" ]; do chosen="$chosen $i"; i=$((i + 1)); done
fi

# Tasks have the script's variables in any case, and these beside them.
while [ -n "$exports" ]; do
  one=${exports%%,*}
  case $exports in *,*) exports=${exports#*,} ;; *) exports= ;; esac
  case $one in
    *=*)
      name=${one%%=*}
      case $name in '' | [0-9]* | *[!A-Za-z0-9_]*) die "--export $one: NAME=VALUE expected" ;; esac
      export "$name=${one#*=}"
      ;;
    NONE | NIL) echo "srun: warning: --export=$one changes nothing: tasks have the script's variables" >&2 ;;
  esac
done
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
base=$((tasks / nodes))
rest=$((tasks % nodes))
# counted NUMBER NODES: "4(x2)", as Slurm writes how many tasks so many nodes have.
counted() { if [ "$2" -gt 1 ]; then printf '%s(x%s)' "$1" "$2"; else printf %s "$1"; fi; }
SLURM_TASKS_PER_NODE=$(counted "$base" $((nodes - rest)))
[ "$rest" = 0 ] || SLURM_TASKS_PER_NODE=$(counted $((base + 1)) "$rest"),$SLURM_TASKS_PER_NODE
SLURM_STEP_TASKS_PER_NODE=$SLURM_TASKS_PER_NODE
# JAX and TensorFlow read who takes part in the step.
if [ "$nodes" = "$all_nodes" ] && [ -z "$where" ]; then
  SLURM_STEP_NODELIST=$SLURM_JOB_NODELIST
else
  SLURM_STEP_NODELIST=
  for one in $chosen; do SLURM_STEP_NODELIST=$SLURM_STEP_NODELIST${SLURM_STEP_NODELIST:+,}$(node "$one"); done
fi
SWELL_STEP_LABEL=$label
SWELL_STEP_GPUS=${gpus:-${SLURM_GPUS_PER_TASK:-0}}
SWELL_STEP_GPUS=${SWELL_STEP_GPUS##*:}
export SLURM_STEP_ID SLURM_STEPID SLURM_STEP_NUM_TASKS SLURM_STEP_NUM_NODES SLURM_NTASKS SLURM_NPROCS SLURM_NNODES
export SLURM_LAUNCH_NODE_IPADDR SLURM_TASKS_PER_NODE SLURM_STEP_TASKS_PER_NODE SLURM_STEP_NODELIST
export SWELL_STEP_LABEL SWELL_STEP_GPUS

# Each node has its own.
own_to_each='HOSTNAME|OLDPWD|PWD|SHLVL|_|SLURMD_NODENAME|SWELL_SLURM_WORK'
own_to_each=$own_to_each'|CUDA_VISIBLE_DEVICES|NVIDIA_VISIBLE_DEVICES|SWELL_VISIBLE_GPUS|SLURM_JOB_GPUS'
# What the script has set since its job began, as other nodes shall have it; values of several lines stay here.
settings_of() {
  export -p | grep -vxF -f "$SWELL_SLURM_WORK/environment" |
    grep -E "^(export|declare -x) [A-Za-z_][A-Za-z0-9_]*=('[^']*'|\"[^\"]*\")\$" |
    sed 's/^declare -x /export /' |
    grep -vE "^export ($own_to_each)=" |
    tr '\n' ';'
}
step=$SWELL_SLURM_WORK/step-$SLURM_STEP_ID
# The first task has this input, if it runs on the first node; others have none.
exec 5<&0
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
