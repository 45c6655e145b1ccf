// SPDX-License-Identifier: Apache-2.0
#include "trtexec_options.h"

#include "base/error.h"
#include "common.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace ingot::tool {

namespace {

template <class... Args>
void check(bool holds, const Args&... message) {
    require(holds, ErrorCode::InvalidArgument, message...);
}

bool optional_value(std::string_view value) {
    return !value.empty() && value.front() == '[';
}

std::vector<std::string> known_names() {
    std::vector<std::string> names;
    auto add = [&](std::string_view row) {
        for (std::string& n : split_names(row)) {
            names.push_back(std::move(n));
        }
    };
    for (const OptionRow& r : option_rows()) {
        if ((r.commands & command::Trtexec) != 0) {
            add(r.names);
        }
    }
    for (const IgnoredRow& r : ignored_rows()) {
        add(r.names);
    }
    return names;
}

[[noreturn]] void refuse_unknown(const std::string& word, const std::string& name) {
    check(word.starts_with("-"), "unexpected argument '", word,
          "': a model is given as --onnx=FILE or --loadEngine=FILE");
    std::string near = nearest(name, known_names());
    fail(ErrorCode::InvalidArgument, "Unknown option: ", name,
         near.empty() ? std::string("; --help lists all") : str("; did you mean ", near, "?"));
}

class Parser {
public:
    explicit Parser(std::span<const std::string> arguments) : arguments_(arguments) {
        t_.pairs.emplace_back();
    }
    TrtexecOptions parse();

private:
    void argument();
    void known(const OptionRow& row, const std::string& name, const std::string& value);
    void ignored(const IgnoredRow& row, const std::string& name, const std::string& value);
    std::string value_of(const std::string& name, std::string_view kind, bool inline_value,
                         std::string value);
    void environment();
    void pools();

