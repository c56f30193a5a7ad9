#!/bin/bash
# Trains on two hosts of a Slurm cluster: sbatch source_code/cifar_slurm.sh --epochs 12
# Options of this script are those of cifar_warmup.py. The job's output is in the file slurm-JOB.out.
#SBATCH --job-name=cifar
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --time=01:00:00
#SBATCH --output=slurm-%j.out

# Slurm has chosen the hosts. horovodrun wants them as alpha:2,beta:2.
hosts=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed "s/\$/:$SLURM_NTASKS_PER_NODE/" | paste --serial --delimiters ,)
echo "$SLURM_NTASKS workers on $hosts"
horovodrun -np "$SLURM_NTASKS" -H "$hosts" python source_code/cifar_warmup.py "$@"
