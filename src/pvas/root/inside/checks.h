// The checks of pvas-probe, in this order; its exit status is 0 or the number of the check that
// failed. Plain C, like the probe.
#pragma once

enum shima_check {
  SHIMA_CHECK_NONE,
  SHIMA_CHECK_CONTROL, /* the auxiliary vector leads to the partition */
  SHIMA_CHECK_BREAK,   /* brk fails, or moves within the partition */
  SHIMA_CHECK_MALLOC,  /* malloc works nevertheless */
  SHIMA_CHECK_MMAP,    /* mmap, through libc and through syscall(2), maps in the partition */
  SHIMA_CHECK_MREMAP,
  SHIMA_CHECK_STACK,  /* a thread's stack is in the partition */
  SHIMA_CHECK_ORIGIN, /* $ORIGIN is the program's directory */
  SHIMA_CHECK_SELF,   /* /proc/self/exe is the program */
  SHIMA_CHECK_UNKNOWN /* there was no memory for the check */
};
