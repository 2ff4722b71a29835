"""Prints the swaps that it sees.  The cluster makes the swaps: nothing depends on this job."""

from wirehead import WireheadManager

WireheadManager(config_path="config.yaml").run_manager()
