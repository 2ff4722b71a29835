#!/bin/bash
#SBATCH --job-name=wirehead_training
#SBATCH --nodes=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=1g
#SBATCH --time=06:00:00
#SBATCH --output=log/training_%j.log

echo "wirehead_training on $(hostname)"
if [ -n "$VENV" ]; then
    # shellcheck source=/dev/null
    . "$VENV/bin/activate"
fi
exec python3 train.py
