/* Three GPU drivers for tests: CUDA, HIP and Level Zero, as far as Shima uses them.
 *
 * Device memory has addresses that are mapped without any permission, so that an access
 * other than by a copy function ends with a signal; its bytes are elsewhere. Each driver has
 * two devices of SIM_DEVICE_BYTES. Copies are asynchronous in the strictest sense: nothing moves
 * before the copy's event is waited for, and a copy that is never waited for never happens. CUDA
 * and HIP take calls only if the device of the stream is selected in the calling thread. Every call
 * that matters appends a character to sim_log: C copy, S wait for an event.
 *
 * Include it in the program, linked with -rdynamic, or compile it as a library of a driver's name.
 */
#ifndef SHIMA_TESTS_SIMULATED_GPU_H
#define SHIMA_TESTS_SIMULATED_GPU_H

#include "simulated_gpu/cuda.h"
#include "simulated_gpu/device.h"
#include "simulated_gpu/hip.h"
#include "simulated_gpu/level_zero.h"

#endif
