#!/bin/sh
# scancel [FLAG...] [JOB...]: ends the job that it runs in, or signals its tasks, without any rights. Everything else is
# left to the program.
folder=/var/spool/slurm
program() { exec /bin/sh "$folder/slurm_client" scancel "$@"; }
[ -n "${SLURM_JOB_ID-}" ] || program "$@"
signal='' to='' own='' value=''
for word in "$@"; do
  if [ -n "$value" ]; then
    signal=${word#SIG} value=
    continue
  fi
  case $word in
    -s | --signal) value=1 ;;
    --signal=*) signal=${word#*=} signal=${signal#SIG} ;;
    -s?*) signal=${word#-s} signal=${signal#SIG} ;;
    -b | --batch) to=$to-batch ;;
    -f | --full) to=$to-full ;;
    -Q | --quiet | -v | --verbose) ;;
    # The number of an array is that of its first task, too: it means the array, as in Slurm.
    "${SLURM_ARRAY_JOB_ID:--}") program "$@" ;;
    "$SLURM_JOB_ID" | "${SLURM_ARRAY_JOB_ID:--}_${SLURM_ARRAY_TASK_ID-}") own=1 ;;
    *) program "$@" ;;
  esac
done
[ -n "$own" ] || program "$@"
[ -n "$signal" ] || exec /bin/sh "$folder/slurm_request" cancel
# Other nodes are reached from the first one only, which has the script.
[ -e "${SWELL_SLURM_WORK:-${TMPDIR:-/tmp}/slurm-$SLURM_JOB_ID}/script" ] || program "$@"
case $to in
  '') exec /bin/sh "$folder/srun" --swell-signal "$signal" ;;
  *full*)
    /bin/sh "$folder/srun" --swell-signal "$signal"
    exec /bin/sh "$folder/slurm_node" signal-script "$signal"
    ;;
  *) exec /bin/sh "$folder/slurm_node" signal-script "$signal" ;;
esac
