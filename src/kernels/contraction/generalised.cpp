// SPDX-License-Identifier: Apache-2.0
// Variants: the same work for more general programs.
#include "kernels/contraction/contraction.h"
#include "kernels/contraction/store_text.h"

namespace ingot::kernels {

namespace {

/// Adds a missing addend.
void add_missing(Contraction& c) {
    size_t at = c.epilogue.addends + 1; // among the views
    add_missing_addend(c.epilogue);
    for (Loops* l : {&c.batch, &c.rows, &c.columns}) {
        l->stored.resize(c.epilogue.operands.size());
        l->stored.insert(l->stored.begin() + static_cast<ptrdiff_t>(at), Shape(l->sizes.size(), 0));
    }
    c.columns.stored[at].back() = 1;
}

bool may_miss_addends(const Contraction& c) {
    const Epilogue& f = c.epilogue;
    bool begins = f.body.code[0].op == ExprOp::In && f.body.code[0].args[0] == 0;
    bool narrow = bit_width(f.type) == 16 && is_float(f.type) && f.sum_type != DType::F64;
    for (size_t i = 0; i < f.operands.size(); ++i) { // else none is staged, and all are read
        narrow = narrow && in_narrow_vectors(c, i);
    }
    return begins && narrow && !c.paired() && f.operands.size() == f.addends &&
           f.addends < staged_addends && vector_columns(c);
}

} // namespace

Contraction generalised(Contraction c, int variant) {
    if ((variant & variant_addends) != 0 && may_miss_addends(c)) {
        while (c.epilogue.addends < staged_addends) {
            add_missing(c);
        }
    }
    if ((variant & variant_rows) != 0 && c.rows.rank() == 1) {
        c.rows.sizes.insert(c.rows.sizes.begin(), 1);
        for (Shape* s : {&c.rows.a, &c.rows.b}) {
            if (!s->empty()) {
                s->insert(s->begin(), 0);
            }
        }
        for (Shape& s : c.rows.stored) {
            s.insert(s.begin(), 0);
        }
    }
    return c;
}

} // namespace ingot::kernels
