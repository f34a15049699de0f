#!/bin/sh
# scontrol show hostnames [LIST]: the names of the job's nodes, one a line.
# scontrol requeue [JOB]: of the job that it runs in. Both need no rights; everything else is left to the program.
folder=/var/spool/slurm
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
  "requeue "*)
    # The number of an array's first task is the array's, too: a task requeues itself alone.
    case ${2:-$SLURM_JOB_ID} in
      "$SLURM_JOB_ID" | "${SLURM_ARRAY_JOB_ID:--}_${SLURM_ARRAY_TASK_ID-}") ;;
      *) exec /bin/sh "$folder/slurm_client" scontrol "$@" ;;
    esac
    if [ -n "${SWELL_SLURM_NO_REQUEUE-}" ]; then
      echo "scontrol: Requested operation is presently disabled: job $SLURM_JOB_ID was submitted with --no-requeue" >&2
      exit 1
    fi
    exec /bin/sh "$folder/slurm_request" requeue
    ;;
  *) exec /bin/sh "$folder/slurm_client" scontrol "$@" ;;
esac
