/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into a server: the engine's device counts as lost once the file that INGOT_LOST names is
 * there. The CPU, on which the tests run, never is. */
#include <stdlib.h>
#include <unistd.h>

const char* ingotGetDeviceError(const void* engine) {
    const char* file = getenv("INGOT_LOST");
    (void)engine;
    return file != NULL && access(file, F_OK) == 0 ? "cuStreamSynchronize: an illegal address" : NULL;
}
