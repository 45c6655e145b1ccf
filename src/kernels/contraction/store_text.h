// SPDX-License-Identifier: Apache-2.0
// Device text that walks a contraction's axes and stores its results, and the arguments of both.
#pragma once

#include "kernels/contraction/contraction.h"

namespace ingot::kernels {

/// Whether all views stored or read at the end can be walked in vectors of 8 columns.
bool vector_columns(const Contraction& c);
/// Whether 8 columns of an operand of the epilogue are a vector of 16 bytes.
bool in_narrow_vectors(const Contraction& c, size_t operand);
/// Whether an operand of the epilogue varies by column alone: a thread, whose rows have the same
/// columns, reads it once. Never an addend: products with different addends, or without one, share
/// a program, and only the geometry, an argument, says how theirs vary.
bool stands(const Contraction& c, size_t operand);
/// Columns that a thread stores at a time (VEC), at most and at least.
int store_width(const Contraction& c);
int least_width(const Contraction& c);
/// Whether threads that store `width` columns of a tile `bn` wide at a time can store the moments
/// too: four adjacent threads have the columns of a chunk.
bool stores_moments(const Contraction& c, int bn);

/// Device text: the part before contract.cuh (types, ranks, EPI_PARAMS), and the epilogue after it;
/// also for store_staged.cuh where it defines STAGED as more than 0. With moments it calls
/// chunk_moments.cuh.
struct StoreText {
    std::string defines;
    std::string functions;
    bool staged = false;
    bool paired = false;

    /// store_tile.cuh, and the file that handles pairs.
    std::string store_tile() const;
};
StoreText store_text(const Contraction& c, int vector);
/// `struct Geometry` of contract.cuh as an argument, and the epilogue's pointers.
void add_geometry(Args& args, const Contraction& c);
void add_operands(Args& args, const Contraction& c);
/// A struct of 64-bit integers as one argument. The device's struct may be shorter.
void add_words(Args& args, std::span<const int64_t> words);

} // namespace ingot::kernels
