#!/bin/bash
# FLAVOURS: openmpi-debian
# TIMEOUT: 3600
# PROCESSORS: 2
# Applications that nobody here wrote, as Debian packages them: the molecular dynamics of LAMMPS (dumps and restart files by MPI-IO),
# the electronic structure programs ABINIT (wave functions, densities) and CP2K (cubes). Each writes its files by its MPI alone and
# under Shima, plain, striped, and by ranks that are tasks of one space, and the files are compared; LAMMPS goes on from the restart
# file. The packages and those that they need are unpacked here and not installed.
set -euo pipefail
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1
export SHIMA_TARGETS=a=$PWD/a:b=$PWD/b:c=$PWD/c
mkdir a b c packages

fetch() {
  apt-get -s install --no-install-recommends lammps abinit cp2k 2>&1 | awk '/^Inst/ {print $2}' >names
  [ -s names ] || return 1
  (cd packages && xargs apt-get -qq download <../names)
  for package in packages/*.deb; do dpkg -x "$package" unpacked; done
}
if ! type lmp abinit cp2k.psmp >/dev/null 2>&1; then
  fetch >fetched 2>&1 || { tail -n 3 fetched; echo "no access to Debian's packages of LAMMPS, ABINIT and CP2K"; exit 77; }
  for directory in "$PWD"/unpacked/usr/lib/*-linux-gnu "$PWD"/unpacked/usr/lib/*-linux-gnu/{blas,lapack}; do
    [ ! -d "$directory" ] || LD_LIBRARY_PATH=$directory${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  done
  export LD_LIBRARY_PATH PATH=$PWD/unpacked/usr/bin:$PATH
fi
cp2k_data=/usr/share/cp2k
[ -d $cp2k_data ] || cp2k_data=$PWD/unpacked$cp2k_data

write_inputs() {
  cat >lammps.in <<END
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 10 0 10 0 10
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
fix 1 all nve
dump a all atom/mpiio 10 out.atom.mpiio
dump b all custom/mpiio 10 out.custom.mpiio.bin id type x y z vx vy vz
dump c all xyz/mpiio 10 out.xyz.mpiio
dump d all cfg/mpiio 20 out.*.cfg.mpiio mass type xs ys zs
restart 20 out.*.restart.mpiio
run 40
END
  cat >lammps_on.in <<END
read_restart out.20.restart.mpiio
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
fix 1 all nve
run 20
write_restart out.on.mpiio
END
  # A pseudopotential of hydrogen: S. Goedecker, M. Teter, J. Hutter, Phys. Rev. B 54, 1703 (1996).
  cat >hydrogen.psp <<END
hydrogen
1 1 960508
2 1 0 0 2001 0.
0.2000000 -4.0663326 0.6778322 0 0
0 0 0
0 0
1.36 .2 0.6
END
  cat >abinit.in <<END
ndtset 2
pseudos "$PWD/hydrogen.psp"
acell 10 10 10
ntypat 1
znucl 1
natom 2
typat 1 1
xcart -0.7 0.0 0.0 0.7 0.0 0.0
ecut 10.0
kptopt 0
nkpt 1
nband 8
nstep 6
toldfe 1.0d-6
iomode 1
paral_kgb 1
npband $ranks
bandpp 1
wfoptalg 114
ixc 1
getwfk2 1
getden2 1
END
  cat >cp2k.in <<END
&GLOBAL
 PROJECT out
 RUN_TYPE ENERGY
&END
&FORCE_EVAL
 METHOD QS
 &DFT
  BASIS_SET_FILE_NAME $cp2k_data/BASIS_SET
  POTENTIAL_FILE_NAME $cp2k_data/GTH_POTENTIALS
  &MGRID
   CUTOFF 120
  &END
  &SCF
   MAX_SCF 8
  &END
  &XC
   &XC_FUNCTIONAL PADE
   &END
  &END
  &PRINT
   &E_DENSITY_CUBE
   &END
   &V_HARTREE_CUBE
   &END
   &MO_CUBES
    NHOMO 2
   &END
  &END
 &END
 &SUBSYS
  &CELL
   ABC 6.0 6.0 6.0
  &END
  &COORD
   O 0.0 0.0 0.0
   H 0.757 0.586 0.0
   H -0.757 0.586 0.0
  &END
  &KIND H
   BASIS_SET DZVP-GTH-PADE
   POTENTIAL GTH-PADE-q1
  &END
  &KIND O
   BASIS_SET DZVP-GTH-PADE
   POTENTIAL GTH-PADE-q6
  &END
 &END
&END
END
}

# start WAY PROGRAM ARGUMENTS...: in a directory WAY.
start() {
  local way=$1 command=("$MPIEXEC" --oversubscribe -n "$ranks")
  shift
  case $way in
    plain) command=("$SHIMA" run --stats "${command[@]}") ;;
    striped) command=("$SHIMA" run --stats --stripe "unit=64K,targets=3" "${command[@]}") ;;
    space) command=(env SHIMA_ONE_SPACE=required "$SHIMA" run --stats --one-space --mpiexec "$MPIEXEC" -n "$ranks") ;;
  esac
  (cd "$way" && timeout 600 "${command[@]}" "$@" >"$1.log" 2>&1 </dev/null) && return
  tail -n 40 "$way/$1.log"
  echo "FAIL: $1, $ranks ranks, $way"
  exit 1
}

# compare PROGRAM FILES...: those of each way with those of the MPI alone.
compare() {
  local program=$1 way file
  shift
  for way in plain striped space; do
    grep -q "comm_size $ranks" "$way/$program.log" || { echo "FAIL: Shima served no file of $program, $way"; exit 1; }
    for file in "$@"; do
      "$SHIMA" cat "$way/$file" | cmp - "stock/$file" || { echo "FAIL: $program, $ranks ranks, $way: $file differs"; exit 1; }
    done
  done
  echo "$program, $ranks ranks: $# files are the same"
}

files() { (cd stock && ls -d "$@"); }

for ranks in 2 4; do
  rm -rf stock plain striped space
  mkdir stock plain striped space
  write_inputs
  for way in stock plain striped space; do
    start $way lmp -in ../lammps.in -log none
    start $way lmp -in ../lammps_on.in -log none
    start $way abinit ../abinit.in
    start $way cp2k.psmp ../cp2k.in
  done
  # shellcheck disable=SC2046  # names without spaces
  compare lmp $(files ./*.mpiio ./*.mpiio.bin)
  # Its wave functions differ between runs of the MPI alone; the second density is computed from those that were read.
  # shellcheck disable=SC2046
  compare abinit $(files ./*_DEN)
  # shellcheck disable=SC2046
  compare cp2k.psmp $(files ./*.cube)
done
