# shellcheck shell=bash
# Read by every bash that runs a script: /etc/profile of a login shell has made PATH anew.
case :$PATH: in *:/var/spool/slurm:*) ;; *) PATH=/var/spool/slurm:$PATH ;; esac
# A script that reads /etc/profile by itself makes PATH anew later.
command_not_found_handle() {
  if [ ! -x "/var/spool/slurm/$1" ]; then
    echo "$0: line ${BASH_LINENO[0]}: $1: command not found" >&2
    return 127
  fi
  PATH=/var/spool/slurm:$PATH
  exec "$@"
}
# The functions that the user's shell has exported, such as module.
[ -z "${SWELL_SLURM_FUNCTIONS-}" ] || eval "$SWELL_SLURM_FUNCTIONS"
# shellcheck disable=SC1090
[ ! -r "${SWELL_SLURM_BASH_ENV-}" ] || . "$SWELL_SLURM_BASH_ENV"
