// SPDX-License-Identifier: Apache-2.0
// The generated text of a few kernels of each family, as goldens: tests/kernels/texts/NAME.txt.
// INGOT_WRITE_GOLDENS=1 writes them. Device files (.cuh) are named, not copied.
#include "base/error.h"
#include "base/text.h"
#include "expect_golden.h"
#include "kernels/group_run.h"
#include "ops/op_case.h"
#include "source_dir.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

namespace ingot::test {

using namespace kernels;

namespace {

struct KernelCase {
    std::string_view name; // of the golden file
    int cc;
    std::string_view tactic; // the first one whose name begins so
    std::string_view op;     // as in tests/ops/*.case
};

const KernelCase cases[] = {
    {"map_vectors", 90, "",
     R"(map body="0=in(0):f32; 1=in(1):f32; 2=add(0,1):f32; 3=tanh(2):f32" dtype=f16 | f16[64,128] f16[128])"},
    {"permute_packed", 90, "", R"(permute perm=[1,0] | i4[96,160])"},
    {"map_packed", 90, "",
     R"(map body="0=in(0):i8; 1=in(1):i8; 2=add(0,1):i8" dtype=i4 | i4[6,64] i4[6,64])"},
    {"pad_reflect", 90, "", R"(pad low=[1,0] high=[0,2] mode="reflect" | f32[5,33] f32[])"},
    {"iota", 90, "", R"(iota dtype=i64 dims=[4,33] axis=1 |)"},
    {"random_uniform", 90, "", R"(random kind="uniform" a=-1 b=3 dtype=f32 dims=[64,5] seed=7 |)"},
    {"gather_rows", 90, "", R"(gather axis=0 | f16[100,64] i64[7])"},
    {"scatter_few", 90, "", R"(scatter fn="add" | f32[100,8] i64[7] f32[7,8])"},
    {"scatter_many", 90, "", R"(scatter fn="add" | f32[5000,2] i64[4000] f32[4000,2])"},
    {"reduce_rows", 90, "", R"(reduce fn="sum" axes=[1] | f16[64,1000])"},
    {"reduce_columns", 90, "", R"(reduce fn="max" axes=[0] | f32[1000,64])"},
    {"arg_reduce", 90, "", R"(arg_reduce fn="max" axis=1 | f32[64,1000])"},
    {"softmax", 90, "", R"(softmax axis=1 | f16[64,1000])"},
    {"layer_norm", 90, "", R"(layer_norm axis=-1 epsilon=1e-5 | f16[64,768] f16[768] f16[768])"},
    {"row_moments", 90, "", R"(row_moments chunk=32 | f16[64,768])"},
    {"moment_norm", 90, "", R"(moment_norm epsilon=1e-5 | f16[64,768] f32[64,24,2])"},
    {"group_norm", 90, "", R"(group_norm groups=8 epsilon=1e-5 | f16[2,64,16,16] f16[64] f16[64])"},
    {"pool_max", 90, "",
     R"(pool fn="max" sizes=[3,3] strides=[2,2] dilations=[1,1] low=[1,1] high=[1,1] extra=[0,0] | f16[2,16,15,17])"},
    {"resize_linear", 90, "",
     R"(resize axes=[2,3] sizes=[20,30] scales=[2,2] mode="linear" coordinates="half_pixel" nearest="floor" | f32[1,3,10,15])"},
    {"recurrence", 90, "cluster1_w8",
     R"(recurrence cell="lstm" reversed=[0,1] gate="0=in(0):f32; 1=sigmoid(0):f32" candidate="0=in(0):f32; 1=tanh(0):f32" output="0=in(0):f32; 1=tanh(0):f32" | f16[5,2,384] f16[2,192,48] f16[2,2,48] f16[2,2,48])"},
    {"grid_sample_channels_first", 90, "sample_c4", R"(grid_sample | f16[2,32,8,8] f32[2,10,4,2])"},
    {"grid_sample_cubic_3_channels", 90, "",
     R"(grid_sample mode="cubic" padding="reflection" align_corners=true | f32[1,3,8,8] f32[1,16,16,2])"},
    {"roll", 90, "", R"(roll axes=[1] shifts=[3] | f16[4,56,64])"},
    {"rope", 90, "", R"(rope | f16[8,16,64] f16[16,32] f16[16,32])"},
    {"scan_sum", 90, "", R"(scan fn="sum" axis=1 | f32[4,5000])"},
    {"sort_short", 90, "", R"(sort axis=1 | f32[4,100])"},
    {"topk_router", 90, "", R"(topk k=4 axis=1 largest=true | f32[32,64])"},
    {"topk_long", 90, "", R"(topk k=5 axis=0 largest=true | f32[100000])"},
    {"dot_simt", 80, "simt",
     R"(dot a_contract=[1] b_contract=[0] dtype=f64 | f64[33,20] f64[20,65])"},
    {"dot_mma", 80, "mma",
     R"(dot a_contract=[1] b_contract=[1] dtype=f16 | f16[64,128] f16[256,128])"},
    {"dot_wgmma", 90, "wgmma",
     R"(dot a_contract=[1] b_contract=[1] dtype=f16 | f16[256,512] f16[1024,512])"},
    {"dot_few_rows", 80, "gemv",
     R"(dot a_contract=[1] b_contract=[1] dtype=f16 | f16[2,512] f16[1024,512])"},
    {"dot_few_rows_tma", 90, "gemv_pipelined",
     R"(dot a_contract=[1] b_contract=[1] dtype=f16 | f16[1,4096] f16[4096,4096])"},
    {"quantized_dot_mma", 80, "quant_mma",
     R"(quantized_dot a_contract=[1] b_contract=[1] dtype=f16 axis=0 block=0 | f16[64,128] i8[256,128] f16[256])"},
    {"conv_mma", 80, "conv_mma",
     R"(conv strides=[1,1] dilations=[1,1] low=[1,1] high=[1,1] groups=1 dtype=f16 | f16[1,64,14,14] f16[64,64,3,3])"},
    {"conv_wgmma", 90, "conv_wgmma",
     R"(conv strides=[1,1] dilations=[1,1] low=[1,1] high=[1,1] groups=1 dtype=f16 | f16[4,64,28,28] f16[128,64,3,3])"},
    {"conv_halo", 90, "conv_halo",
     R"(conv strides=[1,1] dilations=[1,1] low=[1,1] high=[1,1] groups=1 dtype=f16 | f16[4,64,28,28] f16[64,64,3,3])"},
    {"conv_depthwise", 90, "",
     R"(conv strides=[1,1] dilations=[1,1] low=[1,1] high=[1,1] groups=32 dtype=f16 | f16[1,32,14,14] f16[32,1,3,3])"},
    {"squeeze_excite", 90, "",
     R"(squeeze_excite act="0=in(0):f32; 1=tanh(0):f32" gate="0=in(0):f32; 1=sigmoid(0):f32" | f16[2,64,14,14] f16[16,64] f16[16] f16[64,16] f16[64])"},
    {"attention_mma", 80, "att_mma",
     R"(attention scale=0.125 | f16[1,4,128,64] f16[1,4,128,64] f16[1,4,128,64])"},
    {"attention_wgmma", 90, "att_wgmma",
     R"(attention scale=0.125 causal=true | f16[1,8,256,64] f16[1,8,256,64] f16[1,8,256,64])"},
};

/// The op as a group on operands of its types.
Graph graph_of(const KernelCase& k) {
    OpCase c = parse_case(std::string(k.name), str("op ", k.op));
    Graph g;
    Values inputs;
    for (const CaseInput& in : c.inputs) {
        inputs.push_back(g.add_input(str("x", inputs.size()), in.type));
    }
    for (Value v : g.add(*c.def, c.attrs, inputs)) {
        g.add_output(str("y", v.id), v);
    }
    return g;
}

/// The text with the whole text of each device file replaced by its name.
std::string with_names_of_files(std::string text) {
    std::map<size_t, std::vector<std::string>, std::greater<>> by_length;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(source_dir() + "/src/kernels")) {
        if (entry.path().extension() == ".cuh") {
            std::string stem = entry.path().stem().string();
            by_length[device_file(stem).size()].push_back(stem);
        }
    }
    for (const auto& [length, stems] : by_length) {
        for (const std::string& stem : stems) {
            for (size_t at; (at = text.find(device_file(stem))) != std::string::npos;) {
                text.replace(at, length, str("\n// ", stem, ".cuh\n"));
            }
        }
    }
    return text;
}

std::string sizes_text(const std::array<int64_t, 3>& grid) {
    return str(grid[0], "x", grid[1], "x", grid[2]);
}

std::string launch_text(const Launch& l) {
    std::string files;
    for (std::string_view f : l.program.uses) {
        append(files, str(" ", f));
    }
    if (!l.program.family.empty()) {
        append(files, str(" ", l.program.family));
    }
    return str("launch ", l.entry, ": grid ", sizes_text(l.grid), ", block ", l.block, ", shared ",
               l.shared, ", cluster ", l.cluster, "\ndevice files:", files, "\n\n",
               with_names_of_files(generated_text(l.program)), "\n");
}

/// The launches of the case's tactic. Fails the test when the family has no such tactic.
std::string case_text(const KernelCase& k) {
    GroupCase group(graph_of(k), "");
    FamilyOptions options{.cc = k.cc};
    const Arch& arch = arch_of(k.cc);
    Placement placement(group, arch, options);
    std::vector<Tactic> tactics = placement.tactics();
    auto t = std::find_if(tactics.begin(), tactics.end(),
                          [&](const Tactic& each) { return each.name.starts_with(k.tactic); });
    if (t == tactics.end()) {
        ADD_FAILURE() << "no tactic '" << k.tactic << "'";
        return "";
    }
    std::string text = str("op ", k.op, "\nfamily ", group.family().name, ", tactic ", t->name,
                           ", compute capability ", k.cc / 10, ".", k.cc % 10, "\n\n");
    for (const Launch& l : placement.emit(*t).launches) {
        append(text, launch_text(l));
    }
    return text;
}

} // namespace

TEST(KernelText, IsAsInTheGoldens) {
    for (const KernelCase& k : cases) {
        SCOPED_TRACE(k.name);
        try {
            expect_golden(str("tests/kernels/texts/", k.name, ".txt"), case_text(k));
        } catch (const Error& e) {
            ADD_FAILURE() << e.what();
        }
    }
}

TEST(KernelText, EveryFamilyHasAGolden) {
    std::set<std::string_view> shown;
    for (const KernelCase& k : cases) {
        shown.insert(GroupCase(graph_of(k), "").family().name);
    }
    for (const FamilyTable* table : all_families()) {
        EXPECT_TRUE(std::any_of(table->begin(), table->end(), [&](const Family& f) {
            return shown.contains(f.name);
        })) << table->front().name;
    }
}

} // namespace ingot::test
