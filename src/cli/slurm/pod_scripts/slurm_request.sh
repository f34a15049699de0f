#!/bin/sh
# slurm_request requeue|cancel: requests that of the job that it runs in. It needs no rights: the node reads the
# request and publishes it on the pod, where the job's controller reads it.
die() { echo "slurm_request: $*" >&2; exit 1; }
document=$(printf '{"jobRequest": "%s"}' "$1")
if [ -n "${SWELL_REPORT_FILE-}" ]; then
  file=${SWELL_REPORT_FILE%/*}/request.json
  # The stop comes soon. A script that ended by itself before its node has read the request would be over; and an agent
  # that starts anew reads what is written then.
  trap 'exit 0' TERM INT
  left=5
  while [ "$left" -gt 0 ]; do
    printf '%s\n' "$document" >"$file.$$" || die "cannot write $file"
    mv -f "$file.$$" "$file" || die "cannot write $file"
    sleep 1 &
    wait $!
    left=$((left - 1))
  done
  exit 0
fi
# A kubelet publishes what a container says at its end. So this pod ends now, and the others with the job.
log=${SWELL_TERMINATION_LOG:-/dev/termination-log}
[ -w "$log" ] || die "neither SWELL_REPORT_FILE nor $log is there to write the request to"
work=${SWELL_SLURM_WORK:-${TMPDIR:-/tmp}/slurm-$SLURM_JOB_ID}
read -r pid <"$work/main" || die "$work/main is not there"
printf '%s' "$document" >"$log" || die "cannot write $log"
kill -s TERM "$pid" || die "cannot stop this pod's first process, $pid"
