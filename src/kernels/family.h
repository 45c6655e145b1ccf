// SPDX-License-Identifier: Apache-2.0
// A kernel family: the groups that it can run (refuse), the layouts of its operands (layout), its
// parameter choices for a problem on an architecture (tactics), and the launches that run it
// (emit). Families never touch a driver: they return device text and argument blocks.
#pragma once

#include "kernels/arch.h"
#include "kernels/tactic.h"
#include "plan/kernel.h"

#include <array>
#include <string>

namespace ingot::kernels {

using plan::Group;
using plan::LayoutArgs;
using plan::Operand;
using plan::Order;
using plan::View;

/// A tile of a matrix in global memory that TMA reads or writes (a CUtensorMap of `rank`
/// dimensions, innermost first). Element (c0, c1, ...) is at c0 + sum c[i] * strides[i-1].
struct TensorMap {
    DType dtype = DType::F16;
    int rank = 2;
    std::array<uint64_t, 5> sizes{};
    std::array<uint64_t, 4> strides{}; // in bytes, of dimensions 1.. (multiples of 16)
    std::array<uint32_t, 5> box{};
    bool swizzle128 = true; // else none
    bool tf32 = false;      // of f32: elements are rounded to TF32 as they are loaded
};

/// An operand's buffer in the step's scratch memory; its offset is in elements.
inline constexpr int in_scratch = -2;

/// The arguments of one launch, in the order of the kernel's parameters. Addresses are filled in
/// when the buffers are known.
class Args {
public:
    enum class Patch : uint8_t { Buffer, Scratch, ErrorWord, Map, RunState };
    struct Fixup {
        Patch what = Patch::Buffer;
        uint32_t at = 0;    // offset in bytes()
        int buffer = -1;    // Buffer and Map
        int64_t offset = 0; // bytes from the start of the buffer or of scratch memory
        uint32_t map = 0;   // index into maps()
    };

    /// A pointer to the first element of the view.
    Args& pointer(const Operand& o);
    Args& null();
    /// A pointer into the scratch memory of the step (Emitted::scratch bytes, 256-byte aligned).
    Args& scratch(int64_t offset);
    /// A pointer to the step's error word (u32, 0 before the first run), where a kernel stores an
    /// ErrorWord for a run-time error.
    Args& error_word();
    /// A pointer to two u64 of the execution: the number of its earlier runs that drew random
    /// numbers, and the number for the next run, which every kernel that draws stores there.
    Args& run_state();
    /// A `const __grid_constant__ TensorMap` parameter over the first element of the view.
    Args& map(const Operand& o, const TensorMap& m);
    Args& i32(int64_t v); // checked
    Args& i64(int64_t v);
    Args& f32(double v);
    Args& f64(double v);
    /// A struct passed by value; must be trivially copyable, with the layout in the device text.
    template <class T>
    Args& value(const T& v) {
        static_assert(std::is_trivially_copyable_v<T>);
        return raw(&v, sizeof v, alignof(T));
    }

