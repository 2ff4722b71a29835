#!/bin/bash
#SBATCH --job-name=wirehead_generator
#SBATCH --nodes=1
#SBATCH --array=0-3
#SBATCH --cpus-per-task=1
#SBATCH --mem=1g
#SBATCH --time=06:00:00
#SBATCH --output=log/generator_%A_%a.log

echo "wirehead_generator on $(hostname)"
if [ -n "$VENV" ]; then
    # shellcheck source=/dev/null
    . "$VENV/bin/activate"
fi
exec python3 generator.py