    TrtexecOptions t_;
    std::span<const std::string> arguments_;
    size_t at_ = 0;
    size_t profile_ = 0;
    size_t pair_ = 0;
};

std::string Parser::value_of(const std::string& name, std::string_view kind, bool inline_value,
                             std::string value) {
    if (kind.empty() || inline_value || optional_value(kind)) {
        check(kind.empty() || !inline_value || !value.empty() || optional_value(kind), name,
              " needs a value: ", name, "=", kind);
        return value;
    }
    bool follows = at_ < arguments_.size() && !arguments_[at_].starts_with("--");
    check(follows, name, " needs a value: ", name, "=", kind);
    return arguments_[at_++];
}

void Parser::argument() {
    const std::string& word = arguments_[at_++];
    size_t equals = word.find('=');
    bool inline_value = equals != std::string::npos;
    std::string name = word.substr(0, equals);
    std::string value = inline_value ? word.substr(equals + 1) : std::string();
    if (const OptionRow* row = find_option(command::Trtexec, name)) {
        known(*row, name, value_of(name, row->value, inline_value, value));
    } else if (const IgnoredRow* no = find_ignored(name)) {
        ignored(*no, name, value_of(name, no->value, inline_value, value));
    } else {
        refuse_unknown(word, name);
    }
}

void Parser::known(const OptionRow& row, const std::string& name, const std::string& value) {
    set_option(t_.o, row, name, value);
    bool again = !t_.given.insert(row.field).second;
    auto once = [&](std::string& slot) {
        check(slot.empty(), name, "=", value, " is given twice for the same index: it was ", slot);
        slot = value;
    };
    constexpr int64_t most = 63; // profiles and pairs
    if (row.field == "profile_index") {
        check(t_.o.profile_index >= 0 && t_.o.profile_index <= most, name, "=", value,
              ": expected 0 to ", most);
        profile_ = static_cast<size_t>(t_.o.profile_index);
    } else if (row.field == "reference_pair") {
        check(t_.o.reference_pair >= 0 && t_.o.reference_pair <= most, name, "=", value,
              ": expected 0 to ", most);
        pair_ = static_cast<size_t>(t_.o.reference_pair);
        t_.pairs.resize(std::max(t_.pairs.size(), pair_ + 1));
    } else if (row.field == "min_shapes" || row.field == "opt_shapes" ||
               row.field == "max_shapes") {
        t_.shape_specs.resize(std::max(t_.shape_specs.size(), profile_ + 1));
        once(t_.shape_specs[profile_][row.field == "min_shapes"   ? 0
                                      : row.field == "opt_shapes" ? 1
                                                                  : 2]);
    } else if (row.field == "load_inputs") {
        once(t_.pairs[pair_].inputs);
    } else if (row.field == "load_references") {
        once(t_.pairs[pair_].outputs);
    } else {
        check(!again || row.type == "Flag" || row.type == "List", name, " is given twice");
    }
}

void Parser::ignored(const IgnoredRow& row, const std::string& name, const std::string& value) {
    if (!optional_value(row.value)) {
        check_value(row.value, name, value);
    }
    t_.ignored[name] = value;
    t_.notes.push_back(
        {!row.already,
         str(name, row.already ? " changes nothing: " : " is ignored: ", row.reason)});
}

void Parser::environment() {
    for (const OptionRow& r : option_rows()) {
        std::string variable = environment_name(r.field);
        const char* text = std::getenv(variable.c_str());
        bool wanted = (r.commands & command::Trtexec) != 0 && text != nullptr && *text != '\0' &&
                      !t_.has(r.field) && r.field != "help" && r.field != "version";
        if (wanted) {
            known(r, variable, text);
        }
    }
}

// "workspace:1024,tacticSharedMem:48K"; MiB unless a letter says otherwise.
void Parser::pools() {
    constexpr std::array<std::string_view, 5> names = {"workspace", "tacticSharedMem", "dlaSRAM",
                                                       "dlaLocalDRAM", "dlaGlobalDRAM"};
    for (const std::string& list : t_.o.pools) {
        for (const std::string& part : parse_names(list)) {
            std::string name = part.substr(0, part.find(':'));
            check(std::find(names.begin(), names.end(), name) != names.end(),
                  "--memPoolSize=", list, ": there is no pool '", name,
                  "'; expected workspace, tacticSharedMem, dlaSRAM, dlaLocalDRAM or "
                  "dlaGlobalDRAM");
            std::string_view size = std::string_view(part).substr(name.size());
            size.remove_prefix(size.empty() ? 0 : 1);
            double number = 0;
            auto [last, error] = std::from_chars(size.data(), size.data() + size.size(), number);
            std::string_view unit(last, static_cast<size_t>(size.data() + size.size() - last));
            double scale = unit == "B"                   ? 1.0
                           : unit == "K"                 ? 0x1p10
                           : unit.empty() || unit == "M" ? 0x1p20
                           : unit == "G"                 ? 0x1p30
                                                         : 0.0;
            check(error == std::errc() && scale > 0 && number >= 0 && number * scale < 0x1p60,
                  "--memPoolSize=", list, ": '", part,
                  "': expected name:size, such as workspace:512 or tacticSharedMem:48K");
            t_.pools[name] = static_cast<int64_t>(number * scale);
        }
    }
    if (t_.has("workspace_mebibytes")) {
        constexpr int64_t mebibyte = 1 << 20;
        check(t_.o.workspace_mebibytes >= 0 && t_.o.workspace_mebibytes < mebibyte * mebibyte,
              "--workspace=", t_.o.workspace_mebibytes, ": expected MiB, 0 or more");
        t_.pools.emplace("workspace", t_.o.workspace_mebibytes * mebibyte);
    }
    for (const auto& [name, bytes] : t_.pools) {
        if (name != "workspace" && name != "tacticSharedMem") {
            t_.notes.push_back({true, str("--memPoolSize=", name,
                                          " is ignored: Ingot runs on GPUs "
                                          "and CPUs, not on a DLA")});
        }
    }
}

void check_numbers(const Options& o) {
    struct Range {
        std::string_view name;
        int64_t value;
        int64_t low;
        int64_t high;
    };
    constexpr int64_t any = INT64_MAX;
    for (const Range& r : {Range{"--iterations", o.iterations, 0, any},
                           {"--warmUp", o.warm_up, 0, any},
                           {"--sleepTime", o.sleep_time, 0, any},
                           {"--idleTime", o.idle_time, 0, any},
                           {"--avgRuns", o.avg_runs, 1, any},
                           {"--infStreams", o.streams, 1, 256},
                           {"--useProfile", o.use_profile, 0, any},
                           {"--calibBatchSize", o.calib_batch, 0, any},
                           {"--cpuThreads", o.cpu_threads, 0, 1024},
                           {"--builderOptimizationLevel", o.optimization_level, 0, 5}}) {
        check(r.value >= r.low && r.value <= r.high, r.name, "=", r.value, ": expected ", r.low,
              r.high == any ? std::string(" or more") : str(" to ", r.high));
    }
    check(o.duration >= 0 || o.duration == -1, "--duration=", o.duration,
          ": expected seconds, or -1 to run until interrupted");
    check(o.cache_ratio >= 0 && o.cache_ratio <= 1, "--persistentCacheRatio=", o.cache_ratio,
          ": expected 0 to 1");
    check(o.lean_path.empty() || o.use_runtime != "full",
          "--leanDLLPath needs --useRuntime=lean or dispatch");
    for (double p : parse_numbers(o.percentile)) {
        check(p >= 0 && p <= 100, "--percentile=", o.percentile, ": ", p,
              " is not between 0 and 100");
    }
}

void check_references(const TrtexecOptions& t) {
    bool several = t.has("reference_pair");
    bool compared = several || t.has("load_references");
    check(
        !compared || t.o.accuracy_threshold > 0,
        "--accuracyThreshold with a value above 0 is required with --loadRefOutputs or --refPair");
    check(!several || t.pairs.size() > 1,
          "--refPair needs two pairs at least; leave it out for a single pair");
    for (size_t i = 0; several && i < t.pairs.size(); ++i) {
        check(!t.pairs[i].inputs.empty() && !t.pairs[i].outputs.empty(), "--refPair=", i,
              ": expected --loadInputs and --loadRefOutputs after it");
    }
}

void note_unused(TrtexecOptions& t) {
    if (t.has("calib_batch")) {
        t.notes.push_back(
            {true, "--calibBatchSize is ignored: a calibration cache knows no batches"});
    }
    if (t.has("stream_threads")) {
        t.notes.push_back({false, "--threads changes nothing: each of several streams has a "
                                  "thread of its own"});
    }
}

// Options that only building reads: trtexec takes them beside --loadEngine, too.
void note_build_options(TrtexecOptions& t) {
    constexpr std::array<std::string_view, 18> build_only = {
        "onnx",           "min_shapes",     "opt_shapes",
        "max_shapes",     "profile_index",  "fp16",
        "bf16",           "int8",           "calib",
        "best",           "strongly_typed", "input_formats",
        "output_formats", "direct_io",      "disable_passes",
        "mark_debug",     "mark_all_debug", "uncalibrated_int8"};
    std::vector<std::string> names;
    for (const OptionRow& r : option_rows()) {
        if (t.has(r.field) &&
            std::find(build_only.begin(), build_only.end(), r.field) != build_only.end()) {
            names.push_back(split_names(r.names).front());
        }
    }
    if (t.loads() && !names.empty()) {
        t.notes.push_back({true, str(join(names, ", "), names.size() == 1 ? " has" : " have",
                                     " no effect with --loadEngine: that was decided when the "
                                     "engine was built")});
    }
}

void note_precision(TrtexecOptions& t) {
    Options& o = t.o;
    auto warn = [&](std::string text) { t.notes.push_back({true, std::move(text)}); };
    if (o.strongly_typed && (o.fp16 || o.bf16 || o.int8 || o.best)) {
        warn("precision flags have no effect with --stronglyTyped: the model's own types hold");
        o.fp16 = o.bf16 = o.int8 = o.best = false;
    }
    if (o.best) {
        o.fp16 = true;
        o.int8 = o.int8 || !o.calib.empty();
    }
    if (o.fp16 && o.bf16) {
        warn("--bf16 has no effect beside --fp16: one type of half precision is used");
        o.bf16 = false;
    }
    if (!o.calib.empty() && !o.int8) {
        warn("--calib has no effect without --int8");
    }
}

TrtexecOptions Parser::parse() {
    while (at_ < arguments_.size()) {
        argument();
        if (t_.o.help || t_.o.version) {
            return std::move(t_);
        }
    }
    environment();
    pools();
    check_numbers(t_.o);
    check_references(t_);
    for (size_t i = 0; i < t_.shape_specs.size(); ++i) {
        const auto& s = t_.shape_specs[i];
        check(!s[0].empty() || !s[1].empty() || !s[2].empty(), "--profile=", i,
              " has no shapes: profiles are numbered from 0 without gaps");
    }
    check(t_.loads() || !t_.o.onnx.empty(), "Model missing: give --onnx=FILE or --loadEngine=FILE");
    check(!t_.o.plan_version || t_.loads(), "--getPlanVersionOnly needs --loadEngine=FILE");
    note_precision(t_);
    note_build_options(t_);
    note_unused(t_);
    return std::move(t_);
}

} // namespace

TrtexecOptions parse_trtexec(std::span<const std::string> arguments) {
    return Parser(arguments).parse();
}

} // namespace ingot::tool