    const std::vector<std::byte>& bytes() const { return bytes_; }
    const std::vector<uint32_t>& offsets() const { return offsets_; } // one per parameter
    const std::vector<Fixup>& fixups() const { return fixups_; }
    const std::vector<TensorMap>& maps() const { return maps_; }

private:
    Args& raw(const void* data, size_t size, size_t align);
    std::vector<std::byte> bytes_;
    std::vector<uint32_t> offsets_;
    std::vector<Fixup> fixups_;
    std::vector<TensorMap> maps_;
};

/// The values of an error word; the runner turns them into messages with the node's name.
enum class ErrorWord : uint32_t {
    None = 0,
    IndexOutOfRange = 1, // gather, scatter: an index is outside the axis
};

/// A parameter of a generated kernel.
struct KernelParameter {
    enum class Kind : uint8_t { Pointer, I32, U32, I64, U64, Other };
    Kind kind = Kind::Other;
    std::string type; // as declared: "const float*", "u32", or "I" for the index type of the text
    std::string name;
};

/// The placeholder for the block number in KernelText::statements, in place of blockIdx.x.
inline constexpr std::string_view block_number = "$block";

/// A kernel with generated text, for a one-dimensional grid.
struct KernelText {
    std::string name;
    std::vector<std::pair<std::string, std::string>> constants; // "#define"s: name, value
    std::vector<KernelParameter> parameters;                    // as the arguments of the launch
    std::string statements;
    int threads = 256;    // of a block
    bool divides = false; // divides an index by sizes that are parameters
};
/// The parameters as declared, separated by commas.
std::string parameters_text(std::span<const KernelParameter> parameters);
/// The statements with `number` as the number of the block.
std::string statements_text(const KernelText& k, std::string_view number);

/// Device text: names of the common files that it uses ("types", "math", ...; ptx always comes
/// first), `#define`s, then the family's own text. Equal programs are compiled once.
struct Program {
    std::vector<std::string_view> uses;
    std::string defines;     // "#define BM 64\n..."
    std::string_view family; // a .cuh of this folder by name ("gemm_mma"), or empty
    std::string body;        // generated text after `defines`, before the family's file
    std::optional<KernelText> kernel = {}; // after `body`
};
/// The generated part of a program: all but the device files by name.
std::string generated_text(const Program& p);
/// Equal where full_text() is: the generated part, and the device files by name.
std::string short_text(const Program& p);
/// The whole translation unit.
std::string full_text(const Program& p);
/// The text of an embedded .cuh by its stem. Aborts on an unknown one.
std::string_view device_file(std::string_view stem);

struct Launch {
    Program program;
    std::string entry; // extern "C" __global__ function
    std::array<int64_t, 3> grid{1, 1, 1};
    int block = 256;
    int64_t shared = 0; // dynamic shared memory, bytes
    int cluster = 1;    // CTAs along x
    /// Of blocks that ask for so much shared memory that each has an SM to itself: those of the
    /// next launch start when they have waited, not before (ptx.cuh): BERT was about 1 % slower
    /// otherwise, in turns that differ by as much.
    bool alone = false;
    Args args;
};

struct Emitted {
    std::vector<Launch> launches; // run in order
    int64_t scratch = 0;          // bytes
};

struct Problem {
    const Group& group;
    const Symbols& symbols;
    std::span<const Operand> in;
    std::span<const Operand> out;
    std::span<const std::byte* const> constants; // null where it is no graph constant
    const Arch& arch;
    bool tf32 = true; // f32 matrix products may round their operands to TF32
    /// Only tactics that add up a result in one and the same order, whatever the other axes are.
    bool batch_invariant = false;
    /// Whether tiles are made from the last one on, where the kernel can.
    bool backwards = false;

    const Operand& operand(Value v) const { return in[static_cast<size_t>(group.input_index(v))]; }
};

struct Family {
    /// An op's name for single nodes, or Fused::kernel.
    std::string_view name;
    std::optional<std::string> (*refuse)(const Group& group);
    /// Null: operands and results are dense and row major.
    void (*layout)(LayoutArgs& args) = nullptr;
    /// At least one that runs on every architecture; best first.
    std::vector<Tactic> (*tactics)(const Problem& p);
    Emitted (*emit)(const Problem& p, const Tactic& t);
    bool strided_results = false; // as in plan::Kernel
    bool aligned_rows = false;    // as in plan::Kernel
    bool takes_groups = false;
    bool reads_casts = false; // as in plan::Kernel
    bool in_place = false;
    /// Variants of a tactic give the same results with programs that serve more problems; variant 0
    /// is the plain one. A missing variant is emitted as the plain one.
    int variants = 1;
};

using FamilyTable = std::span<const Family>;
/// Generated from the files <folder>/<folder>.cpp: each defines one `<folder>_families`.
std::span<const FamilyTable* const> all_families();
/// The first family of that name. Errors: Internal where there is none.
const Family& family_of(std::string_view name);

} // namespace ingot::kernels
