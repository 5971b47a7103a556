// The checks of pvas-probe, in this order; its exit status is 0 or the number of the check that
// failed. Plain C, like the probe.
#pragma once

enum shima_mend {
  SHIMA_MEND_NONE,
  SHIMA_MEND_CONTROL, /* the auxiliary vector leads to the partition */
  SHIMA_MEND_BREAK,   /* brk fails, or moves within the partition */
  SHIMA_MEND_MALLOC,  /* memory is had all the same */
  SHIMA_MEND_MMAP,    /* mmap, through libc and through syscall(2), maps in the partition */
  SHIMA_MEND_MREMAP,
  SHIMA_MEND_STACK,  /* a thread's stack lies in the partition */
  SHIMA_MEND_ORIGIN, /* $ORIGIN is the program's folder */
  SHIMA_MEND_SELF,   /* /proc/self/exe is the program */
  SHIMA_MEND_UNKNOWN /* there was no memory to look */
};
