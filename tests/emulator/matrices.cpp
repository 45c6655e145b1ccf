// SPDX-License-Identifier: Apache-2.0
// Matrix instructions of a warp, with the fragment layouts of the PTX manual (mma, ldmatrix).
#include "base/error.h"
#include "emulator/instructions.h"

#include <bit>
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

float Element::f16(uint16_t bits) {
    static const float* const table = f16_table();
    return table[bits];
}

float Element::bf16(uint16_t bits) {
    return f32_from_bf16(bits);
}

float Element::tf32(uint32_t bits) {
    return std::bit_cast<float>(bits & 0xFFFFE000U);
}

int Element::per_register(Mma kind) {
    switch (kind) {
    case Mma::Tf32:
        return 1;
    case Mma::F16:
    case Mma::BF16:
        return 2;
    default:
        return 4;
    }
}

float Element::of(Mma kind, uint32_t bits, int index) {
    auto half = static_cast<uint16_t>(bits >> (16 * (index & 1)));
    auto byte = static_cast<uint8_t>(bits >> (8 * (index & 3)));
    switch (kind) {
    case Mma::F16:
        return f16(half);
    case Mma::BF16:
        return bf16(half);
    case Mma::Tf32:
        return tf32(bits);
    case Mma::S8:
        return static_cast<int8_t>(byte);
    case Mma::U8:
    case Mma::U8S8: // of the first operand
        return byte;
    case Mma::E4M3:
        return f32_from_f8e4m3(byte);
    case Mma::E5M2:
        return f32_from_f8e5m2(byte);
    }
    return 0;
}

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

/// The elements of each operand.
Mma type_of_a(Mma kind) {
    return kind == Mma::U8S8 ? Mma::U8 : kind;
}
Mma type_of_b(Mma kind) {
    return kind == Mma::U8S8 ? Mma::S8 : kind;
}

/// 16 x K by K x 8: K is 16, 8 (tf32) or 32 (8-bit types). Every register of A holds the elements
/// 4 * register + i of a row's half: rows lane / 4 and + 8, depth quarter lane % 4, then + K / 2.
template <class Sum>
void multiply_warp(Mma kind, const Meeting& m) {
    int per = Element::per_register(kind);
    int depth = 8 * per;
    float a[16][32];
    float b[32][8];
    for (int lane = 0; lane < 32; ++lane) {
        auto* o = static_cast<MmaOperands*>(m.operands[static_cast<size_t>(lane)]);
        for (int r = 0; r < 4; ++r) {
            for (int i = 0; i < per; ++i) {
                int k = (r / 2) * depth / 2 + lane % 4 * per + i;
                a[lane / 4 + r % 2 * 8][k] = Element::of(type_of_a(kind), o->a[r], i);
                if (r < 2) {
                    b[r * depth / 2 + lane % 4 * per + i][lane / 4] =
                        Element::of(type_of_b(kind), o->b[r], i);
                }
            }
        }
    }
    for (int lane = 0; lane < 32; ++lane) {
        auto* c =
            static_cast<Sum*>(static_cast<MmaOperands*>(m.operands[static_cast<size_t>(lane)])->c);
        for (int i = 0; i < 4; ++i) {
            int row = lane / 4 + i / 2 * 8;
            int column = lane % 4 * 2 + i % 2;
            Sum sum = 0;
            for (int k = 0; k < depth; ++k) {
                sum += static_cast<Sum>(a[row][k] * b[k][column]);
            }
            c[i] += sum;
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
    MmaOperands mine{c, a, b};
    in_warp(names[static_cast<int>(kind)], &mine, [kind](Meeting& m) {
        if (m.operands.size() != 32) {
            running()->fail("mma in a warp without 32 lanes");
        }
        if (kind == Mma::S8 || kind == Mma::U8 || kind == Mma::U8S8) {
            multiply_warp<int32_t>(kind, m);
        } else {
            multiply_warp<float>(kind, m);
        }
    });
}

} // namespace ingot::emulator
