#!/bin/bash
#SBATCH --job-name=wirehead_manager
#SBATCH --nodes=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=1g
#SBATCH --time=24:00:00
#SBATCH --output=log/manager_%j.log

echo "wirehead_manager on $(hostname)"
if [ -n "$VENV" ]; then
    # shellcheck source=/dev/null
    . "$VENV/bin/activate"
fi
exec python3 manager.py
