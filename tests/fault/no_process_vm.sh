#!/bin/bash
# PROGRAMS: mpi/random_access
# If process_vm_readv and process_vm_writev are forbidden, ranks must pack into shared windows
# instead: the test checks
# the bytes, a line in the log, and counters that agree.
set -euo pipefail
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
# The MPIs use the same calls between ranks and must do without them as well.
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_smsc=^cma UCX_TLS=^cma MPIR_CVAR_CH4_CMA_ENABLE=0
export SHIMA_LOG=info SHIMA_STATS=$PWD/stats.json

program=$SHIMA_TEST_PROGRAMS
cc -O1 -Wall -o no_process_vm "$SHIMA_SOURCE_DIR/tests/fault/no_process_vm.c"
"$MPIEXEC" -n 4 ./no_process_vm "$SHIMA" exec "$program" 60 >log.txt 2>&1 || { cat log.txt; exit 1; }
grep -q 'process_vm_readv is forbidden' log.txt || { echo "the log does not report that it is forbidden"; cat log.txt; exit 1; }
python3 - stats.json <<'END'
import json, sys
files = [json.loads(line)["counters"] for line in open(sys.argv[1])]
total = {path: sum(counters[path] for counters in files) for path in ("path_pack", "path_pull")}
print(total)
sys.exit(0 if total["path_pack"] > 0 and total["path_pull"] == 0 else 1)
END
