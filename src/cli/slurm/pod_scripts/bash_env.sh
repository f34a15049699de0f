# shellcheck shell=bash
# Read by every bash that runs a script: /etc/profile of a login shell has made PATH anew.
case :$PATH: in *:/var/spool/slurm:*) ;; *) PATH=/var/spool/slurm:$PATH ;; esac
# shellcheck disable=SC1090
[ ! -r "${SWELL_SLURM_BASH_ENV-}" ] || . "$SWELL_SLURM_BASH_ENV"
