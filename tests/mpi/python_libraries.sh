#!/bin/bash
# FLAVOURS: mpich-debian openmpi-debian
# TIMEOUT: 200
# Parallel h5py, and netCDF4 if there is a netCDF for the MPI (Debian has one for Open MPI): the unmodified examples, under
# Shima and on the MPI's own MPI-IO. Each reads the other's file, and h5py's files are equal byte for byte.
set -euo pipefail
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1
export HDF5_USE_FILE_LOCKING=FALSE

environment=$SHIMA_SOURCE_DIR/build/deps/python-$MPI_FAMILY
python=$environment/bin/python
examples=(h5py_parallel)
if [ "$MPI_FAMILY" = openmpi ]; then
  examples+=(netcdf4_parallel)
else
  export LD_LIBRARY_PATH=$environment/lib  # it contains Debian's MPICH under the name that mpi4py's wheel looks for
fi
if [ ! -f "$environment/.shima-built" ]; then
  echo "skipped: no $environment (scripts/setup test)"
  exit 77
fi

stock() { "$MPIEXEC" -n 4 "$python" "$@"; }
shima() { SHIMA_STATS=$PWD/$name.json "$SHIMA" run -n 4 --mpiexec "$MPIEXEC" "$python" "$@"; }

for name in "${examples[@]}"; do
  example=$SHIMA_SOURCE_DIR/examples/$name.py
  stock "$example" write "$name.stock"
  shima "$example" write "$name.shima"
  [ "$name" = netcdf4_parallel ] || cmp "$name.stock" "$name.shima"
  stock "$example" read "$name.shima"
  shima "$example" read "$name.stock"
  python3 - "$name" <<'END'
import json, sys
name = sys.argv[1]
files = [json.loads(line) for line in open(f"{name}.json")]
written, read = (sum(file["counters"]["collective_" + call] for file in files if file["file"] == f"{name}.{way}")
                 for way, call in (("shima", "writes"), ("stock", "reads")))
print(f"{name}: Shima served {written} collective writes and {read} collective reads")
sys.exit(0 if written > 0 and read > 0 else "Shima did not serve the files")
END
done
