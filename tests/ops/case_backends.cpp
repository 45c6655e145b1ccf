// SPDX-License-Identifier: Apache-2.0
#include "case_backends.h"

namespace ingot::test {

const std::vector<CaseBackend>& case_backends() {
    static const std::vector<CaseBackend> backends;
    return backends;
}

} // namespace ingot::test
