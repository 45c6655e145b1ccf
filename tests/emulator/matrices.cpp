// SPDX-License-Identifier: Apache-2.0
// Matrix instructions of a warp, with the fragment layouts of the PTX manual (mma, ldmatrix).
#include "base/error.h"
#include "emulator/instructions.h"

#include <cstring>

namespace ingot::emulator {

const float* Element::f16_table() {
    static const std::vector<float> table = [] {
        std::vector<float> t(65536);
        for (uint32_t i = 0; i < 65536; ++i) {
            t[i] = f32_from_f16(static_cast<uint16_t>(i));
        }
        return t;
    }();
    return table.data();
}

const float* const Element::f16_values = Element::f16_table();

namespace {

struct MatrixOperands {
    unsigned* r;
    unsigned at;
    int matrices;
};

std::byte* row_of(unsigned at, const char* instruction) {
    return running()->shared(at, 16, -1, instruction);
}

struct MmaOperands {
    void* c;
    const unsigned* a;
    const unsigned* b;
};

/// 16 x K by K x 8: K is 16, 8 (tf32) or 32 (8-bit types). Every register of A holds the elements
/// 4 * register + i of a row's half: rows lane / 4 and + 8, depth quarter lane % 4, then + K / 2.
template <Mma kind>
void multiply_warp(const Meeting& m) {
    using Sum = std::conditional_t<Element::is_whole(kind), int32_t, float>;
    constexpr int per = Element::per_register(kind);
    constexpr int bytes = Element::bytes(kind);
    constexpr int depth = 8 * per;
    float a[16][depth];
    float b[depth][8];
    for (int lane = 0; lane < 32; ++lane) {
        auto* o = static_cast<MmaOperands*>(m.operands[static_cast<size_t>(lane)]);
        for (int r = 0; r < 4; ++r) {
            const auto* from = reinterpret_cast<const std::byte*>(o->a + r);
            int k = (r / 2) * depth / 2 + lane % 4 * per;
            for (int i = 0; i < per; ++i) {
                a[lane / 4 + r % 2 * 8][k + i] = Element::at<Element::of_a(kind)>(from + i * bytes);
            }
        }
        for (int r = 0; r < 2; ++r) {
            const auto* from = reinterpret_cast<const std::byte*>(o->b + r);
            int k = r * depth / 2 + lane % 4 * per;
            for (int i = 0; i < per; ++i) {
                b[k + i][lane / 4] = Element::at<Element::of_b(kind)>(from + i * bytes);
            }
        }
    }
    Sum sums[16][8];
    for (int row = 0; row < 16; ++row) {
        multiply_row(sums[row], a[row], b[0], depth, 8);
    }
    for (int lane = 0; lane < 32; ++lane) {
        auto* c =
            static_cast<Sum*>(static_cast<MmaOperands*>(m.operands[static_cast<size_t>(lane)])->c);
        for (int i = 0; i < 4; ++i) {
            c[i] += sums[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
        }
    }
}

} // namespace

void load_matrices(unsigned* r, unsigned at, int matrices, int transposed) {
    const char* name = transposed != 0 ? "ldmatrix transposed" : "ldmatrix";
    MatrixOperands mine{r, at, matrices};
    in_warp(name, &mine, [transposed, name](Meeting& m) {
        auto lanes = static_cast<int>(m.operands.size());
        if (lanes != 32) {
            running()->fail("ldmatrix in a warp without 32 lanes");
        }
        auto* first = static_cast<MatrixOperands*>(m.operands[0]);
        for (int i = 0; i < first->matrices; ++i) {
            uint16_t tile[8][8];
            for (int row = 0; row < 8; ++row) {
                auto* o =
                    static_cast<MatrixOperands*>(m.operands[static_cast<size_t>(i * 8 + row)]);
                std::memcpy(tile[row], row_of(o->at, name), 16);
            }
            for (int lane = 0; lane < 32; ++lane) {
                int row = lane / 4;
                int column = lane % 4 * 2;
                uint16_t low = transposed != 0 ? tile[column][row] : tile[row][column];
                uint16_t high = transposed != 0 ? tile[column + 1][row] : tile[row][column + 1];
                static_cast<MatrixOperands*>(m.operands[static_cast<size_t>(lane)])->r[i] =
                    low | uint32_t{high} << 16;
            }
        }
    });
}

void store_matrices(unsigned at, const unsigned* r, int matrices, int transposed) {
    running()->need(90, "stmatrix");
    MatrixOperands mine{const_cast<unsigned*>(r), at, matrices};
    const char* name = transposed != 0 ? "stmatrix transposed" : "stmatrix";
    in_warp(name, &mine, [transposed, name](Meeting& m) {
        if (m.operands.size() != 32) {
            running()->fail("stmatrix in a warp without 32 lanes");
        }
        auto* first = static_cast<MatrixOperands*>(m.operands[0]);
        for (int i = 0; i < first->matrices; ++i) {
            uint16_t tile[8][8];
            for (int lane = 0; lane < 32; ++lane) {
                auto* o = static_cast<MatrixOperands*>(m.operands[static_cast<size_t>(lane)]);
                int row = lane / 4;
                int column = lane % 4 * 2;
                (transposed != 0 ? tile[column][row] : tile[row][column]) =
                    static_cast<uint16_t>(o->r[i]);
                (transposed != 0 ? tile[column + 1][row] : tile[row][column + 1]) =
                    static_cast<uint16_t>(o->r[i] >> 16);
            }
            for (int row = 0; row < 8; ++row) {
                auto* o =
                    static_cast<MatrixOperands*>(m.operands[static_cast<size_t>(i * 8 + row)]);
                std::memcpy(row_of(o->at, name), tile[row], 16);
            }
        }
    });
}

void multiply(Mma kind, void* c, const unsigned* a, const unsigned* b) {
    static constexpr const char* names[] = {"mma_f16", "mma_bf16", "mma_tf32", "mma_s8",
                                            "mma_u8",  "mma_e4m3", "mma_e5m2", "mma_u8s8"};
    if (kind == Mma::E4M3 || kind == Mma::E5M2) {
        running()->need(89, names[static_cast<int>(kind)]);
    }
    MmaOperands mine{c, a, b};
    in_warp(names[static_cast<int>(kind)], &mine, [kind](Meeting& m) {
        if (m.operands.size() != 32) {
            running()->fail("mma in a warp without 32 lanes");
        }
        with_kind(kind, [&m](auto k) { multiply_warp<k()>(m); });
    });
}

} // namespace ingot::emulator
