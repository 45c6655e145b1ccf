// SPDX-License-Identifier: Apache-2.0
// SparseTensorProto, and external data of a model in memory.
#include "onnx/malformed/cases.h"
#include "onnx/proto_builder.h"

namespace ingot::onnx::test {
namespace {

Pb indices(std::initializer_list<int64_t> dims, std::initializer_list<int64_t> v) {
    return tensor("", dims, 7).packed(7, v);
}

MalformedCase sparse_case(const char* name, const Pb& s, const std::string& error) {
    return {name, model(graph().m(15, s)).bytes(), "graph 'g': sparse initializer #0: " + error};
}

MalformedCase external_case(const char* name,
                            std::initializer_list<std::pair<const char*, std::string>> entries,
                            const std::string& error) {
    return {name, model_with_initializer(external_tensor("w", {1}, 1, entries)).bytes(),
            "graph 'g': initializer 'w': " + error};
}

} // namespace

std::vector<MalformedCase> malformed_sparse() {
    const Pb two = tensor("w", {2}, 2, "12");
    const auto sparse = [&](const Pb& index) { return Pb().m(1, two).m(2, index).i(3, 2).i(3, 3); };
    return {
        sparse_case("SparseWithoutValues", Pb().m(2, indices({0}, {})).i(3, 4), "has no values"),
        sparse_case("SparseWithoutIndices", Pb().m(1, two).i(3, 4), "has no indices"),
        sparse_case("SparseWithoutDims", Pb().m(1, two).m(2, indices({2}, {0, 1})),
                    "dims are missing"),
        sparse_case("SparseDimNegative", Pb().m(1, two).m(2, indices({2}, {0, 1})).i(3, -4),
                    "dim 0 is negative (u8 [-4])"),
        sparse_case(
            "SparseDimsOverflow",
            Pb().m(1, two).m(2, indices({2}, {0, 1})).i(3, int64_t{1} << 40).i(3, int64_t{1} << 40),
            "the size of u8 [1099511627776,1099511627776] does not fit in 64 bits"),
        sparse_case("SparseValuesOfRankTwo",
                    Pb().m(1, tensor("w", {1, 2}, 2, "12")).m(2, indices({2}, {0, 1})).i(3, 4),
                    "values must have one dim, got u8 [1,2]"),
        sparse_case("SparseIndicesTooFew", sparse(indices({1}, {0})),
                    "indices must be i64 [2] or i64 [2,2], got i64 [1]"),
        sparse_case("SparseIndicesOfRankThree", sparse(indices({2, 3}, {0, 0, 0, 0, 0, 1})),
                    "indices must be i64 [2] or i64 [2,2], got i64 [2,3]"),
        sparse_case("SparseIndicesAreI32", sparse(tensor("", {2}, 6).packed(5, {0, 1})),
                    "indices must be i64 [2] or i64 [2,2], got i32 [2]"),
        sparse_case("SparseIndexPastEnd", sparse(indices({2}, {0, 6})),
                    "index 6 of value 1 is outside a tensor of 6 elements"),
        sparse_case("SparseIndexNegative", sparse(indices({2}, {-1, 0})),
                    "index -1 of value 0 is outside a tensor of 6 elements"),
        sparse_case("SparseIndexPastDim", sparse(indices({2, 2}, {0, 1, 1, 3})),
                    "index 3 of value 1 is outside dim 1, which is 3"),
        sparse_case("SparseIndicesUnsorted", sparse(indices({2}, {3, 2})),
                    "the indices of values 0 and 1 are not in ascending order"),
        sparse_case("SparseIndexTwice", sparse(indices({2, 2}, {1, 1, 1, 1})),
                    "the indices of values 0 and 1 are not in ascending order"),
        sparse_case("SparseValuesShort",
                    Pb().m(1, tensor("w", {2}, 1, "1234")).m(2, indices({2}, {0, 1})).i(3, 4),
                    "values: raw data has 4 bytes, expected 8 (f32 [2])"),
    };
}

std::vector<MalformedCase> malformed_external() {
    const Pb both = external_tensor("w", {1}, 1, {{"location", "w.bin"}});
    return {
        external_case("ExternalInMemory", {{"location", "w.bin"}},
                      "external data 'w.bin': the model was read from memory, so there is no "
                      "folder to look in; read it from a file, or store the data inside the "
                      "model"),
        external_case("ExternalWithoutEntries", {}, "external data: no location"),
        external_case("ExternalWithoutLocation", {{"offset", "0"}}, "external data: no location"),
        external_case("ExternalUnknownKey", {{"location", "w.bin"}, {"lenght", "4"}},
                      "external data: unknown key 'lenght'; known keys are location, offset, "
                      "length, checksum"),
        external_case("ExternalKeyTwice", {{"location", "w.bin"}, {"location", "v.bin"}},
                      "external data: key 'location' occurs twice"),
        external_case("ExternalOffsetNegative", {{"location", "w.bin"}, {"offset", "-4"}},
                      "external data: offset is '-4', expected a number of bytes in decimal "
                      "digits"),
        external_case("ExternalOffsetHex", {{"location", "w.bin"}, {"offset", "0x10"}},
                      "external data: offset is '0x10', expected a number of bytes in "
                      "decimal digits"),
        external_case("ExternalOffsetEmpty", {{"location", "w.bin"}, {"offset", ""}},
                      "external data: offset is '', expected a number of bytes in decimal "
                      "digits"),
        external_case("ExternalLengthSigned", {{"location", "w.bin"}, {"length", "+4"}},
                      "external data: length is '+4', expected a number of bytes in decimal "
                      "digits"),
        external_case("ExternalLengthSpaced", {{"location", "w.bin"}, {"length", " 4"}},
                      "external data: length is ' 4', expected a number of bytes in decimal "
                      "digits"),
        external_case("ExternalLengthHuge",
                      {{"location", "w.bin"}, {"length", "18446744073709551616"}},
                      "external data: length '18446744073709551616' does not fit in 64 bits"),
        external_case("ExternalNulInName", {{"location", std::string("w.bin\0.txt", 10)}},
                      "external data: location 'w.bin\\x00.txt' contains a NUL character"),
        {"ExternalAndRawData", model_with_initializer(Pb(both).s(9, "1234")).bytes(),
         "graph 'g': initializer 'w': has both external data and raw_data"},
        {"ExternalAndFloatData", model_with_initializer(Pb(both).f(4, 1)).bytes(),
         "graph 'g': initializer 'w': has both external data and float_data"},
        {"ExternalString",
         model_with_initializer(external_tensor("w", {1}, 8, {{"location", "w.bin"}})).bytes(),
         "graph 'g': initializer 'w': a string tensor keeps its data in "
         "string_data, not in a file"},
        {"ExternalInAttribute",
         model_with_attribute(
             attribute("a", 4).m(5, external_tensor("", {1}, 1, {{"location", "w.bin"}})))
             .bytes(),
         "graph 'g': node 'n' (Op): attribute 'a': external data 'w.bin': the "
         "model was read from memory, so there is no folder to look in; read it "
         "from a file, or store the data inside the model"},
    };
}

} // namespace ingot::onnx::test
