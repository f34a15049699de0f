#!/bin/sh
exec /bin/sh /var/spool/slurm/slurm_client "${0##*/}" "$@"
