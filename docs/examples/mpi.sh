#!/bin/sh
# Open MPI counts the node's cores and binds ranks to the first ones, where other jobs' ranks are too. These lines tell
# it not to (Open MPI 5, then 4); MPICH has another name for the option, and does not bind by itself.
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_hwloc_default_binding_policy=none
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
exec mpirun -n "$1" python3 pi.py
