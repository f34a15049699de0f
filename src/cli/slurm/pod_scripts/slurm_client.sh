#!/bin/sh
# slurm_client COMMAND [ARGUMENT...]: one of Slurm's commands that ask the cluster. It acts as the pod's service
# account, which may do in its namespace what docs/slurm.md says.
command=$1
shift
program=${SWELL_SLURM_PROGRAM-}
[ -n "$program" ] && [ -x "$program" ] || program=$(command -v swell)
if [ -z "$program" ]; then
  echo "$command: within a job this needs the program swell, which the image lacks" >&2
  exit 1
fi
# Not a file of the user's, which the home may have: a job has the rights of its own account.
export KUBECONFIG="${KUBECONFIG:-/dev/null}"
# A job that this one submits has its own.
if [ -n "${SWELL_SLURM_BASH_ENV-}" ]; then BASH_ENV=$SWELL_SLURM_BASH_ENV; else unset BASH_ENV; fi
unset CUDA_VISIBLE_DEVICES SWELL_VISIBLE_GPUS NVIDIA_VISIBLE_DEVICES K_MPI_JOB_ROLE OMPI_MCA_plm_rsh_agent
unset OMPI_MCA_orte_default_hostfile OMPI_MCA_orte_set_default_slots PRTE_MCA_plm_ssh_agent
unset PRTE_MCA_prte_default_hostfile
exec "$program" slurm "$command" "$@"
