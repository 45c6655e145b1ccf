// SPDX-License-Identifier: Apache-2.0
#include "ir/value_reads.h"

namespace ingot {

namespace {

ValueReads*& innermost() {
    // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
    thread_local ValueReads* recorder = nullptr;
    return recorder;
}

} // namespace

ValueReads::ValueReads() : outer_(innermost()) {
    innermost() = this;
}

ValueReads::~ValueReads() {
    innermost() = outer_;
}

void ValueReads::note(const Graph& g, Value v) {
    ValueReads* recorder = innermost();
    if (recorder == nullptr) {
        return;
    }
    if (const Node* p = g.producer(v); p != nullptr && p->is(constant_def)) {
        recorder->names_.insert(g.value_name(v));
        return;
    }
    std::set<uint32_t> seen;
    Values work = {v};
    while (!work.empty()) {
        Value at = work.back();
        work.pop_back();
        const Node* p = g.producer(at);
        if (p == nullptr || !seen.insert(at.id).second) {
            continue;
        }
        if (p->is(constant_def)) {
            recorder->names_.insert(g.value_name(at));
        }
        work.insert(work.end(), p->inputs.begin(), p->inputs.end());
    }
}

} // namespace ingot
