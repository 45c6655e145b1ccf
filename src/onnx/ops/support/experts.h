// SPDX-License-Identifier: Apache-2.0
// Products of rows with the matrices of several experts, of floats or of quantised numbers. Experts
// are chosen for each token; the products read the chosen ones alone where that spares reading.
#pragma once

#include "onnx/importer.h"

namespace ingot::onnx {

/// Unsigned numbers of 2, 4 or 8 bits, packed in bytes along the last axis, the first in the lowest
/// bits: u8 [..., B] -> u4 (of 4 bits) or u8 [..., B * 8 / bits].
Value unpacked_numbers(ingot::Graph& g, Value bytes, int64_t bits);

/// The matrices of E experts: floats [E,N,K], or numbers of `bits` bits in bytes [E,N,K*bits/8]
/// with scales [E,N] or, for blocks along K, [E,N,K/block].
struct ExpertWeights {
    Value v;
    Value bias;       // [E,N], or invalid
    int64_t bits = 0; // 0: floats
    int64_t block = 0;
    Value scale{};
    Value zero{}; // packed like v, [E,N*bits/8] or [E,N,K/block*bits/8]; invalid: 2^(bits-1)
};

/// The experts that the products of T tokens read: S = min(T*k, E) of them.
struct ChosenExperts {
    Value experts; // i64 [S]; invalid: all, in order
    Value gates; // f32 [T,S]: the weight of a token's result by each; 0 where it did not choose it
};
/// From the experts that each token chose, i64 [T,k], all below E, and their weights, f32 [T,k].
ChosenExperts chosen_experts(ingot::Graph& g, Value experts, Value weights, const Dim& count);

/// x [T,K] by each chosen matrix, plus its bias: [T,S,N] of x's type.
Value product_of_each(ingot::Graph& g, Value x, const ExpertWeights& w,
                      const ChosenExperts& chosen);
/// The sum over s of gates[t,s] * (h[t,s] by matrix s, plus its bias): h [T,S,K] -> [T,N] of h's
/// type.
Value product_of_all(ingot::Graph& g, Value h, const ExpertWeights& w, const ChosenExperts& chosen);

} // namespace ingot::onnx
